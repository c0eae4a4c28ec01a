// The large products that scripts/bench-h200 measures: M x N x K, B stored [N, K].
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
