// RUN: greta-opt %s --greta-tile-distribute --greta-tile-barriers --greta-tile-plan-memory=target=gfx1100 --cse | FileCheck %s

// A split whose result has another layout passes through shared memory; branches, of which a workgroup takes one, share it.
// CHECK-LABEL: greta_tile.func @split_branches
// CHECK-DAG: greta_tile.shared_alloc offset 0 : <72 x vector<2xf32>>
// CHECK-DAG: greta_tile.shared_alloc offset 0 : <144 x vector<2xf32>>
// CHECK: scf.if
// CHECK: greta_tile.shared_store
// CHECK: greta_tile.barrier
// CHECK: greta_tile.shared_load
// CHECK: else
// CHECK: greta_tile.shared_store
// CHECK: greta_tile.barrier
// CHECK-COUNT-2: greta_tile.shared_load
#flat = #greta_tile.layout<{reg = [[1]], lane = [[2], [4], [8], [16], [32]], wave = [[64]], rep = [1]}>
#other = #greta_tile.layout<{reg = [[0, 1]], lane = [[1, 0], [2, 0], [4, 0], [0, 2], [0, 4]], wave = [[0, 8]], rep = [1, 1]}>
#flat2 = #greta_tile.layout<{reg = [[1]], lane = [[2], [4], [8], [16], [32]], wave = [[64]], rep = [2]}>
#other2 = #greta_tile.layout<{reg = [[0, 1]], lane = [[1, 0], [2, 0], [4, 0], [0, 2], [0, 4]], wave = [[0, 8]], rep = [2, 1]}>
greta_tile.func @split_branches(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %n: i32) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %c = arith.cmpi slt, %n, %z : i32
  scf.if %c {
    %a = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<128xf32, #flat>
    %s = greta_tile.reshape %a : tensor<128xf32, #flat> -> tensor<8x16xf32, #other>
    greta_tile.store %s, %x[%z, %z] strides [16, 1] bounds [] : tensor<8x16xf32, #other> -> !greta_tile.ptr<f32>
  } else {
    %a = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<256xf32, #flat2>
    %s = greta_tile.reshape %a : tensor<256xf32, #flat2> -> tensor<16x16xf32, #other2>
    greta_tile.store %s, %x[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32, #other2> -> !greta_tile.ptr<f32>
  }
  greta_tile.return
}
