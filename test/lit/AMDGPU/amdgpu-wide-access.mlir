// A row of f16 is loaded and stored 16 bytes a lane: a scalar base, one vector register for the lane's offset (the saddr form), and the
// constant part of the offset in the instruction where it has room for it.
// RUN: greta-tile-compile %s --target=gfx90a --emit=asm | FileCheck %s --check-prefixes=CHECK,GFX9
// RUN: greta-tile-compile %s --target=gfx942 --emit=asm | FileCheck %s --check-prefixes=CHECK,GFX9
// RUN: greta-tile-compile %s --target=gfx950 --emit=asm | FileCheck %s --check-prefixes=CHECK,GFX9
// RUN: sed -e 's/wave_size = 64/wave_size = 32/' %s > %t.mlir
// RUN: greta-tile-compile %t.mlir --target=gfx1100 --emit=asm | FileCheck %s --check-prefixes=CHECK,RDNA
// RUN: greta-tile-compile %t.mlir --target=gfx1201 --emit=asm | FileCheck %s --check-prefixes=CHECK,RDNA

// CHECK-LABEL: copy:
// CHECK-NOT: {{global|flat|buffer}}_
// GFX9: global_load_dwordx4 v[{{[0-9:]+}}], [[OFFSET:v[0-9]+]], s[{{[0-9:]+}}]{{$}}
// GFX9-NOT: {{global|flat|buffer}}_
// GFX9: global_load_dwordx4 v[{{[0-9:]+}}], [[OFFSET]], s[{{[0-9:]+}}] offset:1024
// RDNA: global_load_b128 v[{{[0-9:]+}}], [[OFFSET:v[0-9]+]], s[{{[0-9:]+}}]{{$}}
// RDNA: global_load_b128 v[{{[0-9:]+}}], [[OFFSET]], s[{{[0-9:]+}}] offset:1024
// CHECK-NOT: {{global|flat|buffer}}_
// GFX9: global_store_dwordx4 [[OFFSET]], v[{{[0-9:]+}}], s[{{[0-9:]+}}]{{$}}
// GFX9-NOT: {{global|flat|buffer}}_
// GFX9: global_store_dwordx4 [[OFFSET]], v[{{[0-9:]+}}], s[{{[0-9:]+}}] offset:1024
// RDNA: global_store_b128 [[OFFSET]], v[{{[0-9:]+}}], s[{{[0-9:]+}}]{{$}}
// RDNA: global_store_b128 [[OFFSET]], v[{{[0-9:]+}}], s[{{[0-9:]+}}] offset:1024
// CHECK-NOT: {{global|flat|buffer}}_
// CHECK: s_endpgm
greta_tile.func @copy(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>, %n: i32)
    attributes {wave_size = 64 : i32, waves = 4 : i32} {
  %row = greta_tile.program_id 0
  %row64 = arith.extsi %row : i32 to i64
  %stride = arith.constant 8192 : i64
  %start = arith.muli %row64, %stride : i64
  %xrow = greta_tile.ptr_add %x, %start : !greta_tile.ptr<f16>, i64
  %yrow = greta_tile.ptr_add %y, %start : !greta_tile.ptr<f16>, i64
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %c8 = arith.constant 8 : i32
  %c512 = arith.constant 512 : i32
  %c1024 = arith.constant 1024 : i32
  %l8 = arith.muli %lane, %c8 : i32
  %w1024 = arith.muli %wave, %c1024 : i32
  %at = arith.addi %l8, %w1024 : i32
  %next = arith.addi %at, %c512 : i32
  %a = greta_tile.ptr_load %xrow[%at] align 16 : !greta_tile.ptr<f16> -> vector<8xf16>
  %b = greta_tile.ptr_load %xrow[%next] align 16 : !greta_tile.ptr<f16> -> vector<8xf16>
  %a2 = arith.addf %a, %a : vector<8xf16>
  %b2 = arith.addf %b, %b : vector<8xf16>
  greta_tile.ptr_store %a2, %yrow[%at] align 16 : vector<8xf16> -> !greta_tile.ptr<f16>
  greta_tile.ptr_store %b2, %yrow[%next] align 16 : vector<8xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}
