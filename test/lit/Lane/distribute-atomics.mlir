// RUN: greta-opt %s --greta-tile-distribute --greta-tile-barriers | FileCheck %s

#copies = #greta_tile.layout<{reg = [], lane = [[1], [2], [4], [8], [0], [0]], wave = [[0]], rep = [1]}>

// Once per workgroup: who releases waits for all waves, and all lanes get the result from shared memory. The lane of the atomic has fences of its own, between
// which and the other lanes' accesses there are barriers for global memory.
// CHECK-LABEL: greta_tile.func @once
// CHECK: greta_tile.fence release device
// CHECK-NEXT: greta_tile.barrier global
// CHECK: scf.if
// CHECK-NEXT: greta_tile.fence release device
// CHECK: %[[OLD:.*]] = greta_tile.ptr_atomic_rmw add device %arg0[%c0_i32], %c1_i32
// CHECK-NEXT: greta_tile.fence acquire device
// CHECK: greta_tile.shared_store %[[OLD]], %[[ARRAY:.*]][%c0_i32]
// CHECK: greta_tile.barrier global
// CHECK-NOT: greta_tile.barrier
// CHECK: greta_tile.shared_load %[[ARRAY]][%c0_i32]
// CHECK: greta_tile.fence acquire device
greta_tile.func @once(%p: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %one = arith.constant 1 : i32
  %old = greta_tile.atomic_rmw add acq_rel device %p, %one : !greta_tile.ptr<i32> -> i32
  greta_tile.store_scattered %old, %y : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}

// In one wave a shuffle moves the result; its lanes meet all the same, for what the others read behind it.
// CHECK-LABEL: greta_tile.func @one_wave
// CHECK-NOT: greta_tile.barrier
// CHECK: greta_tile.ptr_atomic_cas system
// CHECK-NEXT: greta_tile.fence acquire system
// CHECK: greta_tile.barrier global
// CHECK: greta_tile.shuffle %{{.*}}, %c0_i32 : i64
// CHECK: greta_tile.fence acquire system
greta_tile.func @one_wave(%p: !greta_tile.ptr<i64>, %m: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0 : i32
  %mask = arith.cmpi ne, %m, %none : i32
  %old = greta_tile.atomic_cas acquire system %p, %zero, %one mask %mask : !greta_tile.ptr<i64> -> i64
  greta_tile.store_scattered %old, %p : i64 -> !greta_tile.ptr<i64>
  greta_tile.return
}

// Copies: one lane adds, and only who wants the result has it moved.
// CHECK-LABEL: greta_tile.func @copies
// CHECK: scf.if
// CHECK: greta_tile.ptr_atomic_rmw fadd device
// CHECK-NOT: shared_store
// CHECK: greta_tile.ptr_atomic_rmw xchg workgroup
// CHECK: greta_tile.shared_store
// CHECK: greta_tile.shared_load
greta_tile.func @copies(%p: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %i = greta_tile.iota 0 : tensor<16xi32, #copies>
  %q = greta_tile.ptr_add %p, %i : !greta_tile.ptr<f32>, tensor<16xi32, #copies>
  %one = arith.constant dense<1.0> : tensor<16xf32, #copies>
  %unused = greta_tile.atomic_rmw fadd relaxed device %q, %one : tensor<16x!greta_tile.ptr<f32>, #copies> -> tensor<16xf32, #copies>
  %old = greta_tile.atomic_rmw xchg relaxed workgroup %q, %one : tensor<16x!greta_tile.ptr<f32>, #copies> -> tensor<16xf32, #copies>
  %r = greta_tile.ptr_add %y, %i : !greta_tile.ptr<f32>, tensor<16xi32, #copies>
  greta_tile.store_scattered %old, %r : tensor<16xf32, #copies> -> tensor<16x!greta_tile.ptr<f32>, #copies>
  greta_tile.return
}

// Every element's atomic is its lane's: all lanes have fences on both sides of the barriers.
// CHECK-LABEL: greta_tile.func @each
// CHECK: greta_tile.fence release device
// CHECK-NEXT: greta_tile.barrier global
// CHECK-NEXT: greta_tile.fence release device
// CHECK-NOT: greta_tile.fence
// CHECK: greta_tile.ptr_atomic_rmw add device
// CHECK: greta_tile.fence acquire device
// CHECK-NEXT: greta_tile.barrier global
// CHECK-NEXT: greta_tile.fence acquire device
greta_tile.func @each(%p: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %i = greta_tile.iota 0 : tensor<16xi32, #copies>
  %q = greta_tile.ptr_add %p, %i : !greta_tile.ptr<i32>, tensor<16xi32, #copies>
  %old = greta_tile.atomic_rmw add acq_rel device %q, %i : tensor<16x!greta_tile.ptr<i32>, #copies> -> tensor<16xi32, #copies>
  greta_tile.return
}

// Who is alone needs its own fences only.
// CHECK-LABEL: greta_tile.func @alone
// CHECK-NOT: greta_tile.barrier
// CHECK-COUNT-2: greta_tile.fence
// CHECK-NOT: greta_tile.fence
greta_tile.func @alone(%p: !greta_tile.ptr<i32>) attributes {waves = 1 : i32, wave_size = 1 : i32} {
  %one = arith.constant 1 : i32
  %old = greta_tile.atomic_rmw add acq_rel device %p, %one : !greta_tile.ptr<i32> -> i32
  greta_tile.return
}

// Within the workgroup the barrier is the release.
// CHECK-LABEL: greta_tile.func @workgroup
// CHECK-NOT: greta_tile.fence release
// CHECK: greta_tile.barrier global
// CHECK: greta_tile.ptr_atomic_rmw add workgroup
greta_tile.func @workgroup(%p: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %one = arith.constant 1 : i32
  %old = greta_tile.atomic_rmw add release workgroup %p, %one : !greta_tile.ptr<i32> -> i32
  greta_tile.return
}
