// RUN: greta-opt %s --greta-tile-distribute=target=gfx942 | FileCheck %s --check-prefixes=CHECK,GFX942
// RUN: greta-opt %s --greta-tile-distribute=target=gfx1100 | FileCheck %s --check-prefixes=CHECK,GFX1100

#rows = #greta_tile.layout<{reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], wave = [], rep = [1, 1]}>
#row = #greta_tile.layout<{reg = [], lane = [[1], [2], [4], [8], [16]], wave = [], rep = [1]}>

// Eight registers. AMD has the extremum of three in one instruction; where pairs of f32 are added in one, the first and the second of each are two sums.
// CHECK-LABEL: @trees
// CHECK: %[[X0:.*]] = vector.extract %[[LOW:.*]][0]
// CHECK: %[[X1:.*]] = vector.extract %[[LOW]][1]
// CHECK: %[[X2:.*]] = vector.extract %[[LOW]][2]
// CHECK: %[[X3:.*]] = vector.extract %[[LOW]][3]
// CHECK: %[[M:.*]] = arith.maxnumf %[[X0]], %[[X1]]
// CHECK-NEXT: arith.maxnumf %[[M]], %[[X2]]
// GFX942: %[[S0:.*]] = arith.addf %[[X0]], %[[X2]]
// GFX942-NEXT: %[[S1:.*]] = arith.addf %[[X1]], %[[X3]]
// GFX942-NEXT: %[[S2:.*]] = arith.addf
// GFX942-NEXT: %[[S3:.*]] = arith.addf
// GFX942-NEXT: arith.addf %[[S0]], %[[S2]]
// GFX942-NEXT: arith.addf %[[S1]], %[[S3]]
// GFX1100: arith.addf %[[X0]], %[[X1]]
// GFX1100-NEXT: arith.addf %[[X2]], %[[X3]]
greta_tile.func @trees(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [8, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<32x8xf32, #rows>
  %m = greta_tile.reduce {arith.maxnumf} %a axis 1 : tensor<32x8xf32, #rows> -> tensor<32xf32, #row>
  greta_tile.store %m, %x[%z] strides [1] bounds [] : tensor<32xf32, #row> -> !greta_tile.ptr<f32>
  %s = greta_tile.reduce {arith.addf} %a axis 1 : tensor<32x8xf32, #rows> -> tensor<32xf32, #row>
  greta_tile.store %s, %x[%z] strides [1] bounds [] : tensor<32xf32, #row> -> !greta_tile.ptr<f32>
  greta_tile.return
}
