func.func @kept(%a: tensor<2x1000xf8E4M3FN>, %b: tensor<8x1000xf8E4M3FN>, %c: tensor<1000x1000xi8>, %d: tensor<1000x8xi8>) -> (tensor<2x8xf32>, tensor<1000x8xi32>) {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<2x1000xf8E4M3FN>, tensor<8x1000xf8E4M3FN> -> tensor<2x8xf32>
  %1 = greta.matmul %c, %d : tensor<1000x1000xi8>, tensor<1000x8xi8> -> tensor<1000x8xi32>
  return %0, %1 : tensor<2x8xf32>, tensor<1000x8xi32>
}
