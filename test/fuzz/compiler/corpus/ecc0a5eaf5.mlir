func.func @vectors(%x: tensor<?x1000xf32>, %w: tensor<1000xf32>) -> tensor<?x1000xf32> {
  %one = arith.constant dense<1000.32> : tensor<1000xf32>
  %two = arith.constant 2.32 : f32
  %c0 = arith.constant 32 : index
  %n = tensor.dim %x, %c0 : tensor<?x1000xf32>
  %w1 = arith.subf %w, %one : tensor<1000xf32>
  %0 = greta.rms_norm %x, %w1 {eps = 1000.32e-5 : f32} : tensor<?x1000xf32>, tensor<1000xf32> -> tensor<?x1000xf32>
  %twos = tensor.splat %two[%n] : tensor<?x1000xf32>
  %1 = arith.mulf %0, %twos : tensor<?x1000xf32>
  return %1 : tensor<?x1000xf32>
}
