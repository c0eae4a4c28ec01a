func.func @branches(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  llvm.br ^bb1
^bb1:
  return %x : tensor<4x64xf32>
}
