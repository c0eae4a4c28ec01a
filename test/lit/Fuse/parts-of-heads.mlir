// Rope of the columns of 5 to 64 rows and packed weights, where tiles may be parts of heads: some columns of both halves, or some pairs of neighbours. B's block of halves has a dimension for them.
// RUN: greta-opt --pass-pipeline='builtin.module(func.func(greta-fuse{parts-of-heads=true}))' %s | FileCheck %s --check-prefix=FUSED
// RUN: greta-opt --pass-pipeline='builtin.module(func.func(greta-fuse{parts-of-heads=true},greta-configure{target=vulkan:nvidia}),greta-to-tile)' %s | FileCheck %s

// FUSED-LABEL: func.func @halves
// FUSED: greta.kernel
// FUSED: greta.dequant
// FUSED: greta.heads
// FUSED: greta.rope
// FUSED-NOT: greta.kernel
// CHECK-LABEL: greta_tile.func @halves_0
// The workgroup's head, and its columns of each half: 8 parts of a head.
// CHECK: %[[PARTS:.*]] = arith.constant 8 : i32
// CHECK: arith.remui %{{.*}}, %[[PARTS]]
// CHECK: scf.for
// CHECK: greta_tile.load {{.*}} strides [1, 32768, 4] bounds [] {run_strides = array<i64: 8, 0, 1024>, runs = array<i64: 4, 1, 2>} {{.*}} -> tensor<64x2x8xi32>
// CHECK: greta_tile.load {{.*}} strides [2, 8192, 1] bounds [] {run_strides = array<i64: 0, 0, 256>, runs = array<i64: 1, 1, 2>} {{.*}} -> tensor<16x2x8xf16>
// CHECK: greta_tile.dequant {{.*}} -> tensor<512x2x8xf16>
// CHECK: greta_tile.reshape {{.*}} : tensor<512x2x8xf16> -> tensor<8x64x16xf16>
// CHECK: greta_tile.dot
// CHECK: greta_tile.reshape {{.*}} : tensor<32x16xf16> -> tensor<32x1x2x8xf16>
// CHECK: greta_tile.store {{.*}} strides [512, 128, 64, 1] {{.*}} tensor<32x1x2x8xf16>
func.func @halves(%x: tensor<32x4096xf16>, %q: tensor<512x512xi32>, %s: tensor<512x128xf16>, %cos: tensor<32x64xf32>, %sin: tensor<32x64xf32>) -> tensor<32x4x128xf16> {
  %w = greta.dequant %q, %s {format = "q4_0_interleaved", group = 32} : tensor<512x512xi32>, tensor<512x128xf16> -> tensor<512x4096xf16>
  %0 = greta.matmul %x, %w {transpose_b, greta.config = {instruction = [8, 16, 16], tile = [32, 16, 512], slice = 64, waves = 8, stages = 0}} : tensor<32x4096xf16>, tensor<512x4096xf16> -> tensor<32x512xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [32, 4, 128] : tensor<32x512xf16> into tensor<32x4x128xf16>
  %2 = greta.rope %1, %cos, %sin {style = "neox"} : tensor<32x4x128xf16>, tensor<32x64xf32>, tensor<32x64xf32> -> tensor<32x4x128xf16>
  return %2 : tensor<32x4x128xf16>
}

// Neighbours lie side by side.
// FUSED-LABEL: func.func @neighbours
// CHECK-LABEL: greta_tile.func @neighbours_0
// CHECK: greta_tile.dequant {{.*}} -> tensor<128x32xf16>
// CHECK: greta_tile.reshape {{.*}} : tensor<8x32xf16> -> tensor<8x1x16x2xf16>
func.func @neighbours(%x: tensor<8x256xf16>, %q: tensor<192x32xi32>, %s: tensor<192x8xf16>, %m: tensor<192x8xf16>, %cos: tensor<8x32xf32>, %sin: tensor<8x32xf32>) -> tensor<8x3x64xf16> {
  %w = greta.dequant %q, %s, %m {format = "q4_k", group = 32} : tensor<192x32xi32>, tensor<192x8xf16>, tensor<192x8xf16> -> tensor<192x256xf16>
  %0 = greta.matmul %x, %w {transpose_b, greta.config = {instruction = [8, 16, 16], tile = [8, 32, 128], slice = 64, waves = 2, stages = 0}} : tensor<8x256xf16>, tensor<192x256xf16> -> tensor<8x192xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [8, 3, 64] : tensor<8x192xf16> into tensor<8x3x64xf16>
  %2 = greta.rope %1, %cos, %sin {style = "gptj"} : tensor<8x3x64xf16>, tensor<8x32xf32>, tensor<8x32xf32> -> tensor<8x3x64xf16>
  return %2 : tensor<8x3x64xf16>
}
