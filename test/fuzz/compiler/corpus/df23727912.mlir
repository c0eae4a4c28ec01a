func.func @matmul(%b: tensor<?x?xf16>, %a: tensor<?x?xf16>) -> tensor<?x?xf16> {
  %0 = greta.matmul %a, %b : tensor<?x?xf16>, tensor<?x?xf16> -> tensor<?x?xf16>
  return %0 : tensor<?x?xf16>
}
