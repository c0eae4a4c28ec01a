// Every way to another rank: dimensions in other orders, of extents that are powers of two, one and others; blocks parted, swapped and joined;
// halves along an axis in the middle put one after the other.
greta_tile.func @rearrange_kernel(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>) attributes {waves = 4 : i32} {
  %zero = arith.constant 0 : i32
  %id = greta_tile.program_id 0
  %v = greta_tile.load %x[%id, %zero, %zero, %zero] strides [1536, 192, 16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<1x8x12x16xf16>
  %block = greta_tile.reshape %v : tensor<1x8x12x16xf16> -> tensor<8x12x16xf16>
  %t = greta_tile.trans %block [2, 0, 1] : tensor<8x12x16xf16> -> tensor<16x8x12xf16>
  %pairs = greta_tile.reshape %t : tensor<16x8x12xf16> -> tensor<16x4x2x12xf16>
  %last = greta_tile.trans %pairs [1, 3, 0, 2] : tensor<16x4x2x12xf16> -> tensor<4x12x16x2xf16>
  %first, %second = greta_tile.split %last : tensor<4x12x16x2xf16> -> tensor<4x12x16xf16>
  %three = arith.constant dense<3.0> : tensor<4x12x16xf16>
  %more = arith.mulf %second, %three : tensor<4x12x16xf16>
  %swapped = greta_tile.join %more, %first : tensor<4x12x16xf16> -> tensor<4x12x16x2xf16>
  %flat = greta_tile.reshape %swapped : tensor<4x12x16x2xf16> -> tensor<48x32xf16>
  %turned = greta_tile.trans %flat [1, 0] : tensor<48x32xf16> -> tensor<32x48xf16>
  %both = greta_tile.cat %turned, %turned axis 1 : tensor<32x48xf16> -> tensor<32x96xf16>
  %line = greta_tile.reshape %both : tensor<32x96xf16> -> tensor<1x3072xf16>
  greta_tile.store %line, %y[%id, %zero] strides [3072, 1] bounds [] : tensor<1x3072xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

func.func @rearrange(%x: tensor<?x8x12x16xf16>) -> tensor<?x3072xf16> {
  %0 = greta_tile.launch @rearrange_kernel grid affine_map<()[n] -> (n)> scalars affine_map<()[n] -> ()> (%x) shapes [affine_map<()[n] -> (n, 3072)>]
       : (tensor<?x8x12x16xf16>) -> tensor<?x3072xf16>
  return %0 : tensor<?x3072xf16>
}
