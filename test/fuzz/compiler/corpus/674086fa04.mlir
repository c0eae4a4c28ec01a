func.func @product(%a: tensor<?x512xf16>, %b: tensor<1024x512xf16>) -> tensor<?x1024xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<?x512xf16>, tensor<1024x512xf16> -> tensor<?x1024xf16>
  return %0 : tensor<?x1024xf16>
}
