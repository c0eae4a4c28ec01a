func.func @static_wins(%x: tensor<?x64xf32>, %y: tensor<4x64xf32>) -> tensor<?x64xf32> {
  %0 = tensor.cast %y : tensor<4x64xf32> to tensor<?x64xf32>
  %1 = arith.addf %x, %0 : tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}
