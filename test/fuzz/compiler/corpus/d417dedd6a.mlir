#s = affine_map<()[s0] -> (s0, 8)>
func.func @taken(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = greta.kernel(%x) {shapes = [#s, #s]} : (tensor<?x8xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf32>):
    %1 = greta.softmax %a : tensor<?x8xf32> -> tensor<?x8xf32>
    greta.yield %1 : tensor<?x8xf32>
  })
  return %0 : tensor<?x8xf32>
}
