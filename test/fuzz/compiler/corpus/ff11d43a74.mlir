func.func @overlapping(%x: tensor<32x64xf16>, %w: tensor<256x64xf16>) -> tensor<32x129xf16> {
  %p = greta.matmul %x, %w {transpose_b} : tensor<32x64xf16>, tensor<256x64xf16> -> tensor<32x256xf16>
  %g = tensor.extract_slice %p[0, 0] [32, 129] [1, 1] : tensor<32x256xf16> to tensor<32x129xf16>
  %u = tensor.extract_slice %p[0, 127] [32, 129] [1, 1] : tensor<32x256xf16> to tensor<32x129xf16>
  %0 = greta.swiglu %g, %u : tensor<32x129xf16>, tensor<32x129xf16> -> tensor<32x129xf16>
  return %0 : tensor<32x129xf16>
}
