// A value that is the same in each iteration stands in front of the loop, with the places of elements that it takes; places that only the iteration takes stay in the
// loop, so that drivers keep no registers for them. Loads stay.
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-move-invariants))' | FileCheck %s

// CHECK-LABEL: @places
// CHECK: %[[ROWS:.*]] = greta_tile.iota 0
// CHECK: %[[NUMBERS:.*]] = arith.sitofp %[[ROWS]]
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK-NEXT: %[[COLUMNS:.*]] = greta_tile.iota 1
// CHECK-NEXT: %[[AT:.*]] = greta_tile.splat %[[I]]
// CHECK-NEXT: arith.cmpi slt, %[[COLUMNS]], %[[AT]]
greta_tile.func @places(%o: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %r = scf.for %i = %z to %n step %one iter_args(%acc = %none) -> (tensor<16x16xf32>) : i32 {
    %rows = greta_tile.iota 0 : tensor<16x16xi32>
    %numbers = arith.sitofp %rows : tensor<16x16xi32> to tensor<16x16xf32>
    %columns = greta_tile.iota 1 : tensor<16x16xi32>
    %at = greta_tile.splat %i : tensor<16x16xi32>
    %below = arith.cmpi slt, %columns, %at : tensor<16x16xi32>
    %some = arith.select %below, %numbers, %none : tensor<16x16xi1>, tensor<16x16xf32>
    %sum = arith.addf %acc, %some : tensor<16x16xf32>
    scf.yield %sum : tensor<16x16xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// CHECK-LABEL: @effects
// CHECK: scf.for
// CHECK: greta_tile.load
// CHECK: greta_tile.store
greta_tile.func @effects(%x: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %z to %n step %one : i32 {
    %a = greta_tile.load %x[%z, %z] strides [16, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<16x16xf32>
    %b = arith.addf %a, %a : tensor<16x16xf32>
    greta_tile.store %b, %x[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  }
  greta_tile.return
}

// A loop may have no iteration: what reads or writes memory, prints, asserts, assumes or may divide by zero stays, and so does what follows from it.
// CHECK-LABEL: @stays
// CHECK-NOT: arith.divsi
// CHECK: scf.for
// CHECK-NEXT: greta_tile.assert
// CHECK-NEXT: greta_tile.print
// CHECK-NEXT: greta_tile.assume
// CHECK-NEXT: %[[SHARE:.*]] = arith.divsi
// CHECK-NEXT: %[[BLOCK:.*]] = greta_tile.load
// CHECK-NEXT: %[[SHARES:.*]] = greta_tile.splat %[[SHARE]]
// CHECK-NEXT: arith.addi %[[BLOCK]], %[[SHARES]]
greta_tile.func @stays(%x: !greta_tile.ptr<i32>, %o: !greta_tile.ptr<i32>, %n: i32, %d: i32) attributes {waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0> : tensor<32xi32>
  %some = arith.cmpi sgt, %d, %z : i32
  %r = scf.for %i = %z to %n step %one iter_args(%acc = %none) -> (tensor<32xi32>) : i32 {
    greta_tile.assert %some, "d must be positive" : i1
    greta_tile.print "d" %d : i32
    greta_tile.assume %some
    %share = arith.divsi %one, %d : i32
    %block = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<i32> -> tensor<32xi32>
    %shares = greta_tile.splat %share : tensor<32xi32>
    %both = arith.addi %block, %shares : tensor<32xi32>
    %sum = arith.addi %acc, %both : tensor<32xi32>
    scf.yield %sum : tensor<32xi32>
  }
  greta_tile.store %r, %o[%z] strides [1] bounds [] : tensor<32xi32> -> !greta_tile.ptr<i32>
  greta_tile.return
}
