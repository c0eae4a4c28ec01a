func.func @few(%x: tensor<2x64xf32>, %b: tensor<64x32xf16>) -> tensor<2x32xf16> {
  %a = arith.truncf %x : tensor<2x64xf32> to tensor<2x64xf16>
  %0 = greta.matmul %a, %b : tensor<2x64xf16>, tensor<64x32xf16> -> tensor<2x32xf16>
  return %0 : tensor<2x32xf16>
}
