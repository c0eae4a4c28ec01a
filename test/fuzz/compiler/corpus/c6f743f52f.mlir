func.func @residual_norm(%x: tensor<?x64xf16>, %r: tensor<?x64xf16>, %w: tensor<64xf16>) -> (tensor<?x64xf16>, tensor<?x64xf32>) {
  %0 = arith.addf %x, %r : tensor<?x64xf16>
  %1 = greta.rms_norm %0, %w {eps = 1.0e-5 : f32} : tensor<?x64xf16>, tensor<64xf16> -> tensor<?x64xf16>
  %2 = arith.extf %1 : tensor<?x64xf16> to tensor<?x64xf32>
  return %0, %2 : tensor<?x64xf16>, tensor<?x64xf32>
}
