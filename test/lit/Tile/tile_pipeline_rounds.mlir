// A GEMM whose number of K tiles is not known: on chips whose matrix instructions occupy the vector unit an iteration has a K tile for each stage, whose places are constants
// then, and a loop behind it has the tiles that are left. Elsewhere, and where loads are narrow, the loop carries the stage.
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx1100},greta-tile-schedule{target=gfx1100},greta-tile-assign-layouts,greta-tile-pipeline{target=gfx1100},canonicalize))' | FileCheck %s --check-prefixes=CHECK,ROUNDS
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx942},greta-tile-schedule{target=gfx942},greta-tile-assign-layouts,greta-tile-pipeline{target=gfx942},canonicalize))' | FileCheck %s --check-prefixes=CHECK,ONE
// CHECK-LABEL: @gemm
// ROUNDS: %[[LAST:.*]] = arith.addi %{{.*}}, %c-31_i32
// ROUNDS: scf.for %{{.*}} = %c0_i32 to %[[LAST]] step %c64_i32
// ROUNDS: greta_tile.local_store %{{.*}}, %{{.*}}[%c1_i32]
// ROUNDS: greta_tile.local_store %{{.*}}, %{{.*}}[%c0_i32]
// ROUNDS: %[[LEFT:.*]] = arith.remui %{{.*}}, %c2_i32
// ROUNDS: scf.for %{{.*}} = %c0_i32 to %[[LEFT]] step %c1_i32
// ROUNDS: greta_tile.local_store %{{.*}}, %{{.*}}[%{{[0-9]+}}]
// ONE: scf.for %{{.*}} = %c0_i32 to %{{.*}} step %c32_i32
// ONE: greta_tile.local_store %{{.*}}, %{{.*}}[%{{[0-9]+}}]
// ONE-NOT: scf.for
greta_tile.func @gemm(%a: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %b: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %c: !greta_tile.ptr<f32>, %tiles: i32 {greta.nonnegative}) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %k = arith.muli %tiles, %c32 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %i = %c0 to %k step %c32 iter_args(%s = %none) -> (tensor<64x64xf32>) : i32 {
    %x = greta_tile.load %a[%c0, %i] strides [-9223372036854775808, 1] (%k) bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %y = greta_tile.load %b[%i, %c0] strides [1, -9223372036854775808] (%k) bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %x, %y, %s : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  greta_tile.store %sum, %c[%c0, %c0] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Rows of any length are loaded element by element.
// CHECK-LABEL: @narrow
// CHECK: scf.for %{{.*}} = %c0_i32 to %{{.*}} step %c32_i32
// CHECK-NOT: scf.for
greta_tile.func @narrow(%a: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %b: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %c: !greta_tile.ptr<f32>, %k: i32) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %i = %c0 to %k step %c32 iter_args(%s = %none) -> (tensor<64x64xf32>) : i32 {
    %x = greta_tile.load %a[%c0, %i] strides [-9223372036854775808, 1] (%k) bounds [1] (%k) : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %y = greta_tile.load %b[%i, %c0] strides [1, -9223372036854775808] (%k) bounds [0] (%k) : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %x, %y, %s : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  greta_tile.store %sum, %c[%c0, %c0] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
