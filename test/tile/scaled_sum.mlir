// Products of blocks of K, each with a scale for every row, and their sum: an iteration multiplies what its dots add up to, so slices of one block come before the scale.
greta_tile.func @scaled_sum_kernel(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %scales: !greta_tile.ptr<f32>, %sum: !greta_tile.ptr<f32>, %k: i32) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %total = scf.for %i = %c0 to %k step %c32 iter_args(%t = %zero) -> (tensor<64x64xf32>) : i32 {
    %x = greta_tile.load %a[%c0, %i] strides [-9223372036854775808, 1] (%k) bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %y = greta_tile.load %b[%i, %c0] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %block = arith.divsi %i, %c32 : i32
    %s = greta_tile.load %scales[%block, %c0] strides [64, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<1x64xf32>
    %rows = greta_tile.reshape %s : tensor<1x64xf32> -> tensor<64x1xf32>
    %d = greta_tile.dot %x, %y, %zero : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %wide = greta_tile.broadcast %rows : tensor<64x1xf32> -> tensor<64x64xf32>
    %e = arith.mulf %d, %wide : tensor<64x64xf32>
    %n = arith.addf %t, %e : tensor<64x64xf32>
    scf.yield %n : tensor<64x64xf32>
  }
  greta_tile.store %total, %sum[%c0, %c0] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

func.func @scaled_sum(%a: tensor<64x?xf16>, %b: tensor<?x64xf16>, %scales: tensor<?x64xf32>) -> tensor<64x64xf32> {
  %0 = greta_tile.launch @scaled_sum_kernel grid affine_map<()[k, l, s] -> (1)> scalars affine_map<()[k, l, s] -> (k)> (%a, %b, %scales)
       shapes [affine_map<()[k, l, s] -> (64, 64)>] : (tensor<64x?xf16>, tensor<?x64xf16>, tensor<?x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
