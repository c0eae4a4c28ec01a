#s = affine_map<()[s0] -> (8)>
func.func @data(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = greta.kernel(%x) {shapes = [#s, #s]} : (tensor<8xf32>) -> tensor<8xf32> ({
  ^bb0(%a: tensor<8xf32>):
    %1 = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
    %2 = arith.divf %a, %1 : tensor<8xf32>
    greta.yield %2 : tensor<8xf32>
  })
  return %0 : tensor<8xf32>
}
