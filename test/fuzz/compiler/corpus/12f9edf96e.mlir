func.func @few(%a: tensor<5x4xf32>, %b: tensor<4x100xf32>) -> tensor<5x100xf32> {
  %0 = greta.matmul %a, %b : tensor<5x4xf32>, tensor<4x100xf32> -> tensor<5x100xf32>
  return %0 : tensor<5x100xf32>
}
