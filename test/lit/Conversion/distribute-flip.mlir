// The two slices of a dimension change places.
// RUN: greta-opt %s --greta-tile-distribute --cse | FileCheck %s

// A dimension of 2 in registers: they change names. In a bit of the lane: a shuffle.
#r = #greta_tile.layout<{reg = [[1, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], wave = [], rep = [1, 1]}>
#l = #greta_tile.layout<{reg = [[0, 16]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0]], wave = [], rep = [1, 1]}>
// CHECK-LABEL: @flip
// CHECK: %[[A:.*]] = greta_tile.ptr_load
// CHECK: %[[B:.*]] = greta_tile.ptr_load
// CHECK: greta_tile.ptr_store %[[B]]
// CHECK: greta_tile.ptr_store %[[A]]
// CHECK: %[[C:.*]] = greta_tile.ptr_load
// CHECK: %[[D:.*]] = greta_tile.ptr_load
// CHECK: greta_tile.shuffle_xor %[[C]], 16
// CHECK: greta_tile.shuffle_xor %[[D]], 16
greta_tile.func @flip(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [32, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<2x32xf32, #r>
  %f = greta_tile.flip %a dim 0 : tensor<2x32xf32, #r>
  greta_tile.store %f, %y[%z, %z] strides [32, 1] bounds [] : tensor<2x32xf32, #r> -> !greta_tile.ptr<f32>
  %b = greta_tile.load %x[%z, %z] strides [32, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<2x32xf32, #l>
  %g = greta_tile.flip %b dim 0 : tensor<2x32xf32, #l>
  greta_tile.store %g, %y[%z, %z] strides [32, 1] bounds [] : tensor<2x32xf32, #l> -> !greta_tile.ptr<f32>
  greta_tile.return
}
