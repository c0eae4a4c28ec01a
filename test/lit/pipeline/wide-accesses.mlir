// The row kernels move 16 bytes per lane and access, in AMD code and in SPIR-V, and every module is valid.
// REQUIRES: compiler
// RUN: greta-translate --greta-to-amdgcn --target=gfx90a %s | FileCheck %s --check-prefix=GFX9
// RUN: greta-translate --greta-to-amdgcn --target=gfx942 %s | FileCheck %s --check-prefix=GFX9
// RUN: greta-translate --greta-to-amdgcn --target=gfx950 %s | FileCheck %s --check-prefix=GFX9
// RUN: greta-translate --greta-to-amdgcn --target=gfx1100 %s | FileCheck %s --check-prefix=GFX11
// RUN: greta-translate --greta-to-amdgcn --target=gfx1151 %s | FileCheck %s --check-prefix=GFX11
// RUN: greta-translate --greta-to-amdgcn --target=gfx1201 %s | FileCheck %s --check-prefix=GFX11

// GFX9-LABEL: residual_norm
// GFX9-NOT: global_load_{{(ushort|short|dword |dwordx2)}}
// GFX9: global_load_dwordx4
// GFX9: global_load_dwordx4
// GFX9-NOT: global_store_{{(short|dword |dwordx2)}}
// GFX9: global_store_dwordx4
// GFX9: .private_segment_fixed_size: 0
// GFX9: .sgpr_spill_count: 0
// GFX9: .vgpr_spill_count: 0

// GFX11-LABEL: residual_norm
// GFX11-NOT: global_load_{{(u16|d16|b32|b64)}}
// GFX11: global_load_b128
// GFX11: global_load_b128
// GFX11-NOT: global_store_{{(b16|b32|b64)}}
// GFX11: global_store_b128
// GFX11: .private_segment_fixed_size: 0
// GFX11: .sgpr_spill_count: 0
// GFX11: .vgpr_spill_count: 0
func.func @residual_norm(%x: tensor<?x4096xf16>, %r: tensor<?x4096xf16>, %w: tensor<4096xf16>)
    -> (tensor<?x4096xf16>, tensor<?x4096xf16>) {
  %sum = arith.addf %x, %r : tensor<?x4096xf16>
  %0 = greta.rms_norm %sum, %w {eps = 1.0e-5 : f32} : tensor<?x4096xf16>, tensor<4096xf16> -> tensor<?x4096xf16>
  return %sum, %0 : tensor<?x4096xf16>, tensor<?x4096xf16>
}
