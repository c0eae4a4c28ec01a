func.func @scalar(%x: tensor<f32>) {
  %0 = greta.softmax %x : tensor<f32> -> tensor<f32>
  return
}
