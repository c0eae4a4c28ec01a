// With --line-tables a code object says which lines of the source its instructions come from; its code is the same. greta-sim takes
// them from there.

// RUN: greta-translate --greta-to-hsaco --target=gfx942 %s -o %t.plain
// RUN: greta-translate --greta-to-hsaco --target=gfx942 --line-tables %s -o %t.lines
// RUN: llvm-objcopy -O binary --only-section=.text %t.plain %t.plain.text
// RUN: llvm-objcopy -O binary --only-section=.text %t.lines %t.lines.text
// RUN: cmp %t.plain.text %t.lines.text
// RUN: llvm-dwarfdump --debug-line %t.lines | FileCheck %s
// RUN: llvm-dwarfdump --debug-line %t.plain | FileCheck %s --check-prefix=PLAIN
// RUN: greta-sim %t.lines --grid=1 --block=256 --arg=zero:4096 --arg=zero:4096 --arg=i32:1 --estimate --timeline=%t.json
// RUN: FileCheck %s --check-prefix=TIMELINE < %t.json

// CHECK: name: "{{.*}}amdgpu-line-tables.mlir"
// PLAIN-NOT: {{^0x[0-9a-f]+ +[0-9]}}

greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32} {
  %i = greta_tile.iota 0 : tensor<256xi32>
  %px = greta_tile.ptr_add %x, %i : !greta_tile.ptr<f32>, tensor<256xi32>
  // CHECK: {{^0x[0-9a-f]+ +}}[[#@LINE+2]]{{ +8 +1 }}
  // TIMELINE: amdgpu-line-tables.mlir:[[#@LINE+1]]"
  %v = greta_tile.load_scattered %px : tensor<256x!greta_tile.ptr<f32>> -> tensor<256xf32>
  // CHECK: {{^0x[0-9a-f]+ +}}[[#@LINE+2]]{{ +8 +1 }}
  // TIMELINE: amdgpu-line-tables.mlir:[[#@LINE+1]]"
  %w = math.exp %v : tensor<256xf32>
  %py = greta_tile.ptr_add %y, %i : !greta_tile.ptr<f32>, tensor<256xi32>
  greta_tile.store_scattered %w, %py : tensor<256xf32> -> tensor<256x!greta_tile.ptr<f32>>
  greta_tile.return
}
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = greta_tile.launch @k grid affine_map<()[m] -> (1)> scalars affine_map<()[m] -> (m)> (%x) tied [-1] shapes [affine_map<()[m] -> (m)>] : (tensor<?xf32>) -> (tensor<?xf32>)
  return %y : tensor<?xf32>
}
