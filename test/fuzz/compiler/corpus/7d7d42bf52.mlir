func.func @transposed(%a: tensor<64x16xbf16>, %b: tensor<32x64xbf16>) -> tensor<16x32xf32> {
  %0 = greta.matmul %a, %b {transpose_a, transpose_b} : tensor<64x16xbf16>, tensor<32x64xbf16> -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}
