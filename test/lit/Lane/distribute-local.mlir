// Blocks in shared memory.
// RUN: greta-opt %s --greta-tile-distribute --greta-tile-barriers --canonicalize --cse | FileCheck %s

#rows = #greta_tile.layout<{reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], wave = [], rep = [2, 1]}>
#part = #greta_tile.layout<{reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [0, 8], [0, 0]], wave = [], rep = [1, 1]}>

// Eight halves an entry: a stage is 8 rows of 8 entries. Stored at row * 8 + (column ^ row): the register's row, 4, swizzles column bit 2.
// The load takes stage 1 at column 16, which is entry 2 of a row, with the lane's row in the swizzle.
// CHECK-LABEL: @swizzled
// CHECK: %[[ARRAY:.*]] = greta_tile.shared_alloc : <128 x vector<8xf16>>
// CHECK: arith.xori
// CHECK: %[[PART:.*]] = greta_tile.shared_stage %[[ARRAY]][%arg1] of 2
// CHECK-COUNT-2: greta_tile.shared_store %{{.*}}, %[[PART]][%{{.*}}] : {{.*}}vector<8xf16>
// CHECK: %[[OTHER:.*]] = greta_tile.shared_stage %[[ARRAY]][%c1_i32] of 2
// CHECK: arith.xori %{{.*}}, %c2_i32
// CHECK: greta_tile.barrier
// CHECK: greta_tile.shared_load %[[OTHER]]
// CHECK-NOT: greta_tile.shared_load
greta_tile.func @swizzled(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %n: i32) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %at = arith.constant 16 : i32
  %l = greta_tile.local_alloc : <2 x tensor<8x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>>
  %a = greta_tile.load %x[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<8x64xf16, #rows>
  greta_tile.local_store %a, %l[%n] : tensor<8x64xf16, #rows> -> <2 x tensor<8x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>>
  %p = greta_tile.local_load %l[%one] [%z, %at] : <2 x tensor<8x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>> -> tensor<8x16xf16, #part>
  greta_tile.store %p, %x[%z, %z] strides [64, 1] bounds [] : tensor<8x16xf16, #part> -> !greta_tile.ptr<f16>
  greta_tile.return
}
