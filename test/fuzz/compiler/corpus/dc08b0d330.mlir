func.func @layer_norm(%x: tensor<64xf32>, %w: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %0 = greta.layer_norm %x, %w, %b {eps = 1.0e-5 : f32} : tensor<64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
