// Ops that give elements another place.
// RUN: greta-opt %s --greta-tile-distribute --greta-tile-barriers --cse | FileCheck %s

#r = #greta_tile.layout<{reg = [[0, 1]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], wave = [], rep = [1, 1]}>
#t = #greta_tile.layout<{reg = [[1, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], wave = [], rep = [1, 1]}>
#one = #greta_tile.layout<{reg = [], lane = [[1], [2], [4], [8], [16]], wave = [], rep = [1]}>

// Pairs in registers part and meet, turned, under other names.
// CHECK-LABEL: @pairs
// CHECK: %[[A:.*]] = greta_tile.ptr_load
// CHECK: %[[B:.*]] = greta_tile.ptr_load
// CHECK-NOT: shuffle
// CHECK: greta_tile.ptr_store %[[B]]
// CHECK: greta_tile.ptr_store %[[A]]
greta_tile.func @pairs(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [1, 32] bounds [] : !greta_tile.ptr<f32> -> tensor<32x2xf32, #r>
  %f, %s = greta_tile.split %a : tensor<32x2xf32, #r> -> tensor<32xf32, #one>
  %j = greta_tile.join %s, %f : tensor<32xf32, #one> -> tensor<32x2xf32, #r>
  %u = greta_tile.trans %j [1, 0] : tensor<32x2xf32, #r> -> tensor<2x32xf32, #t>
  greta_tile.store %u, %y[%z, %z] strides [32, 1] bounds [] : tensor<2x32xf32, #t> -> !greta_tile.ptr<f32>
  greta_tile.return
}

#pair = #greta_tile.layout<{reg = [], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], wave = [], rep = [1, 1]}>
#half = #greta_tile.layout<{reg = [], lane = [[1], [2], [4], [8], [0]], wave = [], rep = [1]}>

// Lanes that differ in the pair's bit exchange what they have; what is joined there only is chosen.
// CHECK-LABEL: @lanes
// CHECK: %[[A:.*]] = greta_tile.ptr_load
// CHECK: greta_tile.shuffle_xor %[[A]], 16
// CHECK-NOT: greta_tile.shuffle
// CHECK: %[[F:.*]] = arith.select
// CHECK: %[[G:.*]] = arith.select
// CHECK: %[[S:.*]] = arith.select %{{.*}}, %[[F]], %[[G]]
// CHECK: greta_tile.ptr_store %[[S]]
greta_tile.func @lanes(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [2, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<16x2xf32, #pair>
  %f, %s = greta_tile.split %a : tensor<16x2xf32, #pair> -> tensor<16xf32, #half>
  %j = greta_tile.join %s, %f : tensor<16xf32, #half> -> tensor<16x2xf32, #pair>
  greta_tile.store %j, %y[%z, %z] strides [2, 1] bounds [] : tensor<16x2xf32, #pair> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// The result may lie otherwise than the algebra has it: what is left is a conversion.
#late = #greta_tile.layout<{reg = [], lane = [[16], [8], [4], [2], [1]], wave = [], rep = [1]}>
#spread = #greta_tile.layout<{reg = [[16, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 0]], wave = [], rep = [1, 1]}>
#wide = #greta_tile.layout<{reg = [[0, 1]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], wave = [], rep = [1, 1]}>
// CHECK-LABEL: @others
// CHECK: greta_tile.ptr_load
// CHECK: greta_tile.ptr_load
// CHECK: arith.select
// CHECK: greta_tile.shuffle
greta_tile.func @others(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [1, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<32x1xf32, #spread>
  %b = greta_tile.broadcast %a : tensor<32x1xf32, #spread> -> tensor<32x2xf32, #wide>
  %s = greta_tile.reduce {arith.addf} %b axis 1 : tensor<32x2xf32, #wide> -> tensor<32xf32, #late>
  greta_tile.store %s, %y[%z] strides [1] bounds [] : tensor<32xf32, #late> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// The block to gather from lies in shared memory, row by row; an index is kept below the extent.
// CHECK-LABEL: @gather
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-DAG: greta_tile.shared_alloc : <64 x f32>
// CHECK: %[[I:.*]] = greta_tile.ptr_load {{.*}} -> i32
// CHECK-COUNT-2: greta_tile.shared_store
// CHECK: %[[K:.*]] = arith.minui %[[I]], %[[ONE]]
// CHECK: arith.muli %[[K]], %{{.*}} : i32
// CHECK: greta_tile.barrier
// CHECK: greta_tile.shared_load
#row = #greta_tile.layout<{reg = [], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], wave = [], rep = [1, 1]}>
greta_tile.func @gather(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %i: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [32, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<2x32xf32, #t>
  %n = greta_tile.load %i[%z, %z] strides [32, 1] bounds [] : !greta_tile.ptr<i32> -> tensor<1x32xi32, #row>
  %g = greta_tile.gather %a[%n] axis 0 : tensor<2x32xf32, #t>[tensor<1x32xi32, #row>] -> tensor<1x32xf32, #row>
  greta_tile.store %g, %y[%z, %z] strides [32, 1] bounds [] : tensor<1x32xf32, #row> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Counters are cleared, added to by lanes whose number has one, and read.
// CHECK-LABEL: @histogram
// CHECK: %[[BINS:.*]] = greta_tile.shared_alloc : <16 x i32>
// CHECK: scf.if
// CHECK: greta_tile.shared_store
// CHECK: %[[AT:.*]] = arith.minui %[[N:.*]], %{{.*}}
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[AT]], %[[N]]
// CHECK: greta_tile.barrier
// CHECK: scf.if %[[IS]]
// CHECK: greta_tile.shared_add %{{.*}}, %[[BINS]][%[[AT]]]
// CHECK: greta_tile.barrier
// CHECK: greta_tile.shared_load %[[BINS]]
greta_tile.func @histogram(%x: !greta_tile.ptr<i32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<i32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<i32> -> tensor<32xi32, #one>
  %h = greta_tile.histogram %a : tensor<32xi32, #one> -> tensor<16xi32, #half>
  greta_tile.store %h, %y[%z] strides [1] bounds [] : tensor<16xi32, #half> -> !greta_tile.ptr<i32>
  greta_tile.return
}

// An op with several results.
// CHECK-LABEL: @several
// CHECK: arith.mulsi_extended
greta_tile.func @several(%x: !greta_tile.ptr<i32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<i32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<i32> -> tensor<32xi32, #one>
  %low, %high = arith.mulsi_extended %a, %a : tensor<32xi32, #one>
  greta_tile.store %high, %y[%z] strides [1] bounds [] : tensor<32xi32, #one> -> !greta_tile.ptr<i32>
  greta_tile.return
}
