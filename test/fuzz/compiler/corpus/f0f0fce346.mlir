func.func @views(%x: tensor<?x256xf16>, %t: tensor<?x32xf32>) -> tensor<?x256xf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x256xf16>
  %0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [%n, 4, 64] : tensor<?x256xf16> into tensor<?x4x64xf16>
  %1 = greta.rope %0, %t, %t {style = "neox"} : tensor<?x4x64xf16>, tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x4x64xf16>
  %2 = tensor.collapse_shape %1 [[0], [1, 2]] : tensor<?x4x64xf16> into tensor<?x256xf16>
  return %2 : tensor<?x256xf16>
}
