func.func @rows(%x: tensor<?x?x7xbf16>, %y: tensor<1xf32>) -> (tensor<?x?x7xbf16>, tensor<1xf32>) {
  %0 = greta.softmax %x : tensor<?x?x7xbf16> -> tensor<?x?x7xbf16>
  %1 = greta.swiglu %0, %x : tensor<?x?x7xbf16>, tensor<?x?x7xbf16> -> tensor<?x?x7xbf16>
  %2 = greta.softmax %y : tensor<1xf32> -> tensor<1xf32>
  return %1, %2 : tensor<?x?x7xbf16>, tensor<1xf32>
}
