func.func @ocp(%a: tensor<?x64xf8E4M3FN>, %b: tensor<64x32xf8E5M2>) -> tensor<?x32xbf16> {
  %0 = greta.matmul %a, %b : tensor<?x64xf8E4M3FN>, tensor<64x32xf8E5M2> -> tensor<?x32xbf16>
  return %0 : tensor<?x32xbf16>
}
