func.func @kept(%a: tensor<2x7xf8E5M2>, %b: tensor<8x7xf8E5M2>, %c: tensor<7x7xi8>, %d: tensor<7x8xi8>) -> (tensor<2x8xf32>, tensor<7x8xi32>) {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<2x7xf8E5M2>, tensor<8x7xf8E5M2> -> tensor<2x8xf32>
  %1 = greta.matmul %c, %d : tensor<7x7xi8>, tensor<7x8xi8> -> tensor<7x8xi32>
  return %0, %1 : tensor<2x8xf32>, tensor<7x8xi32>
}
