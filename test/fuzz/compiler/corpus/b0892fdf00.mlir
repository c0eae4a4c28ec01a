func.func @plain(%a: tensor<?x64xf16>, %b: tensor<64x32xf16>) -> tensor<?x32xf16> {
  %0 = greta.matmul %a, %b : tensor<?x64xf16>, tensor<64x32xf16> -> tensor<?x32xf16>
  return %0 : tensor<?x32xf16>
}
