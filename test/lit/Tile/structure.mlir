// RUN: greta-opt %s -greta-tile-structure | FileCheck %s
// RUN: greta-opt %s -greta-tile-structure -inline -symbol-dce | FileCheck %s --check-prefix=INLINED

// Two ways out of a helper are one that gives either value.

// CHECK-LABEL: func.func private @helper
// CHECK-SAME: (%[[V:.*]]: tensor<8xf32>, %[[C:.*]]: i1)
// CHECK: %[[R:.*]] = scf.if %[[C]] -> (tensor<8xf32>) {
// CHECK-NEXT: scf.yield %[[V]]
// CHECK: return %[[R]]
func.func private @helper(%v: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  cf.cond_br %c, ^same, ^twice
^same:
  return %v : tensor<8xf32>
^twice:
  %d = arith.addf %v, %v : tensor<8xf32>
  return %d : tensor<8xf32>
}

// An early return leaves a branch around the rest. Helpers are inlined.

// CHECK-LABEL: greta_tile.func @early
// CHECK: scf.if
// CHECK-NEXT: } else {
// CHECK-NEXT: greta_tile.load
// CHECK-NEXT: call @helper
// CHECK-NEXT: greta_tile.store
// CHECK: greta_tile.return
// CHECK-NEXT: }
// INLINED-NOT: @helper
// INLINED-LABEL: greta_tile.func @early
// INLINED: greta_tile.load
// INLINED-NEXT: scf.if
// INLINED: greta_tile.store
greta_tile.func @early(%x: !greta_tile.ptr<f32>, %c: i1, %d: i1) attributes {waves = 1 : i32} {
  %zero = arith.constant 0 : i32
  cf.cond_br %c, ^done, ^rest
^rest:
  %v = greta_tile.load %x[%zero] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<8xf32>
  %w = func.call @helper(%v, %d) : (tensor<8xf32>, i1) -> tensor<8xf32>
  greta_tile.store %w, %x[%zero] strides [1] bounds [] : tensor<8xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
^done:
  greta_tile.return
}

// A loop of branches; what its end gives and nobody reads is zero, of pointers, too.

// CHECK-LABEL: greta_tile.func @loop
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK-DAG: greta_tile.int_to_ptr %[[ZERO]] : i64 -> !greta_tile.ptr<f32>
// CHECK: scf.while
// CHECK-NOT: poison
greta_tile.func @loop(%x: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 1 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  cf.br ^head(%zero, %x : i32, !greta_tile.ptr<f32>)
^head(%i: i32, %p: !greta_tile.ptr<f32>):
  %c = arith.cmpi slt, %i, %n : i32
  cf.cond_br %c, ^body, ^done
^body:
  %next = arith.addi %i, %one : i32
  %q = greta_tile.ptr_add %p, %one : !greta_tile.ptr<f32>, i32
  cf.br ^head(%next, %q : i32, !greta_tile.ptr<f32>)
^done:
  greta_tile.return
}
