// RUN: greta-opt %s --greta-tile-distribute=target=gfx942 | FileCheck %s --check-prefixes=CHECK,AMD
// RUN: greta-opt %s --greta-tile-distribute=target=vulkan:portable | FileCheck %s --check-prefixes=CHECK,VULKAN

// In a pipelined loop AMD's loads have masks: neither a branch for blocks that may begin outside nor a selection.
// CHECK-LABEL: @rows
// AMD: %[[SOME:.*]] = arith.cmpi slt
// AMD: %[[INSIDE:.*]] = arith.cmpi
// AMD: %[[MASK:.*]] = arith.andi %[[SOME]], %[[INSIDE]]
// AMD-NEXT: greta_tile.ptr_load %{{.*}}[%{{.*}}] mask %[[MASK]] align 16
// AMD-NOT: scf.if
// AMD-NOT: arith.select
// AMD: arith.addf
// VULKAN: scf.if
// VULKAN: arith.select
// VULKAN: greta_tile.ptr_load
#rows = #greta_tile.layout<{reg = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>
greta_tile.func @rows(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %first: i32, %m: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c256 = arith.constant 256 : i32
  %z = arith.constant dense<0.0> : tensor<16x16xf32, #rows>
  %s = scf.for %k = %c0 to %c256 step %c16 iter_args(%a = %z) -> tensor<16x16xf32, #rows> : i32 {
    %v = greta_tile.load %x[%first, %k] strides [256, 1] bounds [0] (%m) : !greta_tile.ptr<f32> -> tensor<16x16xf32, #rows>
    %b = arith.addf %a, %v : tensor<16x16xf32, #rows>
    scf.yield %b : tensor<16x16xf32, #rows>
  } {greta_tile.rolled}
  greta_tile.store %s, %y[%c0, %c0] strides [16, 1] bounds [] : tensor<16x16xf32, #rows> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// A block that may begin below zero: one comparison of unsigned numbers. On targets whose loads have no masks, lanes outside read the first element within, in a branch
// that is taken if the block has an element within.
// CHECK-LABEL: @below
// CHECK: %[[BOUND:.*]] = arith.maxsi %{{.*}}, %c0_i32
// AMD-NOT: arith.select
// VULKAN: %[[BEGINS:.*]] = arith.cmpi slt, %c-16_i32
// VULKAN: %[[ENDS:.*]] = arith.cmpi slt, %{{.*}}, %[[BOUND]]
// VULKAN: %[[SOME:.*]] = arith.andi %[[BEGINS]], %[[ENDS]]
// VULKAN: %[[WITHIN:.*]] = arith.muli
// VULKAN: scf.if %[[SOME]]
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %[[BOUND]]
// AMD: greta_tile.ptr_load %{{.*}}[%{{.*}}] mask %[[INSIDE]]
// VULKAN: %[[AT:.*]] = arith.select %[[INSIDE]], %{{.*}}, %[[WITHIN]]
// VULKAN: greta_tile.ptr_load %{{.*}}[%[[AT]]]
greta_tile.func @below(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %first: i32, %m: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c256 = arith.constant 256 : i32
  %z = arith.constant dense<0.0> : tensor<16x16xf32, #rows>
  %s = scf.for %k = %c0 to %c256 step %c16 iter_args(%a = %z) -> tensor<16x16xf32, #rows> : i32 {
    %v = greta_tile.load %x[%first, %k] strides [256, 1] bounds [0] (%m) nonnegative [0] : !greta_tile.ptr<f32> -> tensor<16x16xf32, #rows>
    %b = arith.addf %a, %v : tensor<16x16xf32, #rows>
    scf.yield %b : tensor<16x16xf32, #rows>
  } {greta_tile.rolled}
  greta_tile.store %s, %y[%c0, %c0] strides [16, 1] bounds [] : tensor<16x16xf32, #rows> -> !greta_tile.ptr<f32>
  greta_tile.return
}
