// Values that loops carry are computed from the iteration's number.
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-inductions,canonicalize))' | FileCheck %s

// Blocks of 32 become elements; pointers that step by as many are where the counter is, and others by a factor.
// CHECK-LABEL: @tutorial
// CHECK: scf.for %[[K:[a-z0-9]+]] = %c0_i32 to %arg3 step %c32_i32 iter_args(%[[ACC:[a-z0-9]+]] = %{{[a-z0-9]+}})
// CHECK-NEXT: %[[ELEMENTS:[0-9]+]] = arith.extsi %[[K]] : i32 to i64
// CHECK-NEXT: %[[S:[0-9]+]] = arith.extsi %arg4 : i32 to i64
// CHECK-NEXT: %[[BY:[0-9]+]] = arith.muli %[[ELEMENTS]], %[[S]] : i64
// CHECK-NEXT: %[[PB:[0-9]+]] = greta_tile.ptr_add %{{[0-9]+}}, %[[BY]] : tensor<32x!greta_tile.ptr<f32>>, i64
// CHECK-NEXT: %[[WIDE:[0-9]+]] = arith.extsi %[[K]] : i32 to i64
// CHECK-NEXT: %[[PA:[0-9]+]] = greta_tile.ptr_add %{{[0-9]+}}, %[[WIDE]] : tensor<32x!greta_tile.ptr<f32>>, i64
// CHECK-NEXT: arith.subi %arg3, %[[K]]
// CHECK: greta_tile.load_scattered %[[PA]] mask
// CHECK: greta_tile.load_scattered %[[PB]] mask
// CHECK: scf.yield %{{[0-9]+}} : tensor<32xf32>
greta_tile.func @tutorial(%a: !greta_tile.ptr<f32>, %b: !greta_tile.ptr<f32>, %c: !greta_tile.ptr<f32>, %n: i32, %stride: i32) attributes {waves = 1 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c31 = arith.constant 31 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<32xf32>
  %step = arith.constant dense<32> : tensor<32xi32>
  %by = arith.muli %stride, %c32 : i32
  %bys = greta_tile.splat %by : tensor<32xi32>
  %i = greta_tile.iota 0 : tensor<32xi32>
  %a0 = greta_tile.ptr_add %a, %i : !greta_tile.ptr<f32>, tensor<32xi32>
  %b0 = greta_tile.ptr_add %b, %i : !greta_tile.ptr<f32>, tensor<32xi32>
  %more = arith.addi %n, %c31 : i32
  %turns = arith.divsi %more, %c32 : i32
  %r:3 = scf.for %t = %zero to %turns step %one iter_args(%acc = %none, %pa = %a0, %pb = %b0) -> (tensor<32xf32>, tensor<32x!greta_tile.ptr<f32>>, tensor<32x!greta_tile.ptr<f32>>) : i32 {
    %done = arith.muli %t, %c32 : i32
    %left = arith.subi %n, %done : i32
    %lefts = greta_tile.splat %left : tensor<32xi32>
    %in = arith.cmpi slt, %i, %lefts : tensor<32xi32>
    %x = greta_tile.load_scattered %pa mask %in : tensor<32x!greta_tile.ptr<f32>> -> tensor<32xf32>
    %y = greta_tile.load_scattered %pb mask %in : tensor<32x!greta_tile.ptr<f32>> -> tensor<32xf32>
    %xy = arith.mulf %x, %y : tensor<32xf32>
    %next = arith.addf %acc, %xy : tensor<32xf32>
    %pa1 = greta_tile.ptr_add %pa, %step : tensor<32x!greta_tile.ptr<f32>>, tensor<32xi32>
    %pb1 = greta_tile.ptr_add %pb, %bys : tensor<32x!greta_tile.ptr<f32>>, tensor<32xi32>
    scf.yield %next, %pa1, %pb1 : tensor<32xf32>, tensor<32x!greta_tile.ptr<f32>>, tensor<32x!greta_tile.ptr<f32>>
  }
  %c0 = greta_tile.ptr_add %c, %i : !greta_tile.ptr<f32>, tensor<32xi32>
  greta_tile.store_scattered %r#0, %c0 : tensor<32xf32> -> tensor<32x!greta_tile.ptr<f32>>
  greta_tile.return
}

// Integers, downwards, from a number on in steps that no constant is; the counter itself where something else needs it.
// CHECK-LABEL: @numbers
// CHECK: scf.for %[[I:[a-z0-9]+]] = %arg1 to %arg2 step %arg3 iter_args(%[[ACC:[a-z0-9]+]] = %{{[a-z0-9]+}})
// CHECK: %[[FROM:[0-9]+]] = arith.subi %[[I]], %arg1
// CHECK: %[[TURN:[0-9]+]] = arith.divsi %[[FROM]], %arg3
// CHECK: %[[LESS:[0-9]+]] = arith.muli %[[TURN]], %c-3_i32
// CHECK: %[[BLOCK:[0-9]+]] = greta_tile.splat %[[LESS]] : tensor<32xi32>
// CHECK: arith.addi %{{[a-z0-9]+}}, %[[BLOCK]] : tensor<32xi32>
greta_tile.func @numbers(%c: !greta_tile.ptr<i32>, %from: i32, %to: i32, %by: i32) attributes {waves = 1 : i32} {
  %none = arith.constant dense<0> : tensor<32xi32>
  %three = arith.constant dense<3> : tensor<32xi32>
  %i = greta_tile.iota 0 : tensor<32xi32>
  %r:2 = scf.for %t = %from to %to step %by iter_args(%acc = %none, %x = %i) -> (tensor<32xi32>, tensor<32xi32>) : i32 {
    %next = arith.xori %acc, %x : tensor<32xi32>
    %x1 = arith.subi %x, %three : tensor<32xi32>
    scf.yield %next, %x1 : tensor<32xi32>, tensor<32xi32>
  }
  %c0 = greta_tile.ptr_add %c, %i : !greta_tile.ptr<i32>, tensor<32xi32>
  greta_tile.store_scattered %r#0, %c0 : tensor<32xi32> -> tensor<32x!greta_tile.ptr<i32>>
  greta_tile.return
}

// Three kinds stay: values that are needed after the loop, values that grow by something new each iteration, and blocks that count in steps of which nothing is a multiple.
// CHECK-LABEL: @stays
// CHECK: scf.for %[[T:[a-z0-9]+]] = %c0_i32 to %{{[0-9]+}} step %c1_i32 iter_args(%[[P:[a-z0-9]+]] = %arg0, %[[S:[a-z0-9]+]] = %c0_i32)
// CHECK: arith.addi %[[S]], %[[T]]
// CHECK: greta_tile.ptr_add %[[P]], %c32_i32
greta_tile.func @stays(%c: !greta_tile.ptr<i32>, %n: i32) attributes {waves = 1 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c31 = arith.constant 31 : i32
  %c32 = arith.constant 32 : i32
  %more = arith.addi %n, %c31 : i32
  %turns = arith.divsi %more, %c32 : i32
  %end, %sum = scf.for %t = %zero to %turns step %one iter_args(%p = %c, %s = %zero) -> (!greta_tile.ptr<i32>, i32) : i32 {
    %s1 = arith.addi %s, %t : i32
    %p1 = greta_tile.ptr_add %p, %c32 : !greta_tile.ptr<i32>, i32
    scf.yield %p1, %s1 : !greta_tile.ptr<i32>, i32
  }
  greta_tile.store_scattered %sum, %end : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}
