// A GEMM that nobody has configured takes all of a workgroup's shared memory. If registers hold it, one half of a block is read while the other is multiplied; gfx11's
// operands take twice as many, so that there each tile is read before its products.
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx942},greta-tile-assign-layouts,greta-tile-pipeline{target=gfx942}))' | FileCheck %s --check-prefixes=CHECK,GFX942
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx1100},greta-tile-assign-layouts,greta-tile-pipeline{target=gfx1100}))' | FileCheck %s --check-prefixes=CHECK,GFX1100
// CHECK-COUNT-2: greta_tile.local_alloc : <2 x tensor<
// GFX942: greta_tile.local_load {{.*}} -> tensor<128x32xf16
// GFX942: greta_tile.local_load {{.*}} -> tensor<32x128xf16
// CHECK: scf.for {{.*}} step %c128_i32
// GFX1100: greta_tile.local_load {{.*}} -> tensor<128x16xf16
// GFX1100: greta_tile.local_load {{.*}} -> tensor<16x128xf16
// GFX1100-NOT: xf16{{.*}} -> tensor<128x32xf16
greta_tile.func @gemm(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {waves = 8 : i32} {
  %z = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c1024 = arith.constant 1024 : i32
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = scf.for %k = %z to %c1024 step %c64 iter_args(%acc = %none) -> (tensor<128x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [1024, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<128x64xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 1024] bounds [] : !greta_tile.ptr<f16> -> tensor<64x128xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<128x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
