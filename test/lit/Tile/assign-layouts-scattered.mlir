// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-assign-layouts))' | FileCheck %s

// Neighbours in memory, here along dimension 0, are in a lane's registers, 16 bytes of them; pointers, masks and what is moved have one layout.
// CHECK-LABEL: greta_tile.func @columns
// CHECK-NOT: convert_layout
// CHECK: greta_tile.load_scattered %{{.*}} mask %{{.*}} : tensor<32x64x!greta_tile.ptr<f32>, #greta_tile.layout<[[L:{reg = \[\[1, 0\], \[2, 0\]\], lane = \[\[4, 0\].*rep = \[1, 8\]}]]>> -> tensor<32x64xf32
// CHECK: greta_tile.store_scattered %{{.*}}, %{{.*}} mask %{{.*}} : tensor<32x64xf32, #greta_tile.layout<[[L]]>> -> tensor<32x64x!greta_tile.ptr<f32>, #greta_tile.layout<[[L]]>>
greta_tile.func @columns(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %n: i32 {greta.divisibility = 4 : i64}) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %row = greta_tile.iota 0 : tensor<32x1xi32>
  %rows = greta_tile.broadcast %row : tensor<32x1xi32> -> tensor<32x64xi32>
  %column = greta_tile.iota 1 : tensor<1x64xi32>
  %stride = greta_tile.splat %n : tensor<1x64xi32>
  %start = arith.muli %column, %stride : tensor<1x64xi32>
  %starts = greta_tile.broadcast %start : tensor<1x64xi32> -> tensor<32x64xi32>
  %offset = arith.addi %starts, %rows : tensor<32x64xi32>
  %end = greta_tile.splat %n : tensor<32x64xi32>
  %mask = arith.cmpi slt, %rows, %end : tensor<32x64xi32>
  %p = greta_tile.ptr_add %x, %offset : !greta_tile.ptr<f32>, tensor<32x64xi32>
  %v = greta_tile.load_scattered %p mask %mask : tensor<32x64x!greta_tile.ptr<f32>> -> tensor<32x64xf32>
  %q = greta_tile.ptr_add %y, %offset : !greta_tile.ptr<f32>, tensor<32x64xi32>
  greta_tile.store_scattered %v, %q mask %mask : tensor<32x64xf32> -> tensor<32x64x!greta_tile.ptr<f32>>
  greta_tile.return
}
