// A configuration that is there stays.
// RUN: greta-opt --greta-configure=target=gfx942 %s | FileCheck %s

// CHECK-LABEL: func.func @by_hand
// CHECK: schedule = #greta.schedule<block_size = 64, spaces = [{columns = 128, rows = [1]}], wave_size = 64>
#s = affine_map<()[s0] -> (s0, 128)>
func.func @by_hand(%x: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %0 = greta.kernel(%x) {shapes = [#s, #s], schedule = #greta.schedule<block_size = 64, wave_size = 64, spaces = [{rows = [1], columns = 128}]>} : (tensor<?x128xf32>) -> tensor<?x128xf32> ({
  ^bb0(%a: tensor<?x128xf32>):
    %1 = greta.softmax %a : tensor<?x128xf32> -> tensor<?x128xf32>
    greta.yield %1 : tensor<?x128xf32>
  })
  return %0 : tensor<?x128xf32>
}
