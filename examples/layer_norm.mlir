// Layer normalisation at the same width.
func.func @layer_norm(%x: tensor<?x4096xf16>, %w: tensor<4096xf16>, %b: tensor<4096xf16>) -> tensor<?x4096xf16> {
  %0 = greta.layer_norm %x, %w, %b {eps = 1.0e-5 : f32}
      : tensor<?x4096xf16>, tensor<4096xf16>, tensor<4096xf16> -> tensor<?x4096xf16>
  return %0 : tensor<?x4096xf16>
}
