// Scans: what a lane holds, what lanes hold, what waves hold.
// RUN: greta-opt %s --greta-tile-distribute --greta-tile-barriers --cse | FileCheck %s

#registers = #greta_tile.layout<{reg = [[1], [2]], lane = [], wave = [], rep = [1]}>

// The first two are combined, the last two too, then what the first two make with each of the last.
// CHECK-LABEL: @registers
// CHECK: %[[X0:.*]] = vector.extract %{{.*}}[0]
// CHECK: %[[X1:.*]] = vector.extract %{{.*}}[1]
// CHECK: %[[X2:.*]] = vector.extract %{{.*}}[2]
// CHECK: %[[X3:.*]] = vector.extract %{{.*}}[3]
// CHECK: %[[A:.*]] = arith.addf %[[X0]], %[[X1]]
// CHECK: %[[B:.*]] = arith.addf %[[X2]], %[[X3]]
// CHECK: %[[C:.*]] = arith.addf %[[A]], %[[X2]]
// CHECK: %[[D:.*]] = arith.addf %[[A]], %[[B]]
// CHECK: vector.from_elements %[[X0]], %[[A]], %[[C]], %[[D]]
// The other way the last stands before the others; the combiner tells its arguments apart.
// CHECK: %[[R:.*]] = arith.subf %[[X3]], %[[X2]]
// CHECK: arith.subf %[[R]], %[[X1]]
greta_tile.func @registers(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<4xf32, #registers>
  %s = greta_tile.scan {arith.addf} %a axis 0 : tensor<4xf32, #registers>
  greta_tile.store %s, %y[%z] strides [1] bounds [] : tensor<4xf32, #registers> -> !greta_tile.ptr<f32>
  %r = greta_tile.scan {arith.subf} %a axis 0 reverse : tensor<4xf32, #registers>
  greta_tile.store %r, %y[%z] strides [1] bounds [] : tensor<4xf32, #registers> -> !greta_tile.ptr<f32>
  greta_tile.return
}

#lanes = #greta_tile.layout<{reg = [[1]], lane = [[2], [4]], wave = [[8]], rep = [1]}>

// Only totals travel: a shuffle for each bit of the lane, then once through shared memory.
// CHECK-LABEL: @threads
// CHECK: greta_tile.shared_alloc : <1 x f32>
// CHECK: arith.addf
// CHECK: greta_tile.shuffle
// CHECK: greta_tile.shuffle
// CHECK-NOT: greta_tile.shuffle
// CHECK: scf.if
// CHECK: greta_tile.shared_store
// CHECK: greta_tile.barrier
// CHECK: greta_tile.shared_load
// CHECK-NOT: greta_tile.shared_load
greta_tile.func @threads(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 4 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<16xf32, #lanes>
  %s = greta_tile.scan {arith.addf} %a axis 0 : tensor<16xf32, #lanes>
  greta_tile.store %s, %y[%z] strides [1] bounds [] : tensor<16xf32, #lanes> -> !greta_tile.ptr<f32>
  greta_tile.return
}
