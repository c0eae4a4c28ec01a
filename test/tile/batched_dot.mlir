// Products of a batch, eight of 32 x 48 by 48 x 16 in a workgroup.
greta_tile.func @batched_dot_kernel(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %c: !greta_tile.ptr<f32>, %batch: i32) attributes {waves = 4 : i32} {
  %zero = arith.constant 0 : i32
  %eight = arith.constant 8 : i32
  %pid = greta_tile.program_id 0
  %first = arith.muli %pid, %eight : i32
  %x = greta_tile.load %a[%first, %zero, %zero] strides [1536, 48, 1] bounds [0] (%batch) : !greta_tile.ptr<f16> -> tensor<8x32x48xf16>
  %y = greta_tile.load %b[%first, %zero, %zero] strides [768, 16, 1] bounds [0] (%batch) : !greta_tile.ptr<f16> -> tensor<8x48x16xf16>
  %none = arith.constant dense<0.0> : tensor<8x32x16xf32>
  %z = greta_tile.dot %x, %y, %none : tensor<8x32x48xf16>, tensor<8x48x16xf16> -> tensor<8x32x16xf32>
  greta_tile.store %z, %c[%first, %zero, %zero] strides [512, 16, 1] bounds [0] (%batch) : tensor<8x32x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

#n = affine_map<()[n] -> (n)>
func.func @batched_dot(%a: tensor<?x32x48xf16>, %b: tensor<?x48x16xf16> {greta.shape = affine_map<()[n] -> (n, 48, 16)>}) -> tensor<?x32x16xf32> {
  %0 = greta_tile.launch @batched_dot_kernel grid affine_map<()[n] -> (n ceildiv 8)> scalars #n (%a, %b) shapes [affine_map<()[n] -> (n, 32, 16)>]
       : (tensor<?x32x48xf16>, tensor<?x48x16xf16>) -> tensor<?x32x16xf32>
  return %0 : tensor<?x32x16xf32>
}
