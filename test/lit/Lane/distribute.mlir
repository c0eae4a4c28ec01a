// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-assign-layouts),greta-tile-distribute,greta_tile.func(greta-tile-barriers),cse)' | FileCheck %s

// 16-byte accesses; the tail of the row is clamped and selected for loads, branched around for stores. The waves' sums meet
// by one load per lane and a shuffle.
// CHECK-LABEL: @row
// CHECK-DAG: %[[LANE:.*]] = greta_tile.lane_id
// CHECK-DAG: greta_tile.shared_alloc : <2 x f32>
// CHECK: %[[OK:.*]] = arith.cmpi slt, %[[AT:.*]], %c504_i32
// CHECK: %[[SAFE:.*]] = arith.select %[[OK]], %[[AT]], %c0_i32
// CHECK: greta_tile.ptr_load %{{.*}}[%[[SAFE]]] align 16 : <f16> -> vector<8xf16>
// CHECK: greta_tile.shuffle_xor %{{.*}}, 1 : f32
// CHECK: greta_tile.shuffle_xor %{{.*}}, 16 : f32
// CHECK: scf.if
// CHECK-NEXT: greta_tile.shared_store
// CHECK: greta_tile.barrier
// CHECK: greta_tile.shared_load
// CHECK-NOT: greta_tile.shared_load
// CHECK: greta_tile.shuffle_xor %{{.*}}, 1 : f32
// CHECK: vector.from_elements
// CHECK-NEXT: scf.if %[[OK]]
// CHECK-NEXT: greta_tile.ptr_store {{.*}} align 16 : vector<8xf16>
greta_tile.func @row(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %r = greta_tile.program_id 0
  %z = arith.constant 0 : i32
  %n = arith.constant 504 : i32
  %a = greta_tile.load %x[%r, %z] strides [504, 1] bounds [1] (%n) : !greta_tile.ptr<f16> -> tensor<1x512xf16>
  %f = arith.extf %a : tensor<1x512xf16> to tensor<1x512xf32>
  %s_line = greta_tile.reduce {arith.addf} %f axis 1 : tensor<1x512xf32> -> tensor<1xf32>
  %s = greta_tile.reshape %s_line : tensor<1xf32> -> tensor<1x1xf32>
  %b = greta_tile.broadcast %s : tensor<1x1xf32> -> tensor<1x512xf32>
  %h = arith.truncf %b : tensor<1x512xf32> to tensor<1x512xf16>
  greta_tile.store %h, %x[%r, %z] strides [504, 1] bounds [1] (%n) : tensor<1x512xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// A row of odd length has no aligned vectors: one element at a time.
// CHECK-LABEL: @odd
// CHECK: greta_tile.ptr_load {{.*}} align 2 : <f16> -> f16
greta_tile.func @odd(%x: !greta_tile.ptr<f16>) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %r = greta_tile.program_id 0
  %z = arith.constant 0 : i32
  %n = arith.constant 63 : i32
  %a = greta_tile.load %x[%r, %z] strides [63, 1] bounds [1] (%n) : !greta_tile.ptr<f16> -> tensor<1x64xf16>
  greta_tile.store %a, %x[%r, %z] strides [63, 1] bounds [1] (%n) : tensor<1x64xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// Waves of one lane: no shuffle; 64 waves meet in two rounds of eight values through shared memory.
// CHECK-LABEL: @portable
// CHECK-NOT: greta_tile.shuffle
// CHECK-NOT: greta_tile.lane_id
// CHECK: greta_tile.barrier
// CHECK-COUNT-8: greta_tile.shared_load
// CHECK: greta_tile.barrier
// CHECK-COUNT-8: greta_tile.shared_load
// CHECK-NOT: greta_tile.shared_load
// CHECK: greta_tile.return
greta_tile.func @portable(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 1 : i32, waves = 64 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<1x64xf32>
  %s_line = greta_tile.reduce {arith.maxnumf {fastmath = #arith.fastmath<nnan>}} %a axis 1 : tensor<1x64xf32> -> tensor<1xf32>
  %s = greta_tile.reshape %s_line : tensor<1xf32> -> tensor<1x1xf32>
  greta_tile.store %s, %x[%z, %z] strides [1, 1] bounds [] : tensor<1x1xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// The operands of a dot go through shared memory. The barrier behind one's store is also the one that ends the reads of the other, in this iteration of
// the loop or the last.
// CHECK-LABEL: @product
// CHECK: scf.for
// CHECK-NOT: greta_tile.barrier
// CHECK: greta_tile.shared_store
// CHECK: greta_tile.barrier
// CHECK: greta_tile.shared_load
// CHECK-NOT: greta_tile.barrier
// CHECK: greta_tile.shared_store
// CHECK: greta_tile.barrier
// CHECK: greta_tile.shared_load
// CHECK: math.fma
// CHECK-NOT: greta_tile.barrier
// CHECK: greta_tile.return
greta_tile.func @product(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 16 : i32
  %end = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x16xf16>
    %b = greta_tile.load %x[%k, %z] strides [32, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x32xf16>
    %next = greta_tile.dot %a, %b, %acc : tensor<32x16xf16>, tensor<16x32xf16> -> tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  greta_tile.store %d, %y[%z, %z] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// With a matrix instruction: one per tile of the accumulator (2 x 1 of a wave) and step along K (2), on vectors of a lane's registers.
// CHECK-LABEL: @matrix
// CHECK: scf.for
// CHECK-COUNT-4: greta_tile.mma "mfma.f32.16x16x16f16" %{{.*}}, %{{.*}}, %{{.*}} : vector<4xf16>, vector<4xf16> -> vector<4xf32>
// CHECK-NOT: greta_tile.mma
// CHECK: scf.yield
#mfma = #greta_tile.matrix<"mfma.f32.16x16x16f16",
  a = <{reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4], [0, 8]], wave = [], rep = [1, 1]}>,
  b = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>,
  acc = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>>
greta_tile.func @matrix(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %end = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x32xf16>
    %b = greta_tile.load %x[%k, %z] strides [32, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x32xf16>
    %next = greta_tile.dot %a, %b, %acc {matrix = #mfma} : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  greta_tile.store %d, %y[%z, %z] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Chains of multiply-adds; what both rows of the sum use is widened once.
// CHECK-LABEL: @contract
// CHECK-COUNT-12: arith.extf
// CHECK-NOT: arith.extf
// CHECK-COUNT-8: math.fma
// CHECK-NOT: math.fma
greta_tile.func @contract(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %v: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %acc = arith.constant dense<0.0> : tensor<2x1x32x1xf32>
  %w = greta_tile.load %x[%z, %z, %z, %z] strides [0, 0, 4, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<1x1x32x4xf16>
  %a = greta_tile.load %v[%z, %z, %z, %z] strides [128, 0, 4, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<2x1x32x4xf16>
  %c = greta_tile.contract %a, %w, %acc dims [3] : tensor<2x1x32x4xf16>, tensor<1x1x32x4xf16> -> tensor<2x1x32x1xf32>
  greta_tile.store %c, %y[%z, %z, %z, %z] strides [32, 0, 1, 0] bounds [] : tensor<2x1x32x1xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Groups of neighbours: a lane has eight of a row, which are one sum.
// CHECK-LABEL: @contract_groups
// CHECK: greta_tile.ptr_load {{.*}} -> vector<8xf16>
// CHECK-COUNT-8: math.fma
// CHECK-NOT: math.fma
greta_tile.func @contract_groups(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %acc = arith.constant dense<0.0> : tensor<8x4xf32>
  %a = greta_tile.load %x[%z, %z] strides [32, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<8x32xf16>
  %c = greta_tile.contract %a, %a, %acc dims [1] : tensor<8x32xf16>, tensor<8x32xf16> -> tensor<8x4xf32>
  greta_tile.store %c, %y[%z, %z] strides [4, 1] bounds [] : tensor<8x4xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Narrow sums are dots of vectors. A word is unpacked to a vector of eight. Elements that four neighbours share are loaded once.
// CHECK-LABEL: @contract_narrow
// CHECK-DAG: greta_tile.ptr_load {{.*}} -> vector<4xi32>
// CHECK-DAG: greta_tile.ptr_load {{.*}} -> vector<8xf16>
// CHECK-DAG: arith.shrui
// CHECK: greta_tile.unpack "gptq4" %{{.*}} scale %{{.*}} zero %{{.*}} : f16, i32 -> vector<8xf16>
// CHECK: greta_tile.vector_dot %{{.*}}, %{{.*}}, %{{.*}} : vector<32xf16>
// CHECK-NOT: greta_tile.vector_dot
greta_tile.func @contract_narrow(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %q: !greta_tile.ptr<i32> {greta.divisibility = 16 : i64}, %s: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %acc = arith.constant dense<0.0> : tensor<1x1x32x1x1xf32>
  %zero = arith.constant dense<8> : tensor<1x1x32x1x1xi32>
  %w = greta_tile.load %q[%z, %z, %z, %z, %z] strides [0, 128, 4, 1, 0] bounds [] : !greta_tile.ptr<i32> -> tensor<1x1x32x4x1xi32>
  %t = greta_tile.load %s[%z, %z, %z, %z, %z] strides [0, 8, 1, 0, 0] bounds [] {divisors = array<i64: 1, 1, 4, 1, 1>} : !greta_tile.ptr<f16> -> tensor<1x1x32x1x1xf16>
  %a = greta_tile.load %x[%z, %z, %z, %z, %z] strides [1024, 0, 32, 8, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<1x1x32x4x8xf16>
  %v = greta_tile.dequant %w, %t, %zero : tensor<1x1x32x4x1xi32>, tensor<1x1x32x1x1xf16>, tensor<1x1x32x1x1xi32> -> tensor<1x1x32x4x8xf16>
  %c = greta_tile.contract %a, %v, %acc dims [3, 4] narrow : tensor<1x1x32x4x8xf16>, tensor<1x1x32x4x8xf16> -> tensor<1x1x32x1x1xf32>
  greta_tile.store %c, %y[%z, %z, %z, %z, %z] strides [0, 0, 1, 0, 0] bounds [] : tensor<1x1x32x1x1xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// A lane's words arrive together; what 32 neighbours share is loaded once for its weights.
// CHECK-LABEL: @dequant
// CHECK-COUNT-1: greta_tile.ptr_load {{.*}} -> f16
// CHECK-COUNT-1: greta_tile.ptr_load {{.*}} -> vector<4xi32>
// CHECK-NOT: greta_tile.ptr_load
// CHECK-COUNT-4: greta_tile.unpack "gptq4" %{{.*}} : f16, i32 -> vector<8xf16>
// CHECK-NOT: greta_tile.unpack
// CHECK: greta_tile.ptr_store {{.*}} : vector<8xf16>
greta_tile.func @dequant(%q: !greta_tile.ptr<i32> {greta.divisibility = 16 : i64}, %s: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %zero = arith.constant dense<8> : tensor<1x1xi32>
  %t = greta_tile.load %s[%z, %z] strides [1, 2] bounds [] : !greta_tile.ptr<f16> -> tensor<2x16xf16>
  %w = greta_tile.load %q[%z, %z] strides [1, 8] bounds [] : !greta_tile.ptr<i32> -> tensor<8x16xi32>
  %a = greta_tile.dequant %w, %t, %zero : tensor<8x16xi32>, tensor<2x16xf16>, tensor<1x1xi32> -> tensor<64x16xf16>
  greta_tile.store %a, %y[%z, %z] strides [1, 64] bounds [] : tensor<64x16xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// Words of upper bits begin with those of the word that is unpacked: two words of `words` share one of `high`.
// CHECK-LABEL: @dequant_high
// CHECK: %[[W:.*]] = greta_tile.ptr_load {{.*}} -> vector<4xi32>
// CHECK: %[[FIRST:.*]] = vector.extract %[[W]][0]
// CHECK: %[[H:.*]] = greta_tile.ptr_load {{.*}} -> vector<2xi32>
// CHECK: %[[WORD:.*]] = vector.extract %[[H]][0]
// CHECK: greta_tile.unpack "q6_k" %[[FIRST]] high %[[WORD]] scale %{{.*}} zero %{{.*}} : f16, i32 -> vector<8xf16>
// CHECK: %[[SECOND:.*]] = arith.shrui %[[WORD]], %c8_i32
// CHECK: greta_tile.unpack "q6_k" %{{.*}} high %[[SECOND]] scale
greta_tile.func @dequant_high(%q: !greta_tile.ptr<i32> {greta.divisibility = 16 : i64}, %h: !greta_tile.ptr<i32> {greta.divisibility = 16 : i64}, %s: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %zero = arith.constant dense<32> : tensor<1x1xi32>
  %t = greta_tile.load %s[%z, %z] strides [1, 4] bounds [] : !greta_tile.ptr<f16> -> tensor<4x16xf16>
  %w = greta_tile.load %q[%z, %z] strides [1, 8] bounds [] : !greta_tile.ptr<i32> -> tensor<8x16xi32>
  %u = greta_tile.load %h[%z, %z] strides [1, 4] bounds [] : !greta_tile.ptr<i32> -> tensor<4x16xi32>
  %a = greta_tile.dequant %w, %u, %t, %zero {format = "q6_k"} : tensor<8x16xi32>, tensor<4x16xi32>, tensor<4x16xf16>, tensor<1x1xi32> -> tensor<64x16xf16>
  greta_tile.store %a, %y[%z, %z] strides [1, 64] bounds [] : tensor<64x16xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// If nothing says that a block begins within its bounds, its loads stand in a branch, which is taken if it does.
// CHECK-LABEL: @beyond
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %{{.*}}, %arg2 : i32
// CHECK: scf.if %[[SOME]] -> (f32)
// CHECK: arith.select
// CHECK-NEXT: greta_tile.ptr_load
// CHECK: } else {
// CHECK-NEXT: scf.yield %{{.*}} : f32
greta_tile.func @beyond(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %c32 = arith.constant 32 : i32
  %pid = greta_tile.program_id 0
  %at = arith.muli %pid, %c32 : i32
  %v = greta_tile.load %x[%at] strides [1] bounds [0] (%n) : !greta_tile.ptr<f32> -> tensor<32xf32>
  greta_tile.store %v, %y[%at] strides [1] bounds [0] (%n) : tensor<32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// An assumption, a branch around, and a loop's counter say so. A counter and a bound that are both multiples of the block need no mask.
// CHECK-LABEL: @within
// CHECK-NOT: scf.if {{.*}} -> (f32)
// CHECK: greta_tile.ptr_load
// CHECK: scf.if
// CHECK-NOT: scf.if {{.*}} -> (f32)
// CHECK: greta_tile.ptr_load
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK-NOT: arith.select
// CHECK: greta_tile.return
greta_tile.func @within(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 32 : i64}, %m: i32) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %pid = greta_tile.program_id 0
  %at = arith.muli %pid, %c32 : i32
  %below = arith.cmpi slt, %at, %m : i32
  greta_tile.assume %below
  %v = greta_tile.load %x[%at] strides [1] bounds [0] (%m) : !greta_tile.ptr<f32> -> tensor<32xf32>
  greta_tile.store %v, %y[%at] strides [1] bounds [0] (%m) : tensor<32xf32> -> !greta_tile.ptr<f32>
  %next = arith.addi %at, %c32 : i32
  %more = arith.cmpi sgt, %m, %next : i32
  scf.if %more {
    %w = greta_tile.load %x[%next] strides [1] bounds [0] (%m) : !greta_tile.ptr<f32> -> tensor<32xf32>
    greta_tile.store %w, %y[%next] strides [1] bounds [0] (%m) : tensor<32xf32> -> !greta_tile.ptr<f32>
  }
  scf.for %i = %c0 to %n step %c32 : i32 {
    %u = greta_tile.load %x[%i] strides [1] bounds [0] (%n) : !greta_tile.ptr<f32> -> tensor<32xf32>
    greta_tile.store %u, %y[%i] strides [1] bounds [0] (%n) : tensor<32xf32> -> !greta_tile.ptr<f32>
  }
  greta_tile.return
}

// Masked stores are as wide as the bound's divisor.
// CHECK-LABEL: @quads
// CHECK: greta_tile.ptr_store {{.*}} align 8 : vector<4xf16>
// CHECK-LABEL: @singles
// CHECK: greta_tile.ptr_store {{.*}} align 2 : f16
greta_tile.func @quads(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %n: i32 {greta.divisibility = 12 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %v = arith.constant dense<1.0> : tensor<512xf16>
  greta_tile.store %v, %x[%c0] strides [1] bounds [0] (%n) : tensor<512xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}
greta_tile.func @singles(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %n: i32) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %v = arith.constant dense<1.0> : tensor<512xf16>
  greta_tile.store %v, %x[%c0] strides [1] bounds [0] (%n) : tensor<512xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// A while loop carries a lane's registers: two of the block, then the scalar; of what its condition passes on the scalar and the registers.
// CHECK-LABEL: @halved
// CHECK: %[[W:.*]]:3 = scf.while (%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[I:.*]] = %c0_i32) : (f32, f32, i32) -> (i32, f32, f32) {
// CHECK: %[[ONE:.*]] = arith.maximumf %[[A]], %[[B]]
// CHECK: greta_tile.shuffle_xor
// CHECK: scf.condition(%{{.*}}) %[[I]], %[[A]], %[[B]] : i32, f32, f32
// CHECK: ^bb0(%[[J:.*]]: i32, %[[C:.*]]: f32, %[[D:.*]]: f32):
// CHECK: %[[E:.*]] = arith.mulf %[[C]]
// CHECK: %[[F:.*]] = arith.mulf %[[D]]
// CHECK: scf.yield %[[E]], %[[F]], %{{.*}} : f32, f32, i32
greta_tile.func @halved(%x: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %limit = arith.constant 1.0 : f32
  %half = arith.constant dense<0.5> : tensor<64xf32>
  %v = greta_tile.load %x[%zero] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<64xf32>
  %r:2 = scf.while (%a = %v, %i = %zero) : (tensor<64xf32>, i32) -> (i32, tensor<64xf32>) {
    %most = greta_tile.reduce {arith.maximumf} %a axis 0 : tensor<64xf32> -> f32
    %big = arith.cmpf ogt, %most, %limit : f32
    scf.condition(%big) %i, %a : i32, tensor<64xf32>
  } do {
  ^bb0(%i: i32, %a: tensor<64xf32>):
    %b = arith.mulf %a, %half : tensor<64xf32>
    %next = arith.addi %i, %one : i32
    scf.yield %b, %next : tensor<64xf32>, i32
  }
  greta_tile.store %r#1, %x[%r#0] strides [1] bounds [] : tensor<64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
