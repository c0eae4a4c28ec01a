// A product with few blocks and a long K: parts along K, then their sum and what follows.
// RUN: greta-opt %s --greta-fuse --greta-configure=target=gfx942 | FileCheck %s
// RUN: greta-opt %s --greta-fuse --greta-configure=target=vulkan:nvidia | FileCheck %s --check-prefix=COOPMAT
// RUN: greta-opt %s --greta-fuse --greta-configure=target=gfx942 --greta-to-tile | FileCheck %s --check-prefix=TILE

// 32 blocks of 128x128 for 304 compute units: the configured product alone, and a temporary of all parts.
// CHECK-LABEL: func.func @few_blocks
// CHECK: %[[PARTS:.*]] = greta.kernel(%arg0, %arg1) {config = {{.*}}rows = [128]{{.*}} : (tensor<128x14336xf16>, tensor<4096x14336xf16>) -> tensor<1024x4096xf32>
// CHECK: greta.matmul {{.*}} {split = 8 : i64, transpose_b}
// CHECK-NOT: addf
// CHECK: greta.kernel(%arg2, %[[PARTS]]) {config = {{{.*}}columns = 2048 : i64, rows = [1]}
// CHECK: %[[SUM:.*]] = greta.sum_parts %{{.*}} {split = 8 : i64} : tensor<1024x4096xf32> -> tensor<128x4096xf16>
// CHECK: arith.addf %[[SUM]]
// COOPMAT-LABEL: func.func @few_blocks
// COOPMAT: greta.matmul {{.*}} {split = 4 : i64, transpose_b}
// Parts follow one another in the grid, and below each other in the temporary.
// TILE-LABEL: greta_tile.func @few_blocks_0
// TILE: %[[PART:.*]] = arith.divui %{{.*}}, %[[ALL:.*]] : i32
// TILE: arith.remui %{{.*}}, %[[ALL]]
// TILE: %[[BEGIN:.*]] = arith.muli %[[PART]], %c1792_i32
// TILE: scf.for %[[K:.*]] = %c0_i32{{.*}} to %c1792_i32
// TILE: arith.addi %[[BEGIN]], %[[K]]
// TILE: %[[BELOW:.*]] = arith.muli %[[PART]], %c128_i32
// TILE: %[[ROW:.*]] = arith.addi %{{.*}}, %[[BELOW]]
// TILE: greta_tile.store %{{.*}}, %{{.*}}[%[[ROW]],
// TILE-LABEL: greta_tile.func @few_blocks_1
// TILE-COUNT-8: greta_tile.load {{.*}} tensor<1x2048xf32>
// TILE-COUNT-7: arith.addf {{.*}} tensor<1x2048xf32>
// TILE: arith.truncf
func.func @few_blocks(%a: tensor<128x14336xf16>, %b: tensor<4096x14336xf16>, %r: tensor<128x4096xf16>) -> tensor<128x4096xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<128x14336xf16>, tensor<4096x14336xf16> -> tensor<128x4096xf16>
  %1 = arith.addf %0, %r : tensor<128x4096xf16>
  return %1 : tensor<128x4096xf16>
}

// Three of the five blocks along K, then two: M is dynamic, K ends inside a block.
// CHECK-LABEL: func.func @asked
// CHECK: greta.matmul {{.*}} {split = 2 : i64} : tensor<?x130xf16>, tensor<130x64xf16> -> tensor<?x64xf32>
// TILE-LABEL: greta_tile.func @asked_0
// TILE: %[[BEGIN:.*]] = arith.muli %{{.*}}, %c96_i32
// TILE: %[[REST:.*]] = arith.subi %c130_i32, %[[BEGIN]]
// TILE: %[[LENGTH:.*]] = arith.minsi %[[REST]], %c96_i32
// TILE: scf.for %{{.*}} = %c0_i32{{.*}} to %[[LENGTH]]
func.func @asked(%a: tensor<?x130xf16>, %b: tensor<130x64xf16>) -> tensor<?x64xf16> {
  %0 = greta.matmul %a, %b {greta.config = {tile = [64, 64, 32], waves = 4, split = 2}} : tensor<?x130xf16>, tensor<130x64xf16> -> tensor<?x64xf16>
  return %0 : tensor<?x64xf16>
}

// Few rows: whole blocks, and no more parts than have some.
// CHECK-LABEL: func.func @few_rows
// CHECK: greta.matmul {{.*}} {split = 2 : i64, transpose_b} : tensor<3x4096xf16>, tensor<65x4096xf16> -> tensor<6x65xf32>
func.func @few_rows(%a: tensor<3x4096xf16>, %b: tensor<65x4096xf16>) -> tensor<3x65xf16> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {split = 5}} : tensor<3x4096xf16>, tensor<65x4096xf16> -> tensor<3x65xf16>
  return %0 : tensor<3x65xf16>
}

// Enough blocks, and a short K.
// CHECK-LABEL: func.func @enough
// CHECK-NOT: split
func.func @enough(%a: tensor<4096x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %0 = greta.matmul %a, %b : tensor<4096x4096xf16>, tensor<4096x4096xf16> -> tensor<4096x4096xf16>
  return %0 : tensor<4096x4096xf16>
}
func.func @short(%a: tensor<128x512xf16>, %b: tensor<512x128xf16>) -> tensor<128x128xf16> {
  %0 = greta.matmul %a, %b : tensor<128x512xf16>, tensor<512x128xf16> -> tensor<128x128xf16>
  return %0 : tensor<128x128xf16>
}

// Two products of one A: parts of both, then both sums.
// CHECK-LABEL: func.func @pair
// CHECK: %[[PARTS:.*]]:2 = greta.kernel(%arg0, %arg1, %arg2)
// CHECK-COUNT-2: greta.matmul {{.*}} {split = 3 : i64, transpose_b} : {{.*}} -> tensor<210x65xf32>
// CHECK: greta.kernel(%[[PARTS]]#0, %[[PARTS]]#1)
// CHECK-COUNT-2: greta.sum_parts
// CHECK: greta.swiglu
func.func @pair(%a: tensor<70x1000xf16>, %g: tensor<65x1000xf16>, %u: tensor<65x1000xf16>) -> tensor<70x65xf16> {
  %0 = greta.matmul %a, %g {transpose_b, greta.config = {split = 3}} : tensor<70x1000xf16>, tensor<65x1000xf16> -> tensor<70x65xf16>
  %1 = greta.matmul %a, %u {transpose_b, greta.config = {split = 3}} : tensor<70x1000xf16>, tensor<65x1000xf16> -> tensor<70x65xf16>
  %2 = greta.swiglu %0, %1 : tensor<70x65xf16>, tensor<70x65xf16> -> tensor<70x65xf16>
  return %2 : tensor<70x65xf16>
}
