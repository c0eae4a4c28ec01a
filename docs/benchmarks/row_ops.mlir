// The memory-bound kernels that scripts/bench-h200 measures, f16, any number of rows.
func.func @rms_norm(%x: tensor<?x8192xf16>, %w: tensor<8192xf16>) -> tensor<?x8192xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x8192xf16>, tensor<8192xf16> -> tensor<?x8192xf16>
  return %0 : tensor<?x8192xf16>
}
func.func @residual_rms_norm(%x: tensor<?x8192xf16>, %residual: tensor<?x8192xf16>, %w: tensor<8192xf16>)
    -> (tensor<?x8192xf16>, tensor<?x8192xf16>) {
  %sum = arith.addf %x, %residual : tensor<?x8192xf16>
  %norm = greta.rms_norm %sum, %w {eps = 1.0e-5 : f32} : tensor<?x8192xf16>, tensor<8192xf16> -> tensor<?x8192xf16>
  return %sum, %norm : tensor<?x8192xf16>, tensor<?x8192xf16>
}
func.func @softmax(%x: tensor<?x8192xf16>) -> tensor<?x8192xf16> {
  %0 = greta.softmax %x : tensor<?x8192xf16> -> tensor<?x8192xf16>
  return %0 : tensor<?x8192xf16>
}
func.func @swiglu(%gate: tensor<?x14336xf16>, %up: tensor<?x14336xf16>) -> tensor<?x14336xf16> {
  %0 = greta.swiglu %gate, %up : tensor<?x14336xf16>, tensor<?x14336xf16> -> tensor<?x14336xf16>
  return %0 : tensor<?x14336xf16>
}
func.func @rope(%x: tensor<?x32x128xf16>, %cos: tensor<?x64xf32>, %sin: tensor<?x64xf32>) -> tensor<?x32x128xf16> {
  %0 = greta.rope %x, %cos, %sin {style = "neox"} : tensor<?x32x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x32x128xf16>
  return %0 : tensor<?x32x128xf16>
}
