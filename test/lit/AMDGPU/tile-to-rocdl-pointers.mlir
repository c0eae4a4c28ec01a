// RUN: greta-opt %s --greta-tile-to-rocdl=chip=gfx942 | FileCheck %s

// CHECK-LABEL: llvm.func protected @atomics(
// CHECK-SAME: %[[P:[a-z0-9]+]]: !llvm.ptr<1> {llvm.noundef}
// CHECK-SAME: %[[F:[a-z0-9]+]]: !llvm.ptr<1> {llvm.noundef}
greta_tile.func @atomics(%p: !greta_tile.ptr<i32>, %f: !greta_tile.ptr<f32>, %i: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  // CHECK: llvm.fence syncscope("agent") release {llvm.mmra = #[[GLOBAL:.*]]}
  greta_tile.fence release device
  // CHECK: llvm.atomicrmw umax %{{.*}} syncscope("workgroup") monotonic {rocdl.ignore_denormal_mode, rocdl.no_fine_grained_memory, rocdl.no_remote_memory}
  %a = greta_tile.ptr_atomic_rmw umax workgroup %p[%i], %i : !greta_tile.ptr<i32> -> i32
  // The system's memory may be anywhere.
  // CHECK: llvm.atomicrmw add %{{.*}} monotonic : !llvm.ptr<1>, i32
  %b = greta_tile.ptr_atomic_rmw add system %p[%i], %a : !greta_tile.ptr<i32> -> i32
  // CHECK: %[[BOTH:.*]] = llvm.cmpxchg %{{.*}} syncscope("agent") monotonic monotonic : !llvm.ptr<1>, i32
  // CHECK: llvm.extractvalue %[[BOTH]][0]
  %c = greta_tile.ptr_atomic_cas device %p[%i], %a, %b : !greta_tile.ptr<i32> -> i32
  %d = arith.sitofp %c : i32 to f32
  // CHECK: llvm.atomicrmw fadd
  %e = greta_tile.ptr_atomic_rmw fadd device %f[%i], %d : !greta_tile.ptr<f32> -> f32
  // CHECK: llvm.fence acq_rel {llvm.mmra = #[[GLOBAL]]}
  greta_tile.fence acq_rel system
  greta_tile.return
}

// CHECK-LABEL: llvm.func protected @pointers(
greta_tile.func @pointers(%p: !greta_tile.ptr<i32>, %n: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  // CHECK: %[[Q:.*]] = llvm.getelementptr nusw %{{.*}}[%{{.*}}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %q = greta_tile.ptr_add %p, %n : !greta_tile.ptr<i32>, i32
  // CHECK: %[[A:.*]] = llvm.ptrtoint %[[Q]] : !llvm.ptr<1> to i64
  %a = greta_tile.ptr_to_int %q : !greta_tile.ptr<i32>
  // CHECK: %[[R:.*]] = llvm.inttoptr %[[A]] : i64 to !llvm.ptr<1>
  %r = greta_tile.int_to_ptr %a : i64 -> !greta_tile.ptr<i32>
  // CHECK-NOT: ptr_cast
  %f = greta_tile.ptr_cast %r : !greta_tile.ptr<i32> -> !greta_tile.ptr<f32>
  // CHECK: llvm.load
  %v = greta_tile.ptr_load %f[%n] align 4 : !greta_tile.ptr<f32> -> f32
  greta_tile.ptr_store %v, %f[%n] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// All lanes agree on a loop's condition, but where each waits for an atomic of
// its own.
// CHECK-LABEL: llvm.func protected @loops(
greta_tile.func @loops(%p: !greta_tile.ptr<i32>, %n: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %i = greta_tile.lane_id
  // CHECK: llvm.cmpxchg
  // CHECK-NOT: rocdl.readfirstlane
  // CHECK: llvm.cond_br
  %0 = scf.while (%seen = %n) : (i32) -> i32 {
    %old = greta_tile.ptr_atomic_cas device %p[%i], %seen, %n : !greta_tile.ptr<i32> -> i32
    %again = arith.cmpi ne, %old, %seen : i32
    scf.condition(%again) %old : i32
  } do {
  ^bb0(%old: i32):
    scf.yield %old : i32
  }
  // CHECK: rocdl.readfirstlane
  // CHECK: llvm.cond_br
  %1 = scf.while (%left = %n) : (i32) -> i32 {
    %half = arith.shrui %left, %n : i32
    %again = arith.cmpi ne, %half, %n : i32
    scf.condition(%again) %half : i32
  } do {
  ^bb0(%half: i32):
    scf.yield %half : i32
  }
  greta_tile.ptr_store %1, %p[%0] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}

// One fence for both memories, without the annotation.
// CHECK-LABEL: llvm.func {{.*}}@global_barrier
// CHECK: llvm.fence syncscope("workgroup") release{{$}}
// CHECK-NEXT: rocdl.s.barrier
// CHECK-NEXT: llvm.fence syncscope("workgroup") acquire{{$}}
greta_tile.func @global_barrier() attributes {waves = 2 : i32, wave_size = 64 : i32} {
  greta_tile.barrier global
  greta_tile.return
}
