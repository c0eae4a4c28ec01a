// The norm before attention in Llama 3 8B; any number of tokens.
func.func @rms_norm(%x: tensor<?x4096xf16>, %w: tensor<4096xf16>) -> tensor<?x4096xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x4096xf16>, tensor<4096xf16> -> tensor<?x4096xf16>
  return %0 : tensor<?x4096xf16>
}
