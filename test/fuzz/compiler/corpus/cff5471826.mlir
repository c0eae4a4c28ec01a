func.func @reshapes(%x: tensor<?x256xf16>) -> (tensor<?x4x64xf16>, tensor<?x64xf16>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x256xf16>
  %0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [%n, 4, 64] : tensor<?x256xf16> into tensor<?x4x64xf16>
  %1 = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<?x4x64xf16> into tensor<?x64xf16>
  return %0, %1 : tensor<?x4x64xf16>, tensor<?x64xf16>
}
