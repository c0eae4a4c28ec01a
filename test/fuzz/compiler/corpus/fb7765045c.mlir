func.func @copied(%x: tensor<2x4x64xf16>) -> tensor<6x64xf16> {
  %s = tensor.extract_slice %x[0, 0, 0] [2, 3, 64] [1, 1, 1] : tensor<2x4x64xf16> to tensor<2x3x64xf16>
  %c = tensor.collapse_shape %s [[0, 1], [2]] : tensor<2x3x64xf16> into tensor<6x64xf16>
  %0 = greta.softmax %c : tensor<6x64xf16> -> tensor<6x64xf16>
  return %0 : tensor<6x64xf16>
}
