// Lanes load the elements of cooperative matrices, and nothing is loaded whole; a fragment is put together right before the first instruction that takes it.
// REQUIRES: compiler
// RUN: greta-opt %s --greta-fuse --greta-configure=target=vulkan:rdna4 --greta-to-tile --greta-tile-promise-arguments --greta-tile-assign-layouts --greta-tile-pipeline --greta-tile-distribute --greta-tile-barriers --greta-tile-interleave --canonicalize --cse | FileCheck %s --implicit-check-not=fragment_load
// CHECK: scf.for
// CHECK: greta_tile.barrier
// CHECK: %[[FIRST:.*]] = greta_tile.fragment_from_elements
// CHECK-NEXT: %[[SECOND:.*]] = greta_tile.fragment_from_elements
// CHECK-NEXT: greta_tile.mma "coopmat" %[[FIRST]], %[[SECOND]]
// CHECK-NEXT: %[[NEXT:.*]] = greta_tile.fragment_from_elements
// CHECK-NEXT: greta_tile.mma "coopmat" %[[NEXT]], %[[SECOND]]
func.func @product(%a: tensor<256x256xf16>, %b: tensor<256x256xf16>) -> tensor<256x256xf32> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {tile = [64, 64, 32], waves = 2, stages = 1}}
      : tensor<256x256xf16>, tensor<256x256xf16> -> tensor<256x256xf32>
  return %0 : tensor<256x256xf32>
}
