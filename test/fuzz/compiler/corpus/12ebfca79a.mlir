func.func @somewhere(%x: tensor<4x64xf32>) -> tensor<4x32xf32> {
  %c = arith.constant 0 : index
  %n = tensor.dim %x, %c : tensor<4x64xf32>
  %0 = tensor.extract_slice %x[0, %n] [4, 32] [1, 1] : tensor<4x64xf32> to tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}
