// x + y, 256 elements a workgroup; the last one has fewer.
greta_tile.func @vector_add_kernel(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %out: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 2 : i32} {
  %c256 = arith.constant 256 : i32
  %pid = greta_tile.program_id 0
  %start = arith.muli %pid, %c256 : i32
  %a = greta_tile.load %x[%start] strides [1] bounds [0] (%n) align 4 : !greta_tile.ptr<f32> -> tensor<256xf32>
  %b = greta_tile.load %y[%start] strides [1] bounds [0] (%n) align 4 : !greta_tile.ptr<f32> -> tensor<256xf32>
  %sum = arith.addf %a, %b : tensor<256xf32>
  greta_tile.store %sum, %out[%start] strides [1] bounds [0] (%n) align 4 : tensor<256xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

func.func @vector_add(%x: tensor<?xf32>, %y: tensor<?xf32> {greta.shape = affine_map<()[n] -> (n)>}) -> tensor<?xf32> {
  %0 = greta_tile.launch @vector_add_kernel grid affine_map<()[n] -> (n ceildiv 256)> scalars affine_map<()[n] -> (n)> (%x, %y) shapes [affine_map<()[n] -> (n)>]
       : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
