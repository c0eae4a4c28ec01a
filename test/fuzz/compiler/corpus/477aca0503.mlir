// Attention scores over 4096 keys; a row per head and token.
func.func @softmax(%scores: tensor<?x4096xf16>) -> tensor<?x4096xf16> {
  %0 = greta.softmax %scores : tensor<?x4096xf16> -> tensor<?x4096xf16>
  return %0 : tensor<?x4096xf16>
}
