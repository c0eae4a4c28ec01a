// A lane needs the weights of a word as neighbours, though the result, which is
// the larger block, lies along the columns in memory: K is one group, so no loop
// stands between them.
// RUN: greta-opt %s --greta-to-lanes=target=gfx942 | FileCheck %s
// RUN: greta-opt %s --greta-to-lanes=target=gfx1100 | FileCheck %s
// RUN: greta-opt %s --greta-to-lanes=target=vulkan:nvidia | FileCheck %s

// CHECK: greta_tile.func @one_group
// CHECK: ptr_load %{{.*}} : <i32> -> i32
// CHECK: ptr_store
func.func @one_group(%x: tensor<16x32xf16>, %q: tensor<90x4xi32>, %s: tensor<90x1xf16>) -> tensor<16x90xf16> {
  %w = greta.dequant %q, %s {format = "q4_0", group = 32} : tensor<90x4xi32>, tensor<90x1xf16> -> tensor<90x32xf16>
  %y = greta.matmul %x, %w {transpose_b} : tensor<16x32xf16>, tensor<90x32xf16> -> tensor<16x90xf16>
  return %y : tensor<16x90xf16>
}
