func.func @dynamic_size(%x: tensor<4x64xf32>, %y: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %c = arith.constant 0 : index
  %n = tensor.dim %y, %c : tensor<?x32xf32>
  %0 = tensor.extract_slice %x[0, 0] [%n, 64] [1, 1] : tensor<4x64xf32> to tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
