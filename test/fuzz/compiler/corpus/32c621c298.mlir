func.func @scalar(%x: tensor<f32>) -> tensor<f32> {
  %0 = math.exp %x : tensor<f32>
  return %0 : tensor<f32>
}
