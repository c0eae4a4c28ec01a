func.func @f(%a: tensor<512x640xf16>, %q: tensor<384x160xi32>, %s: tensor<3x5xf32>) -> tensor<512x384xf16> {
  %w = greta.dequant %q, %s {format = "e4m3_block", group = 128} : tensor<384x160xi32>, tensor<3x5xf32> -> tensor<384x640xf16>
  %0 = greta.matmul %a, %w {transpose_b} : tensor<512x640xf16>, tensor<384x640xf16> -> tensor<512x384xf16>
  return %0 : tensor<512x384xf16>
}
