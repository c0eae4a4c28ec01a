func.func @vectors(%x: tensor<?x64xf32>, %w: tensor<64xf32>) -> tensor<?x64xf32> {
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %two = arith.constant 2.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %w1 = arith.maxnumf %w, %one : tensor<64xf32>
  %0 = greta.rms_norm %x, %w1 {eps = 1.0e-5 : f32} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  %twos = tensor.splat %two[%n] : tensor<?x64xf32>
  %1 = arith.mulf %0, %twos : tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}
