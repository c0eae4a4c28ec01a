func.func @kept(%a: tensor<?x?xf8E4M3FN>, %b: tensor<8x?xf8E4M3FN>, %c: tensor<?x?xi8>, %d: tensor<?x8xi8>) -> (tensor<?x8xf32>, tensor<?x8xi32>) {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<?x?xf8E4M3FN>, tensor<8x?xf8E4M3FN> -> tensor<?x8xf32>
  %1 = greta.matmul %c, %d : tensor<?x?xi8>, tensor<?x8xi8> -> tensor<?x8xi32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xi32>
}
