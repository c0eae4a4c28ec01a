// Direct loads through pointers: rows that wrap around are no strided block, and are computed again, in front of the loop, in the layout that fills shared memory.
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx950},greta-tile-assign-layouts{target=gfx950},greta-tile-pipeline{target=gfx950}))' | FileCheck %s
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx950},greta-tile-assign-layouts{target=gfx950},greta-tile-pipeline{target=gfx950}),greta-tile-distribute{target=gfx950})' | FileCheck %s --check-prefix=LANE
// RUN: sed 's/greta.pointer_range/greta.readonly/' %s | not greta-opt --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx950},greta-tile-assign-layouts{target=gfx950},greta-tile-pipeline{target=gfx950}))' 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: sed 's/ mask %%mask//' %s | not greta-opt --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx950},greta-tile-assign-layouts{target=gfx950},greta-tile-pipeline{target=gfx950}))' 2>&1 | FileCheck %s --check-prefix=REFUSED
// REFUSED: error: 'scf.for' op has greta_tile.pipeline but loads directly what is not an operand as it is stored

// CHECK-LABEL: @wrapped
// CHECK: arith.remsi {{.*}} : tensor<64x1xi32
// CHECK: scf.for
// CHECK-NOT: arith.remsi
// CHECK: %[[BLOCK:.*]] = greta_tile.load_scattered %{{.*}} mask %{{.*}} : {{.*}} -> tensor<64x32xf16, #greta_tile.layout<{reg = {{\[\[}}0, 1], [0, 2], [0, 4]], lane = {{\[\[}}0, 8], [0, 16], [1, 0], [2, 0], [4, 8], [8, 16]],
// CHECK: greta_tile.local_store %[[BLOCK]], %{{.*}} direct
// LANE: scf.for
// LANE: greta_tile.ptr_load_shared %arg0[%{{.*}}] mask %{{.*}} width 8
greta_tile.func @wrapped(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64, greta.pointer_range}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %m: i32, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<64x32xf16>
  %rows = greta_tile.iota 0 : tensor<64x1xi32>
  %most = greta_tile.splat %m : tensor<64x1xi32>
  %within = arith.remsi %rows, %most : tensor<64x1xi32>
  %stride = greta_tile.splat %n : tensor<64x1xi32>
  %starts = arith.muli %within, %stride : tensor<64x1xi32>
  %lines = greta_tile.broadcast %starts : tensor<64x1xi32> -> tensor<64x32xi32>
  %columns = greta_tile.iota 1 : tensor<64x32xi32>
  %first = greta_tile.ptr_add %x, %lines : !greta_tile.ptr<f16>, tensor<64x32xi32>
  %all = greta_tile.ptr_add %first, %columns : tensor<64x32x!greta_tile.ptr<f16>>, tensor<64x32xi32>
  %r = scf.for %k = %z to %n step %c32 iter_args(%acc = %none) -> (tensor<64x64xf32>) : i32 {
    %p = greta_tile.ptr_add %all, %k : tensor<64x32x!greta_tile.ptr<f16>>, i32
    %left = arith.subi %n, %k : i32
    %end = greta_tile.splat %left : tensor<64x32xi32>
    %mask = arith.cmpi slt, %columns, %end : tensor<64x32xi32>
    %a = greta_tile.load_scattered %p mask %mask : tensor<64x32x!greta_tile.ptr<f16>> -> tensor<64x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [0] (%n) : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 2, slice = 16, direct = 16>}
  greta_tile.store %r, %o[%z, %z] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
