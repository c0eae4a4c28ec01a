// Waves and matrix instructions of a target; what has a wave_size stays as it is.
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx942}))' | FileCheck %s --check-prefixes=CHECK,GFX942
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx942 matrix=false}))' | FileCheck %s --check-prefix=SIMT
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=vulkan:nvidia}))' | FileCheck %s --check-prefixes=CHECK,NVIDIA
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=vulkan:portable}))' | FileCheck %s --check-prefixes=CHECK,PORTABLE
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=vulkan:lavapipe}))' | FileCheck %s --check-prefixes=CHECK,NARROW

// GFX942: @dots{{.*}} {wave_size = 64 : i32, waves = 4 : i32}
// NVIDIA: @dots{{.*}} {wave_size = 32 : i32, waves = 4 : i32}
// PORTABLE: @dots{{.*}} {wave_size = 1 : i32, waves = 128 : i32}
// Waves of 8 lanes until one has 64 of the largest block's 4,096 elements.
// NARROW: @dots{{.*}} {wave_size = 8 : i32, waves = 8 : i32}
greta_tile.func @dots(%p: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  // A tile for each wave; of the fastest the largest that there is.
  // SIMT-NOT: matrix
  // GFX942: greta_tile.dot {{.*}} {matrix = #greta_tile.matrix<"mfma.f32.32x32x8f16" swapped
  // NVIDIA: greta_tile.dot {{.*}} {matrix = #greta_tile.matrix<"coopmat", {{.*}} acc = <{reg = {{\[\[}}0, 1], [8, 0]],
  // PORTABLE-NOT: matrix
  %a = arith.constant dense<1.0> : tensor<64x32xf16>
  %b = arith.constant dense<1.0> : tensor<32x64xf16>
  %c = arith.constant dense<0.0> : tensor<64x64xf32>
  %0 = greta_tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
  greta_tile.store %0, %p[%z, %z] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  // Four tiles of 16x16 for four waves rather than one of 32x32.
  // GFX942: greta_tile.dot {{.*}} {matrix = #greta_tile.matrix<"mfma.f32.16x16x16f16" swapped
  %d = arith.constant dense<1.0> : tensor<32x16xf16>
  %e = arith.constant dense<1.0> : tensor<16x32xf16>
  %f = arith.constant dense<0.0> : tensor<32x32xf32>
  %1 = greta_tile.dot %d, %e, %f : tensor<32x16xf16>, tensor<16x32xf16> -> tensor<32x32xf32>
  greta_tile.store %1, %p[%z, %z] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>
  // K = 4 is no multiple of any instruction's, and sums of f16 have none.
  // GFX942: greta_tile.dot %{{.*}}, %{{.*}}, %{{[^ ]*}} : tensor<16x4xf16>
  %g = arith.constant dense<1.0> : tensor<16x4xf16>
  %h = arith.constant dense<1.0> : tensor<4x16xf16>
  %i = arith.constant dense<0.0> : tensor<16x16xf32>
  %2 = greta_tile.dot %g, %h, %i : tensor<16x4xf16>, tensor<4x16xf16> -> tensor<16x16xf32>
  greta_tile.store %2, %p[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  // CHECK: greta_tile.dot %{{.*}}, %{{.*}}, %{{[^ ]*}} : tensor<32x16xf16>, tensor<16x32xf16> -> tensor<32x32xf16>
  %j = arith.constant dense<0.0> : tensor<32x32xf16>
  %3 = greta_tile.dot %d, %e, %j : tensor<32x16xf16>, tensor<16x32xf16> -> tensor<32x32xf16>
  %k = arith.extf %3 : tensor<32x32xf16> to tensor<32x32xf32>
  greta_tile.store %k, %p[%z, %z] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>
  // A tile for each wave in a batch, too.
  // GFX942: greta_tile.dot {{.*}} {matrix = #greta_tile.matrix<"mfma.f32.32x32x8f16" swapped
  %l = arith.constant dense<1.0> : tensor<4x32x32xf16>
  %m = arith.constant dense<0.0> : tensor<4x32x32xf32>
  %4 = greta_tile.dot %l, %l, %m : tensor<4x32x32xf16>, tensor<4x32x32xf16> -> tensor<4x32x32xf32>
  greta_tile.store %4, %p[%z, %z, %z] strides [1024, 32, 1] bounds [] : tensor<4x32x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

// CHECK: @known{{.*}} {wave_size = 8 : i32, waves = 2 : i32}
greta_tile.func @known() attributes {waves = 2 : i32, wave_size = 8 : i32} {
  greta_tile.return
}

// -----

// As many waves as a workgroup may have.
// GFX942: @many{{.*}} {wave_size = 64 : i32, waves = 16 : i32}
// NVIDIA: @many{{.*}} {wave_size = 32 : i32, waves = 32 : i32}
// PORTABLE: @many{{.*}} {wave_size = 1 : i32, waves = 128 : i32}
greta_tile.func @many() attributes {waves = 32 : i32} {
  greta_tile.return
}

// -----

// 8 rows are multiplied transposed where operands come in registers.
// NVIDIA: @few
// NVIDIA: greta_tile.dot {{.*}} : tensor<8x16xf16>, tensor<16x16xf16> -> tensor<8x16xf32>
// NVIDIA: greta_tile.dot {{.*}} {matrix = #greta_tile.matrix<"coopmat" swapped = true, {{.*}} : tensor<8x16xf16>
greta_tile.func @few(%p: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a = arith.constant dense<1.0> : tensor<8x16xf16>
  %b = arith.constant dense<1.0> : tensor<16x16xf16>
  %c = arith.constant dense<0.0> : tensor<8x16xf32>
  %0 = greta_tile.dot %a, %b, %c : tensor<8x16xf16>, tensor<16x16xf16> -> tensor<8x16xf32>
  %1 = scf.for %i = %z to %one step %one iter_args(%sum = %0) -> (tensor<8x16xf32>) : i32 {
    %next = greta_tile.dot %a, %b, %sum : tensor<8x16xf16>, tensor<16x16xf16> -> tensor<8x16xf32>
    scf.yield %next : tensor<8x16xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 0, slice = 16>}
  greta_tile.store %1, %p[%z, %z] strides [16, 1] bounds [] : tensor<8x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

// One wave of 32 lanes would hold 1,024 registers of the block; as many waves as make 256 lanes have it.
// GFX942: @large{{.*}} {wave_size = 64 : i32, waves = 1 : i32}
// NVIDIA: @large{{.*}} {wave_size = 32 : i32, waves = 8 : i32}
// PORTABLE: @large{{.*}} {wave_size = 1 : i32, waves = 128 : i32}
// NARROW: @large{{.*}} {wave_size = 8 : i32, waves = 32 : i32}
greta_tile.func @large(%p: !greta_tile.ptr<i32> {greta.divisibility = 16 : i64}) attributes {waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %0 = greta_tile.load %p[%z] strides [1] bounds [] : !greta_tile.ptr<i32> -> tensor<32768xi32>
  greta_tile.store %0, %p[%z] strides [1] bounds [] : tensor<32768xi32> -> !greta_tile.ptr<i32>
  greta_tile.return
}

// -----

// 256 lanes are all that a large block brings.
// GFX942: @larger{{.*}} {wave_size = 64 : i32, waves = 4 : i32}
// NVIDIA: @larger{{.*}} {wave_size = 32 : i32, waves = 8 : i32}
// PORTABLE: @larger{{.*}} {wave_size = 1 : i32, waves = 128 : i32}
// NARROW: @larger{{.*}} {wave_size = 8 : i32, waves = 32 : i32}
greta_tile.func @larger(%p: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %0 = greta_tile.load %p[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<262144xf32>
  greta_tile.store %0, %p[%z] strides [1] bounds [] : tensor<262144xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
