// The attention's output projection; the weight is stored as [N, K], as checkpoints have it.
func.func @matmul(%x: tensor<?x4096xf16>, %w: tensor<4096x4096xf16>) -> tensor<?x4096xf16> {
  %0 = greta.matmul %x, %w {transpose_b} : tensor<?x4096xf16>, tensor<4096x4096xf16> -> tensor<?x4096xf16>
  return %0 : tensor<?x4096xf16>
}
