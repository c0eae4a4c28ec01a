// Fused ops pass the canonicalisation that block programs do: a GEMM whose K is
// one tile has no loop on AMD, and no shared memory for A. Drivers that load
// matrices whole take them from there, loop or not.
// RUN: greta-opt --greta-to-lanes=target=gfx942 %s | FileCheck %s --implicit-check-not=scf.for --implicit-check-not=greta_tile.barrier
// RUN: greta-opt --greta-to-lanes=target=vulkan:nvidia %s | FileCheck %s --check-prefix=WHOLE

// CHECK-LABEL: greta_tile.func @product_0
// CHECK: greta_tile.mma "mfma
// WHOLE-LABEL: greta_tile.func @product_0
// WHOLE: greta_tile.fragment_load {{.*}}, a>
// WHOLE: greta_tile.mma "coopmat
func.func @product(%a: tensor<256x32xf16>, %b: tensor<128x32xf16>) -> tensor<256x128xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<256x32xf16>, tensor<128x32xf16> -> tensor<256x128xf16>
  return %0 : tensor<256x128xf16>
}
