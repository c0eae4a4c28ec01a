func.func @every_other(%x: tensor<4x64xf32>) -> tensor<4x32xf32> {
  %0 = tensor.extract_slice %x[0, 0] [4, 32] [1, 2] : tensor<4x64xf32> to tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}
