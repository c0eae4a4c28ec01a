func.func @rope(%a: tensor<1x4096xf16>, %b: tensor<4096x4096xf16>, %cos: tensor<1x64xf32>, %sin: tensor<1x64xf32>) -> tensor<1x32x128xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1x4096xf16>, tensor<4096x4096xf16> -> tensor<1x4096xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [1, 32, 128] : tensor<1x4096xf16> into tensor<1x32x128xf16>
  %2 = greta.rope %1, %cos, %sin {style = "neox"} : tensor<1x32x128xf16>, tensor<1x64xf32>, tensor<1x64xf32> -> tensor<1x32x128xf16>
  return %2 : tensor<1x32x128xf16>
}
