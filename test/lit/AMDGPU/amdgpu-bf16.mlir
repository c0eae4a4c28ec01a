// Conversion to bf16: two at once by an instruction where there is one, else rounding to nearest even in integers; never a call.
// RUN: greta-tile-compile %s --target=gfx950 --emit=asm | FileCheck %s --check-prefix=NATIVE
// RUN: greta-tile-compile %s --target=gfx942 --emit=asm | FileCheck %s --check-prefixes=EXPANDED
// RUN: sed -e 's/wave_size = 64/wave_size = 32/' %s > %t.mlir
// RUN: greta-tile-compile %t.mlir --target=gfx1100 --emit=asm | FileCheck %s --check-prefixes=EXPANDED
// RUN: greta-tile-compile %t.mlir --target=gfx1201 --emit=asm | FileCheck %s --check-prefixes=EXPANDED

// NATIVE-LABEL: round:
// NATIVE-NOT: v_add3_u32
// NATIVE: v_cvt_pk_bf16_f32
// NATIVE-NOT: v_add3_u32
// NATIVE: s_endpgm
// EXPANDED-LABEL: round:
// EXPANDED: v_add3_u32 v{{[0-9]+}}, v{{[0-9]+}}, v{{[0-9]+}}, {{s[0-9]+|0x7fff}}
// EXPANDED-NOT: {{s_swappc|s_getpc}}
// EXPANDED: s_endpgm
greta_tile.func @round(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<bf16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %c2 = arith.constant 2 : i32
  %at = arith.muli %lane, %c2 : i32
  %v = greta_tile.ptr_load %x[%at] align 8 : !greta_tile.ptr<f32> -> vector<2xf32>
  %w = arith.truncf %v : vector<2xf32> to vector<2xbf16>
  greta_tile.ptr_store %w, %y[%at] align 4 : vector<2xbf16> -> !greta_tile.ptr<bf16>
  greta_tile.return
}
