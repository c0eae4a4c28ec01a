// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx942},greta-tile-assign-layouts))' | FileCheck %s

// Results of two dots meet element by element, but only one is a matrix instruction's: it keeps the instruction's layout, and is converted.
// CHECK-LABEL: @two_instructions
// CHECK: %[[E:.*]] = greta_tile.dot {{.*}}"mfma.f32.16x16x4f32"{{.*}} -> tensor<16x16xf32, #greta_tile.layout<{reg = {{\[\[}}0, 1], [0, 2]], lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [0, 4], [0, 8]],
// CHECK: greta_tile.convert_layout %[[E]]
greta_tile.func @two_instructions(%x: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<i32>) attributes {waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %v = greta_tile.load %x[%z, %z] strides [16, 1] bounds [] : !greta_tile.ptr<i32> -> tensor<16x16xi32>
  %a8 = arith.trunci %v : tensor<16x16xi32> to tensor<16x16xi8>
  %none = arith.constant dense<0> : tensor<16x16xi32>
  %d = greta_tile.dot %a8, %a8, %none : tensor<16x16xi8>, tensor<16x16xi8> -> tensor<16x16xi32>
  %f = arith.sitofp %v : tensor<16x16xi32> to tensor<16x16xf32>
  %nonef = arith.constant dense<0.0> : tensor<16x16xf32>
  %e = greta_tile.dot %f, %f, %nonef : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  %i = arith.fptosi %e : tensor<16x16xf32> to tensor<16x16xi32>
  %m = arith.subi %i, %d : tensor<16x16xi32>
  greta_tile.store %m, %y[%z, %z] strides [16, 1] bounds [] : tensor<16x16xi32> -> !greta_tile.ptr<i32>
  greta_tile.return
}
