func.func @short(%x: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %0 = greta.softmax %x : tensor<?x64xf16> -> tensor<?x64xf16>
  return %0 : tensor<?x64xf16>
}
