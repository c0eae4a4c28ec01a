// A GEMM with few tiles and a long K: workgroups for ranges of K, of which the last at a tile adds them up, or those that are there when it has come.
// RUN: greta-opt %s --greta-fuse --greta-configure=target=gfx942 | FileCheck %s
// RUN: greta-opt %s --greta-fuse --greta-configure=target=vulkan:nvidia | FileCheck %s --check-prefix=COOPMAT
// RUN: greta-opt %s --greta-fuse --greta-configure=target=gfx942 --greta-to-tile=units=304 --cse | FileCheck %s --check-prefix=TILE

// 32 tiles of 128x128 for 304 compute units, as asked for; the H200's 132 are the model's choice.
// CHECK-LABEL: func.func @few_tiles
// CHECK: greta.kernel({{.*}}split = 8
// COOPMAT-LABEL: func.func @few_tiles
// COOPMAT: greta.kernel({{.*}}split = {{[468]}}
// The parts of a tile lie behind each other in scratch memory, and count themselves.
// TILE-LABEL: greta_tile.func @few_tiles_0
// TILE-SAME: %[[PARTS:[a-z0-9]+]]: !greta_tile.ptr<f32>, %[[ARRIVALS:[a-z0-9]+]]: !greta_tile.ptr<i32>)
// TILE: %[[PART:.*]] = arith.divui %{{.*}}, %[[ALL:.*]] : i32
// TILE: %[[TILE:.*]] = arith.remui %{{.*}}, %[[ALL]]
// TILE: %[[BEGIN:.*]] = arith.muli %[[PART]], %c1792_i32
// TILE: %[[SUM:.*]] = scf.for %[[K:.*]] = %c0_i32{{.*}} to %c1792_i32
// TILE: arith.addi %[[BEGIN]], %[[K]]
// TILE: %[[OFTILE:.*]] = greta_tile.ptr_add %[[PARTS]]
// TILE: %[[MINE:.*]] = greta_tile.ptr_add %[[OFTILE]]
// TILE: greta_tile.store %[[SUM]], %[[MINE]][%c0_i32, %c0_i32] strides [128, 1] bounds []
// TILE: %[[COUNTER:.*]] = greta_tile.ptr_add %[[ARRIVALS]], %[[TILE]]
// TILE: %[[BEFORE:.*]] = greta_tile.atomic_rmw add acq_rel device %[[COUNTER]], %c1_i32
// Whoever sees that all have come takes slices of 16 rows, the last one the first.
// TILE: scf.while
// TILE: greta_tile.atomic_rmw or relaxed device %[[COUNTER]], %c0_i32
// TILE: %[[EARLY:.*]] = arith.cmpi ne, %{{.*}}, %c8_i32
// TILE: %[[STEP:.*]] = arith.select %{{.*}}, %c1_i32, %c65536_i32
// TILE: %[[CLAIM:.*]] = greta_tile.atomic_rmw add acquire device %[[COUNTER]], %[[STEP]] mask %[[EARLY]]
// TILE: arith.select %[[EARLY]], %[[CLAIM]], %[[BEFORE]]
// TILE: scf.while
// TILE: ^bb0(%[[SLICE:.*]]: i32, %{{.*}}: i32):
// TILE: arith.muli %[[SLICE]], %c16_i32
// TILE: greta_tile.load {{.*}} strides [128, 1] bounds [] : <f32> -> tensor<16x128xf32>
// TILE: arith.addf {{.*}} tensor<16x128xf32>
// TILE: arith.truncf
// TILE: greta_tile.store
// TILE: greta_tile.atomic_rmw add relaxed device %[[COUNTER]], %c1_i32
// TILE: %[[COUNT:.*]] = arith.addi %c8_i32, %c14_i32
// TILE: %[[ALL:.*]] = arith.cmpi eq, %{{.*}}, %[[COUNT]]
// TILE: scf.if %[[ALL]]
// TILE: greta_tile.store_scattered %c0_i32, %[[COUNTER]]
// TILE: greta_tile.launch @few_tiles_0 {{.*}} zeroed [2] shapes
func.func @few_tiles(%a: tensor<128x14336xf16>, %b: tensor<4096x14336xf16>, %r: tensor<128x4096xf16>) -> tensor<128x4096xf16> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {gfx942 = {tile = [128, 128, 32], waves = 8, split = 8}}} : tensor<128x14336xf16>, tensor<4096x14336xf16> -> tensor<128x4096xf16>
  %1 = arith.addf %0, %r : tensor<128x4096xf16>
  return %1 : tensor<128x4096xf16>
}

// Three of the five blocks along K, then two: M is dynamic, K ends inside a block.
// CHECK-LABEL: func.func @asked
// CHECK: greta.kernel({{.*}}split = 2
// TILE-LABEL: greta_tile.func @asked_0
// TILE: %[[BEGIN:.*]] = arith.muli %{{.*}}, %c96_i32
// TILE: %[[REST:.*]] = arith.subi %c130_i32, %[[BEGIN]]
// TILE: %[[LENGTH:.*]] = arith.minsi %[[REST]], %c96_i32
// TILE: scf.for %{{.*}} = %c0_i32{{.*}} to %[[LENGTH]]
func.func @asked(%a: tensor<?x130xf16>, %b: tensor<130x64xf16>) -> tensor<?x64xf16> {
  %0 = greta.matmul %a, %b {greta.config = {tile = [64, 64, 32], waves = 4, split = 2}} : tensor<?x130xf16>, tensor<130x64xf16> -> tensor<?x64xf16>
  return %0 : tensor<?x64xf16>
}

// Skinny GEMMs: whole blocks, and no more parts than have some.
// CHECK-LABEL: func.func @few_rows
// CHECK: greta.kernel({{.*}}split = 2
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
// CHECK: greta.kernel({{.*}}split = {{2|3}}
// TILE-LABEL: greta_tile.func @pair_0
// TILE: greta_tile.atomic_rmw
// TILE-NOT: greta_tile.atomic_rmw
// TILE: greta_tile.launch @pair_0 {{.*}} zeroed [3] shapes
func.func @pair(%a: tensor<70x1000xf16>, %g: tensor<65x1000xf16>, %u: tensor<65x1000xf16>) -> tensor<70x65xf16> {
  %0 = greta.matmul %a, %g {transpose_b, greta.config = {split = 3}} : tensor<70x1000xf16>, tensor<65x1000xf16> -> tensor<70x65xf16>
  %1 = greta.matmul %a, %u {transpose_b, greta.config = {split = 3}} : tensor<70x1000xf16>, tensor<65x1000xf16> -> tensor<70x65xf16>
  %2 = greta.swiglu %0, %1 : tensor<70x65xf16>, tensor<70x65xf16> -> tensor<70x65xf16>
  return %2 : tensor<70x65xf16>
}
