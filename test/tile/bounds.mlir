// |x| of a matrix of any width, which is all that is known: accesses are one element wide, so that masks end where rows do. The grid has a block too many in
// each direction: those begin beyond the bounds and read and write nothing.
greta_tile.func @bounds_kernel(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>, %m: i32, %n: i32) attributes {waves = 2 : i32} {
  %c4 = arith.constant 4 : i32
  %c64 = arith.constant 64 : i32
  %px = greta_tile.program_id 0
  %py = greta_tile.program_id 1
  %row = arith.muli %py, %c4 : i32
  %column = arith.muli %px, %c64 : i32
  %v = greta_tile.load %x[%row, %column] strides [-9223372036854775808, 1] (%n) bounds [0, 1] (%m, %n) : !greta_tile.ptr<f16> -> tensor<4x64xf16>
  %a = math.absf %v : tensor<4x64xf16>
  greta_tile.store %a, %y[%row, %column] strides [-9223372036854775808, 1] (%n) bounds [0, 1] (%m, %n) : tensor<4x64xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

func.func @bounds(%x: tensor<?x?xf16>) -> tensor<?x?xf16> {
  %0 = greta_tile.launch @bounds_kernel grid affine_map<()[m, n] -> (n ceildiv 64 + 1, m ceildiv 4 + 1)> scalars affine_map<()[m, n] -> (m, n)> (%x)
       shapes [affine_map<()[m, n] -> (m, n)>] : (tensor<?x?xf16>) -> tensor<?x?xf16>
  return %0 : tensor<?x?xf16>
}
