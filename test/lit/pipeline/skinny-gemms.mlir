// Products with one row: 16-byte loads, one instruction per weight of f16 and a dot for two packed ones; nothing spills.
// RUN: greta-translate --greta-to-amdgcn --target=gfx942 --function=linear %s -o %t.linear
// RUN: FileCheck %s --check-prefix=LINEAR --input-file=%t.linear
// RUN: greta-translate --greta-to-amdgcn --target=gfx1100 --function=packed %s -o %t.packed
// RUN: FileCheck %s --check-prefix=PACKED --input-file=%t.packed

// Four K tiles an iteration, two columns and the one row.
// LINEAR-COUNT-12: global_load_dwordx4
// LINEAR-NOT: global_load
// LINEAR-COUNT-64: v_fma_mix_f32
// LINEAR-NOT: v_cvt_f32_f16
// LINEAR: .vgpr_spill_count: 0
func.func @linear(%x: tensor<1x4096xf16>, %w: tensor<14336x4096xf16>) -> tensor<1x14336xf16> {
  %0 = greta.matmul %x, %w {transpose_b} : tensor<1x4096xf16>, tensor<14336x4096xf16> -> tensor<1x14336xf16>
  return %0 : tensor<1x14336xf16>
}

// Two blocks of four words, two columns: a difference to the zero and a dot for every two weights.
// PACKED: global_load_b128
// PACKED-COUNT-64: v_pk_add_f16
// PACKED-NOT: v_pk_add_f16
// PACKED: .vgpr_spill_count: 0
func.func @packed(%x: tensor<1x4096xf16>, %q: tensor<57344x512xi32>, %scales: tensor<57344x32xf16>, %zeros: tensor<57344x4xi32>)
    -> tensor<1x57344xf16> {
  %w = greta.dequant %q, %scales, %zeros {group = 128}
      : tensor<57344x512xi32>, tensor<57344x32xf16>, tensor<57344x4xi32> -> tensor<57344x4096xf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<1x4096xf16>, tensor<57344x4096xf16> -> tensor<1x57344xf16>
  return %0 : tensor<1x57344xf16>
}
