func.func @large(%a: tensor<4096x4096xi8>, %b: tensor<4096x4096xi8>) -> tensor<4096x4096xi32> {
  %0 = greta.matmul %a, %b {transpose_a} : tensor<4096x4096xi8>, tensor<4096x4096xi8> -> tensor<4096x4096xi32>
  return %0 : tensor<4096x4096xi32>
}
