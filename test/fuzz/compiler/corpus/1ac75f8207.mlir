#a = affine_map<()[s0] -> (1, 12)>
#b = affine_map<()[s0] -> (8, 12)>
#y = affine_map<()[s0] -> (1, 8)>
#schedule = #greta.schedule<block_size = 32, wave_size = 32, spaces = [{rows = [1], columns = 8, depth = 64, run = 8}]>
func.func @run(%x: tensor<1x12xf32>, %w: tensor<8x12xf32>) -> tensor<1x8xf32> {
  %0 = greta.kernel(%x, %w) {schedule = #schedule, shapes = [#a, #b, #y]} : (tensor<1x12xf32>, tensor<8x12xf32>) -> tensor<1x8xf32> ({
  ^bb0(%a: tensor<1x12xf32>, %b: tensor<8x12xf32>):
    %1 = greta.matmul %a, %b {transpose_b} : tensor<1x12xf32>, tensor<8x12xf32> -> tensor<1x8xf32>
    greta.yield %1 : tensor<1x8xf32>
  })
  return %0 : tensor<1x8xf32>
}
