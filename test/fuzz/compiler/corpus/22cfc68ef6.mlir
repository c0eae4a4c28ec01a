func.func @kept(%a: tensor<2x64xf8E4M3FN>, %b: tensor<32x64xf8E4M3FN>, %c: tensor<64x64xi8>, %d: tensor<64x32xi8>) -> (tensor<2x32xf32>, tensor<64x32xi32>) {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<2x64xf8E4M3FN>, tensor<32x64xf8E4M3FN> -> tensor<2x32xf32>
  %1 = greta.matmul %c, %d : tensor<64x64xi8>, tensor<64x32xi8> -> tensor<64x32xi32>
  return %0, %1 : tensor<2x32xf32>, tensor<64x32xi32>
}
