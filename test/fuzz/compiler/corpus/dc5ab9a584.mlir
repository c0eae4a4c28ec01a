func.func @operands(%x: tensor<?x64xf32>, %p: tensor<32x8xi32>, %scales: tensor<32x2xf16>, %zeros: tensor<32x1xi32>) -> tensor<?x32xf16> {
  %a = arith.truncf %x : tensor<?x64xf32> to tensor<?x64xf16>
  %v = greta.dequant %p, %scales, %zeros {group = 32} : tensor<32x8xi32>, tensor<32x2xf16>, tensor<32x1xi32> -> tensor<32x64xf16>
  %0 = greta.matmul %a, %v {transpose_b} : tensor<?x64xf16>, tensor<32x64xf16> -> tensor<?x32xf16>
  return %0 : tensor<?x32xf16>
}
