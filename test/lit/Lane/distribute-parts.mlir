// RUN: greta-opt %s --greta-tile-distribute=target=vulkan:lavapipe --greta-tile-barriers=target=vulkan:lavapipe --greta-tile-plan-memory=target=vulkan:lavapipe --cse | FileCheck %s
// RUN: greta-opt %s --greta-tile-distribute=target=gfx1100 --cse | FileCheck %s --check-prefix=WHOLE

// A block changes its layout that is larger than a workgroup's 32 KiB by its padding: two parts of 32 rows pass one after another through the same array.
// Registers alone say on both sides which part they are of, so nobody branches.
// CHECK-LABEL: greta_tile.func @rows
// CHECK: %[[ARRAY:.*]] = greta_tile.shared_alloc offset 0 : <4128 x f32>
// CHECK-NOT: greta_tile.shared_alloc
// CHECK-NOT: scf.if
// CHECK-COUNT-128: greta_tile.shared_store {{.*}}, %[[ARRAY]]
// CHECK: greta_tile.barrier
// CHECK-COUNT-128: greta_tile.shared_load %[[ARRAY]]
// CHECK: greta_tile.barrier
// CHECK-COUNT-128: greta_tile.shared_store {{.*}}, %[[ARRAY]]
// CHECK: greta_tile.barrier
// CHECK-COUNT-128: greta_tile.shared_load %[[ARRAY]]
// WHOLE-LABEL: greta_tile.func @rows
// WHOLE: greta_tile.shared_alloc : <8256 x f32>
#columns = #greta_tile.layout<{reg = [], lane = [[0, 1], [0, 2], [0, 4]], wave = [[0, 8], [0, 16]], rep = [64, 4]}>
#rows = #greta_tile.layout<{reg = [], lane = [[1, 0], [2, 0], [4, 0]], wave = [[8, 0], [16, 0]], rep = [2, 128]}>
greta_tile.func @rows(%x: !greta_tile.ptr<f32>) attributes {wave_size = 8 : i32, waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [128, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<64x128xf32, #columns>
  %b = greta_tile.convert_layout %a : tensor<64x128xf32, #columns> -> tensor<64x128xf32, #rows>
  greta_tile.store %b, %x[%z, %z] strides [1, 64] bounds [] : tensor<64x128xf32, #rows> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Two of the four waves have the upper 32 rows: of what a lane loads of a part it keeps what is its own.
// CHECK-LABEL: greta_tile.func @waves
// CHECK-DAG: %[[ARRAY:.*]] = greta_tile.shared_alloc offset 0 : <4128 x f32>
// CHECK-COUNT-128: greta_tile.shared_store {{.*}}, %[[ARRAY]]
// CHECK: %[[FIRST:.*]] = greta_tile.shared_load %[[ARRAY]]
// CHECK-COUNT-255: greta_tile.shared_load %[[ARRAY]]
// CHECK-COUNT-128: greta_tile.shared_store {{.*}}, %[[ARRAY]]
// CHECK: %[[SECOND:.*]] = greta_tile.shared_load %[[ARRAY]]
// CHECK: %[[UPPER:.*]] = arith.cmpi eq, %{{.*}}, %c1_i32
// CHECK: arith.select %[[UPPER]], %[[SECOND]], %[[FIRST]]
#apart = #greta_tile.layout<{reg = [[16, 0]], lane = [[1, 0], [2, 0], [4, 0]], wave = [[8, 0], [32, 0]], rep = [1, 128]}>
greta_tile.func @waves(%x: !greta_tile.ptr<f32>) attributes {wave_size = 8 : i32, waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [128, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<64x128xf32, #columns>
  %b = greta_tile.convert_layout %a : tensor<64x128xf32, #columns> -> tensor<64x128xf32, #apart>
  greta_tile.store %b, %x[%z, %z] strides [1, 64] bounds [] : tensor<64x128xf32, #apart> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Two of the four waves store the upper 32 rows: others wait.
// CHECK-LABEL: greta_tile.func @stores
// CHECK: scf.if
// CHECK-COUNT-256: greta_tile.shared_store
// CHECK: greta_tile.shared_load
// CHECK: scf.if
greta_tile.func @stores(%x: !greta_tile.ptr<f32>) attributes {wave_size = 8 : i32, waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [1, 64] bounds [] : !greta_tile.ptr<f32> -> tensor<64x128xf32, #apart>
  %b = greta_tile.convert_layout %a : tensor<64x128xf32, #apart> -> tensor<64x128xf32, #columns>
  greta_tile.store %b, %x[%z, %z] strides [128, 1] bounds [] : tensor<64x128xf32, #columns> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// A reshape that no layout can say: rows of 36 become rows of 72, in parts that both count alike.
// CHECK-LABEL: greta_tile.func @reshape
// CHECK: greta_tile.shared_alloc offset 0 : <4608 x f32>
// CHECK-NOT: greta_tile.shared_alloc
#thin = #greta_tile.layout<{reg = [], lane = [[1, 0], [2, 0], [4, 0]], wave = [[8, 0], [16, 0]], rep = [8, 36]}>
#wide = #greta_tile.layout<{reg = [], lane = [[0, 1], [0, 2], [0, 4]], wave = [[1, 0], [2, 0]], rep = [32, 9]}>
greta_tile.func @reshape(%x: !greta_tile.ptr<f32>) attributes {wave_size = 8 : i32, waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [1, 256] bounds [] : !greta_tile.ptr<f32> -> tensor<256x36xf32, #thin>
  %b = greta_tile.reshape %a : tensor<256x36xf32, #thin> -> tensor<128x72xf32, #wide>
  greta_tile.store %b, %x[%z, %z] strides [72, 1] bounds [] : tensor<128x72xf32, #wide> -> !greta_tile.ptr<f32>
  greta_tile.return
}
