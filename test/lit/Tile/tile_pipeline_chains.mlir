// Dots that add to each other's sum, and an iteration that scales what its dots add up to, keep slices: each slice's dots go into the chain's sum, the rest of the iteration comes
// in front of the first slice (the scale's load) or behind the last.
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx942},greta-tile-schedule{target=gfx942},greta-tile-assign-layouts,greta-tile-pipeline{target=gfx942}))' | FileCheck %s

// CHECK-LABEL: @chained
// CHECK: scf.for
// CHECK: greta_tile.local_load {{.*}} -> tensor<64x16xf16
// CHECK: %[[FIRST:.*]] = greta_tile.dot %{{.*}}, %{{.*}}, %[[ACC:arg[0-9]*]]
// CHECK-NEXT: %[[SECOND:.*]] = greta_tile.dot %{{.*}}, %{{.*}}, %[[FIRST]]
// CHECK: %[[THIRD:.*]] = greta_tile.dot %{{.*}}, %{{.*}}, %[[SECOND]]
// CHECK-NEXT: %[[FOURTH:.*]] = greta_tile.dot %{{.*}}, %{{.*}}, %[[THIRD]]
// CHECK: scf.yield %[[FOURTH]]
greta_tile.func @chained(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %w: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %z to %n step %c32 iter_args(%acc = %none) -> (tensor<64x64xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %c = greta_tile.load %w[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %e = greta_tile.dot %a, %c, %d : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %e : tensor<64x64xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// CHECK-LABEL: @scaled
// CHECK: scf.for
// CHECK: %[[SCALE:.*]] = greta_tile.load %{{.*}} -> tensor<64x1xf32
// CHECK: %[[HALF:.*]] = greta_tile.dot %{{.*}}, %{{.*}}, %cst
// CHECK: %[[WHOLE:.*]] = greta_tile.dot %{{.*}}, %{{.*}}, %[[HALF]]
// CHECK: arith.mulf %[[WHOLE]]
// CHECK: arith.addf
// CHECK: scf.yield
greta_tile.func @scaled(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %s: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %z to %n step %c32 iter_args(%acc = %none) -> (tensor<64x64xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %scale = greta_tile.load %s[%k, %z] strides [1, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<64x1xf32>
    %d = greta_tile.dot %a, %b, %none : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %wide = greta_tile.broadcast %scale : tensor<64x1xf32> -> tensor<64x64xf32>
    %e = arith.mulf %d, %wide : tensor<64x64xf32>
    %f = arith.addf %acc, %e : tensor<64x64xf32>
    scf.yield %f : tensor<64x64xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// An iteration stores through another argument than its loads read from: they run ahead of it.
// CHECK-LABEL: @stored
// CHECK-COUNT-2: greta_tile.local_alloc
// CHECK: scf.for
// CHECK: greta_tile.local_store
// CHECK: greta_tile.store
// CHECK: scf.yield
greta_tile.func @stored(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  scf.for %k = %z to %n step %c32 : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %a, %b, %none : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    greta_tile.store %d, %o[%k, %z] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  }
  greta_tile.return
}
