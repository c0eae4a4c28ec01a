func.func @qkv(%x: tensor<?x64xf16>, %w: tensor<384x64xf16>, %cos: tensor<?x32xf32>, %sin: tensor<?x32xf32>) -> (tensor<?x4x64xf16>, tensor<?x1x64xf16>, tensor<?x64xf16>) {
  %p = greta.matmul %x, %w {transpose_b} : tensor<?x64xf16>, tensor<384x64xf16> -> tensor<?x384xf16>
  %c0 = arith.constant 0 : index
  %t = tensor.dim %x, %c0 : tensor<?x64xf16>
  %h = tensor.expand_shape %p [[0], [1, 2]] output_shape [%t, 6, 64] : tensor<?x384xf16> into tensor<?x6x64xf16>
  %q = tensor.extract_slice %h[0, 0, 0] [%t, 4, 64] [1, 1, 1] : tensor<?x6x64xf16> to tensor<?x4x64xf16>
  %k = tensor.extract_slice %h[0, 4, 0] [%t, 1, 64] [1, 1, 1] : tensor<?x6x64xf16> to tensor<?x1x64xf16>
  %v = tensor.extract_slice %h[0, 5, 0] [%t, 1, 64] [1, 1, 1] : tensor<?x6x64xf16> to tensor<?x64xf16>
  %0 = greta.rope %q, %cos, %sin {style = "neox"} : tensor<?x4x64xf16>, tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x4x64xf16>
  %1 = greta.rope %k, %cos, %sin {style = "neox"} : tensor<?x1x64xf16>, tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x1x64xf16>
  return %0, %1, %v : tensor<?x4x64xf16>, tensor<?x1x64xf16>, tensor<?x64xf16>
}
