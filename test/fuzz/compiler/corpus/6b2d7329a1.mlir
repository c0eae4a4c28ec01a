func.func @constant_operand(%b: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %a = arith.constant dense<0.5> : tensor<16x16xf32>
  %0 = greta.matmul %a, %b : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}
