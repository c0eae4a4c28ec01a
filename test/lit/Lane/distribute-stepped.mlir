// Dots in steps along K: operands, as they are laid out, go through shared memory to a loop.
// RUN: greta-opt %s --greta-tile-distribute=target=vulkan:lavapipe --greta-tile-barriers=target=vulkan:lavapipe --greta-tile-plan-memory=target=vulkan:lavapipe --canonicalize --cse | FileCheck %s

// A lane has four rows and four columns of the accumulator. An entry of A has four neighbours along K, those of one step; an entry of B has four columns. Both fit as a whole,
// so that one loop of 16 iterations does it.
// CHECK-LABEL: greta_tile.func @whole
// CHECK-DAG: %[[A:.*]] = greta_tile.shared_alloc offset 0 : <256 x vector<4xf32>>
// CHECK-DAG: %[[B:.*]] = greta_tile.shared_alloc offset 4096 : <128 x vector<4xf32>>
// CHECK-COUNT-32: greta_tile.shared_store {{.*}}, %[[A]]
// CHECK-COUNT-16: greta_tile.shared_store {{.*}}, %[[B]]
// CHECK: greta_tile.barrier
// CHECK: scf.for %[[TURN:.*]] = %{{.*}} to %c16_i32 step %{{.*}} iter_args
// CHECK-COUNT-8: greta_tile.shared_load
// CHECK-NOT: greta_tile.shared_load
// CHECK-COUNT-16: math.fma
// CHECK-NOT: math.fma
// CHECK: } {greta_tile.rolled}
// CHECK-NOT: scf.for
#a = #greta_tile.layout<{reg = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16]], wave = [], rep = [16, 2]}>
#b = #greta_tile.layout<{reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0]], wave = [], rep = [16, 1]}>
#c = #greta_tile.layout<{reg = [[0, 1], [0, 2], [1, 0], [2, 0]], lane = [[0, 4], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>
greta_tile.func @whole(%x: !greta_tile.ptr<f32>) attributes {wave_size = 8 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %none = arith.constant dense<0.0> : tensor<16x8xf32, #c>
  %a = greta_tile.load %x[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<16x64xf32, #a>
  %b = greta_tile.load %x[%z, %z] strides [8, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<64x8xf32, #b>
  %d = greta_tile.dot %a, %b, %none {step = 4 : i32} : tensor<16x64xf32, #a>, tensor<64x8xf32, #b> -> tensor<16x8xf32, #c>
  greta_tile.store %d, %x[%z, %z] strides [8, 1] bounds [] : tensor<16x8xf32, #c> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// 36 KiB of A: half of K at a time, one loop behind another.
// CHECK-LABEL: greta_tile.func @parts
// CHECK: scf.for
// CHECK: greta_tile.barrier
// CHECK: scf.for
// CHECK-NOT: scf.for
#wide = #greta_tile.layout<{reg = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16]], wave = [[1, 0], [2, 0]], rep = [72, 1]}>
#thin = #greta_tile.layout<{reg = [], lane = [[1, 0], [2, 0], [4, 0]], wave = [[8, 0], [16, 0]], rep = [1, 1]}>
#sums = #greta_tile.layout<{reg = [], lane = [[1, 0], [2, 0], [4, 0]], wave = [[8, 0], [16, 0]], rep = [9, 1]}>
greta_tile.func @parts(%x: !greta_tile.ptr<f32>) attributes {wave_size = 8 : i32, waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %none = arith.constant dense<0.0> : tensor<288x1xf32, #sums>
  %a = greta_tile.load %x[%z, %z] strides [32, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<288x32xf32, #wide>
  %b = greta_tile.load %x[%z, %z] strides [1, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<32x1xf32, #thin>
  %d = greta_tile.dot %a, %b, %none {step = 4 : i32} : tensor<288x32xf32, #wide>, tensor<32x1xf32, #thin> -> tensor<288x1xf32, #sums>
  greta_tile.store %d, %x[%z, %z] strides [1, 1] bounds [] : tensor<288x1xf32, #sums> -> !greta_tile.ptr<f32>
  greta_tile.return
}
