// The GEMMs that scripts/bench-h200 measures: M x N x K, B stored [N, K].
func.func @f16_8192x8192x8192(%a: tensor<8192x8192xf16>, %b: tensor<8192x8192xf16>) -> tensor<8192x8192xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<8192x8192xf16>, tensor<8192x8192xf16> -> tensor<8192x8192xf16>
  return %0 : tensor<8192x8192xf16>
}
func.func @f16_4096x4096x4096(%a: tensor<4096x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<4096x4096xf16>, tensor<4096x4096xf16> -> tensor<4096x4096xf16>
  return %0 : tensor<4096x4096xf16>
}
func.func @bf16_8192x8192x8192(%a: tensor<8192x8192xbf16>, %b: tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<8192x8192xbf16>, tensor<8192x8192xbf16> -> tensor<8192x8192xbf16>
  return %0 : tensor<8192x8192xbf16>
}
func.func @f16_512x14336x4096(%a: tensor<512x4096xf16>, %b: tensor<14336x4096xf16>) -> tensor<512x14336xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<512x4096xf16>, tensor<14336x4096xf16> -> tensor<512x14336xf16>
  return %0 : tensor<512x14336xf16>
}
func.func @f16_4096x14336x4096(%a: tensor<4096x4096xf16>, %b: tensor<14336x4096xf16>) -> tensor<4096x14336xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<4096x4096xf16>, tensor<14336x4096xf16> -> tensor<4096x14336xf16>
  return %0 : tensor<4096x14336xf16>
}
func.func @f16_2048x2048x2048(%a: tensor<2048x2048xf16>, %b: tensor<2048x2048xf16>) -> tensor<2048x2048xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<2048x2048xf16>, tensor<2048x2048xf16> -> tensor<2048x2048xf16>
  return %0 : tensor<2048x2048xf16>
}
func.func @f16_1024x1024x1024(%a: tensor<1024x1024xf16>, %b: tensor<1024x1024xf16>) -> tensor<1024x1024xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1024x1024xf16>, tensor<1024x1024xf16> -> tensor<1024x1024xf16>
  return %0 : tensor<1024x1024xf16>
}
func.func @bf16_4096x4096x4096(%a: tensor<4096x4096xbf16>, %b: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<4096x4096xbf16>, tensor<4096x4096xbf16> -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}
func.func @f16_128x4096x14336(%a: tensor<128x14336xf16>, %b: tensor<4096x14336xf16>) -> tensor<128x4096xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<128x14336xf16>, tensor<4096x14336xf16> -> tensor<128x4096xf16>
  return %0 : tensor<128x4096xf16>
}
func.func @f16_4x14336x4096(%a: tensor<4x4096xf16>, %b: tensor<14336x4096xf16>) -> tensor<4x14336xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<4x4096xf16>, tensor<14336x4096xf16> -> tensor<4x14336xf16>
  return %0 : tensor<4x14336xf16>
}
func.func @f16_8x14336x4096(%a: tensor<8x4096xf16>, %b: tensor<14336x4096xf16>) -> tensor<8x14336xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<8x4096xf16>, tensor<14336x4096xf16> -> tensor<8x14336xf16>
  return %0 : tensor<8x14336xf16>
}
func.func @f16_16x14336x4096(%a: tensor<16x4096xf16>, %b: tensor<14336x4096xf16>) -> tensor<16x14336xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<16x4096xf16>, tensor<14336x4096xf16> -> tensor<16x14336xf16>
  return %0 : tensor<16x14336xf16>
}
func.func @f16_32x14336x4096(%a: tensor<32x4096xf16>, %b: tensor<14336x4096xf16>) -> tensor<32x14336xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<32x4096xf16>, tensor<14336x4096xf16> -> tensor<32x14336xf16>
  return %0 : tensor<32x14336xf16>
}
func.func @w4_1x14336x4096(%a: tensor<1x4096xf16>, %q: tensor<14336x512xi32>, %scales: tensor<14336x32xf16>, %zeros: tensor<14336x4xi32>) -> tensor<1x14336xf16> {
  %b = greta.dequant %q, %scales, %zeros {group = 128} : tensor<14336x512xi32>, tensor<14336x32xf16>, tensor<14336x4xi32> -> tensor<14336x4096xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1x4096xf16>, tensor<14336x4096xf16> -> tensor<1x14336xf16>
  return %0 : tensor<1x14336xf16>
}
func.func @w4_2x14336x4096(%a: tensor<2x4096xf16>, %q: tensor<14336x512xi32>, %scales: tensor<14336x32xf16>, %zeros: tensor<14336x4xi32>) -> tensor<2x14336xf16> {
  %b = greta.dequant %q, %scales, %zeros {group = 128} : tensor<14336x512xi32>, tensor<14336x32xf16>, tensor<14336x4xi32> -> tensor<14336x4096xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<2x4096xf16>, tensor<14336x4096xf16> -> tensor<2x14336xf16>
  return %0 : tensor<2x14336xf16>
}
func.func @w4_4x14336x4096(%a: tensor<4x4096xf16>, %q: tensor<14336x512xi32>, %scales: tensor<14336x32xf16>, %zeros: tensor<14336x4xi32>) -> tensor<4x14336xf16> {
  %b = greta.dequant %q, %scales, %zeros {group = 128} : tensor<14336x512xi32>, tensor<14336x32xf16>, tensor<14336x4xi32> -> tensor<14336x4096xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<4x4096xf16>, tensor<14336x4096xf16> -> tensor<4x14336xf16>
  return %0 : tensor<4x14336xf16>
}
func.func @w4_8x14336x4096(%a: tensor<8x4096xf16>, %q: tensor<14336x512xi32>, %scales: tensor<14336x32xf16>, %zeros: tensor<14336x4xi32>) -> tensor<8x14336xf16> {
  %b = greta.dequant %q, %scales, %zeros {group = 128} : tensor<14336x512xi32>, tensor<14336x32xf16>, tensor<14336x4xi32> -> tensor<14336x4096xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<8x4096xf16>, tensor<14336x4096xf16> -> tensor<8x14336xf16>
  return %0 : tensor<8x14336xf16>
}
func.func @w4_16x14336x4096(%a: tensor<16x4096xf16>, %q: tensor<14336x512xi32>, %scales: tensor<14336x32xf16>, %zeros: tensor<14336x4xi32>) -> tensor<16x14336xf16> {
  %b = greta.dequant %q, %scales, %zeros {group = 128} : tensor<14336x512xi32>, tensor<14336x32xf16>, tensor<14336x4xi32> -> tensor<14336x4096xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<16x4096xf16>, tensor<14336x4096xf16> -> tensor<16x14336xf16>
  return %0 : tensor<16x14336xf16>
}
func.func @w4_32x14336x4096(%a: tensor<32x4096xf16>, %q: tensor<14336x512xi32>, %scales: tensor<14336x32xf16>, %zeros: tensor<14336x4xi32>) -> tensor<32x14336xf16> {
  %b = greta.dequant %q, %scales, %zeros {group = 128} : tensor<14336x512xi32>, tensor<14336x32xf16>, tensor<14336x4xi32> -> tensor<14336x4096xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<32x4096xf16>, tensor<14336x4096xf16> -> tensor<32x14336xf16>
  return %0 : tensor<32x14336xf16>
}
func.func @w4_64x14336x4096(%a: tensor<64x4096xf16>, %q: tensor<14336x512xi32>, %scales: tensor<14336x32xf16>, %zeros: tensor<14336x4xi32>) -> tensor<64x14336xf16> {
  %b = greta.dequant %q, %scales, %zeros {group = 128} : tensor<14336x512xi32>, tensor<14336x32xf16>, tensor<14336x4xi32> -> tensor<14336x4096xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<64x4096xf16>, tensor<14336x4096xf16> -> tensor<64x14336xf16>
  return %0 : tensor<64x14336xf16>
}
func.func @w4_512x14336x4096(%a: tensor<512x4096xf16>, %q: tensor<14336x512xi32>, %scales: tensor<14336x32xf16>, %zeros: tensor<14336x4xi32>) -> tensor<512x14336xf16> {
  %b = greta.dequant %q, %scales, %zeros {group = 128} : tensor<14336x512xi32>, tensor<14336x32xf16>, tensor<14336x4xi32> -> tensor<14336x4096xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<512x4096xf16>, tensor<14336x4096xf16> -> tensor<512x14336xf16>
  return %0 : tensor<512x14336xf16>
}
