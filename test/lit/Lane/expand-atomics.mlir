// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-expand-atomics{target=gfx942}))' | FileCheck %s --check-prefixes=CHECK,HAS
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-expand-atomics{target=gfx1030}))' | FileCheck %s --check-prefixes=CHECK,LACKS
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-expand-atomics{target=vulkan:portable}))' | FileCheck %s --check-prefixes=CHECK,LACKS,VULKAN
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-expand-atomics{target=vulkan:nvidia}))' | FileCheck %s --check-prefix=F32

// Types that the target adds in memory stay.
// F32: ptr_atomic_rmw fadd {{.*}} : <f32> -> f32
// F32-NOT: ptr_atomic_rmw fadd
// CHECK-LABEL: greta_tile.func @add(
greta_tile.func @add(%f: !greta_tile.ptr<f32>, %d: !greta_tile.ptr<f64>, %i: i32, %x: f32, %y: f64) attributes {waves = 1 : i32} {
  // HAS: ptr_atomic_rmw fadd {{.*}} : <f32> -> f32
  // HAS: ptr_atomic_rmw fadd {{.*}} : <f64> -> f64
  // LACKS: %[[WORD:.*]] = greta_tile.ptr_cast %{{.*}} : !greta_tile.ptr<f32> -> !greta_tile.ptr<i32>
  // LACKS: %[[GUESS:.*]] = greta_tile.ptr_atomic_rmw or device %[[WORD]][%{{.*}}]
  // LACKS: scf.while (%[[SEEN:.*]] = %[[GUESS]]) : (i32) -> i32
  // LACKS: %[[NUMBER:.*]] = arith.bitcast %[[SEEN]] : i32 to f32
  // LACKS: %[[SUM:.*]] = arith.addf %[[NUMBER]], %{{.*}} : f32
  // LACKS: %[[BITS:.*]] = arith.bitcast %[[SUM]] : f32 to i32
  // LACKS: %[[OLD:.*]] = greta_tile.ptr_atomic_cas device %[[WORD]][%{{.*}}], %[[SEEN]], %[[BITS]]
  // LACKS: %[[AGAIN:.*]] = arith.cmpi ne, %[[OLD]], %[[SEEN]] : i32
  // LACKS: scf.condition(%[[AGAIN]]) %[[OLD]] : i32
  // LACKS: ptr_atomic_cas {{.*}} : <i64> -> i64
  %a = greta_tile.ptr_atomic_rmw fadd device %f[%i], %x : !greta_tile.ptr<f32> -> f32
  %b = greta_tile.ptr_atomic_rmw fadd device %d[%i], %y : !greta_tile.ptr<f64> -> f64
  greta_tile.return
}

// Half a word is replaced in the word around it.
// CHECK-LABEL: greta_tile.func @halves(
greta_tile.func @halves(%h: !greta_tile.ptr<bf16>, %s: !greta_tile.ptr<i16>, %i: i32, %x: bf16, %y: i16) attributes {waves = 1 : i32} {
  // CHECK: %[[ODD:.*]] = arith.andi %{{.*}}, %c2_i32 : i32
  // CHECK: %[[SHIFT:.*]] = arith.shli %[[ODD]], %c3_i32 : i32
  // CHECK: scf.while (%[[SEEN:.*]] = %{{.*}}) : (i32) -> i32
  // CHECK: %[[DOWN:.*]] = arith.shrui %[[SEEN]], %[[SHIFT]] : i32
  // CHECK: %[[HALF:.*]] = arith.trunci %[[DOWN]] : i32 to i16
  // CHECK: arith.bitcast %[[HALF]] : i16 to bf16
  // CHECK: %[[ONES:.*]] = arith.shli %c65535_i32{{.*}}, %[[SHIFT]] : i32
  // CHECK: greta_tile.ptr_atomic_cas device %{{.*}}, %[[SEEN]], %{{.*}} : <i32> -> i32
  %a = greta_tile.ptr_atomic_rmw fadd device %h[%i], %x : !greta_tile.ptr<bf16> -> bf16
  // CHECK: scf.while
  // CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[NOW:.*]], %{{.*}} : i16
  // CHECK: arith.select %[[SAME]], %{{.*}}, %[[NOW]] : i16
  %b = greta_tile.ptr_atomic_cas device %s[%i], %y, %y : !greta_tile.ptr<i16> -> i16
  greta_tile.return
}

// CHECK-LABEL: greta_tile.func @exchange(
greta_tile.func @exchange(%f: !greta_tile.ptr<f32>, %i: i32, %x: f32) attributes {waves = 1 : i32} {
  // CHECK: %[[BITS:.*]] = arith.bitcast %{{.*}} : f32 to i32
  // CHECK: ptr_atomic_rmw xchg device %{{.*}}, %[[BITS]] : <i32> -> i32
  %a = greta_tile.ptr_atomic_rmw xchg device %f[%i], %x : !greta_tile.ptr<f32> -> f32
  greta_tile.return
}

// All workgroups meet: every lane makes available what it wrote, the first releases it behind the barrier, looks and acquires, and all see what was released. Who leaves last sets the counter to zero.
// CHECK-LABEL: greta_tile.func @meet(
greta_tile.func @meet(%met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 2 : i32, wave_size = 32 : i32} {
  // CHECK: greta_tile.fence release device
  // CHECK-NEXT: greta_tile.barrier global
  // CHECK: %[[NUMBER:.*]] = arith.ori
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[NUMBER]], %c0_i32
  // CHECK: scf.if %[[FIRST]]
  // CHECK-NEXT: greta_tile.fence release device
  // CHECK: greta_tile.ptr_atomic_rmw add device
  // CHECK: scf.while
  // CHECK: %[[SEEN:.*]] = greta_tile.ptr_atomic_rmw or device
  // CHECK: %[[WAITS:.*]] = arith.cmpi ult, %[[SEEN]], %c8_i32
  // CHECK: scf.condition(%[[WAITS]])
  // CHECK: greta_tile.fence acquire device
  // CHECK: greta_tile.barrier global
  // CHECK-NEXT: greta_tile.fence acquire device
  greta_tile.grid_barrier %met until 8 : !greta_tile.ptr<i32>
  // CHECK-NOT: fence
  // CHECK: %[[BEFORE:.*]] = greta_tile.ptr_atomic_rmw add device
  // CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[BEFORE]], %c15_i32
  // CHECK: scf.if %[[LAST]]
  // CHECK: greta_tile.ptr_atomic_rmw xchg device
  greta_tile.grid_barrier %met until 16 last : !greta_tile.ptr<i32>
  greta_tile.return
}

// The kernel is one side of a branch; arrays stand before it. On the other side workgroups count themselves and look so many times, unless somebody gave up; a barrier keeps the waves
// that do not look. HIP's driver has promised.
// CHECK-LABEL: greta_tile.func @trial(
// CHECK-SAME: %[[MET:[a-z0-9]+]]: !greta_tile.ptr<i32>, %[[TRIAL:[a-z0-9]+]]: i32
// HAS-NEXT: arith.constant
// HAS-NOT: scf.while
// VULKAN-NEXT: greta_tile.shared_alloc
// VULKAN: %[[IS:.*]] = arith.cmpi eq, %[[TRIAL]], %c0_i32{{.*}}
// VULKAN-NEXT: scf.if %[[IS]] {
// VULKAN: greta_tile.shared_store
// VULKAN: greta_tile.ptr_atomic_rmw xchg
// VULKAN: } else {
// VULKAN: %[[UP:.*]] = scf.if %{{.*}} -> (i1) {
// VULKAN: greta_tile.ptr_atomic_rmw add device %[[MET]]
// VULKAN: %[[LOOP:.*]]:2 = scf.while (%[[LOOKS:.*]] = %c0_i32{{.*}}
// VULKAN: %[[SEEN:.*]] = greta_tile.ptr_atomic_rmw or device %[[MET]]
// VULKAN: %[[NEXT:.*]] = arith.addi %[[LOOKS]], %c1_i32{{.*}}
// VULKAN-DAG: arith.cmpi ult, %[[NEXT]], %c131072_i32
// VULKAN-DAG: arith.cmpi ule, %[[SEEN]], %c4_i32
// VULKAN: scf.condition(%{{.*}}) %[[SEEN]], %[[NEXT]]
// VULKAN-DAG: arith.cmpi ne, %[[LOOP]]#0, %c4_i32
// VULKAN-DAG: arith.cmpi ne, %[[LOOP]]#1, %c131072_i32
// VULKAN: greta_tile.barrier
// VULKAN: scf.if %[[UP]] {
// VULKAN: greta_tile.ptr_atomic_rmw or device %[[MET]]{{.*}}, %c-2147483648_i32
greta_tile.func @trial(%met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 32 : i32} {
  %zero = arith.constant 0 : i32
  %array = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  greta_tile.shared_store %zero, %array[%zero] : !greta_tile.shared<1 x i32>
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
