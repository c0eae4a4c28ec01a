func.func @five(%x: tensor<?x5120xf16>, %w: tensor<5120xf16>) -> tensor<?x5120xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x5120xf16>, tensor<5120xf16> -> tensor<?x5120xf16>
  return %0 : tensor<?x5120xf16>
}
