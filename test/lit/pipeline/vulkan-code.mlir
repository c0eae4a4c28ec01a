// These modules go to Vulkan drivers; RADV compiles them for RDNA3: row kernels move 16 bytes per lane and access, nothing spills, nothing
// lies in scratch. Every family's module is valid.
// REQUIRES: compiler
// RUN: greta-translate --greta-to-package --targets=vulkan %s -o %t.greta
// RUN: %if coopmat-lavapipe %{ greta-translate --greta-to-spirv --target=vulkan:nvidia %s -o %t.nvidia.spv && %spirv-val --target-env vulkan1.3 %t.nvidia.spv %}
// RUN: %if coopmat-lavapipe %{ greta-translate --greta-to-spirv --target=vulkan:wave64 %s -o %t.wave64.spv && %spirv-val --target-env vulkan1.3 %t.wave64.spv %}
// RUN: %if coopmat-lavapipe %{ greta-translate --greta-to-spirv --target=vulkan:lavapipe %s -o %t.lavapipe.spv && %spirv-val --target-env vulkan1.3 %t.lavapipe.spv %}
// RUN: %if coopmat-lavapipe %{ greta-translate --greta-to-spirv --target=vulkan:portable %s -o %t.portable.spv && %spirv-val --target-env vulkan1.3 %t.portable.spv %}
// RUN: %if coopmat-lavapipe %{ %root/scripts/vulkan-drivers tool spirv-dis %t.nvidia.spv | FileCheck %s --check-prefix=SPIRV --implicit-check-not='Aligned {{[1248]$}}' %}
// RUN: %if radv-null %{ %radv navi31 greta-run %t.greta --inspect --device=vulkan | FileCheck %s --check-prefix=STATS --implicit-check-not='{{(Scratch size|Spilled .GPRs) [1-9]}}' %}
// RUN: %if radv-null %{ rm -rf %t.cache && env RADV_DEBUG=shaders,nocache %radv navi31 env XDG_CACHE_HOME=%t.cache greta-run %t.greta --inspect --device=vulkan > %t.isa 2>&1 && FileCheck %s --check-prefix=ISA --implicit-check-not='{{(scratch|buffer)_(load|store)|global_(load|store)_(.8|.16|d16|b32|b64|b96)}}' < %t.isa %}

// SPIRV-DAG: OpExecutionMode %residual_norm_0 LocalSize
// SPIRV-DAG: OpExecutionMode %residual_norm_0 RoundingModeRTE 16
// SPIRV: OpLoad %v4uint {{.*}} Aligned 16
// SPIRV: OpGroupNonUniformShuffleXor
// SPIRV: OpStore {{.*}} Aligned 16

// STATS: vulkan-rdna3:
// STATS: driver, residual_norm_0: {{.*}}Scratch size 0, Spilled SGPRs 0, Spilled VGPRs 0

// ISA: global_load_b128 v[{{[0-9:]+}}], v{{[0-9]+}}, s[
// ISA: v_add_f32_dpp
// ISA: global_store_b128 v{{[0-9]+}}, v[{{[0-9:]+}}], s[
func.func @residual_norm(%x: tensor<?x4096xf16>, %r: tensor<?x4096xf16>, %w: tensor<4096xf16>)
    -> (tensor<?x4096xf16>, tensor<?x4096xf16>) {
  %sum = arith.addf %x, %r : tensor<?x4096xf16>
  %0 = greta.rms_norm %sum, %w {eps = 1.0e-5 : f32} : tensor<?x4096xf16>, tensor<4096xf16> -> tensor<?x4096xf16>
  return %sum, %0 : tensor<?x4096xf16>, tensor<?x4096xf16>
}
