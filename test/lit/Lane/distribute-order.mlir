// RUN: greta-opt %s --greta-tile-distribute | FileCheck %s

// One wave stores what all have loaded: behind a barrier, or a kernel that works in place would load what it stores. And the other way round.

#all = #greta_tile.layout<{reg = [], lane = [[1], [2], [4], [8], [16], [32]], wave = [[64], [128]], rep = [1]}>
#copies = #greta_tile.layout<{reg = [], lane = [[1], [2], [4], [8], [16], [32]], wave = [[64], [0]], rep = [1]}>

// A store behind another one needs no barrier of its own.
// CHECK-LABEL: greta_tile.func @scalar
// CHECK: greta_tile.ptr_load
// CHECK: greta_tile.fence release workgroup
// CHECK-NEXT: greta_tile.barrier
// CHECK: greta_tile.ptr_store
// CHECK-NOT: greta_tile.barrier
// CHECK: greta_tile.ptr_store
greta_tile.func @scalar(%p: !greta_tile.ptr<i32>, %q: !greta_tile.ptr<i32>) attributes {waves = 4 : i32, wave_size = 64 : i32} {
  %one = arith.constant 1 : i32
  %v = greta_tile.load_scattered %p : !greta_tile.ptr<i32> -> i32
  %w = arith.addi %v, %one : i32
  greta_tile.store_scattered %w, %p : i32 -> !greta_tile.ptr<i32>
  greta_tile.store_scattered %v, %q : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}

// Nothing was loaded, or nothing of this type, or there is one wave.
// CHECK-LABEL: greta_tile.func @first
// CHECK-NOT: greta_tile.barrier
// CHECK-LABEL: greta_tile.func @one_wave
// CHECK-NOT: greta_tile.barrier
greta_tile.func @first(%p: !greta_tile.ptr<i32>, %q: !greta_tile.ptr<f32>) attributes {waves = 4 : i32, wave_size = 64 : i32} {
  %v = greta_tile.load_scattered %q : !greta_tile.ptr<f32> -> f32
  %w = arith.bitcast %v : f32 to i32
  greta_tile.store_scattered %w, %p : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}
greta_tile.func @one_wave(%p: !greta_tile.ptr<i32>) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %v = greta_tile.load_scattered %p : !greta_tile.ptr<i32> -> i32
  greta_tile.store_scattered %v, %p : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}

// Where every lane has elements of its own it loads and stores them itself.
// CHECK-LABEL: greta_tile.func @full
// CHECK-NOT: greta_tile.barrier
greta_tile.func @full(%x: !greta_tile.ptr<f32>) attributes {waves = 4 : i32, wave_size = 64 : i32} {
  %i = greta_tile.iota 0 : tensor<256xi32, #all>
  %p = greta_tile.ptr_add %x, %i : !greta_tile.ptr<f32>, tensor<256xi32, #all>
  %v = greta_tile.load_scattered %p : tensor<256x!greta_tile.ptr<f32>, #all> -> tensor<256xf32, #all>
  %w = arith.addf %v, %v : tensor<256xf32, #all>
  greta_tile.store_scattered %w, %p : tensor<256xf32, #all> -> tensor<256x!greta_tile.ptr<f32>, #all>
  greta_tile.return
}

// The load of a turn is before the store of the next.
// CHECK-LABEL: greta_tile.func @loop
// CHECK: scf.for
// CHECK: greta_tile.barrier
// CHECK: greta_tile.ptr_store
// CHECK: greta_tile.barrier
// CHECK-NEXT: greta_tile.fence acquire workgroup
// CHECK: greta_tile.ptr_load
greta_tile.func @loop(%x: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32, wave_size = 64 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %i = greta_tile.iota 0 : tensor<128xi32, #copies>
  %p = greta_tile.ptr_add %x, %i : !greta_tile.ptr<f32>, tensor<128xi32, #copies>
  %first = arith.constant dense<0.0> : tensor<128xf32, #copies>
  %last = scf.for %turn = %zero to %n step %one iter_args(%v = %first) -> (tensor<128xf32, #copies>) : i32 {
    greta_tile.store_scattered %v, %p : tensor<128xf32, #copies> -> tensor<128x!greta_tile.ptr<f32>, #copies>
    %next = greta_tile.load_scattered %p : tensor<128x!greta_tile.ptr<f32>, #copies> -> tensor<128xf32, #copies>
    scf.yield %next : tensor<128xf32, #copies>
  }
  greta_tile.return
}
