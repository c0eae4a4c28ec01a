// Loops that nobody has configured, for targets' shared memory: two stages where lanes hold fragments, one where drivers load them.
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx942},greta-tile-assign-layouts,greta-tile-pipeline{target=gfx942},canonicalize,cse))' | FileCheck %s --check-prefixes=CHECK,GFX942
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=vulkan:nvidia},greta-tile-assign-layouts,greta-tile-pipeline{target=vulkan:nvidia},canonicalize,cse))' | FileCheck %s --check-prefixes=CHECK,NVIDIA
// RUN: not greta-opt %s --split-input-file --pass-pipeline='builtin.module(greta_tile.func(greta-tile-pipeline{target=gfx1099}))' 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: unknown target 'gfx1099'

// Attention: queries are loaded where the first dot takes them and stay there; keys and values of the next iteration are loaded before this iteration's products; weights go
// from dot to dot in registers. There may be no keys: then nothing is loaded.
// CHECK-LABEL: @attention
// GFX942-COUNT-2: greta_tile.local_alloc : <2 x tensor<
// NVIDIA: greta_tile.local_alloc : <1 x tensor<64x32xf16>, <dim = 0, stride = 72,
// NVIDIA: greta_tile.local_alloc : <1 x tensor<32x64xf16>, <dim = 1, stride = 72,
// CHECK: %[[Q:[0-9]+]] = greta_tile.load %arg0
// CHECK: %[[SOME:[a-z0-9]+]] = arith.cmpi sgt, %arg4, %c0_i32
// CHECK: scf.if %[[SOME]]
// NVIDIA-NOT: convert_layout
// GFX942-COUNT-2: greta_tile.local_store %{{.*}}, %{{.*}}[%c0_i32]
// CHECK: greta_tile.load %arg1
// CHECK-NEXT: greta_tile.load %arg2
// CHECK-NEXT: scf.for %[[K:[a-z0-9]+]] = %c0_i32 to %arg4 step %c32_i32 iter_args(%[[M:[a-z0-9]+]] = %{{[^,]*}}, %[[L:[a-z0-9]+]] = %{{[^,]*}}, %[[A:[a-z0-9]+]] = %
// NVIDIA-COUNT-2: greta_tile.local_store %{{.*}}, %{{.*}}[%c0_i32]
// NVIDIA: %[[NEXT:[0-9]+]] = arith.minui
// NVIDIA-NEXT: %[[WITHIN:[0-9]+]] = arith.cmpi sge, %[[NEXT]], %c0_i32
// NVIDIA-NEXT: greta_tile.assume %[[WITHIN]]
// NVIDIA-NEXT: %[[BELOW:[0-9]+]] = arith.cmpi slt, %[[NEXT]], %arg4
// NVIDIA-NEXT: greta_tile.assume %[[BELOW]]
// NVIDIA-NEXT: greta_tile.load %arg1
// NVIDIA-NEXT: greta_tile.load %arg2
// CHECK: %[[KEYS:[0-9]+]] = greta_tile.local_load
// GFX942-COUNT-2: greta_tile.local_store
// GFX942: greta_tile.load %arg1
// GFX942: greta_tile.load %arg2
// NVIDIA: greta_tile.dot %[[Q]], %[[KEYS]]
// GFX942: greta_tile.dot %{{[0-9]+}}, %[[KEYS]]
// CHECK-NOT: greta_tile.local_store
// CHECK: %[[P:[0-9]+]] = arith.truncf
// GFX942-NOT: convert_layout
// NVIDIA: greta_tile.convert_layout %[[P]]
// NVIDIA-NOT: convert_layout
// CHECK: %[[VALUES:[0-9]+]] = greta_tile.local_load
// CHECK: greta_tile.dot %{{[0-9]+}}, %[[VALUES]]
// CHECK: scf.yield
// CHECK: greta_tile.rolled
// CHECK: else
greta_tile.func @attention(%q: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %k: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %v: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %keys: i32) attributes {waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
  %m0 = arith.constant dense<-1.0e30> : tensor<32xf32>
  %l0 = arith.constant dense<0.0> : tensor<32xf32>
  %a0 = arith.constant dense<0.0> : tensor<32x64xf32>
  %query = greta_tile.load %q[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
  %r:3 = scf.for %j = %z to %keys step %c32 iter_args(%m = %m0, %l = %l0, %a = %a0) -> (tensor<32xf32>, tensor<32xf32>, tensor<32x64xf32>) : i32 {
    %key = greta_tile.load %k[%z, %j] strides [1, 64] bounds [1] (%keys) : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %value = greta_tile.load %v[%j, %z] strides [64, 1] bounds [0] (%keys) : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %s = greta_tile.dot %query, %key, %none : tensor<32x64xf16>, tensor<64x32xf16> -> tensor<32x32xf32>
    %most = greta_tile.reduce {arith.maxnumf} %s axis 1 : tensor<32x32xf32> -> tensor<32xf32>
    %next = arith.maxnumf %m, %most : tensor<32xf32>
    %column = greta_tile.reshape %next : tensor<32xf32> -> tensor<32x1xf32>
    %all = greta_tile.broadcast %column : tensor<32x1xf32> -> tensor<32x32xf32>
    %off = arith.subf %s, %all : tensor<32x32xf32>
    %w = math.exp2 %off : tensor<32x32xf32>
    %fall = arith.subf %m, %next : tensor<32xf32>
    %alpha = math.exp2 %fall : tensor<32xf32>
    %more = greta_tile.reduce {arith.addf} %w axis 1 : tensor<32x32xf32> -> tensor<32xf32>
    %l1 = arith.mulf %l, %alpha : tensor<32xf32>
    %l2 = arith.addf %l1, %more : tensor<32xf32>
    %alphas = greta_tile.reshape %alpha : tensor<32xf32> -> tensor<32x1xf32>
    %each = greta_tile.broadcast %alphas : tensor<32x1xf32> -> tensor<32x64xf32>
    %a1 = arith.mulf %a, %each : tensor<32x64xf32>
    %p = arith.truncf %w : tensor<32x32xf32> to tensor<32x32xf16>
    %a2 = greta_tile.dot %p, %value, %a1 : tensor<32x32xf16>, tensor<32x64xf16> -> tensor<32x64xf32>
    scf.yield %next, %l2, %a2 : tensor<32xf32>, tensor<32xf32>, tensor<32x64xf32>
  }
  greta_tile.store %r#2, %o[%z, %z] strides [64, 1] bounds [] : tensor<32x64xf32> -> !greta_tile.ptr<f32>
  %sums = greta_tile.reshape %r#1 : tensor<32xf32> -> tensor<32x1xf32>
  greta_tile.store %sums, %o[%z, %z] strides [1, 1] bounds [] : tensor<32x1xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

// Pointers of the iteration, from any number on in steps of any size; the last iteration's again beyond the end, which may be the largest number: what is left is added at most. Some scalars are another's, some the iteration's own.
// CHECK-LABEL: @pointers
// CHECK: %[[TURNS:[0-9]+]] = arith.divui %{{[0-9]+}}, %arg5
// CHECK: %[[FROM:[0-9]+]] = arith.muli %[[TURNS]], %arg5
// CHECK: %[[LAST:[0-9]+]] = arith.addi %[[FROM]], %arg3
// CHECK-COUNT-2: greta_tile.load_scattered
// CHECK: scf.for %[[K:[a-z0-9]+]] = %arg3 to %arg4 step %arg5
// CHECK: %[[LEFT:[0-9]+]] = arith.subi %[[LAST]], %[[K]]
// CHECK: %[[STEP:[0-9]+]] = arith.minui %[[LEFT]], %arg5
// CHECK: arith.addi %[[K]], %[[STEP]]
// CHECK-COUNT-2: greta_tile.load_scattered
// CHECK-NOT: greta_tile.load_scattered
// CHECK: greta_tile.dot
// CHECK: %[[TURN:[0-9]+]] = arith.sitofp %[[K]]
// CHECK: greta_tile.splat %[[TURN]]
// CHECK: greta_tile.rolled
greta_tile.func @pointers(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %from: i32, %to: i32, %step: i32) attributes {waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
  %rows = greta_tile.iota 0 : tensor<32x32xi32>
  %columns = greta_tile.iota 1 : tensor<32x32xi32>
  %line = arith.constant dense<32> : tensor<32x32xi32>
  %down = arith.muli %rows, %line : tensor<32x32xi32>
  %places = arith.addi %down, %columns : tensor<32x32xi32>
  %r = scf.for %k = %from to %to step %step iter_args(%acc = %none) -> (tensor<32x32xf32>) : i32 {
    %c1024 = arith.constant 1024 : i32
    %first = arith.muli %k, %c1024 : i32
    %px = greta_tile.ptr_add %x, %first : !greta_tile.ptr<f16>, i32
    %xs = greta_tile.ptr_add %px, %places : !greta_tile.ptr<f16>, tensor<32x32xi32>
    %a = greta_tile.load_scattered %xs : tensor<32x32x!greta_tile.ptr<f16>> -> tensor<32x32xf16>
    %py = greta_tile.ptr_add %y, %first : !greta_tile.ptr<f16>, i32
    %ys = greta_tile.ptr_add %py, %places : !greta_tile.ptr<f16>, tensor<32x32xi32>
    %b = greta_tile.load_scattered %ys : tensor<32x32x!greta_tile.ptr<f16>> -> tensor<32x32xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    %turn = arith.sitofp %k : i32 to f32
    %turns = greta_tile.splat %turn : tensor<32x32xf32>
    %e = arith.addf %d, %turns : tensor<32x32xf32>
    scf.yield %e : tensor<32x32xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

// A GEMM's second operand, which its iteration needs for something else, is loaded in its iteration.
// CHECK-LABEL: @needed
// CHECK: scf.for
// CHECK: greta_tile.load %arg1
// CHECK: scf.yield
greta_tile.func @needed(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c256 = arith.constant 256 : i32
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
  %r = scf.for %k = %z to %c256 step %c32 iter_args(%acc = %none) -> (tensor<32x32xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [256, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [32, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x32xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    %c = arith.extf %b : tensor<32x32xf16> to tensor<32x32xf32>
    %e = arith.addf %d, %c : tensor<32x32xf32>
    scf.yield %e : tensor<32x32xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

// One loop writes what it would load ahead; the other needs 128 KiB, which fit in no workgroup's shared memory.
// CHECK-LABEL: @untouched
// CHECK-NOT: local_alloc
// CHECK-NOT: rolled
greta_tile.func @untouched(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c256 = arith.constant 256 : i32
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
  %r = scf.for %k = %z to %c256 step %c32 iter_args(%acc = %none) -> (tensor<32x32xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [256, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x32xf16>
    %d = greta_tile.dot %a, %a, %acc : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    %h = arith.truncf %d : tensor<32x32xf32> to tensor<32x32xf16>
    greta_tile.store %h, %x[%z, %k] strides [256, 1] bounds [] : tensor<32x32xf16> -> !greta_tile.ptr<f16>
    scf.yield %d : tensor<32x32xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>
  %big = scf.for %k = %z to %c256 step %c32 iter_args(%acc = %none) -> (tensor<32x32xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [1024, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x1024xf16>
    %b = greta_tile.load %x[%k, %z] strides [1, 1024] bounds [] : !greta_tile.ptr<f16> -> tensor<1024x32xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<32x1024xf16>, tensor<1024x32xf16> -> tensor<32x32xf32>
    scf.yield %d : tensor<32x32xf32>
  }
  greta_tile.store %big, %o[%z, %z] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

// Masked loads that are bounded by how much is left: with one stage only the block at the end is selected from, when it is stored.
// CHECK-LABEL: @masked
// NVIDIA: greta_tile.load_scattered %{{.*}} mask %{{.*}} {greta_tile.ahead}
// NVIDIA: scf.for %[[K:[a-z0-9]+]] =
// NVIDIA: %[[LEFT:[0-9]+]] = arith.subi %arg2, %[[K]]
// NVIDIA: %[[PARTIAL:[0-9]+]] = arith.cmpi slt, %[[LEFT]], %c32_i32
// NVIDIA: %[[TAKEN:[0-9]+]] = scf.if %[[PARTIAL]]
// NVIDIA: arith.select
// NVIDIA: else
// NVIDIA-NEXT: scf.yield %{{[a-z0-9]+}} : tensor<32x32xf16
// NVIDIA: greta_tile.local_store %[[TAKEN]]
// NVIDIA: greta_tile.load_scattered %{{.*}} mask %{{.*}} {greta_tile.ahead}
// GFX942-NOT: greta_tile.ahead
greta_tile.func @masked(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %n: i32) attributes {waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
  %rows = greta_tile.iota 0 : tensor<32x32xi32>
  %columns = greta_tile.iota 1 : tensor<32x32xi32>
  %line = greta_tile.splat %n : tensor<32x32xi32>
  %down = arith.muli %rows, %line : tensor<32x32xi32>
  %places = arith.addi %down, %columns : tensor<32x32xi32>
  %r = scf.for %k = %z to %n step %c32 iter_args(%acc = %none) -> (tensor<32x32xf32>) : i32 {
    %px = greta_tile.ptr_add %x, %k : !greta_tile.ptr<f16>, i32
    %xs = greta_tile.ptr_add %px, %places : !greta_tile.ptr<f16>, tensor<32x32xi32>
    %left = arith.subi %n, %k : i32
    %lefts = greta_tile.splat %left : tensor<32x32xi32>
    %in = arith.cmpi slt, %columns, %lefts : tensor<32x32xi32>
    %a = greta_tile.load_scattered %xs mask %in : tensor<32x32x!greta_tile.ptr<f16>> -> tensor<32x32xf16>
    %b = greta_tile.load %x[%k, %z] strides [32, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x32xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    scf.yield %d : tensor<32x32xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

// The stages that somebody asks for, where greta-tile-schedule chooses nothing: one on gfx942; on NVIDIA, whose loops have one, two.
// CHECK-LABEL: @asked
// GFX942: greta_tile.local_alloc : <1 x tensor<64x32xf16>
// NVIDIA: greta_tile.local_alloc : <1 x tensor<64x32xf16>
// CHECK-LABEL: @asked_two
// GFX942: greta_tile.local_alloc : <2 x tensor<64x32xf16>
// NVIDIA: greta_tile.local_alloc : <2 x tensor<64x32xf16>
greta_tile.func @asked(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %z to %n step %c32 iter_args(%acc = %none) -> (tensor<64x64xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {greta_tile.stages = 1 : i32}
  greta_tile.store %r, %o[%z, %z] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
greta_tile.func @asked_two(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %z to %n step %c32 iter_args(%acc = %none) -> (tensor<64x64xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {greta_tile.stages = 2 : i32}
  greta_tile.store %r, %o[%z, %z] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
