// a b + c d + a d in one loop: its dots add to each other's sum.
greta_tile.func @sum_of_products_kernel(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %c: !greta_tile.ptr<f16>, %d: !greta_tile.ptr<f16>, %sum: !greta_tile.ptr<f32>, %k: i32) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %total = scf.for %i = %c0 to %k step %c32 iter_args(%t = %zero) -> (tensor<32x32xf32>) : i32 {
    %x = greta_tile.load %a[%c0, %i] strides [-9223372036854775808, 1] (%k) bounds [] : !greta_tile.ptr<f16> -> tensor<32x32xf16>
    %y = greta_tile.load %b[%i, %c0] strides [32, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x32xf16>
    %z = greta_tile.load %c[%c0, %i] strides [-9223372036854775808, 1] (%k) bounds [] : !greta_tile.ptr<f16> -> tensor<32x32xf16>
    %w = greta_tile.load %d[%i, %c0] strides [32, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x32xf16>
    %u = greta_tile.dot %x, %y, %t : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    %v = greta_tile.dot %z, %w, %u : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    %n = greta_tile.dot %x, %w, %v : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    scf.yield %n : tensor<32x32xf32>
  }
  greta_tile.store %total, %sum[%c0, %c0] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

func.func @sum_of_products(%a: tensor<32x?xf16>, %b: tensor<?x32xf16>, %c: tensor<32x?xf16>, %d: tensor<?x32xf16>) -> tensor<32x32xf32> {
  %0 = greta_tile.launch @sum_of_products_kernel grid affine_map<()[k, l, m, n] -> (1)> scalars affine_map<()[k, l, m, n] -> (k)> (%a, %b, %c, %d)
       shapes [affine_map<()[k, l, m, n] -> (32, 32)>] : (tensor<32x?xf16>, tensor<?x32xf16>, tensor<32x?xf16>, tensor<?x32xf16>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
