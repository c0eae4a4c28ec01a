// The functions that are shipped beside the runtime (greta_compute.greta): greta::Compute calls them by name, and of a name and its
// shapes takes the one that fits. Row lengths, heads and their sizes are fixed, all else is not.

func.func @matmul_f16(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>) -> tensor<?x?xf16> {
  %0 = greta.matmul %a, %b : tensor<?x?xf16>, tensor<?x?xf16> -> tensor<?x?xf16>
  return %0 : tensor<?x?xf16>
}
func.func @matmul_bf16(%a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>) -> tensor<?x?xbf16> {
  %0 = greta.matmul %a, %b : tensor<?x?xbf16>, tensor<?x?xbf16> -> tensor<?x?xbf16>
  return %0 : tensor<?x?xbf16>
}
func.func @matmul_f32(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = greta.matmul %a, %b : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
func.func @rms_norm_f16_1024(%x: tensor<?x1024xf16>, %w: tensor<1024xf16>) -> tensor<?x1024xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x1024xf16>, tensor<1024xf16> -> tensor<?x1024xf16>
  return %0 : tensor<?x1024xf16>
}
func.func @rms_norm_f16_2048(%x: tensor<?x2048xf16>, %w: tensor<2048xf16>) -> tensor<?x2048xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x2048xf16>, tensor<2048xf16> -> tensor<?x2048xf16>
  return %0 : tensor<?x2048xf16>
}
func.func @rms_norm_f16_4096(%x: tensor<?x4096xf16>, %w: tensor<4096xf16>) -> tensor<?x4096xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x4096xf16>, tensor<4096xf16> -> tensor<?x4096xf16>
  return %0 : tensor<?x4096xf16>
}
func.func @rms_norm_f16_8192(%x: tensor<?x8192xf16>, %w: tensor<8192xf16>) -> tensor<?x8192xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x8192xf16>, tensor<8192xf16> -> tensor<?x8192xf16>
  return %0 : tensor<?x8192xf16>
}
func.func @attention_f16_32_8_128(%q: tensor<?x32x?x128xf16>, %k: tensor<?x8x?x128xf16>, %v: tensor<?x8x?x128xf16>) -> tensor<?x32x?x128xf16> {
  %0 = greta.attention %q, %k, %v {causal} : tensor<?x32x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16> -> tensor<?x32x?x128xf16>
  return %0 : tensor<?x32x?x128xf16>
}
func.func @attention_f16_16_16_64(%q: tensor<?x16x?x64xf16>, %k: tensor<?x16x?x64xf16>, %v: tensor<?x16x?x64xf16>) -> tensor<?x16x?x64xf16> {
  %0 = greta.attention %q, %k, %v {causal} : tensor<?x16x?x64xf16>, tensor<?x16x?x64xf16>, tensor<?x16x?x64xf16> -> tensor<?x16x?x64xf16>
  return %0 : tensor<?x16x?x64xf16>
}
