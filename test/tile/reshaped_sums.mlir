// A sum of products over K whose first operand is loaded as blocks of three dimensions, rows by rows, and reshaped.
greta_tile.func @reshaped_sums_kernel(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %sum: !greta_tile.ptr<f32>, %k: i32) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %block = arith.muli %k, %c32 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %total = scf.for %i = %c0 to %k step %c32 iter_args(%t = %zero) -> (tensor<64x32xf32>) : i32 {
    %x = greta_tile.load %a[%c0, %c0, %i] strides [-9223372036854775808, -9223372036854775808, 1] (%block, %k) bounds [] : !greta_tile.ptr<f16> -> tensor<2x32x32xf16>
    %y = greta_tile.load %b[%i, %c0] strides [32, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x32xf16>
    %w = greta_tile.reshape %x : tensor<2x32x32xf16> -> tensor<64x32xf16>
    %n = greta_tile.dot %w, %y, %t : tensor<64x32xf16>, tensor<32x32xf16> -> tensor<64x32xf32>
    scf.yield %n : tensor<64x32xf32>
  }
  greta_tile.store %total, %sum[%c0, %c0] strides [32, 1] bounds [] : tensor<64x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

func.func @reshaped_sums(%a: tensor<2x32x?xf16>, %b: tensor<?x32xf16>) -> tensor<64x32xf32> {
  %0 = greta_tile.launch @reshaped_sums_kernel grid affine_map<()[k, l] -> (1)> scalars affine_map<()[k, l] -> (k)> (%a, %b)
       shapes [affine_map<()[k, l] -> (64, 32)>] : (tensor<2x32x?xf16>, tensor<?x32xf16>) -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}
