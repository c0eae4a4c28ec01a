// The sum of every element's 3x3 neighbours, zero beyond the matrix's edges. Blocks begin a row and three columns before multiples of their extents, so that
// loads and stores are bounded below as well as above; some loads' blocks lie outside altogether.
greta_tile.func @padded_filter_kernel(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %m: i32, %n: i32) attributes {waves = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %c64 = arith.constant 64 : i32
  %px = greta_tile.program_id 0
  %py = greta_tile.program_id 1
  %rows = arith.muli %py, %c4 : i32
  %row = arith.subi %rows, %c1 : i32
  %columns = arith.muli %px, %c64 : i32
  %column = arith.subi %columns, %c3 : i32
  %zero = arith.constant dense<0.0> : tensor<4x64xf32>
  %sum = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %zero) -> (tensor<4x64xf32>) : i32 {
    %down = arith.addi %row, %i : i32
    %r = arith.subi %down, %c1 : i32
    %t = scf.for %j = %c0 to %c3 step %c1 iter_args(%u = %s) -> (tensor<4x64xf32>) : i32 {
      %right = arith.addi %column, %j : i32
      %c = arith.subi %right, %c1 : i32
      %v = greta_tile.load %x[%r, %c] strides [-9223372036854775808, 1] (%n) bounds [0, 1] (%m, %n) nonnegative [0, 1]
           : !greta_tile.ptr<f32> -> tensor<4x64xf32>
      %w = arith.addf %u, %v : tensor<4x64xf32>
      scf.yield %w : tensor<4x64xf32>
    }
    scf.yield %t : tensor<4x64xf32>
  }
  greta_tile.store %sum, %y[%row, %column] strides [-9223372036854775808, 1] (%n) bounds [0, 1] (%m, %n) nonnegative [0, 1]
      : tensor<4x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

func.func @padded_filter(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = greta_tile.launch @padded_filter_kernel grid affine_map<()[m, n] -> ((n + 3) ceildiv 64, (m + 1) ceildiv 4)> scalars affine_map<()[m, n] -> (m, n)> (%x)
       shapes [affine_map<()[m, n] -> (m, n)>] : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
