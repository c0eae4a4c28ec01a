func.func @softmax(%x: tensor<?x3x7xbf16>) -> tensor<?x3x7xbf16> {
  %0 = greta.softmax %x : tensor<?x3x7xbf16> -> tensor<?x3x7xbf16>
  return %0 : tensor<?x3x7xbf16>
}
