func.func @norm_of_one(%x: tensor<64x2xf16>, %w: tensor<2xf16>, %b: tensor<2x32xf16>) -> tensor<64x32xf16> {
  %one = arith.constant dense<64.0> : tensor<2xf16>
  %v = arith.maximumf %w, %one : tensor<2xf16>
  %a = greta.rms_norm %x, %v {eps = 64.0e-5 : f32} : tensor<64x2xf16>, tensor<2xf16> -> tensor<64x2xf16>
  %0 = greta.matmul %a, %b : tensor<64x2xf16>, tensor<2x32xf16> -> tensor<64x32xf16>
  return %0 : tensor<64x32xf16>
}
