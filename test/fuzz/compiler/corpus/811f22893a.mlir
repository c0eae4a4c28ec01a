func.func @batches(%a: tensor<3x2x4096xf16>, %b: tensor<3x512x4096xf16>, %c: tensor<512x4096xf16>) -> (tensor<3x2x512xf16>, tensor<3x2x512xf16>) {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<3x2x4096xf16>, tensor<3x512x4096xf16> -> tensor<3x2x512xf16>
  %1 = greta.matmul %a, %c {transpose_b} : tensor<3x2x4096xf16>, tensor<512x4096xf16> -> tensor<3x2x512xf16>
  return %0, %1 : tensor<3x2x512xf16>, tensor<3x2x512xf16>
}
