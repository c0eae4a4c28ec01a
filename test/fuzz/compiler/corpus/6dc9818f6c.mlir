func.func @double(%x: tensor<4x64xf64>) -> tensor<4x64xf64> {
  %0 = arith.addf %x, %x : tensor<4x64xf64>
  return %0 : tensor<4x64xf64>
}
