func.func @parts(%a: tensor<1x4096xf16>, %b: tensor<64x4096xf16>) -> tensor<1x64xf16> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {tile = [1, 4, 256], waves = 4, run = 8, unroll = 1, split = 3}} : tensor<1x4096xf16>, tensor<64x4096xf16> -> tensor<1x64xf16>
  return %0 : tensor<1x64xf16>
}
