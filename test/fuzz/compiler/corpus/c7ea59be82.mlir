func.func @linear_w4(%x: tensor<1x4096xf16>, %q: tensor<57344x512xi32>, %scales: tensor<57344x32xf16>, %zeros: tensor<57344x4xi32>)
    -> tensor<1x57344xf16> {
  %w = greta.dequant %q, %scales, %zeros {group = 128}
      : tensor<57344x512xi32>, tensor<57344x32xf16>, tensor<57344x4xi32> -> tensor<57344x4096xf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<1x4096xf16>, tensor<57344x4096xf16> -> tensor<1x57344xf16>
  return %0 : tensor<1x57344xf16>
}
