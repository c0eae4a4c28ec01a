// A block whose rows in memory lie across what lanes hold: gfx12's lanes load eight neighbours in a row and hand each other elements, so that each has
// eight of K. All lanes take part, so a block with a mask is loaded element by element.
// RUN: greta-opt %s --greta-tile-distribute=target=gfx1201 --canonicalize --cse | FileCheck %s
// RUN: greta-opt %s --greta-tile-distribute=target=gfx1100 --canonicalize --cse | FileCheck %s --check-prefix=WITHOUT
// RUN: greta-opt %s --greta-tile-distribute=target=gfx1201 --canonicalize --cse --greta-tile-to-rocdl=chip=gfx1201 | FileCheck %s --check-prefix=ROCDL
// REQUIRES: compiler

#halves = #greta_tile.layout<{reg = [[1, 0], [2, 0], [4, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [8, 0]], wave = [], rep = [1, 1]}>

// Lane l loads from row l % 8 + 8 * (l / 16), eight columns from 8 * (l / 8 % 2) on.
// CHECK-LABEL: @halves
// CHECK: %[[LANE:.*]] = greta_tile.lane_id
// CHECK-COUNT-1: greta_tile.ptr_load %{{.*}}[%{{.*}}] transposed align 16 : <f16> -> vector<8xf16>
// CHECK-NOT: greta_tile.ptr_load
// CHECK: greta_tile.return
// WITHOUT-LABEL: @halves
// WITHOUT-COUNT-8: greta_tile.ptr_load {{.*}} align 2 : <f16> -> f16
// ROCDL-LABEL: llvm.func protected @halves
// ROCDL: rocdl.global.load.tr.b128 %{{.*}} -> vector<8xf16>
greta_tile.func @halves(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %v = greta_tile.load %x[%z, %z] strides [16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x16xf16, #halves>
  greta_tile.store %v, %y[%z, %z] strides [1, 16] bounds [] : tensor<16x16xf16, #halves> -> !greta_tile.ptr<f16>
  greta_tile.return
}

#bytes = #greta_tile.layout<{reg = [[1, 0], [2, 0], [4, 0], [8, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], wave = [], rep = [1, 1]}>

// CHECK-LABEL: @bytes
// CHECK-COUNT-2: greta_tile.ptr_load %{{.*}}[%{{.*}}] transposed align 8 : <i8> -> vector<8xi8>
// CHECK-NOT: greta_tile.ptr_load
// CHECK: greta_tile.return
// ROCDL-LABEL: llvm.func protected @bytes
// ROCDL-COUNT-2: rocdl.global.load.tr.b64 %{{.*}} -> vector<2xi32>
greta_tile.func @bytes(%x: !greta_tile.ptr<i8> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<i8>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %v = greta_tile.load %x[%z, %z] strides [32, 1] bounds [] : !greta_tile.ptr<i8> -> tensor<16x32xi8, #bytes>
  greta_tile.store %v, %y[%z, %z] strides [1, 16] bounds [] : tensor<16x32xi8, #bytes> -> !greta_tile.ptr<i8>
  greta_tile.return
}

#wide = #greta_tile.layout<{reg = [[1, 0], [2, 0], [4, 0], [0, 8]], lane = [[0, 1], [0, 2], [0, 4], [8, 0], [0, 16]], wave = [], rep = [1, 1]}>

// A lane holds 16 columns that follow each other in memory, of which a load takes eight.
// CHECK-LABEL: @wide
// CHECK-COUNT-2: greta_tile.ptr_load %{{.*}}[%{{.*}}] transposed align 8 : <i8> -> vector<8xi8>
// CHECK-NOT: greta_tile.ptr_load
// CHECK: greta_tile.return
greta_tile.func @wide(%x: !greta_tile.ptr<i8> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<i8>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %v = greta_tile.load %x[%z, %z] strides [32, 1] bounds [] : !greta_tile.ptr<i8> -> tensor<16x32xi8, #wide>
  greta_tile.store %v, %y[%z, %z] strides [1, 16] bounds [] : tensor<16x32xi8, #wide> -> !greta_tile.ptr<i8>
  greta_tile.return
}

// CHECK-LABEL: @bounded
// CHECK-NOT: transposed
// CHECK: greta_tile.return
greta_tile.func @bounded(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16>, %n: i32) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %v = greta_tile.load %x[%z, %z] strides [16, 1] bounds [0] (%n) : !greta_tile.ptr<f16> -> tensor<16x16xf16, #halves>
  greta_tile.store %v, %y[%z, %z] strides [1, 16] bounds [] : tensor<16x16xf16, #halves> -> !greta_tile.ptr<f16>
  greta_tile.return
}
