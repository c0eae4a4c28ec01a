// The choice for GEMMs.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 %s | FileCheck %s --check-prefix=GFX942
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx1201 %s | FileCheck %s --check-prefix=GFX1201
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=vulkan:nvidia %s | FileCheck %s --check-prefix=NVIDIA
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=vulkan:lavapipe %s | FileCheck %s --check-prefix=LAVAPIPE
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=vulkan:portable %s | FileCheck %s --check-prefix=PORTABLE
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure='target=gfx942 matrix=false' %s | FileCheck %s --check-prefix=NONE

// A matrix instruction where the target has one, with its layouts, transposed where that makes a lane's registers neighbours in a row; two
// stages where shared memory is what a compute unit has for itself, one on Vulkan. Otherwise sixteen accumulators per lane.
// GFX942: schedule = #greta.schedule<block_size = {{256|512}}, spaces = [{chiplets = 8, columns = {{128|160|192|208|224|256}}, depth = {{32|64}}, group = 8, matrix = #greta_tile.matrix<"mfma.f32.32x32x8f16" swapped = true, a = <{reg = {{\[\[}}0, 1], [0, 2]], lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [], rep = [1, 1]}>, b = <{reg = {{\[\[}}1, 0], [2, 0]], lane = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [4, 0]], wave = [], rep = [1, 1]}>, acc = <{reg = {{\[\[}}0, 1], [0, 2], [0, 8], [0, 16]], lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], wave = [], rep = [1, 1]}>>, pipeline = #greta_tile.pipeline<stages = 2, slice = {{8|16|32}}>, rows = [{{128|160|192|208|224|256}}]}], wave_size = 64>
// GFX1201: matrix = #greta_tile.matrix<"wmma.f32.16x16x16.f16" swapped = true, {{.*}} pipeline = #greta_tile.pipeline<stages = 2,
// NVIDIA: group = {{[0-9]+}}, matrix = #greta_tile.matrix<"coopmat", {{.*}} pipeline = #greta_tile.pipeline<stages = 1, slice = 16>, rows = [{{128|160|192}}]}], wave_size = 32>
// LAVAPIPE: schedule = #greta.schedule<block_size = 8, grid_limit = 65535, spaces = [{columns = 16, depth = 16, group = {{[0-9]+}}, matrix = #greta_tile.matrix<"coopmat", {{.*}} pipeline = #greta_tile.pipeline<stages = 1, slice = 8>, rows = [16]}], wave_size = 8>
// PORTABLE: schedule = #greta.schedule<block_size = 64, grid_limit = 65535, spaces = [{columns = 32, depth = 16, rows = [32]}], wave_size = 1>
// NONE: schedule = #greta.schedule<block_size = 256, spaces = [{columns = 64, depth = 16, rows = [64]}], wave_size = 64>
func.func @dynamic(%a: tensor<?x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<?x4096xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<?x4096xf16>, tensor<4096x4096xf16> -> tensor<?x4096xf16>
  return %0 : tensor<?x4096xf16>
}

// -----

// Skinny GEMMs, and a depth below the usual block's.
// GFX942: schedule = #greta.schedule<block_size = 64, spaces = [{chiplets = 8, columns = 16, depth = 4, group = 8, matrix = #greta_tile.matrix<"mfma.f32.16x16x4f32" {{.*}} rows = [16]}], wave_size = 64>
// GFX1201: schedule = #greta.schedule<block_size = 64, spaces = [{columns = 64, depth = 4, rows = [16]}], wave_size = 32>
// PORTABLE: spaces = [{columns = 32, depth = 4, rows = [16]}]
func.func @few(%a: tensor<5x4xf32>, %b: tensor<4x100xf32>) -> tensor<5x100xf32> {
  %0 = greta.matmul %a, %b : tensor<5x4xf32>, tensor<4x100xf32> -> tensor<5x100xf32>
  return %0 : tensor<5x100xf32>
}
