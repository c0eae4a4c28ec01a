// A GEMM's only stage is filled with the next block once all of this one is in registers, under the products of its last slice, so that waves wait for one another but not for the stores. Programs that drivers
// compile have their stores in front of the reads.
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx942},greta-tile-assign-layouts,greta-tile-pipeline{target=gfx942}))' | FileCheck %s
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=vulkan:nvidia},greta-tile-assign-layouts,greta-tile-pipeline{target=vulkan:nvidia}))' | FileCheck %s --check-prefix=DRIVER
// CHECK-COUNT-2: greta_tile.local_alloc : <1 x tensor<
// CHECK-COUNT-2: greta_tile.local_store
// CHECK-COUNT-2: greta_tile.load
// CHECK: scf.for
// CHECK-COUNT-2: greta_tile.local_load
// CHECK-NEXT: greta_tile.dot
// CHECK-COUNT-2: greta_tile.local_load
// CHECK-COUNT-2: greta_tile.local_store
// CHECK-COUNT-2: greta_tile.load
// CHECK-NEXT: greta_tile.dot
// CHECK-NOT: greta_tile.dot
// DRIVER-NOT: greta_tile.local_store
// DRIVER: scf.for
// DRIVER-NOT: greta_tile.local_load
// DRIVER-COUNT-2: greta_tile.local_store
greta_tile.func @gemm(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c1024 = arith.constant 1024 : i32
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = scf.for %k = %z to %c1024 step %c32 iter_args(%acc = %none) -> (tensor<128x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [1024, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<128x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 1024] bounds [] : !greta_tile.ptr<f16> -> tensor<32x128xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<128x32xf16>, tensor<32x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 1, slice = 16>}
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<128x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
