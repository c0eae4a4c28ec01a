// Sums of rows, whose columns are split over workgroups that add to the result atomically; a lane of several has each row.
greta_tile.func @zero_sums_kernel(%y: !greta_tile.ptr<f32>, %rows: i32) attributes {waves = 1 : i32} {
  %c = arith.constant 16 : i32
  %pid = greta_tile.program_id 0
  %first = arith.muli %pid, %c : i32
  %firsts = greta_tile.splat %first : tensor<16xi32>
  %iota = greta_tile.iota 0 : tensor<16xi32>
  %row = arith.addi %firsts, %iota : tensor<16xi32>
  %end = greta_tile.splat %rows : tensor<16xi32>
  %mask = arith.cmpi slt, %row, %end : tensor<16xi32>
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %p = greta_tile.ptr_add %y, %row : !greta_tile.ptr<f32>, tensor<16xi32>
  greta_tile.store_scattered %zero, %p mask %mask : tensor<16xf32> -> tensor<16x!greta_tile.ptr<f32>>
  greta_tile.return
}

greta_tile.func @split_sums_kernel(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %rows: i32, %columns: i32) attributes {waves = 2 : i32} {
  %c16 = arith.constant 16 : i32
  %c64 = arith.constant 64 : i32
  %px = greta_tile.program_id 0
  %py = greta_tile.program_id 1
  %firstColumn = arith.muli %px, %c64 : i32
  %firstRow = arith.muli %py, %c16 : i32
  %v = greta_tile.load %x[%firstRow, %firstColumn] strides [-9223372036854775808, 1] (%columns) bounds [0, 1] (%rows, %columns)
       : !greta_tile.ptr<f32> -> tensor<16x64xf32>
  %sum = greta_tile.reduce {arith.addf} %v axis 1 : tensor<16x64xf32> -> tensor<16xf32>
  %firsts = greta_tile.splat %firstRow : tensor<16xi32>
  %iota = greta_tile.iota 0 : tensor<16xi32>
  %row = arith.addi %firsts, %iota : tensor<16xi32>
  %end = greta_tile.splat %rows : tensor<16xi32>
  %mask = arith.cmpi slt, %row, %end : tensor<16xi32>
  %p = greta_tile.ptr_add %y, %row : !greta_tile.ptr<f32>, tensor<16xi32>
  %old = greta_tile.atomic_rmw fadd relaxed device %p, %sum mask %mask : tensor<16x!greta_tile.ptr<f32>> -> tensor<16xf32>
  greta_tile.return
}

func.func @split_sums(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %0 = greta_tile.launch @zero_sums_kernel grid affine_map<()[m, n] -> (m ceildiv 16)> scalars affine_map<()[m, n] -> (m)> ()
       shapes [affine_map<()[m, n] -> (m)>] : () -> tensor<?xf32>
  greta_tile.launch @split_sums_kernel grid affine_map<()[m, n] -> (n ceildiv 64, m ceildiv 16)> scalars affine_map<()[m, n] -> (m, n)> (%x, %0) shapes []
       : (tensor<?x?xf32>, tensor<?xf32>) -> ()
  return %0 : tensor<?xf32>
}
