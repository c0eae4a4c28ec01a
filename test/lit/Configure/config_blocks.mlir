// `greta.config` and the tuning database for GEMMs without matrix instructions.
// RUN: split-file %s %t
// RUN: greta-opt --greta-fuse --greta-configure='target=gfx1100 tuning=%t/db.json' %t/blocks.mlir | FileCheck %s
// RUN: greta-opt --greta-fuse --greta-configure='target=vulkan:nvidia matrix=false' %t/tiles.mlir | FileCheck %s --check-prefix=OTHER
// RUN: greta-opt --split-input-file --verify-diagnostics --greta-fuse --greta-configure=target=gfx1100 %t/invalid.mlir

//--- db.json
{"schema": 1, "entries": [
  {"target": "gfx1100", "device": "x", "op": "matmul f32 nt -> f32", "shape": [64, 64, 64], "config": {"tile": [16, 32, 4], "waves": 4}},
  {"target": "gfx1100", "device": "x", "op": "matmul f16 nn -> f16", "shape": [2, 64, 64], "config": {"tile": [2, 64, 8], "waves": 2, "run": 1, "unroll": 4}}]}

//--- blocks.mlir
// CHECK-LABEL: func @few_rows
// CHECK: block_size = 128, spaces = [{columns = 4, depth = 256, rows = [1], run = 4, unroll = 2}]
func.func @few_rows(%a: tensor<1x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<1x4096xf16> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {tile = [1, 4, 256], waves = 4, run = 4, unroll = 2}} : tensor<1x4096xf16>, tensor<4096x4096xf16> -> tensor<1x4096xf16>
  return %0 : tensor<1x4096xf16>
}

// Parts are whole blocks: 3 asked for, 2 made.
// CHECK-LABEL: func @parts
// CHECK: columns = 4, depth = 256
// CHECK: split = 2
func.func @parts(%a: tensor<1x4096xf16>, %b: tensor<64x4096xf16>) -> tensor<1x64xf16> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {tile = [1, 4, 256], waves = 4, run = 8, unroll = 1, split = 3}} : tensor<1x4096xf16>, tensor<64x4096xf16> -> tensor<1x64xf16>
  return %0 : tensor<1x64xf16>
}

// The model chooses everything that the configuration leaves open.
// CHECK-LABEL: func @multiply_adds
// CHECK: block_size = 64, spaces = [{columns = 64, depth = 16, rows = [64]}]
func.func @multiply_adds(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %0 = greta.matmul %a, %b {greta.config = {waves = 2, split = 1}} : tensor<512x512xf32>, tensor<512x512xf32> -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
}

// CHECK-LABEL: func @measured
// CHECK: block_size = 128, spaces = [{columns = 32, depth = 4, rows = [16]}]
// CHECK: block_size = 64, spaces = [{columns = 64, depth = 8, rows = [2], run = 1, unroll = 4}]
func.func @measured(%a: tensor<60x64xf32>, %b: tensor<64x64xf32>, %c: tensor<2x64xf16>, %d: tensor<64x64xf16>) -> (tensor<60x64xf32>, tensor<2x64xf16>) {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<60x64xf32>, tensor<64x64xf32> -> tensor<60x64xf32>
  %1 = greta.matmul %c, %d : tensor<2x64xf16>, tensor<64x64xf16> -> tensor<2x64xf16>
  return %0, %1 : tensor<60x64xf32>, tensor<2x64xf16>
}

//--- tiles.mlir
// A family's variant without matrix instructions: what is said of the other one's tile is not for it.
// OTHER: spaces = [{columns = 64, depth = 16, rows = [64], split = 2}]
func.func @tile(%a: tensor<512x512xf16>, %b: tensor<512x512xf16>) -> tensor<512x512xf16> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {tile = [160, 160, 64], instruction = [16, 8, 16]}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf16>
  return %0 : tensor<512x512xf16>
}

//--- invalid.mlir
func.func @parts_of_tiles(%a: tensor<1x64xf16>, %b: tensor<64x64xf16>) -> tensor<1x64xf16> {
  // expected-error @+1 {{has a 'greta.config' with 'stages', which a skinny GEMM cannot have; there are 'tile', 'run', 'split', 'unroll', 'waves'}}
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {stages = 2}} : tensor<1x64xf16>, tensor<64x64xf16> -> tensor<1x64xf16>
  return %0 : tensor<1x64xf16>
}

// -----

func.func @other_rows(%a: tensor<2x64xf16>, %b: tensor<64x64xf16>) -> tensor<2x64xf16> {
  // expected-error @+1 {{has a 'greta.config' that does not fit: its tile does not have the GEMM's 2 rows}}
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {tile = [4, 16, 64]}} : tensor<2x64xf16>, tensor<64x64xf16> -> tensor<2x64xf16>
  return %0 : tensor<2x64xf16>
}

// -----

func.func @run(%a: tensor<2x60xf16>, %b: tensor<64x60xf16>) -> tensor<2x64xf16> {
  // expected-error @+1 {{that does not fit: its 'run' does not divide its depth and the GEMM's}}
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {run = 8}} : tensor<2x60xf16>, tensor<64x60xf16> -> tensor<2x64xf16>
  return %0 : tensor<2x64xf16>
}

// -----

func.func @odd(%a: tensor<2x60xf16>, %b: tensor<64x60xf16>) -> tensor<2x64xf16> {
  // expected-error @+1 {{that does not fit: its tile, 'run' and 'unroll' are no powers of two}}
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {tile = [2, 24, 64]}} : tensor<2x60xf16>, tensor<64x60xf16> -> tensor<2x64xf16>
  return %0 : tensor<2x64xf16>
}

// -----

func.func @idle(%a: tensor<1x64xf16>, %b: tensor<64x64xf16>) -> tensor<1x64xf16> {
  // expected-error @+1 {{that does not fit: its tile has less than a 'run' for each lane}}
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {tile = [1, 1, 64], run = 8, waves = 4}} : tensor<1x64xf16>, tensor<64x64xf16> -> tensor<1x64xf16>
  return %0 : tensor<1x64xf16>
}

// -----

func.func @deep(%a: tensor<1x64xf16>, %b: tensor<64x64xf16>) -> tensor<1x64xf16> {
  // expected-error @+1 {{that does not fit: its tile is deeper than the GEMM}}
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {tile = [1, 16, 128]}} : tensor<1x64xf16>, tensor<64x64xf16> -> tensor<1x64xf16>
  return %0 : tensor<1x64xf16>
}

// -----

func.func @registers(%a: tensor<16x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<16x4096xf16> {
  // expected-error @+1 {{that does not fit: it needs too many registers for what it loads at a time}}
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {tile = [16, 256, 256], run = 8, waves = 8}} : tensor<16x4096xf16>, tensor<4096x4096xf16> -> tensor<16x4096xf16>
  return %0 : tensor<16x4096xf16>
}

// -----

func.func @many_sums(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>) -> tensor<512x512xf32> {
  // expected-error @+1 {{that does not fit: it has 256 sums a lane, which are from 1 to 64}}
  %0 = greta.matmul %a, %b {greta.config = {tile = [128, 128, 16], waves = 2}} : tensor<512x512xf32>, tensor<512x512xf32> -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
}

// -----

func.func @no_run(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>) -> tensor<512x512xf32> {
  // expected-error @+1 {{with 'run', which a GEMM without matrix instructions cannot have; there are 'tile', 'split', 'waves'}}
  %0 = greta.matmul %a, %b {greta.config = {run = 2}} : tensor<512x512xf32>, tensor<512x512xf32> -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
}

// -----

func.func @uneven(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>) -> tensor<512x512xf32> {
  // expected-error @+1 {{that does not fit: its tile is not made of powers of two}}
  %0 = greta.matmul %a, %b {greta.config = {tile = [48, 64, 16]}} : tensor<512x512xf32>, tensor<512x512xf32> -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
}

// -----

func.func @parts_of_any_depth(%a: tensor<64x?xf32>, %b: tensor<?x64xf32>) -> tensor<64x64xf32> {
  // expected-error @+1 {{that does not fit: its 'split' needs K in the type}}
  %0 = greta.matmul %a, %b {greta.config = {split = 2}} : tensor<64x?xf32>, tensor<?x64xf32> -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
