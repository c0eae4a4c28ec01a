func.func @softmax(%x: tensor<?x8192xf16>) -> tensor<?x8192xf16> {
  %0 = greta.softmax %x : tensor<?x8192xf16> -> tensor<?x8192xf16>
  return %0 : tensor<?x8192xf16>
}
