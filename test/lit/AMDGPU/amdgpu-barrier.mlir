// A barrier waits for shared memory only: a load from global memory that stands before it is waited for where it is used.
// RUN: greta-tile-compile %s --target=gfx942 --emit=asm | FileCheck %s --check-prefixes=CHECK,GFX9
// RUN: sed -e 's/wave_size = 64/wave_size = 32/' %s > %t.mlir
// RUN: greta-tile-compile %t.mlir --target=gfx1100 --emit=asm | FileCheck %s --check-prefixes=CHECK,GFX11
// RUN: greta-tile-compile %t.mlir --target=gfx1201 --emit=asm | FileCheck %s --check-prefixes=CHECK,GFX12

// CHECK-LABEL: flight:
// CHECK: global_load
// CHECK-NOT: {{vmcnt|s_wait_loadcnt}}
// CHECK: ds_{{write|store}}_b32
// CHECK-NOT: {{vmcnt|s_wait_loadcnt}}
// GFX9: s_waitcnt lgkmcnt(0)
// GFX9-NEXT: s_barrier
// GFX11: s_waitcnt lgkmcnt(0)
// GFX11-NEXT: s_barrier
// GFX12: s_wait_dscnt 0x0
// GFX12-NEXT: s_barrier_signal -1
// GFX12-NOT: s_wait_loadcnt
// GFX12: s_barrier_wait -1
// CHECK-NOT: {{vmcnt|s_wait_loadcnt}}
// CHECK: ds_{{read|load}}_b32
// CHECK: {{vmcnt|s_wait_loadcnt}}
// CHECK: global_store
greta_tile.func @flight(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %array = greta_tile.shared_alloc : !greta_tile.shared<64 x i32>
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %c0 = arith.constant 0 : i32
  %c31 = arith.constant 31 : i32
  %v = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<f32> -> f32
  %first = arith.cmpi eq, %wave, %c0 : i32
  scf.if %first {
    greta_tile.shared_store %lane, %array[%lane] : !greta_tile.shared<64 x i32>
  }
  greta_tile.barrier
  %other = arith.subi %c31, %lane : i32
  %at = arith.andi %other, %c31 : i32
  %n = greta_tile.shared_load %array[%at] : !greta_tile.shared<64 x i32>
  %f = arith.sitofp %n : i32 to f32
  %s = arith.addf %v, %f : f32
  greta_tile.ptr_store %s, %y[%lane] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}
