func.func @truth(%x: tensor<4x64xf32>) -> tensor<4x64xi1> {
  %0 = arith.cmpf ogt, %x, %x : tensor<4x64xf32>
  return %0 : tensor<4x64xi1>
}
