// The norm before the MLP, fused with the residual add: one kernel, two results. The sum goes on as the next residual.
func.func @residual_rms_norm(%x: tensor<?x4096xf16>, %residual: tensor<?x4096xf16>, %w: tensor<4096xf16>)
    -> (tensor<?x4096xf16>, tensor<?x4096xf16>) {
  %sum = arith.addf %x, %residual : tensor<?x4096xf16>
  %norm = greta.rms_norm %sum, %w {eps = 1.0e-5 : f32} : tensor<?x4096xf16>, tensor<4096xf16> -> tensor<?x4096xf16>
  return %sum, %norm : tensor<?x4096xf16>, tensor<?x4096xf16>
}
