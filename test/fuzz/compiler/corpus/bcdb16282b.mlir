func.func @uninitialised(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %e = tensor.empty() : tensor<4x64xf32>
  %0 = arith.addf %x, %e : tensor<4x64xf32>
  return %0 : tensor<4x64xf32>
}
