// The tuning database: what it has for a GEMM, before the model and behind greta.config.
// RUN: split-file %s %t
// RUN: greta-opt --greta-fuse --greta-configure='target=gfx942 tuning=%t/good.json' %t/products.mlir | FileCheck %s
// RUN: greta-opt --greta-fuse --greta-configure='target=gfx950 tuning=%t/good.json' %t/products.mlir | FileCheck %s --check-prefix=OTHER
// RUN: greta-opt --greta-fuse --greta-configure='target=vulkan:nvidia tuning=%t/good.json' %t/few.mlir | FileCheck %s --check-prefix=FEW
// RUN: greta-opt --greta-fuse --greta-configure='target=vulkan:nvidia matrix=false tuning=%t/good.json' %t/few.mlir | FileCheck %s --check-prefix=SIMT
// RUN: greta-opt --verify-diagnostics --greta-fuse --greta-configure='target=gfx942 tuning=%t/misfits.json' %t/misfits.mlir | FileCheck %s --check-prefix=MISFIT

//--- good.json
{"schema": 1, "entries": [
  {"target": "gfx942", "device": "estimate", "op": "matmul f16 nt -> f16", "shape": [512, 512, 512],
   "config": {"tile": [96, 96, 96], "waves": 1}},
  {"target": "gfx942", "device": "estimate", "op": "matmul f16 nt -> f16", "shape": [500, 512, 512],
   "config": {"tile": [32, 64, 64], "instruction": [16, 16, 16], "waves": 2}},
  {"target": "gfx942", "device": "AMD Instinct MI300X", "op": "matmul f16 nt -> f16", "shape": [512, 512, 512],
   "config": {"tile": [64, 32, 64], "instruction": [16, 16, 16], "waves": 2, "stages": 1, "slice": 32, "group": 3},
   "candidates": [{"config": {"waves": 1}, "us": 3.5}, {"config": {}, "rejected": "wrong"}]},
  {"target": "gfx942", "device": "estimate", "op": "matmul bf16 tn -> f32 with elementwise", "shape": ["?", 64, 512],
   "config": {"tile": [48, 16, 32], "instruction": [16, 16, 16], "waves": 1}},
  {"target": "gfx942", "device": "estimate", "op": "grouped matmul f16 nt -> f16", "shape": [4, 512, 512, 512],
   "config": {"tile": [64, 32, 64], "instruction": [16, 16, 16], "waves": 2, "group": 5}},
  {"target": "gfx942", "device": "AMD Instinct MI300A", "compute_units": 228, "op": "matmul f16 nt -> f16", "shape": [1024, 1024, 1024],
   "config": {"tile": [64, 32, 64], "instruction": [16, 16, 16], "waves": 2, "group": 7}},
  {"target": "gfx942", "device": "AMD Instinct MI300X", "compute_units": 304, "op": "matmul f16 nt -> f16", "shape": [1000, 1024, 1024],
   "config": {"tile": [64, 32, 64], "instruction": [16, 16, 16], "waves": 2, "group": 6}},
  {"target": "vulkan:nvidia", "device": "estimate", "op": "matmul f16 nt -> f16", "shape": [8, 512, 512],
   "config": {"tile": [16, 32, 256], "instruction": [16, 8, 16], "slice": 64, "stages": 0, "waves": 4}}]}

//--- products.mlir
// Measured before estimated.
// CHECK-LABEL: func @own_shape
// CHECK: block_size = 128, {{.*}}columns = 32, depth = 64, group = 3, {{.*}} pipeline = #greta_tile.pipeline<stages = 1, slice = 32>, rows = [64]
// OTHER-LABEL: func @own_shape
// OTHER-NOT: group = 3
func.func @own_shape(%a: tensor<512x512xf16>, %b: tensor<512x512xf16>) -> tensor<512x512xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf16>
  return %0 : tensor<512x512xf16>
}

// The shape itself before a measured one of the bucket.
// CHECK-LABEL: func @estimated_shape
// CHECK: columns = 64, depth = 64, {{.*}} rows = [32]
func.func @estimated_shape(%a: tensor<500x512xf16>, %b: tensor<512x512xf16>) -> tensor<500x512xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<500x512xf16>, tensor<512x512xf16> -> tensor<500x512xf16>
  return %0 : tensor<500x512xf16>
}

// CHECK-LABEL: func @bucket
// CHECK: group = 3
func.func @bucket(%a: tensor<300x260xf16>, %b: tensor<511x260xf16>) -> tensor<300x511xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<300x260xf16>, tensor<511x260xf16> -> tensor<300x511xf16>
  return %0 : tensor<300x511xf16>
}

// An entry of a device with as many compute units as the row comes before one
// of another device of the chip, which tells no more than the model does.
// CHECK-LABEL: func @other_units
// CHECK: group = 6
func.func @other_units(%a: tensor<900x1024xf16>, %b: tensor<1024x1024xf16>) -> tensor<900x1024xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<900x1024xf16>, tensor<1024x1024xf16> -> tensor<900x1024xf16>
  return %0 : tensor<900x1024xf16>
}

// CHECK-LABEL: func @own_shape_of_other_units
// CHECK: group = 7
func.func @own_shape_of_other_units(%a: tensor<1024x1024xf16>, %b: tensor<1024x1024xf16>) -> tensor<1024x1024xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1024x1024xf16>, tensor<1024x1024xf16> -> tensor<1024x1024xf16>
  return %0 : tensor<1024x1024xf16>
}

// CHECK-LABEL: func @other_bucket
// CHECK-NOT: group = 3
func.func @other_bucket(%a: tensor<512x256xf16>, %b: tensor<512x256xf16>) -> tensor<512x512xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<512x256xf16>, tensor<512x256xf16> -> tensor<512x512xf16>
  return %0 : tensor<512x512xf16>
}

// Another op.
// CHECK-LABEL: func @other_layout
// CHECK-NOT: group = 3
func.func @other_layout(%a: tensor<512x512xf16>, %b: tensor<512x512xf16>) -> tensor<512x512xf16> {
  %0 = greta.matmul %a, %b : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf16>
  return %0 : tensor<512x512xf16>
}

// A grouped GEMM's shape has its groups, as many and as few rows of each are another tile.
// CHECK-LABEL: func @groups
// CHECK: group = 5
func.func @groups(%a: tensor<512x512xf16>, %b: tensor<4x512x512xf16>, %o: tensor<5xi32>) -> tensor<512x512xf16> {
  %0 = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<512x512xf16>, tensor<4x512x512xf16>, tensor<5xi32> -> tensor<512x512xf16>
  return %0 : tensor<512x512xf16>
}

// CHECK-LABEL: func @more_groups
// CHECK-NOT: group = 5
func.func @more_groups(%a: tensor<512x512xf16>, %b: tensor<128x512x512xf16>, %o: tensor<129xi32>) -> tensor<512x512xf16> {
  %0 = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<512x512xf16>, tensor<128x512x512xf16>, tensor<129xi32> -> tensor<512x512xf16>
  return %0 : tensor<512x512xf16>
}

// CHECK-LABEL: func @dynamic
// CHECK: columns = 16, depth = 32, {{.*}} rows = [48]
func.func @dynamic(%a: tensor<512x?xbf16>, %b: tensor<512x64xbf16>) -> tensor<?x64xf32> {
  %0 = greta.matmul %a, %b {transpose_a} : tensor<512x?xbf16>, tensor<512x64xbf16> -> tensor<?x64xf32>
  %1 = math.exp %0 : tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}

// The source's configuration comes first, and alone counts.
// CHECK-LABEL: func @source
// CHECK: group = 5
func.func @source(%a: tensor<512x512xf16>, %b: tensor<512x512xf16>) -> tensor<512x512xf16> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {group = 5}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf16>
  return %0 : tensor<512x512xf16>
}

// .. for this target.
// CHECK-LABEL: func @source_for_another
// CHECK: group = 3
// OTHER-LABEL: func @source_for_another
// OTHER: group = 5
func.func @source_for_another(%a: tensor<512x512xf16>, %b: tensor<512x512xf16>) -> tensor<512x512xf16> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {gfx950 = {group = 5}}} : tensor<512x512xf16>, tensor<512x512xf16> -> tensor<512x512xf16>
  return %0 : tensor<512x512xf16>
}

//--- few.mlir
// An entry with an instruction is not for the variant without matrix instructions, which keeps the skinny schedule.
// FEW-LABEL: func @few
// FEW: columns = 32, depth = 256, {{.*}}rows = [16]
// SIMT-LABEL: func @few
// SIMT: rows = [8]
func.func @few(%a: tensor<8x512xf16>, %b: tensor<512x512xf16>) -> tensor<8x512xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<8x512xf16>, tensor<512x512xf16> -> tensor<8x512xf16>
  return %0 : tensor<8x512xf16>
}

//--- misfits.json
{"schema": 1, "entries": [
  {"target": "gfx942", "device": "x", "op": "matmul f16 nn -> f16", "shape": [64, 64, 64], "config": {"tile": [64, 64, 64], "waves": 64}},
  {"target": "gfx942", "device": "x", "op": "matmul f16 nt -> f16", "shape": [64, 64, 64], "config": {"tiles": [64, 64, 64]}},
  {"target": "gfx942", "device": "x", "op": "matmul f16 tn -> f16", "shape": [64, 64, 64], "config": {"instruction": [16, 16, 99]}}]}

//--- misfits.mlir
// MISFIT-COUNT-3: #greta_tile.matrix<
func.func @waves(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-remark-re @+1 {{the tuning database has a configuration for gfx942 that does not fit: {{.+}}; the model's choice is taken}}
  %0 = greta.matmul %a, %b : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

func.func @unknown(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-remark @+1 {{the tuning database has a configuration for gfx942 with 'tiles', which a GEMM on matrix units cannot have; there are 'tile', 'group'}}
  %0 = greta.matmul %a, %b {transpose_b} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

func.func @instruction(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-remark @+1 {{the tuning database has a configuration for gfx942 whose 'instruction' the target does not have for these operands}}
  %0 = greta.matmul %a, %b {transpose_a} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}
