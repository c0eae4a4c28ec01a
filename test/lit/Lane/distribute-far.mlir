// Blocks whose elements lie further apart than 32 bits of bytes reach: every lane moves the pointer by 64 bits.
// RUN: greta-opt %s --greta-tile-distribute=target=gfx942 | FileCheck %s
// RUN: greta-opt %s --greta-tile-distribute=target=vulkan:portable | FileCheck %s

#rows = #greta_tile.layout<{reg = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>

// A lane that is masked off has the block's first element, in a pipelined loop, too.
// CHECK-LABEL: @far
// CHECK: arith.extsi %{{.*}} : i32 to i64
// CHECK: arith.muli %{{.*}}, %{{.*}} : i64
// CHECK: %[[AT:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : i64
// CHECK: %[[PLACE:.*]] = greta_tile.ptr_add %{{.*}}, %[[AT]]
// CHECK: greta_tile.ptr_load %[[PLACE]][%c0_i32{{.*}}] align 4
// CHECK: greta_tile.ptr_add %{{.*}} i64
// CHECK: greta_tile.ptr_store %{{.*}}[%c0_i32{{.*}}] align 4
greta_tile.func @far(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %m: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c256 = arith.constant 256 : i32
  %z = arith.constant dense<0.0> : tensor<16x16xf32, #rows>
  %s = scf.for %k = %c0 to %c256 step %c16 iter_args(%a = %z) -> tensor<16x16xf32, #rows> : i32 {
    %v = greta_tile.load %x[%c0, %k] strides [35791395, 1] bounds [0] (%m) : !greta_tile.ptr<f32> -> tensor<16x16xf32, #rows>
    %b = arith.addf %a, %v : tensor<16x16xf32, #rows>
    scf.yield %b : tensor<16x16xf32, #rows>
  } {greta_tile.rolled}
  greta_tile.store %s, %y[%c0, %c0] strides [1000000000000, 1] bounds [] : tensor<16x16xf32, #rows> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// The largest stride for which 32 bits do: 15 rows, and 16 columns and an access in what is left of 2^31 bytes.
// CHECK-LABEL: @near
// CHECK-NOT: i64
// CHECK: greta_tile.ptr_load
greta_tile.func @near(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %v = greta_tile.load %x[%c0, %c0] strides [35791392, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<16x16xf32, #rows>
  greta_tile.store %v, %y[%c0, %c0] strides [16, 1] bounds [] : tensor<16x16xf32, #rows> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// A stride of run time is checked by the launch: what the narrower of the two accesses reaches.
// CHECK-LABEL: @dynamic
// CHECK-SAME: %{{.*}}: i32 {greta.largest = 35791392 : i64}
// CHECK-SAME: %{{.*}}: i32 {greta.largest = 17895695 : i64}
greta_tile.func @dynamic(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f64>, %stride: i32, %out: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %v = greta_tile.load %x[%c0, %c0] strides [-9223372036854775808, 1] (%stride) bounds [] : !greta_tile.ptr<f32> -> tensor<16x16xf32, #rows>
  %w = arith.extf %v : tensor<16x16xf32, #rows> to tensor<16x16xf64, #rows>
  greta_tile.store %w, %y[%c0, %c0] strides [-9223372036854775808, 1] (%out) bounds [] : tensor<16x16xf64, #rows> -> !greta_tile.ptr<f64>
  greta_tile.return
}

// Neighbours that are clamped are the same element, so a lane loads them one by one.
// CHECK-LABEL: @clamped
// CHECK-COUNT-4: greta_tile.ptr_load %{{.*}} align 4 : <f32> -> f32
// CHECK-NOT: greta_tile.ptr_load
greta_tile.func @clamped(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %v = greta_tile.load %x[%c0, %c0] strides [1024, 1] bounds [1] (%c8) clamp [1] : !greta_tile.ptr<f32> -> tensor<16x16xf32, #rows>
  greta_tile.store %v, %y[%c0, %c0] strides [16, 1] bounds [] : tensor<16x16xf32, #rows> -> !greta_tile.ptr<f32>
  greta_tile.return
}
