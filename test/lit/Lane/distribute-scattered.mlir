// RUN: greta-opt %s --greta-tile-distribute | FileCheck %s

#row = #greta_tile.layout<{reg = [[1], [2]], lane = [[4], [8], [16], [32], [64], [128]], wave = [], rep = [1]}>

// The pointer moves by what is uniform, the lane's offset is of 32 bits. Registers under one mask share an access of 16 bytes.
// CHECK-LABEL: greta_tile.func @wide
// CHECK-DAG: %[[LANE:.*]] = greta_tile.lane_id
// CHECK: %[[BASE:.*]] = greta_tile.ptr_add %arg0, %{{.*}} : !greta_tile.ptr<f32>, i64
// CHECK: %[[V:.*]] = greta_tile.ptr_load %[[BASE]][%{{.*}}] align 16 : <f32> -> vector<4xf32>
// CHECK: greta_tile.ptr_store %[[V]], %{{.*}} align 16 : vector<4xf32>
greta_tile.func @wide(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %pid = greta_tile.program_id 0
  %c = arith.constant 256 : i32
  %first = arith.muli %pid, %c : i32
  %firsts = greta_tile.splat %first : tensor<256xi32, #row>
  %iota = greta_tile.iota 0 : tensor<256xi32, #row>
  %i = arith.addi %firsts, %iota : tensor<256xi32, #row>
  %p = greta_tile.ptr_add %x, %i : !greta_tile.ptr<f32>, tensor<256xi32, #row>
  %v = greta_tile.load_scattered %p : tensor<256x!greta_tile.ptr<f32>, #row> -> tensor<256xf32, #row>
  %q = greta_tile.ptr_add %y, %i : !greta_tile.ptr<f32>, tensor<256xi32, #row>
  greta_tile.store_scattered %v, %q : tensor<256xf32, #row> -> tensor<256x!greta_tile.ptr<f32>, #row>
  greta_tile.return
}

// Each mask is a branch around its access, whose result it merges.
// CHECK-LABEL: greta_tile.func @masked
// CHECK: arith.cmpi slt
// CHECK-COUNT-4: scf.if %{{.*}} -> (f16) {
// CHECK: greta_tile.ptr_store %{{.*}} align 2 : f16
greta_tile.func @masked(%x: !greta_tile.ptr<f16>, %n: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %i = greta_tile.iota 0 : tensor<256xi32, #row>
  %end = greta_tile.splat %n : tensor<256xi32, #row>
  %m = arith.cmpi slt, %i, %end : tensor<256xi32, #row>
  %p = greta_tile.ptr_add %x, %i : !greta_tile.ptr<f16>, tensor<256xi32, #row>
  %one = arith.constant dense<1.0> : tensor<256xf16, #row>
  %v = greta_tile.load_scattered %p mask %m other %one : tensor<256x!greta_tile.ptr<f16>, #row> -> tensor<256xf16, #row>
  greta_tile.store_scattered %v, %p mask %m : tensor<256xf16, #row> -> tensor<256x!greta_tile.ptr<f16>, #row>
  greta_tile.return
}

// A bound that is a multiple of four has neighbours under one mask, which move at once.
// CHECK-LABEL: greta_tile.func @fours
// CHECK: scf.if %{{.*}} -> (vector<4xf16>) {
// CHECK: greta_tile.ptr_store %{{.*}} align 8 : vector<4xf16>
greta_tile.func @fours(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %n: i32 {greta.divisibility = 4 : i64}) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %i = greta_tile.iota 0 : tensor<256xi32, #row>
  %end = greta_tile.splat %n : tensor<256xi32, #row>
  %m = arith.cmpi slt, %i, %end : tensor<256xi32, #row>
  %p = greta_tile.ptr_add %x, %i : !greta_tile.ptr<f16>, tensor<256xi32, #row>
  %v = greta_tile.load_scattered %p mask %m : tensor<256x!greta_tile.ptr<f16>, #row> -> tensor<256xf16, #row>
  greta_tile.store_scattered %v, %p mask %m : tensor<256xf16, #row> -> tensor<256x!greta_tile.ptr<f16>, #row>
  greta_tile.return
}

// Offsets that nobody knows move each lane's base, with their sign.
// CHECK-LABEL: greta_tile.func @indirect
// CHECK: %[[I:.*]] = greta_tile.ptr_load %arg1
// CHECK: %[[WIDE:.*]] = arith.extsi
// CHECK: %[[P:.*]] = greta_tile.ptr_add %arg0, %{{.*}} : !greta_tile.ptr<f32>, i64
// CHECK: greta_tile.ptr_load %[[P]][%c0_i32] align 4 : <f32> -> f32
greta_tile.func @indirect(%x: !greta_tile.ptr<f32>, %index: !greta_tile.ptr<i32>) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %i = greta_tile.iota 0 : tensor<256xi32, #row>
  %ip = greta_tile.ptr_add %index, %i : !greta_tile.ptr<i32>, tensor<256xi32, #row>
  %j = greta_tile.load_scattered %ip : tensor<256x!greta_tile.ptr<i32>, #row> -> tensor<256xi32, #row>
  %p = greta_tile.ptr_add %x, %j : !greta_tile.ptr<f32>, tensor<256xi32, #row>
  %v = greta_tile.load_scattered %p : tensor<256x!greta_tile.ptr<f32>, #row> -> tensor<256xf32, #row>
  greta_tile.store_scattered %v, %p : tensor<256xf32, #row> -> tensor<256x!greta_tile.ptr<f32>, #row>
  greta_tile.return
}

// An i1 is a byte; of one pointer all lanes load, and the first stores.
// CHECK-LABEL: greta_tile.func @scalars
// CHECK: %[[BYTES:.*]] = greta_tile.ptr_cast %arg0 : !greta_tile.ptr<i1> -> !greta_tile.ptr<i8>
// CHECK: %[[BYTE:.*]] = greta_tile.ptr_load %[[BYTES]][%c0_i32] align 1 : <i8> -> i8
// CHECK: %[[BIT:.*]] = arith.cmpi ne, %[[BYTE]]
// CHECK: scf.if %{{.*}} {
// CHECK: arith.extui %[[BIT]] : i1 to i8
// CHECK: greta_tile.ptr_store
greta_tile.func @scalars(%x: !greta_tile.ptr<i1>, %y: !greta_tile.ptr<i1>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %v = greta_tile.load_scattered %x : !greta_tile.ptr<i1> -> i1
  greta_tile.store_scattered %v, %y : i1 -> !greta_tile.ptr<i1>
  greta_tile.return
}

// A mask that bounds indices, and whose first element is known to be within: lanes beyond it load the first instead and then select. The rest of the address is the
// same along the bounded dimension.
// CHECK-LABEL: greta_tile.func @bounded
// CHECK: %[[IN:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : i32
// CHECK-NOT: scf.if
// CHECK: %[[AT:.*]] = arith.select %[[IN]], %[[LANE:.*]], %c0_i32{{.*}} : i32
// CHECK: %[[RAW:.*]] = greta_tile.ptr_load %{{.*}}[%[[AT]]] align 2 : <f16> -> f16
// CHECK: arith.select %[[IN]], %[[RAW]], %{{.*}} : f16
greta_tile.func @bounded(%x: !greta_tile.ptr<f16>, %n: i32, %done: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %zero = arith.constant 0 : i32
  %natural = arith.cmpi sge, %done, %zero : i32
  greta_tile.assume %natural
  %below = arith.cmpi slt, %done, %n : i32
  greta_tile.assume %below
  %left = arith.subi %n, %done : i32
  %i = greta_tile.iota 0 : tensor<256xi32, #row>
  %p = greta_tile.ptr_add %x, %i : !greta_tile.ptr<f16>, tensor<256xi32, #row>
  %b = greta_tile.splat %left : tensor<256xi32, #row>
  %m = arith.cmpi slt, %i, %b : tensor<256xi32, #row>
  %v = greta_tile.load_scattered %p mask %m : tensor<256x!greta_tile.ptr<f16>, #row> -> tensor<256xf16, #row>
  greta_tile.store_scattered %v, %p : tensor<256xf16, #row> -> tensor<256x!greta_tile.ptr<f16>, #row>
  greta_tile.return
}

// Not so where nothing says that the first element is within, where the pointers are another's along the bounded dimension, or where the mask is no bound.
// CHECK-LABEL: greta_tile.func @unbounded
// CHECK-COUNT-12: scf.if
// CHECK: greta_tile.return
greta_tile.func @unbounded(%x: !greta_tile.ptr<f16>, %n: i32, %o: !greta_tile.ptr<f16>) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %two = arith.constant dense<2> : tensor<256xi32, #row>
  %i = greta_tile.iota 0 : tensor<256xi32, #row>
  %j = arith.divsi %i, %two : tensor<256xi32, #row>
  %p = greta_tile.ptr_add %x, %i : !greta_tile.ptr<f16>, tensor<256xi32, #row>
  %q = greta_tile.ptr_add %x, %j : !greta_tile.ptr<f16>, tensor<256xi32, #row>
  %to = greta_tile.ptr_add %o, %i : !greta_tile.ptr<f16>, tensor<256xi32, #row>
  %b = greta_tile.splat %n : tensor<256xi32, #row>
  %m = arith.cmpi slt, %i, %b : tensor<256xi32, #row>
  %v = greta_tile.load_scattered %p mask %m : tensor<256x!greta_tile.ptr<f16>, #row> -> tensor<256xf16, #row>
  greta_tile.store_scattered %v, %to : tensor<256xf16, #row> -> tensor<256x!greta_tile.ptr<f16>, #row>
  %zero = arith.constant 0 : i32
  %some = arith.cmpi slt, %zero, %n : i32
  greta_tile.assume %some
  %w = greta_tile.load_scattered %q mask %m : tensor<256x!greta_tile.ptr<f16>, #row> -> tensor<256xf16, #row>
  greta_tile.store_scattered %w, %to : tensor<256xf16, #row> -> tensor<256x!greta_tile.ptr<f16>, #row>
  %not = arith.cmpi sge, %i, %b : tensor<256xi32, #row>
  %u = greta_tile.load_scattered %p mask %not : tensor<256x!greta_tile.ptr<f16>, #row> -> tensor<256xf16, #row>
  greta_tile.store_scattered %u, %to : tensor<256xf16, #row> -> tensor<256x!greta_tile.ptr<f16>, #row>
  greta_tile.return
}

// A load that runs ahead leaves the selection to who takes it; a branch merges what comes from outside as it is held.
// CHECK-LABEL: greta_tile.func @ahead
// CHECK: %[[RAW:.*]] = greta_tile.ptr_load %{{.*}} align 8 : <f16> -> vector<4xf16>
// CHECK: %[[TAKEN:.*]] = scf.if %{{.*}} -> (vector<4xf16>)
// CHECK: arith.select
// CHECK: else
// CHECK-NEXT: scf.yield %[[RAW]] : vector<4xf16>
// CHECK: greta_tile.ptr_store %[[TAKEN]]
greta_tile.func @ahead(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %zero = arith.constant 0 : i32
  %some = arith.cmpi slt, %zero, %n : i32
  greta_tile.assume %some
  %none = arith.constant dense<0.0> : tensor<256xf16, #row>
  %i = greta_tile.iota 0 : tensor<256xi32, #row>
  %p = greta_tile.ptr_add %x, %i : !greta_tile.ptr<f16>, tensor<256xi32, #row>
  %b = greta_tile.splat %n : tensor<256xi32, #row>
  %m = arith.cmpi slt, %i, %b : tensor<256xi32, #row>
  %v = greta_tile.load_scattered %p mask %m {greta_tile.ahead} : tensor<256x!greta_tile.ptr<f16>, #row> -> tensor<256xf16, #row>
  %c256 = arith.constant 256 : i32
  %partial = arith.cmpi slt, %n, %c256 : i32
  %w = scf.if %partial -> (tensor<256xf16, #row>) {
    %s = arith.select %m, %v, %none : tensor<256xi1, #row>, tensor<256xf16, #row>
    scf.yield %s : tensor<256xf16, #row>
  } else {
    scf.yield %v : tensor<256xf16, #row>
  }
  greta_tile.store_scattered %w, %p : tensor<256xf16, #row> -> tensor<256x!greta_tile.ptr<f16>, #row>
  greta_tile.return
}
