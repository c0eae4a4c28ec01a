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

// 8192 multiply-adds in a lane are more than an iteration's 4096: the dot takes its operands in steps of 16, as they are laid out. Half as many stay a chain.
// CHECK-LABEL: @steps
// CHECK-NOT: greta_tile.convert_layout
// CHECK: greta_tile.dot {{.*}} {step = 16 : i32} : tensor<128x32xi16
// CHECK: greta_tile.convert_layout
// CHECK: greta_tile.dot %{{[^{]*}} : tensor<128x16xi16
greta_tile.func @steps(%x: !greta_tile.ptr<i16>, %y: !greta_tile.ptr<i32>) attributes {waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %none = arith.constant dense<0> : tensor<128x128xi32>
  %a = greta_tile.load %x[%z, %z] strides [32, 1] bounds [] : !greta_tile.ptr<i16> -> tensor<128x32xi16>
  %b = greta_tile.load %x[%z, %z] strides [128, 1] bounds [] : !greta_tile.ptr<i16> -> tensor<32x128xi16>
  %d = greta_tile.dot %a, %b, %none : tensor<128x32xi16>, tensor<32x128xi16> -> tensor<128x128xi32>
  %e = greta_tile.load %x[%z, %z] strides [16, 1] bounds [] : !greta_tile.ptr<i16> -> tensor<128x16xi16>
  %f = greta_tile.load %x[%z, %z] strides [128, 1] bounds [] : !greta_tile.ptr<i16> -> tensor<16x128xi16>
  %g = greta_tile.dot %e, %f, %d : tensor<128x16xi16>, tensor<16x128xi16> -> tensor<128x128xi32>
  greta_tile.store %g, %y[%z, %z] strides [128, 1] bounds [] : tensor<128x128xi32> -> !greta_tile.ptr<i32>
  greta_tile.return
}
