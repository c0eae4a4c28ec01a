// `greta.config` of a GEMM.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 %s | FileCheck %s

// The source overrides the model. It leaves the slice open, which follows the tile; the model chooses the rest.
// CHECK: schedule = #greta.schedule<block_size = 128, spaces = [{chiplets = 8, columns = 96, depth = 64, group = 3, matrix = #greta_tile.matrix<"mfma.f32.16x16x16f16" {{.*}} pipeline = #greta_tile.pipeline<stages = 1, slice = 32>, rows = [160]}], wave_size = 64>
func.func @override(%a: tensor<512x512xf16>, %b: tensor<512x512xf16>) -> tensor<512x512xf16> {
  %0 = greta.matmul %a, %b {greta.config = {tile = [160, 96, 64], waves = 2, stages = 1, slice = 32, group = 3, instruction = [16, 16, 16]}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf16>
  return %0 : tensor<512x512xf16>
}

// -----

// CHECK: schedule = #greta.schedule<block_size = 256, {{.*}}columns = 64, depth = 64, {{.*}} pipeline = #greta_tile.pipeline<stages = 2, slice = 64>, rows = [64]}]
func.func @tile_and_waves(%a: tensor<4096x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %0 = greta.matmul %a, %b {greta.config = {tile = [64, 64, 64], waves = 4}} : tensor<4096x4096xf16>, tensor<4096x4096xf16> -> tensor<4096x4096xf16>
  return %0 : tensor<4096x4096xf16>
}

// -----

// For one target, by any of its names, in place of what is for all.
// CHECK: schedule = #greta.schedule<block_size = 256, {{.*}}columns = 32, depth = 64, group = 7, {{.*}} rows = [32]}]
func.func @by_target(%a: tensor<512x512xf16>, %b: tensor<512x512xf16>) -> tensor<512x512xf16> {
  %0 = greta.matmul %a, %b {greta.config = {tile = [64, 64, 64], waves = 4, group = 7, instruction = [16, 16, 16], mi300x = {tile = [32, 32, 64]}, gfx950 = {waves = 2}}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf16>
  return %0 : tensor<512x512xf16>
}

// -----

// Straight to shared memory, as wide as target and rows allow: 4 bytes on gfx942.
// CHECK: pipeline = #greta_tile.pipeline<stages = 3, slice = 16, direct = 4>
func.func @direct(%a: tensor<512x512xf16>, %b: tensor<512x512xf16>) -> tensor<512x512xf16> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {tile = [64, 64, 32], waves = 4, stages = 3, slice = 16, direct}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf16>
  return %0 : tensor<512x512xf16>
}
