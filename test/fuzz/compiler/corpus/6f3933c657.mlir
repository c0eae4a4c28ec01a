func.func @two_symbols(%x: tensor<?x64xf16>, %y: tensor<?x64xf16>) -> (tensor<?x64xf16>, tensor<?x64xf16>) {
  %0 = greta.softmax %x : tensor<?x64xf16> -> tensor<?x64xf16>
  %1 = greta.softmax %y : tensor<?x64xf16> -> tensor<?x64xf16>
  return %1, %0 : tensor<?x64xf16>, tensor<?x64xf16>
}
