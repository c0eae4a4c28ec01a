// RADV compiles cooperative matrices for RDNA3, by the layouts that the runtime probes on a virtual Radeon: v_wmma, no spills, nothing in scratch, and no workgroup that asks for more shared memory than
// the device has. A and B in both orders, a dynamic M, and an edge.
// REQUIRES: compiler, radv-null
// RUN: greta-translate --greta-to-package --targets=vulkan:rdna3 %s -o %t.greta
// RUN: %radeon navi31 greta-run %t.greta --inspect --device=vulkan | FileCheck %s --check-prefix=STATS --implicit-check-not='{{(Scratch size|Spilled .GPRs) [1-9]|not on this device}}'
// RUN: rm -rf %t.cache && env RADV_DEBUG=shaders,nocache %radeon navi31 env XDG_CACHE_HOME=%t.cache greta-run %t.greta --inspect --device=vulkan --variant=vulkan-rdna3-coopmat > %t.isa 2>&1 && FileCheck %s --check-prefix=ISA --implicit-check-not='{{scratch_(load|store)}}' < %t.isa

// STATS-LABEL: square(
// STATS: vulkan-rdna3-coopmat:
// STATS: driver, square_0: {{.*}}Scratch size 0, Spilled SGPRs 0, Spilled VGPRs 0
// STATS-LABEL: dynamic(
// STATS: vulkan-rdna3-coopmat:
// STATS: driver, dynamic_0: {{.*}}Scratch size 0, Spilled SGPRs 0, Spilled VGPRs 0
// STATS-LABEL: edge(
// STATS: vulkan-rdna3-coopmat:
// STATS: driver, edge_0: {{.*}}Scratch size 0, Spilled SGPRs 0, Spilled VGPRs 0
// ISA: v_wmma_f32_16x16x16_f16
func.func @square(%a: tensor<4096x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<4096x4096xf16>, tensor<4096x4096xf16> -> tensor<4096x4096xf16>
  return %0 : tensor<4096x4096xf16>
}
func.func @dynamic(%a: tensor<?x4096xf16>, %b: tensor<4096x4096xf16>, %r: tensor<?x4096xf16>) -> tensor<?x4096xf16> {
  %0 = greta.matmul %a, %b : tensor<?x4096xf16>, tensor<4096x4096xf16> -> tensor<?x4096xf16>
  %1 = arith.addf %0, %r : tensor<?x4096xf16>
  return %1 : tensor<?x4096xf16>
}
func.func @edge(%a: tensor<64x512xf16>, %b: tensor<512x129xf16>) -> tensor<64x129xf32> {
  %0 = greta.matmul %a, %b : tensor<64x512xf16>, tensor<512x129xf16> -> tensor<64x129xf32>
  return %0 : tensor<64x129xf32>
}
