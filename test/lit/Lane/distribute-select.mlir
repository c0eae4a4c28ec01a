// Elements of a vector that share a condition are selected as one vector; elements whose conditions differ are selected one by one.
// RUN: greta-opt %s --greta-tile-distribute=target=vulkan:portable --canonicalize --cse | FileCheck %s

#row = #greta_tile.layout<{reg = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], wave = [], rep = [1]}>

// CHECK-LABEL: greta_tile.func @one
// CHECK: %[[LOADED:.*]] = greta_tile.ptr_load {{.*}} -> vector<8xf16>
// CHECK: %[[CHOSEN:.*]] = arith.select %{{.*}}, %[[LOADED]], %{{.*}} : vector<8xf16>
// CHECK: greta_tile.ptr_store %[[CHOSEN]]
greta_tile.func @one(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %flag: i1) attributes {waves = 1 : i32, wave_size = 32 : i32} {
  %c0 = arith.constant 0 : i32
  %none = arith.constant dense<0.0> : tensor<256xf16, #row>
  %v = greta_tile.load %x[%c0] strides [1] bounds [] : !greta_tile.ptr<f16> -> tensor<256xf16, #row>
  %all = greta_tile.splat %flag : tensor<256xi1, #row>
  %chosen = arith.select %all, %v, %none : tensor<256xi1, #row>, tensor<256xf16, #row>
  greta_tile.store %chosen, %y[%c0] strides [1] bounds [] : tensor<256xf16, #row> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// CHECK-LABEL: greta_tile.func @each
// CHECK-COUNT-8: arith.select %{{.*}} : f16
// CHECK: vector.from_elements
greta_tile.func @each(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %n: i32) attributes {waves = 1 : i32, wave_size = 32 : i32} {
  %c0 = arith.constant 0 : i32
  %none = arith.constant dense<0.0> : tensor<256xf16, #row>
  %v = greta_tile.load %x[%c0] strides [1] bounds [] : !greta_tile.ptr<f16> -> tensor<256xf16, #row>
  %i = greta_tile.iota 0 : tensor<256xi32, #row>
  %end = greta_tile.splat %n : tensor<256xi32, #row>
  %inside = arith.cmpi slt, %i, %end : tensor<256xi32, #row>
  %chosen = arith.select %inside, %v, %none : tensor<256xi1, #row>, tensor<256xf16, #row>
  greta_tile.store %chosen, %y[%c0] strides [1] bounds [] : tensor<256xf16, #row> -> !greta_tile.ptr<f16>
  greta_tile.return
}
