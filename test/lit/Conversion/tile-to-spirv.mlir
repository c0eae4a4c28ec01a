// RUN: greta-opt %s -greta-tile-to-spirv | FileCheck %s
// REQUIRES: compiler

// CHECK-LABEL: spirv.module @empty PhysicalStorageBuffer64 GLSL450 requires #spirv.vce<v1.5, [Shader, PhysicalStorageBufferAddresses], []>
// CHECK: spirv.EntryPoint "GLCompute" @empty
// CHECK: spirv.ExecutionMode @empty "LocalSize", 64, 1, 1
greta_tile.func @empty(%x: !greta_tile.ptr<f32>) attributes {block_size = 64 : i32, wave_size = 32 : i32} {
  greta_tile.return
}
