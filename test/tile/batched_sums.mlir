// Sums of a batch's products over K, whose loop loads blocks of three dimensions ahead: 48 rows, whose tiles are no power of two, by a second operand as it lies and by one that lies across.
greta_tile.func @batched_sums_kernel(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %c: !greta_tile.ptr<f16>, %sum: !greta_tile.ptr<f32>, %k: i32) attributes {waves = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c48 = arith.constant 48 : i32
  %rows = arith.muli %k, %c48 : i32
  %columns = arith.muli %k, %c32 : i32
  %zero = arith.constant dense<0.0> : tensor<2x48x32xf32>
  %total = scf.for %i = %c0 to %k step %c32 iter_args(%t = %zero) -> (tensor<2x48x32xf32>) : i32 {
    %x = greta_tile.load %a[%c0, %c0, %i] strides [-9223372036854775808, -9223372036854775808, 1] (%rows, %k) bounds [] : !greta_tile.ptr<f16> -> tensor<2x48x32xf16>
    %y = greta_tile.load %b[%c0, %i, %c0] strides [-9223372036854775808, 32, 1] (%columns) bounds [] : !greta_tile.ptr<f16> -> tensor<2x32x32xf16>
    %z = greta_tile.load %c[%c0, %i, %c0] strides [-9223372036854775808, 1, -9223372036854775808] (%columns, %k) bounds [] : !greta_tile.ptr<f16> -> tensor<2x32x32xf16>
    %u = greta_tile.dot %x, %y, %t : tensor<2x48x32xf16>, tensor<2x32x32xf16> -> tensor<2x48x32xf32>
    %n = greta_tile.dot %x, %z, %u : tensor<2x48x32xf16>, tensor<2x32x32xf16> -> tensor<2x48x32xf32>
    scf.yield %n : tensor<2x48x32xf32>
  }
  greta_tile.store %total, %sum[%c0, %c0, %c0] strides [1536, 32, 1] bounds [] : tensor<2x48x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

func.func @batched_sums(%a: tensor<2x48x?xf16>, %b: tensor<2x?x32xf16>, %c: tensor<2x32x?xf16>) -> tensor<2x48x32xf32> {
  %0 = greta_tile.launch @batched_sums_kernel grid affine_map<()[k, l, m] -> (1)> scalars affine_map<()[k, l, m] -> (k)> (%a, %b, %c)
       shapes [affine_map<()[k, l, m] -> (2, 48, 32)>] : (tensor<2x48x?xf16>, tensor<2x?x32xf16>, tensor<2x32x?xf16>) -> tensor<2x48x32xf32>
  return %0 : tensor<2x48x32xf32>
}
