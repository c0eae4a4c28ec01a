// Indices that addresses of loads follow from are loaded an iteration before them: those of the first before the loop, if it has iterations; beyond the end the last iteration's come again.
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=vulkan:nvidia},greta-tile-assign-layouts,greta-tile-pipeline{target=vulkan:nvidia},canonicalize,cse))' | FileCheck %s

// Keys of a cache in pages are operands of a dot: they run ahead themselves, and the table's entries further.
// CHECK-LABEL: @paged
// CHECK: %[[SOME:.*]] = arith.cmpi sgt, %arg4, %c0_i32
// CHECK: scf.if %[[SOME]]
// CHECK: %[[FIRST:.*]] = greta_tile.load_scattered {{.*}} : tensor<32x!greta_tile.ptr<i32>
// CHECK: greta_tile.ptr_add %arg1,
// CHECK: %[[KEYS:.*]] = greta_tile.load_scattered {{.*}} : tensor<64x32x!greta_tile.ptr<f16>
// CHECK: %[[SECOND:.*]] = greta_tile.load_scattered {{.*}} mask {{.*}} : tensor<32x!greta_tile.ptr<i32>
// CHECK: scf.for {{.*}} iter_args({{.*}}%[[LOADED:[a-z0-9]+]] = %[[KEYS]], %[[ENTRY:[a-z0-9]+]] = %[[SECOND]])
// CHECK: greta_tile.local_store %[[LOADED]]
// CHECK: greta_tile.load_scattered {{.*}} : tensor<32x!greta_tile.ptr<i32>
// CHECK: arith.extsi %[[ENTRY]]
// CHECK: greta_tile.load_scattered {{.*}} : tensor<64x32x!greta_tile.ptr<f16>
// CHECK-NOT: load_scattered
// CHECK: scf.yield
greta_tile.func @paged(%q: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %k: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %table: !greta_tile.ptr<i32>, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %keys: i32) attributes {waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %a0 = arith.constant dense<0.0> : tensor<32x32xf32>
  %query = greta_tile.load %q[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
  %along = greta_tile.iota 0 : tensor<64x32xi32>
  %number = greta_tile.iota 0 : tensor<32xi32>
  %r = scf.for %j = %z to %keys step %c32 iter_args(%a = %a0) -> (tensor<32x32xf32>) : i32 {
    %s = greta_tile.splat %j : tensor<32xi32>
    %at = arith.addi %s, %number : tensor<32xi32>
    %places = greta_tile.ptr_add %table, %at : !greta_tile.ptr<i32>, tensor<32xi32>
    %entry = greta_tile.load_scattered %places : tensor<32x!greta_tile.ptr<i32>> -> tensor<32xi32>
    %wide = arith.extsi %entry : tensor<32xi32> to tensor<32xi64>
    %c64 = arith.constant dense<64> : tensor<32xi64>
    %line = arith.muli %wide, %c64 : tensor<32xi64>
    %row = greta_tile.reshape %line : tensor<32xi64> -> tensor<1x32xi64>
    %rows = greta_tile.broadcast %row : tensor<1x32xi64> -> tensor<64x32xi64>
    %lines = greta_tile.ptr_add %k, %rows : !greta_tile.ptr<f16>, tensor<64x32xi64>
    %elements = greta_tile.ptr_add %lines, %along : tensor<64x32x!greta_tile.ptr<f16>>, tensor<64x32xi32>
    %key = greta_tile.load_scattered %elements : tensor<64x32x!greta_tile.ptr<f16>> -> tensor<64x32xf16>
    %n = greta_tile.dot %query, %key, %a : tensor<32x64xf16>, tensor<64x32xf16> -> tensor<32x32xf32>
    scf.yield %n : tensor<32x32xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

// A loop without dots keeps its loads, but for the indices.
// CHECK-LABEL: @sum
// CHECK: greta_tile.load_scattered {{.*}} mask {{.*}} : tensor<64x!greta_tile.ptr<i32>
// CHECK: scf.for {{.*}} iter_args({{.*}}%[[ENTRY:[a-z0-9]+]] = %{{.*}}) -> {{.*}} {
// CHECK: %[[AFTER:.*]] = arith.select
// CHECK: greta_tile.splat %[[AFTER]]
// CHECK: %[[NEXT:.*]] = greta_tile.load_scattered {{.*}} : tensor<64x!greta_tile.ptr<i32>
// CHECK: greta_tile.ptr_add %arg1, %[[ENTRY]]
// CHECK: scf.yield {{.*}}, %[[NEXT]]
greta_tile.func @sum(%o: !greta_tile.ptr<f32>, %x: !greta_tile.ptr<f32>, %index: !greta_tile.ptr<i32>, %n: i32) attributes {waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %a0 = arith.constant dense<0.0> : tensor<64xf32>
  %number = greta_tile.iota 0 : tensor<64xi32>
  %r = scf.for %j = %z to %n step %c64 iter_args(%a = %a0) -> (tensor<64xf32>) : i32 {
    %s = greta_tile.splat %j : tensor<64xi32>
    %at = arith.addi %s, %number : tensor<64xi32>
    %places = greta_tile.ptr_add %index, %at : !greta_tile.ptr<i32>, tensor<64xi32>
    %entry = greta_tile.load_scattered %places : tensor<64x!greta_tile.ptr<i32>> -> tensor<64xi32>
    %elements = greta_tile.ptr_add %x, %entry : !greta_tile.ptr<f32>, tensor<64xi32>
    %v = greta_tile.load_scattered %elements : tensor<64x!greta_tile.ptr<f32>> -> tensor<64xf32>
    %next = arith.addf %a, %v : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  %places = greta_tile.ptr_add %o, %number : !greta_tile.ptr<f32>, tensor<64xi32>
  greta_tile.store_scattered %r, %places : tensor<64xf32> -> tensor<64x!greta_tile.ptr<f32>>
  greta_tile.return
}

// -----

// The loop may write an index of the next iteration.
// CHECK-LABEL: @written
// CHECK: scf.for
// CHECK: %[[ENTRY:.*]] = greta_tile.load_scattered {{.*}} : !greta_tile.ptr<i32> -> i32
// CHECK: greta_tile.ptr_add %arg0, %[[ENTRY]]
greta_tile.func @written(%x: !greta_tile.ptr<i32>, %n: i32) attributes {waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %j = %z to %n step %one : i32 {
    %place = greta_tile.ptr_add %x, %j : !greta_tile.ptr<i32>, i32
    %entry = greta_tile.load_scattered %place : !greta_tile.ptr<i32> -> i32
    %element = greta_tile.ptr_add %x, %entry : !greta_tile.ptr<i32>, i32
    %v = greta_tile.load_scattered %element : !greta_tile.ptr<i32> -> i32
    greta_tile.store_scattered %v, %place : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
