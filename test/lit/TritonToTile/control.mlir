// RUN: greta-opt --triton-to-tile %s | FileCheck %s

// A return in the middle, nested ones, calls, hints.

// CHECK-LABEL: greta_tile.func @early_0(
// CHECK: %[[V0:[a-z0-9_]+]] = arith.constant 1 : i32
// CHECK: %[[V1:[a-z0-9_]+]] = arith.constant 0 : i32
// CHECK: %[[V2:[a-z0-9_]+]] = arith.constant 0 : i32
// CHECK: %[[V3:[a-z0-9_]+]] = arith.cmpi eq, %[[V4:[a-z0-9_]+]], %[[V2]] : i32
// CHECK: %[[V5:[a-z0-9_]+]] = scf.if %[[V3]] -> (i32) {
// CHECK: %[[V6:[a-z0-9_]+]] = arith.cmpi eq, %[[V7:[a-z0-9_]+]], %[[V2]] : i32
// CHECK: %[[V8:[a-z0-9_]+]] = scf.if %[[V6]] -> (i32) {
// CHECK: scf.yield %[[V0]] : i32
// CHECK: } else {
// CHECK: scf.yield %[[V1]] : i32
// CHECK: scf.yield %[[V8]] : i32
// CHECK: } else {
// CHECK: scf.yield %[[V1]] : i32
// CHECK: %[[V9:[a-z0-9_]+]] = arith.constant 0 : i32
// CHECK: %[[V10:[a-z0-9_]+]] = arith.cmpi eq, %[[V5]], %[[V9]] : i32
// CHECK: scf.if %[[V10]] {
// CHECK: greta_tile.assume %[[V3]]
// CHECK: %[[V11:[a-z0-9_]+]] = arith.constant 0 : i32
// CHECK: %[[V12:[a-z0-9_]+]] = arith.constant 1 : i32
// CHECK: %[[V6]] = arith.cmpi eq, %[[V4]], %[[V12]] : i32
// CHECK: %[[V8]] = scf.if %[[V6]] -> (i32) {
// CHECK: scf.yield %[[V12]] : i32
// CHECK: } else {
// CHECK: %[[V13:[a-z0-9_]+]] = arith.addi %[[V4]], %[[V4]] : i32
// CHECK: scf.yield %[[V13]] : i32
// CHECK: greta_tile.store_scattered %[[V8]], %[[V14:[a-z0-9_]+]] : i32 -> !greta_tile.ptr<i32>
// CHECK: } else {
// CHECK: greta_tile.return
tt.func public @early(%p: !tt.ptr<i32>, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %0 = arith.cmpi eq, %n, %c0 : i32
  cf.cond_br %0, ^bb1, ^bb2
^bb1:
  %1 = arith.cmpi eq, %m, %c0 : i32
  cf.cond_br %1, ^bb3, ^bb2
^bb2:
  llvm.intr.assume %0 : i1
  %2 = tt.call @helper(%n) : (i32) -> i32
  tt.store %p, %2 : !tt.ptr<i32>
  tt.return
^bb3:
  tt.return
}

tt.func private @helper(%n: i32) -> i32 attributes {noinline = true} {
  %c1 = arith.constant 1 : i32
  %0 = arith.cmpi eq, %n, %c1 : i32
  cf.cond_br %0, ^bb1, ^bb2
^bb1:
  tt.return %c1 : i32
^bb2:
  %1 = tt.call @inner(%n) : (i32) -> i32
  tt.return %1 : i32
}

tt.func private @inner(%n: i32) -> i32 attributes {noinline = true} {
  %0 = arith.addi %n, %n : i32
  tt.return %0 : i32
}

// Pointers go around loops.
// CHECK-LABEL: greta_tile.func @loops_0(
// CHECK: %[[V0:[a-z0-9_]+]] = arith.constant 0 : i32
// CHECK: %[[V1:[a-z0-9_]+]] = arith.constant 1 : i32
// CHECK: %[[V2:[a-z0-9_]+]] = greta_tile.iota 0 : tensor<8xi32>
// CHECK: %[[V3:[a-z0-9_]+]] = greta_tile.splat %[[V4:[a-z0-9_]+]] : tensor<8x!greta_tile.ptr<f32>>
// CHECK: %[[V5:[a-z0-9_]+]] = scf.for %[[V6:[a-z0-9_]+]] = %[[V0]] to %[[V7:[a-z0-9_]+]] step %[[V1]] iter_args(%[[V8:[a-z0-9_]+]] = %[[V3]]) -> (tensor<8x!greta_tile.ptr<f32>>)  : i32 {
// CHECK: %[[V9:[a-z0-9_]+]] = greta_tile.load_scattered %[[V8]] : tensor<8x!greta_tile.ptr<f32>> -> tensor<8xf32>
// CHECK: %[[V10:[a-z0-9_]+]] = greta_tile.ptr_add %[[V8]], %[[V2]] : tensor<8x!greta_tile.ptr<f32>>, tensor<8xi32>
// CHECK: greta_tile.store_scattered %[[V9]], %[[V10]] : tensor<8xf32> -> tensor<8x!greta_tile.ptr<f32>>
// CHECK: scf.yield %[[V10]] : tensor<8x!greta_tile.ptr<f32>>
// CHECK-NEXT: } {greta_tile.stages = 3 : i32}
// CHECK: %[[V11:[a-z0-9_]+]] = scf.while (%[[V6]] = %[[V0]]) : (i32) -> i32 {
// CHECK: %[[V9]] = arith.cmpi slt, %[[V6]], %[[V7]] : i32
// CHECK: scf.condition(%[[V9]]) %[[V6]] : i32
// CHECK: } do {
// CHECK: ^bb0(%[[V6]]: i32):
// CHECK: %[[V9]] = arith.addi %[[V6]], %[[V1]] : i32
// CHECK: scf.yield %[[V9]] : i32
// CHECK: greta_tile.return
tt.func public @loops(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %q = tt.splat %p : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %0 = scf.for %k = %c0 to %n step %c1 iter_args(%r = %q) -> (tensor<8x!tt.ptr<f32>>) : i32 {
    %v = tt.load %r : tensor<8x!tt.ptr<f32>>
    %next = tt.addptr %r, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    tt.store %next, %v : tensor<8x!tt.ptr<f32>>
    scf.yield %next : tensor<8x!tt.ptr<f32>>
  } {tt.num_stages = 3 : i32, tt.flatten}
  %1 = scf.while (%k = %c0) : (i32) -> i32 {
    %c = arith.cmpi slt, %k, %n : i32
    scf.condition(%c) %k : i32
  } do {
  ^bb0(%k: i32):
    %next = arith.addi %k, %c1 : i32
    scf.yield %next : i32
  }
  tt.return
}

// Prints, and questions about the program and the grid, stay.

// CHECK-LABEL: greta_tile.func @debug_0(
// CHECK: %[[N:.*]] = greta_tile.num_programs 1
// CHECK: greta_tile.print " x: " %{{.*}}, %{{.*}}, %[[N]] hex unsigned [1] : f32, i8, i32
// CHECK: greta_tile.assert %{{.*}}, "n is 0" : i1
// CHECK: greta_tile.launch @debug_0 grid #{{.*}} scalars #[[NONE:[a-z0-9]+]](
tt.func public @debug(%p: !tt.ptr<f32>, %n: i8, %c: i1) {
  %0 = tt.load %p : !tt.ptr<f32>
  %1 = tt.get_num_programs y : i32
  tt.print " x: " {hex = true, isSigned = array<i32: 0, 0, 1>} : %0, %n, %1 : f32, i8, i32
  tt.assert %c, "n is 0" : i1
  tt.return
}
