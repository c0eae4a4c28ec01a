func.func @rms_norm(%x: tensor<?x8192xf16>, %w: tensor<8192xf16>) -> tensor<?x8192xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x8192xf16>, tensor<8192xf16> -> tensor<?x8192xf16>
  return %0 : tensor<?x8192xf16>
}
