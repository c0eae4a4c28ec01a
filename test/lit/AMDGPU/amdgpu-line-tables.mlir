// With --line-tables a code object says which lines of the source its instructions come from; its code is the same (on RDNA but for clauses). greta-sim takes
// them from there, for its timeline and for what it reports: here of a kernel whose waits for memory are taken out. Beside them are
// the arguments that the lines reach memory through, by place and by instruction.

// RUN: greta-translate --greta-to-hsaco --target=gfx942 %s -o %t.plain
// RUN: greta-translate --greta-to-hsaco --target=gfx942 --line-tables %s -o %t.lines
// RUN: llvm-objcopy -O binary --only-section=.text %t.plain %t.plain.text
// RUN: llvm-objcopy -O binary --only-section=.text %t.lines %t.lines.text
// RUN: cmp %t.plain.text %t.lines.text
// RUN: llvm-dwarfdump --debug-line %t.lines | FileCheck %s
// RUN: llvm-dwarfdump --debug-line %t.plain | FileCheck %s --check-prefix=PLAIN
// RUN: greta-sim %t.lines --grid=1 --block=256 --arg=zero:4096 --arg=zero:4096 --arg=i32:1 --estimate --timeline=%t.json
// RUN: FileCheck %s --check-prefix=TIMELINE < %t.json
// RUN: greta-translate --greta-to-llvmir --target=gfx942 --line-tables %s | FileCheck %s --check-prefix=ACCESSES
// RUN: greta-translate --greta-to-amdgcn --target=gfx942 --line-tables %s -o %t.s
// RUN: sed '/s_waitcnt vmcnt/d' %t.s | llvm-mc -triple=amdgcn-amd-amdhsa -mcpu=gfx942 -filetype=obj -o %t.o
// RUN: ld.lld -shared %t.o -o %t.wrong
// RUN: not greta-sim %t.wrong --grid=1 --block=256 --arg=zero:4096 --arg=zero:4096 --arg=i32:1 2>&1 | FileCheck %s --check-prefix=WAIT

// ACCESSES: @greta.accesses = protected addrspace(4) constant {{.*}}amdgpu-line-tables.mlir:{{[0-9]+}}:8 0\0A{{.*}}:3 1\0A
// ACCESSES: load float, {{.*}}!pcsections [[LOAD:![0-9]+]]
// ACCESSES: [[LOAD]] = !{!"greta_access_pcs", [[NUMBER:![0-9]+]]}
// ACCESSES: [[NUMBER]] = !{i32 -1879048192}

// CHECK: name: "{{.*}}amdgpu-line-tables.mlir"
// PLAIN-NOT: {{^0x[0-9a-f]+ +[0-9]}}

greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32} {
  %i = greta_tile.iota 0 : tensor<256xi32>
  %px = greta_tile.ptr_add %x, %i : !greta_tile.ptr<f32>, tensor<256xi32>
  // CHECK: {{^0x[0-9a-f]+ +}}[[#@LINE+2]]{{ +8 +1 }}
  // TIMELINE: amdgpu-line-tables.mlir:[[#@LINE+1]]"
  %v = greta_tile.load_scattered %px : tensor<256x!greta_tile.ptr<f32>> -> tensor<256xf32>
  // CHECK: {{^0x[0-9a-f]+ +}}[[#@LINE+4]]{{ +8 +1 }}
  // WAIT: amdgpu-line-tables.mlir:[[#@LINE+3]]:8: v{{[0-9]+}} is read before an s_waitcnt covers its vector memory load
  // WAIT-SAME: program (0,0,0), wave 0
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
