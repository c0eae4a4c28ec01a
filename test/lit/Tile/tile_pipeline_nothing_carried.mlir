// A is the same in every iteration and is loaded once; the loop writes what B is loaded from, so that stays in its place: nothing is carried from one iteration to the next.
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=vulkan:lavapipe},greta-tile-schedule{target=vulkan:lavapipe},greta-tile-assign-layouts,greta-tile-pipeline{target=vulkan:lavapipe}))' | FileCheck %s

// CHECK-LABEL: @carries_nothing
// CHECK: greta_tile.local_store
// CHECK: scf.for {{.*}} step %{{[a-z0-9_]+}} : i32 {
// CHECK: greta_tile.dot
// CHECK: greta_tile.store
greta_tile.func @carries_nothing(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f16> {greta.noalias}, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  scf.for %k = %z to %n step %c64 : i32 {
    %a = greta_tile.load %x[%z, %z] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x64xf16>
    %b = greta_tile.load %o[%z, %k] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<64x64xf16>
    %d = greta_tile.dot %a, %b, %none : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
    greta_tile.store %h, %o[%z, %k] strides [4096, 1] bounds [] : tensor<64x64xf16> -> !greta_tile.ptr<f16>
  }
  greta_tile.return
}
