// Loads run ahead of the stores of a loop if no iteration may write what they read (AccessOrder): through another argument unless one block could be the other's in place, and through the same
// argument at a distance that is known and large enough. Atomics keep all loads where they are.
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx942},greta-tile-schedule{target=gfx942},greta-tile-assign-layouts,greta-tile-pipeline{target=gfx942}))' | FileCheck %s
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx950},greta-tile-schedule{target=gfx950},greta-tile-assign-layouts,greta-tile-pipeline{target=gfx950}))' | FileCheck %s --check-prefix=DIRECT

// CHECK-LABEL: @elsewhere
// CHECK-COUNT-2: greta_tile.local_alloc
// CHECK: scf.for
// CHECK: greta_tile.store
// CHECK: scf.yield
// DIRECT-LABEL: @elsewhere
// DIRECT: scf.for
// DIRECT: greta_tile.local_store {{.*}} direct :
// DIRECT: greta_tile.store
greta_tile.func @elsewhere(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 8 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<256x128xf32>
  scf.for %k = %z to %n step %c32 : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<256x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x128xf16>
    %d = greta_tile.dot %a, %b, %none : tensor<256x32xf16>, tensor<32x128xf16> -> tensor<256x128xf32>
    greta_tile.store %d, %o[%k, %z] strides [128, 1] bounds [] : tensor<256x128xf32> -> !greta_tile.ptr<f32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 2, slice = 16, direct = 16>}
  greta_tile.return
}

// -----

// Two arguments may be one buffer: then the block that is stored is the one that is loaded.
// CHECK-LABEL: @in_place
// CHECK-NOT: local_alloc
greta_tile.func @in_place(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f16>, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  scf.for %k = %z to %n step %c64 : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x64xf16>
    %b = greta_tile.load %y[%z, %k] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<64x64xf16>
    %d = greta_tile.dot %a, %b, %none : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
    greta_tile.store %h, %o[%z, %k] strides [4096, 1] bounds [] : tensor<64x64xf16> -> !greta_tile.ptr<f16>
  }
  greta_tile.return
}

// -----

// The same, but nothing else is where the result is.
// CHECK-LABEL: @promised
// CHECK-COUNT-2: greta_tile.local_alloc
greta_tile.func @promised(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f16> {greta.noalias}, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  scf.for %k = %z to %n step %c64 : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x64xf16>
    %b = greta_tile.load %y[%z, %k] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<64x64xf16>
    %d = greta_tile.dot %a, %b, %none : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
    greta_tile.store %h, %o[%z, %k] strides [4096, 1] bounds [] : tensor<64x64xf16> -> !greta_tile.ptr<f16>
  }
  greta_tile.return
}

// -----

// One buffer: the next iteration reads what this one writes. A stays in its place, B runs ahead.
// CHECK-LABEL: @behind
// CHECK-COUNT-1: greta_tile.local_alloc
// CHECK-NOT: greta_tile.local_alloc
// CHECK-NOT: greta_tile.load %arg0
// CHECK: scf.for
// CHECK: greta_tile.load %arg0
// CHECK: greta_tile.dot
// CHECK: greta_tile.store
greta_tile.func @behind(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  scf.for %k = %z to %n step %c32 : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %a, %b, %none : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %h = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
    %next = arith.addi %k, %c32 : i32
    greta_tile.store %h, %x[%z, %next] strides [4096, 1] bounds [] : tensor<64x64xf16> -> !greta_tile.ptr<f16>
  }
  greta_tile.return
}

// -----

// One of two buffers: nobody knows which.
// CHECK-LABEL: @either
// CHECK-NOT: local_alloc
greta_tile.func @either(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f16>, %which: i1, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %p = arith.select %which, %x, %y : !greta_tile.ptr<f16>
  scf.for %k = %z to %n step %c32 : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %a, %b, %none : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %h = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
    greta_tile.store %h, %p[%z, %z] strides [4096, 1] bounds [] : tensor<64x64xf16> -> !greta_tile.ptr<f16>
  }
  greta_tile.return
}

// -----

// A's 32 columns are the same in every iteration, and the stored block begins behind them.
// CHECK-LABEL: @beside
// CHECK-COUNT-2: greta_tile.local_alloc
greta_tile.func @beside(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %c4096 = arith.constant 4096 : i32
  scf.for %k = %z to %n step %c32 : i32 {
    %a = greta_tile.load %x[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %a, %b, %none : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %h = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
    greta_tile.store %h, %x[%z, %c4096] strides [64, 1] bounds [] : tensor<64x64xf16> -> !greta_tile.ptr<f16>
  }
  greta_tile.return
}

// -----

// The same with a block that begins one row too early: A stays in the loop, and in its place.
// CHECK-LABEL: @overlapping
// CHECK-COUNT-1: greta_tile.local_alloc
// CHECK-NOT: greta_tile.local_alloc
// CHECK-NOT: greta_tile.load %arg0
// CHECK: scf.for
// CHECK: greta_tile.load %arg0
// CHECK: greta_tile.dot
// CHECK: greta_tile.store
greta_tile.func @overlapping(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %c4032 = arith.constant 4032 : i32
  scf.for %k = %z to %n step %c32 : i32 {
    %a = greta_tile.load %x[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %a, %b, %none : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %h = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
    greta_tile.store %h, %x[%z, %c4032] strides [64, 1] bounds [] : tensor<64x64xf16> -> !greta_tile.ptr<f16>
  }
  greta_tile.return
}

// -----

// A store in a branch counts, and so does the load of an index that an address follows from.
// CHECK-LABEL: @index
// CHECK-NOT: local_alloc
greta_tile.func @index(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %rows: !greta_tile.ptr<i32>, %o: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  scf.for %k = %z to %n step %c32 : i32 {
    %q = greta_tile.ptr_add %rows, %k : !greta_tile.ptr<i32>, i32
    %row = greta_tile.load_scattered %q : !greta_tile.ptr<i32> -> i32
    %a = greta_tile.load %x[%row, %z] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %b = greta_tile.load %x[%z, %row] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %a, %b, %none : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    greta_tile.store %d, %o[%k, %z] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
    %last = arith.cmpi sge, %k, %c64 : i32
    scf.if %last {
      %r = greta_tile.ptr_add %rows, %n : !greta_tile.ptr<i32>, i32
      greta_tile.store_scattered %k, %r : i32 -> !greta_tile.ptr<i32>
    }
  }
  greta_tile.return
}

// -----

// CHECK-LABEL: @atomic
// CHECK-NOT: local_alloc
greta_tile.func @atomic(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %count: !greta_tile.ptr<i32>, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  scf.for %k = %z to %n step %c32 : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %a, %b, %none : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    greta_tile.store %d, %o[%k, %z] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
    %old = greta_tile.atomic_rmw add relaxed device %count, %c1 : !greta_tile.ptr<i32> -> i32
  }
  greta_tile.return
}
