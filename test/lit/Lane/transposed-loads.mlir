// A block whose rows lie across K: lanes read neighbours in a row and hand each other elements, so that each has four or eight of K.
// RUN: greta-opt %s --greta-tile-distribute=target=gfx950 --canonicalize --cse | FileCheck %s
// RUN: greta-opt %s --greta-tile-distribute=target=gfx942 --canonicalize --cse | FileCheck %s --check-prefix=WITHOUT
// RUN: greta-opt %s --greta-tile-distribute=target=gfx950 --greta-tile-barriers --canonicalize --cse --greta-tile-to-rocdl=chip=gfx950 | FileCheck %s --check-prefix=ROCDL
// REQUIRES: compiler

#halves = #greta_tile.layout<{reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], wave = [], rep = [1, 1]}>
#kOfHalves = #greta_tile.layout<{reg = [[1, 0], [2, 0], [4, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [8, 0], [16, 0]], wave = [], rep = [1, 1]}>
!halves = !greta_tile.local<1 x tensor<32x16xf16>, <dim = 1, stride = 16, vector = 1, rows = 1, phases = 1>>

// Lane l reads four columns from 4 (l % 4) on, in row (l / 4) % 4 of its eight.
// CHECK-LABEL: @halves
// CHECK: %[[LANE:.*]] = greta_tile.lane_id
// CHECK-COUNT-2: greta_tile.shared_load %{{.*}}[%{{.*}}] transposed : <128 x vector<4xf16>>
// CHECK-NOT: greta_tile.shared_load
// WITHOUT-LABEL: @halves
// WITHOUT-COUNT-8: greta_tile.shared_load {{.*}} : <512 x f16>
// ROCDL-LABEL: llvm.func protected @halves
// ROCDL-COUNT-2: rocdl.ds.read.tr16.b64 %{{.*}} -> vector<4xf16>
greta_tile.func @halves(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %l = greta_tile.local_alloc : !halves
  %v = greta_tile.load %x[%z, %z] strides [16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x16xf16, #halves>
  greta_tile.local_store %v, %l[%z] : tensor<32x16xf16, #halves> -> !halves
  %p = greta_tile.local_load %l[%z] [%z, %z] : !halves -> tensor<32x16xf16, #kOfHalves>
  greta_tile.store %p, %y[%z, %z] strides [16, 1] bounds [] : tensor<32x16xf16, #kOfHalves> -> !greta_tile.ptr<f16>
  greta_tile.return
}

#bytes = #greta_tile.layout<{reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], wave = [], rep = [1, 1]}>
#kOfBytes = #greta_tile.layout<{reg = [[1, 0], [2, 0], [4, 0], [8, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [16, 0], [32, 0]], wave = [], rep = [1, 1]}>
!bytes = !greta_tile.local<1 x tensor<64x16xi8>, <dim = 1, stride = 16, vector = 1, rows = 1, phases = 1>>

// CHECK-LABEL: @bytes
// CHECK-COUNT-2: greta_tile.shared_load %{{.*}}[%{{.*}}] transposed : <128 x vector<8xi8>>
// ROCDL-LABEL: llvm.func protected @bytes
// ROCDL-COUNT-2: rocdl.ds.read.tr8.b64 %{{.*}} -> vector<2xi32>
greta_tile.func @bytes(%x: !greta_tile.ptr<i8> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<i8>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %l = greta_tile.local_alloc : !bytes
  %v = greta_tile.load %x[%z, %z] strides [16, 1] bounds [] : !greta_tile.ptr<i8> -> tensor<64x16xi8, #bytes>
  greta_tile.local_store %v, %l[%z] : tensor<64x16xi8, #bytes> -> !bytes
  %p = greta_tile.local_load %l[%z] [%z, %z] : !bytes -> tensor<64x16xi8, #kOfBytes>
  greta_tile.store %p, %y[%z, %z] strides [16, 1] bounds [] : tensor<64x16xi8, #kOfBytes> -> !greta_tile.ptr<i8>
  greta_tile.return
}
