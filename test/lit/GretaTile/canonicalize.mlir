// Broadcasts and reshapes of pointers become those of what moved them, where the argument promises to reach less than 2^31 bytes; other pointers stay.
// RUN: greta-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: greta_tile.func @promised
// CHECK: %[[OFFSETS:.*]] = greta_tile.broadcast %{{.*}} : tensor<4x1xi32> -> tensor<4x8xi32>
// CHECK: greta_tile.ptr_add %{{.*}}, %[[OFFSETS]] : {{.*}}tensor<4x8xi32>
// CHECK-NOT: broadcast {{.*}}ptr
greta_tile.func @promised(%x: !greta_tile.ptr<f32> {greta.pointer_range}, %stride: i32) attributes {waves = 1 : i32} {
  %row = greta_tile.iota 0 : tensor<4xi32>
  %each = greta_tile.splat %stride : tensor<4xi32>
  %rows = arith.muli %row, %each : tensor<4xi32>
  %line = greta_tile.ptr_add %x, %rows : !greta_tile.ptr<f32>, tensor<4xi32>
  %upright = greta_tile.reshape %line : tensor<4x!greta_tile.ptr<f32>> -> tensor<4x1x!greta_tile.ptr<f32>>
  %lines = greta_tile.broadcast %upright : tensor<4x1x!greta_tile.ptr<f32>> -> tensor<4x8x!greta_tile.ptr<f32>>
  %v = greta_tile.load_scattered %lines : tensor<4x8x!greta_tile.ptr<f32>> -> tensor<4x8xf32>
  greta_tile.store_scattered %v, %lines : tensor<4x8xf32> -> tensor<4x8x!greta_tile.ptr<f32>>
  greta_tile.return
}

// CHECK-LABEL: greta_tile.func @others
// CHECK: greta_tile.ptr_add %{{.*}}, %{{.*}} : !greta_tile.ptr<f32>, tensor<4xi32>
// CHECK: greta_tile.reshape %{{.*}} : tensor<4x!greta_tile.ptr<f32>>
// CHECK: greta_tile.broadcast %{{.*}} : tensor<4x1x!greta_tile.ptr<f32>>
greta_tile.func @others(%x: !greta_tile.ptr<f32>, %stride: i32) attributes {waves = 1 : i32} {
  %row = greta_tile.iota 0 : tensor<4xi32>
  %each = greta_tile.splat %stride : tensor<4xi32>
  %rows = arith.muli %row, %each : tensor<4xi32>
  %line = greta_tile.ptr_add %x, %rows : !greta_tile.ptr<f32>, tensor<4xi32>
  %upright = greta_tile.reshape %line : tensor<4x!greta_tile.ptr<f32>> -> tensor<4x1x!greta_tile.ptr<f32>>
  %lines = greta_tile.broadcast %upright : tensor<4x1x!greta_tile.ptr<f32>> -> tensor<4x8x!greta_tile.ptr<f32>>
  %v = greta_tile.load_scattered %lines : tensor<4x8x!greta_tile.ptr<f32>> -> tensor<4x8xf32>
  greta_tile.store_scattered %v, %lines : tensor<4x8xf32> -> tensor<4x8x!greta_tile.ptr<f32>>
  greta_tile.return
}
