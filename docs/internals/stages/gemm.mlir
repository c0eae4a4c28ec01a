func.func @gemm(%a: tensor<64x128xf16>, %b: tensor<64x128xf16>) -> tensor<64x64xf16> {
  %c = greta.matmul %a, %b {transpose_b, greta.config = {tile = [32, 32, 32], waves = 2}} : tensor<64x128xf16>, tensor<64x128xf16> -> tensor<64x64xf16>
  return %c : tensor<64x64xf16>
}
