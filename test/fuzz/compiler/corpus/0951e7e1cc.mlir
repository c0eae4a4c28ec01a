func.func @integers(%a: tensor<4x8xi8>, %b: tensor<8x4xi8>) -> tensor<4x4xi32> {
  %0 = greta.matmul %a, %b : tensor<4x8xi8>, tensor<8x4xi8> -> tensor<4x4xi32>
  return %0 : tensor<4x4xi32>
}
