// Operands of three dimensions, and of blocks of three dimensions: loops that nobody has configured, in two stages where lanes hold fragments, one where drivers load them.
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx942},greta-tile-assign-layouts,greta-tile-pipeline{target=gfx942},canonicalize,cse))' | FileCheck %s --check-prefixes=CHECK,GFX942
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=vulkan:nvidia},greta-tile-assign-layouts,greta-tile-pipeline{target=vulkan:nvidia},canonicalize,cse))' | FileCheck %s --check-prefixes=CHECK,NVIDIA

// Halves of K, of both matrices; the next block is stored between their products. Without fragments' layouts rows are padded, and the slices are a loop.
// CHECK-LABEL: @batch
// GFX942: %[[A:[0-9]+]] = greta_tile.local_alloc : <2 x tensor<2x64x64xf16>, <dim = 2, stride = 64, vector = 8, rows = 1, phases = 8>>
// GFX942: %[[B:[0-9]+]] = greta_tile.local_alloc : <2 x tensor<2x64x64xf16>, <dim = 1, stride = 64,
// NVIDIA: %[[A:[0-9]+]] = greta_tile.local_alloc : <1 x tensor<2x64x64xf16>, <dim = 2, stride = 72, vector = 1, rows = 1, phases = 1>>
// NVIDIA: %[[B:[0-9]+]] = greta_tile.local_alloc : <1 x tensor<2x64x64xf16>, <dim = 2, stride = 72, vector = 1, rows = 1, phases = 1>>
// CHECK-COUNT-2: greta_tile.load
// GFX942-COUNT-2: greta_tile.local_store
// GFX942-COUNT-2: greta_tile.load
// GFX942: greta_tile.local_load %[[A]][%c0_i32] [%c0_i32, %c0_i32, %c0_i32] {{.*}} -> tensor<2x64x32xf16,
// GFX942: greta_tile.local_load %[[B]][%c0_i32] [%c0_i32, %c0_i32, %c0_i32] {{.*}} -> tensor<2x32x64xf16,
// CHECK: scf.for
// NVIDIA-COUNT-2: greta_tile.local_store
// NVIDIA-COUNT-2: greta_tile.load
// NVIDIA: scf.for %[[S:[a-z0-9]+]] = %c0_i32 to %c64_i32 step %c16_i32
// NVIDIA: greta_tile.local_load %[[A]][%c0_i32] [%c0_i32, %c0_i32, %[[S]]] {{.*}} -> tensor<2x64x16xf16,
// NVIDIA: greta_tile.local_load %[[B]][%c0_i32] [%c0_i32, %[[S]], %c0_i32] {{.*}} -> tensor<2x16x64xf16,
// GFX942: greta_tile.local_load %[[A]][%c0_i32] [%c0_i32, %c0_i32, %c32_i32]
// GFX942: greta_tile.local_load %[[B]][%c0_i32] [%c0_i32, %c32_i32, %c0_i32]
// CHECK: greta_tile.dot
// GFX942-COUNT-2: greta_tile.local_store {{.*}}[%c1_i32]
// CHECK: greta_tile.rolled
greta_tile.func @batch(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %end = arith.constant 512 : i32
  %zero = arith.constant dense<0.0> : tensor<2x64x64xf32>
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<2x64x64xf32>) : i32 {
    %a = greta_tile.load %x[%z, %z, %k] strides [32768, 512, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<2x64x64xf16>
    %b = greta_tile.load %y[%z, %k, %z] strides [32768, 64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<2x64x64xf16>
    %next = greta_tile.dot %a, %b, %acc : tensor<2x64x64xf16>, tensor<2x64x64xf16> -> tensor<2x64x64xf32>
    scf.yield %next : tensor<2x64x64xf32>
  }
  greta_tile.store %d, %o[%z, %z, %z] strides [4096, 64, 1] bounds [] : tensor<2x64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

// Blocks are loaded as they are, and stored as what the dot takes.
// CHECK-LABEL: @reshaped
// CHECK: greta_tile.local_alloc : <{{[12]}} x tensor<64x64xf16>
// CHECK: greta_tile.load {{.*}} -> tensor<2x32x64xf16,
// GFX942: greta_tile.reshape
// GFX942: greta_tile.local_store
// CHECK: scf.for {{.*}} iter_args(%{{[a-z0-9]+}} = %{{[^,]*}}, %[[NEXT:[a-z0-9]+]] = %
// GFX942: greta_tile.dot
// CHECK: greta_tile.reshape %[[NEXT]]
// CHECK: greta_tile.local_store
// NVIDIA: greta_tile.dot
// CHECK: greta_tile.rolled
greta_tile.func @reshaped(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %end = arith.constant 512 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %a = greta_tile.load %x[%z, %z, %k] strides [16384, 512, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<2x32x64xf16>
    %b = greta_tile.load %y[%k, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x64xf16>
    %rows = greta_tile.reshape %a : tensor<2x32x64xf16> -> tensor<64x64xf16>
    %next = greta_tile.dot %rows, %b, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  greta_tile.store %d, %o[%z, %z] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

// The loop writes what it loads: blocks of three dimensions wait, too.
// CHECK-LABEL: @written
// CHECK-NOT: greta_tile.local_alloc
greta_tile.func @written(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %end = arith.constant 512 : i32
  %zero = arith.constant dense<0.0> : tensor<2x64x64xf32>
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<2x64x64xf32>) : i32 {
    %a = greta_tile.load %x[%z, %z, %k] strides [32768, 512, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<2x64x64xf16>
    %b = greta_tile.load %x[%z, %k, %z] strides [32768, 64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<2x64x64xf16>
    %next = greta_tile.dot %a, %b, %acc : tensor<2x64x64xf16>, tensor<2x64x64xf16> -> tensor<2x64x64xf32>
    %half = arith.truncf %next : tensor<2x64x64xf32> to tensor<2x64x64xf16>
    greta_tile.store %half, %x[%z, %z, %z] strides [32768, 64, 1] bounds [] : tensor<2x64x64xf16> -> !greta_tile.ptr<f16>
    scf.yield %next : tensor<2x64x64xf32>
  }
  greta_tile.store %d, %o[%z, %z, %z] strides [4096, 64, 1] bounds [] : tensor<2x64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
