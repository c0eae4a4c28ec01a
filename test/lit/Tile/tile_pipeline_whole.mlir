// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-assign-layouts,greta-tile-pipeline{target=vulkan:nvidia},canonicalize,cse))' | FileCheck %s

#coop = #greta_tile.matrix<"coopmat",
  a = <{reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0]], wave = [], rep = [1, 1]}>,
  b = <{reg = [[1, 0], [2, 0], [4, 0]], lane = [[0, 1], [0, 2], [0, 4]], wave = [], rep = [1, 1]}>,
  acc = <{reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0]], wave = [], rep = [1, 1]}>>

// One stage, cooperative matrices: rows padded by 16 bytes, the next block's loads under the loop over the slices. Beyond the end the last block, at 96, comes again.
// CHECK-LABEL: @single
// CHECK: %[[A:[a-z0-9_]+]] = greta_tile.local_alloc : <1 x tensor<16x32xf16>, <dim = 1, stride = 40, vector = 1, rows = 1, phases = 1>>
// CHECK: greta_tile.load
// CHECK: greta_tile.load
// CHECK: scf.for %[[K:[a-z0-9]+]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%{{.*}}, %[[CA:[a-z0-9]+]] = %{{[0-9]+}}, %[[CB:[a-z0-9]+]] = %
// CHECK-NEXT: greta_tile.local_store %[[CA]], %[[A]][%[[ZERO:[a-z0-9_]+]]]
// CHECK-NEXT: greta_tile.local_store %[[CB]], %[[B:[a-z0-9_]+]][%[[ZERO]]]
// CHECK-NEXT: %[[NEXT:[a-z0-9]+]] = arith.addi %[[K]], %
// CHECK-NEXT: %[[SAFE:[a-z0-9]+]] = arith.minsi %[[NEXT]], %c96_i32
// CHECK-NEXT: greta_tile.load %{{.*}}[%{{.*}}, %[[SAFE]]]
// CHECK-NEXT: greta_tile.load %{{.*}}[%[[SAFE]], %{{.*}}]
// CHECK-NEXT: scf.for %[[S:[a-z0-9]+]] = %
// CHECK-NEXT: greta_tile.local_load %[[A]][%[[ZERO]]] [%[[ZERO]], %[[S]]] {{.*}} -> tensor<16x8xf16,
// CHECK-NEXT: greta_tile.local_load %[[B]][%[[ZERO]]] [%[[S]], %[[ZERO]]] {{.*}} -> tensor<8x16xf16,
// CHECK-NEXT: greta_tile.dot
// CHECK: greta_tile.rolled
greta_tile.func @single(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 8 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %end = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [128, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x32xf16>
    %b = greta_tile.load %x[%k, %z] strides [16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x16xf16>
    %next = greta_tile.dot %a, %b, %acc {matrix = #coop} : tensor<16x32xf16>, tensor<32x16xf16> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 1, slice = 8>}
  greta_tile.store %d, %y[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
