func.func @weights(%x: tensor<2x64xf16>, %q: tensor<64x64xi8>, %s: tensor<64xf16>,
                   %p: tensor<32x8xi32>, %scales: tensor<32x2xf16>, %zeros: tensor<32x1xi32>) -> tensor<2x32xf16> {
  %f = arith.sitofp %q : tensor<64x64xi8> to tensor<64x64xf16>
  %e = tensor.empty() : tensor<64x64xf16>
  %b = linalg.broadcast ins(%s : tensor<64xf16>) outs(%e : tensor<64x64xf16>) dimensions = [1]
  %w = arith.mulf %f, %b : tensor<64x64xf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<2x64xf16>, tensor<64x64xf16> -> tensor<2x64xf16>
  %v = greta.dequant %p, %scales, %zeros {group = 32} : tensor<32x8xi32>, tensor<32x2xf16>, tensor<32x1xi32> -> tensor<32x64xf16>
  %1 = greta.matmul %0, %v {transpose_b} : tensor<2x64xf16>, tensor<32x64xf16> -> tensor<2x32xf16>
  return %1 : tensor<2x32xf16>
}
