// A transposing copy of i32 in tiles of 32 x 32: the strides of the store are swapped.
greta_tile.func @transpose_kernel(%x: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<i32>, %m: i32, %n: i32) attributes {waves = 2 : i32} {
  %c32 = arith.constant 32 : i32
  %px = greta_tile.program_id 0
  %py = greta_tile.program_id 1
  %row = arith.muli %py, %c32 : i32
  %column = arith.muli %px, %c32 : i32
  %v = greta_tile.load %x[%row, %column] strides [-9223372036854775808, 1] (%n) bounds [0, 1] (%m, %n) align 4 : !greta_tile.ptr<i32> -> tensor<32x32xi32>
  greta_tile.store %v, %y[%row, %column] strides [1, -9223372036854775808] (%m) bounds [0, 1] (%m, %n) align 4 : tensor<32x32xi32> -> !greta_tile.ptr<i32>
  greta_tile.return
}

func.func @transpose(%x: tensor<?x?xi32>) -> tensor<?x?xi32> {
  %0 = greta_tile.launch @transpose_kernel grid affine_map<()[m, n] -> (n ceildiv 32, m ceildiv 32)> scalars affine_map<()[m, n] -> (m, n)> (%x)
       shapes [affine_map<()[m, n] -> (n, m)>] : (tensor<?x?xi32>) -> tensor<?x?xi32>
  return %0 : tensor<?x?xi32>
}
