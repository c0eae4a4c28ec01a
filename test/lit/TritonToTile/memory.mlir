// RUN: greta-opt --triton-to-tile %s | FileCheck %s

// Pointers, accesses and atomics.

// CHECK-LABEL: greta_tile.func @accesses_0(
// CHECK: %[[V0:[a-z0-9_]+]] = greta_tile.iota 0 : tensor<32xi32>
// CHECK: %[[V1:[a-z0-9_]+]] = greta_tile.splat %[[V2:[a-z0-9_]+]] : tensor<32xi32>
// CHECK: %[[V3:[a-z0-9_]+]] = arith.cmpi slt, %[[V0]], %[[V1]] : tensor<32xi32>
// CHECK: %[[V4:[a-z0-9_]+]] = arith.constant dense<1.000000e+00> : tensor<32xf32>
// CHECK: %[[V5:[a-z0-9_]+]] = arith.constant dense<true> : tensor<32xi1>
// CHECK: %[[V6:[a-z0-9_]+]] = greta_tile.splat %[[V7:[a-z0-9_]+]] : tensor<32x!greta_tile.ptr<f32>>
// CHECK: %[[V8:[a-z0-9_]+]] = greta_tile.ptr_add %[[V6]], %[[V0]] : tensor<32x!greta_tile.ptr<f32>>, tensor<32xi32>
// CHECK: %[[V9:[a-z0-9_]+]] = greta_tile.load_scattered %[[V8]] mask %[[V3]] other %[[V4]] : tensor<32x!greta_tile.ptr<f32>> -> tensor<32xf32>
// CHECK: %[[V10:[a-z0-9_]+]] = greta_tile.load_scattered %[[V7]] : !greta_tile.ptr<f32> -> f32
// CHECK: %[[V11:[a-z0-9_]+]] = greta_tile.ptr_add %[[V7]], %[[V2]] : !greta_tile.ptr<f32>, i32
// CHECK: %[[V12:[a-z0-9_]+]] = greta_tile.ptr_cast %[[V11]] : !greta_tile.ptr<f32> -> !greta_tile.ptr<i32>
// CHECK: %[[V13:[a-z0-9_]+]] = arith.constant 0 : i32
// CHECK: %[[V14:[a-z0-9_]+]] = greta_tile.atomic_rmw or relaxed device %[[V12]], %[[V13]] : !greta_tile.ptr<i32> -> i32
// CHECK: %[[V15:[a-z0-9_]+]] = greta_tile.ptr_cast %[[V8]] : tensor<32x!greta_tile.ptr<f32>> -> tensor<32x!greta_tile.ptr<i32>>
// CHECK: %[[V16:[a-z0-9_]+]] = arith.constant dense<0> : tensor<32xi32>
// CHECK: %[[V17:[a-z0-9_]+]] = greta_tile.atomic_rmw or relaxed device %[[V15]], %[[V16]] mask %[[V3]] : tensor<32x!greta_tile.ptr<i32>> -> tensor<32xi32>
// CHECK: %[[V18:[a-z0-9_]+]] = arith.bitcast %[[V17]] : tensor<32xi32> to tensor<32xf32>
// CHECK: %[[V19:[a-z0-9_]+]] = arith.select %[[V3]], %[[V18]], %[[V4]] : tensor<32xi1>, tensor<32xf32>
// CHECK: %[[V20:[a-z0-9_]+]] = greta_tile.ptr_to_int %[[V21:[a-z0-9_]+]] : !greta_tile.ptr<i64>
// CHECK: %[[V22:[a-z0-9_]+]] = greta_tile.int_to_ptr %[[V20]] : i64 -> !greta_tile.ptr<f32>
// CHECK: greta_tile.store_scattered %[[V10]], %[[V22]] : f32 -> !greta_tile.ptr<f32>
// CHECK: greta_tile.store_scattered %[[V19]], %[[V8]] : tensor<32xf32> -> tensor<32x!greta_tile.ptr<f32>>
// CHECK: greta_tile.store_scattered %[[V14]], %[[V12]] : i32 -> !greta_tile.ptr<i32>
// CHECK: greta_tile.store_scattered %[[V9]], %[[V8]] mask %[[V3]] : tensor<32xf32> -> tensor<32x!greta_tile.ptr<f32>>
// CHECK: greta_tile.return
tt.func public @accesses(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %q: !tt.ptr<i64>, %n: i32 {tt.divisibility = 8 : i32}) {
  %i = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %ns = tt.splat %n : i32 -> tensor<32xi32>
  %m = arith.cmpi slt, %i, %ns : tensor<32xi32>
  %other = arith.constant dense<1.0> : tensor<32xf32>
  %true = arith.constant dense<true> : tensor<32xi1>
  %0 = tt.splat %p : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %1 = tt.addptr %0, %i : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %2 = tt.load %1, %m, %other cacheModifier = cg : tensor<32x!tt.ptr<f32>>
  %3 = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = ca, eviction_policy = evict_last>} : !tt.ptr<f32>
  %4 = tt.addptr %p, %n : !tt.ptr<f32>, i32
  %5 = tt.bitcast %4 : !tt.ptr<f32> -> !tt.ptr<i32>
  %6 = tt.load %5 {isVolatile = true} : !tt.ptr<i32>
  %7 = tt.load %1, %m, %other {isVolatile = true} : tensor<32x!tt.ptr<f32>>
  %8 = tt.ptr_to_int %q : !tt.ptr<i64> -> i64
  %9 = tt.int_to_ptr %8 : i64 -> !tt.ptr<f32>
  tt.store %9, %3 : !tt.ptr<f32>
  tt.store %1, %7, %true : tensor<32x!tt.ptr<f32>>
  tt.store %5, %6 : !tt.ptr<i32>
  tt.store %1, %2, %m : tensor<32x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: greta_tile.func @atomics_0(
// CHECK: %[[V2:[a-z0-9_]+]] = arith.constant true
// CHECK: %[[V3:[a-z0-9_]+]] = arith.constant dense<1.000000e+00> : tensor<32xf32>
// CHECK: %[[V4:[a-z0-9_]+]] = arith.constant 1.000000e+00 : f32
// CHECK: %[[V5:[a-z0-9_]+]] = greta_tile.iota 0 : tensor<32xi32>
// CHECK: %[[V6:[a-z0-9_]+]] = greta_tile.splat %[[V7:[a-z0-9_]+]] : tensor<32x!greta_tile.ptr<f32>>
// CHECK: %[[V8:[a-z0-9_]+]] = greta_tile.ptr_add %[[V6]], %[[V5]] : tensor<32x!greta_tile.ptr<f32>>, tensor<32xi32>
// CHECK: %[[V9:[a-z0-9_]+]] = greta_tile.atomic_rmw fadd relaxed device %[[V8]], %[[V3]] : tensor<32x!greta_tile.ptr<f32>> -> tensor<32xf32>
// CHECK: %[[V10:[a-z0-9_]+]] = greta_tile.atomic_rmw xchg acq_rel system %[[V11:[a-z0-9_]+]], %[[V12:[a-z0-9_]+]] : !greta_tile.ptr<i32> -> i32
// CHECK: %[[V13:[a-z0-9_]+]] = greta_tile.atomic_cas acquire workgroup %[[V11]], %[[V12]], %[[V12]] : !greta_tile.ptr<i32> -> i32
// CHECK: %[[V14:[a-z0-9_]+]] = greta_tile.ptr_cast %[[V7]] : !greta_tile.ptr<f32> -> !greta_tile.ptr<i32>
// CHECK: %[[V15:[a-z0-9_]+]] = arith.constant 0 : i32
// CHECK: %[[V16:[a-z0-9_]+]] = greta_tile.atomic_rmw or acquire device %[[V14]], %[[V15]] mask %[[V0:[a-z0-9_]+]] : !greta_tile.ptr<i32> -> i32
// CHECK: %[[V17:[a-z0-9_]+]] = arith.bitcast %[[V16]] : i32 to f32
// CHECK: %[[V18:[a-z0-9_]+]] = greta_tile.ptr_cast %[[V7]] : !greta_tile.ptr<f32> -> !greta_tile.ptr<i32>
// CHECK: %[[V19:[a-z0-9_]+]] = arith.bitcast %[[V4]] : f32 to i32
// CHECK: %[[V20:[a-z0-9_]+]] = greta_tile.atomic_rmw xchg release device %[[V18]], %[[V19]] mask %[[V0]] : !greta_tile.ptr<i32> -> i32
// CHECK: greta_tile.barrier
// CHECK: greta_tile.barrier
// CHECK: greta_tile.return
tt.func public @atomics(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>, %n: i32, %b: i1) {
  %true = arith.constant true
  %x = arith.constant dense<1.0> : tensor<32xf32>
  %f = arith.constant 1.0 : f32
  %i = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %0 = tt.splat %p : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %1 = tt.addptr %0, %i : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %2 = tt.atomic_rmw fadd, relaxed, gpu, %1, %x : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> tensor<32xf32>
  %3 = tt.atomic_rmw exch, acq_rel, sys, %q, %n, %true : (!tt.ptr<i32>, i32, i1) -> i32
  %4 = tt.atomic_cas acquire, cta, %q, %n, %n : (!tt.ptr<i32>, i32, i32) -> i32
  %5 = tt.atomic_load acquire, gpu, %p, %b : (!tt.ptr<f32>, i1) -> f32
  tt.atomic_store release, gpu, %p, %f, %b : !tt.ptr<f32>
  ttg.barrier all
  gpu.barrier
  tt.return
}

// The whole program loads until the number is the right one.
// CHECK-LABEL: greta_tile.func @poll_0(
// CHECK: scf.while : () -> () {
// CHECK: %[[NOW:.*]] = greta_tile.atomic_rmw or acquire device
// CHECK: %[[DIFFERS:.*]] = arith.cmpi ne, %[[NOW]], %{{.*}} : i32
// CHECK: scf.condition(%[[DIFFERS]])
tt.func public @poll(%p: !tt.ptr<i32>, %n: i32) {
  %0 = tt.atomic_poll acquire, gpu, %p, %n : !tt.ptr<i32>, i32 -> i1
  tt.return
}

// Booleans lie in bytes; floats are compared as bits.
// CHECK-LABEL: greta_tile.func @bits_0(
// CHECK-SAME: %[[FLAG:.*]]: !greta_tile.ptr<i8>, %[[F:.*]]: !greta_tile.ptr<f32>
tt.func public @bits(%flag: !tt.ptr<i1>, %f: !tt.ptr<f32>, %x: f32) {
  %byte = tt.bitcast %flag : !tt.ptr<i1> -> !tt.ptr<i8>
  // CHECK: %[[BYTE:.*]] = greta_tile.load_scattered %[[FLAG]] : !greta_tile.ptr<i8> -> i8
  %0 = tt.load %byte : !tt.ptr<i8>
  // CHECK: %[[WORD:.*]] = greta_tile.ptr_cast %[[F]] : !greta_tile.ptr<f32> -> !greta_tile.ptr<i32>
  // CHECK: %[[OLD:.*]] = greta_tile.atomic_cas relaxed device %[[WORD]], %{{.*}}, %{{.*}} : !greta_tile.ptr<i32> -> i32
  // CHECK: arith.bitcast %[[OLD]] : i32 to f32
  %1 = tt.atomic_cas relaxed, gpu, %f, %x, %x : (!tt.ptr<f32>, f32, f32) -> f32
  tt.store %byte, %0 : !tt.ptr<i8>
  tt.return
}
