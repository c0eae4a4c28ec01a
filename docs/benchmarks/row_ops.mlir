// The memory-bound kernels that scripts/bench-h200 measures, f16: row ops with any number of rows, and products with one row.
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

// Decode: one row, weights larger than the L2 cache.
func.func @linear(%x: tensor<1x4096xf16>, %w: tensor<14336x4096xf16>) -> tensor<1x14336xf16> {
  %0 = greta.matmul %x, %w {transpose_b} : tensor<1x4096xf16>, tensor<14336x4096xf16> -> tensor<1x14336xf16>
  return %0 : tensor<1x14336xf16>
}
func.func @linear_w4(%x: tensor<1x4096xf16>, %q: tensor<57344x512xi32>, %scales: tensor<57344x32xf16>, %zeros: tensor<57344x4xi32>)
    -> tensor<1x57344xf16> {
  %w = greta.dequant %q, %scales, %zeros {group = 128}
      : tensor<57344x512xi32>, tensor<57344x32xf16>, tensor<57344x4xi32> -> tensor<57344x4096xf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<1x4096xf16>, tensor<57344x4096xf16> -> tensor<1x57344xf16>
  return %0 : tensor<1x57344xf16>
}
