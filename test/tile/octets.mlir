// |x| of rows of eight halves, taken as one long row: its length is a multiple of eight, so 16 bytes move at once under the mask.
greta_tile.func @octets_kernel(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>, %n: i32) attributes {waves = 1 : i32} {
  %c2048 = arith.constant 2048 : i32
  %pid = greta_tile.program_id 0
  %start = arith.muli %pid, %c2048 : i32
  %v = greta_tile.load %x[%start] strides [1] bounds [0] (%n) : !greta_tile.ptr<f16> -> tensor<2048xf16>
  %a = math.absf %v : tensor<2048xf16>
  greta_tile.store %a, %y[%start] strides [1] bounds [0] (%n) : tensor<2048xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

func.func @octets(%x: tensor<?x8xf16>) -> tensor<?x8xf16> {
  %0 = greta_tile.launch @octets_kernel grid affine_map<()[n] -> ((n * 8) ceildiv 2048)> scalars affine_map<()[n] -> (n * 8)> (%x)
       shapes [affine_map<()[n] -> (n, 8)>] : (tensor<?x8xf16>) -> tensor<?x8xf16>
  return %0 : tensor<?x8xf16>
}
