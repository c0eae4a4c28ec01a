// Attention is a block program: one pass over the keys, tiles that every row sees whole without comparisons, then the others.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --cse %s | FileCheck %s

// CHECK-LABEL: greta_tile.func @causal_0(
// CHECK-SAME: attributes {waves = 8 : i32}
// CHECK: %[[Q:.*]] = greta_tile.load {{.*}} -> tensor<256x64xf16>
// CHECK: %[[WHOLE:.*]]:3 = scf.for %{{.*}} = %{{.*}} to %[[END:.*]] step
// CHECK: greta_tile.load {{.*}} bounds [] : <f16> -> tensor<64x64xf16>
// CHECK: greta_tile.dot %[[Q]],
// CHECK-NOT: arith.cmpi sle
// CHECK: greta_tile.reduce {arith.maxnumf
// CHECK: greta_tile.dot {{.*}} tensor<256x64xf16>, tensor<64x64xf16> -> tensor<256x64xf32>
// CHECK: scf.for %{{.*}} = %[[END]] to {{.*}} iter_args(%{{.*}} = %[[WHOLE]]#0
// CHECK: greta_tile.load {{.*}} bounds [1](
// CHECK: arith.cmpi sle, {{.*}} : tensor<256x64xi32>
// CHECK: greta_tile.store
// CHECK-NOT: scf.for
// CHECK: greta_tile.return
func.func @causal(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>) -> tensor<?x8x?x64xf16> {
  %0 = greta.attention %q, %k, %v {causal} : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x8x?x64xf16>
  return %0 : tensor<?x8x?x64xf16>
}

// -----

// Four heads that read the same keys are a tile of rows. A key's place comes from the table. A turn has a tile of keys for each wave, whose results meet behind
// the loop; then workgroups have parts of the keys: a part alone is the result, of several the last workgroup there adds up the rows that are queries.
// CHECK-LABEL: greta_tile.func @paged_0(
// CHECK-SAME: %[[RESULTS:[a-z0-9]+]]: !greta_tile.ptr<f32>, %[[SUMS:[a-z0-9]+]]: !greta_tile.ptr<f32>, %[[COUNTERS:[a-z0-9]+]]: !greta_tile.ptr<i32>,
// CHECK: scf.if
// CHECK: greta_tile.load {{.*}} -> tensor<4x4x64xf16>
// CHECK: greta_tile.reshape {{.*}} : tensor<4x4x64xf16> -> tensor<16x64xf16>
// CHECK: greta_tile.broadcast {{.*}} -> tensor<4x16x64xf16>
// CHECK: %[[ENTRY:.*]] = greta_tile.load_scattered {{.*}} mask %{{.*}} : tensor<128x!greta_tile.ptr<i32>> -> tensor<128xi32>
// CHECK: arith.cmpi ult, %[[ENTRY]],
// CHECK: greta_tile.load_scattered {{.*}} -> tensor<64x128xf16>
// CHECK: greta_tile.dot {{.*}} tensor<4x16x64xf16>, tensor<4x64x32xf16> -> tensor<4x16x32xf32>
// CHECK: } {greta_tile.pipeline = #greta_tile.pipeline<stages = 0, slice = 64>}
// CHECK: greta_tile.reduce {arith.addf} {{.*}} axis 0 : tensor<4x16x64xf32> -> tensor<16x64xf32>
// CHECK: %[[ALONE:.*]] = arith.cmpi eq, %[[USED:.*]], %c1_i32
// CHECK: scf.if %[[ALONE]]
// CHECK: greta_tile.store {{.*}} : tensor<4x4x64xf16> -> <f16>
// CHECK: else
// CHECK: greta_tile.store {{.*}} bounds [1](%c1_i32) : tensor<4x4x64xf32> -> <f32>
// CHECK: %[[BEFORE:.*]] = greta_tile.atomic_rmw add acq_rel device %[[COUNTER:.*]], %c1_i32
// CHECK: %[[ISLAST:.*]] = arith.cmpi eq, %[[BEFORE]]
// CHECK: scf.if %[[ISLAST]]
// CHECK: greta_tile.store_scattered %c0_i32, %[[COUNTER]]
// CHECK: scf.for {{.*}} to %[[USED]] step %c16_i32
// CHECK: greta_tile.load {{.*}} -> tensor<4x64xf32>
// CHECK: greta_tile.store {{.*}} : tensor<4x1x64xf16> -> <f16>
// CHECK: greta_tile.launch @paged_0 {{.*}} zeroed [3]
func.func @paged(%q: tensor<?x8x1x64xf16>, %k: tensor<?x16x2x64xf16>, %v: tensor<?x16x2x64xf16>, %t: tensor<?x?xi32>, %l: tensor<?xi32>) -> tensor<?x8x1x64xf16> {
  %0 = greta.paged_attention %q, %k, %v, %t, %l : tensor<?x8x1x64xf16>, tensor<?x16x2x64xf16>, tensor<?x16x2x64xf16>, tensor<?x?xi32>, tensor<?xi32> -> tensor<?x8x1x64xf16>
  return %0 : tensor<?x8x1x64xf16>
}

// -----

// The cache is written in place.
// CHECK-LABEL: greta_tile.func @update_0(
// CHECK: %[[ROWS:.*]] = greta_tile.load_scattered {{.*}} -> tensor<32x64xf16>
// CHECK: greta_tile.store_scattered %[[ROWS]],
// CHECK: greta_tile.launch @update_0 {{.*}}(%arg0, %arg1, %arg2) tied [0]
func.func @update(%c: tensor<?x2x?x64xf16>, %n: tensor<?x2x?x64xf16>, %p: tensor<?xi32>) -> tensor<?x2x?x64xf16> {
  %0 = greta.kv_update %c, %n, %p : tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?xi32> -> tensor<?x2x?x64xf16>
  return %0 : tensor<?x2x?x64xf16>
}

// -----

// Queries and result by token: rows of a head are all heads apart.
// CHECK-LABEL: greta_tile.func @tokens_first_0(
// CHECK: greta_tile.load {{.*}} strides [512, 1] {{.*}} -> tensor<256x64xf16>
// CHECK: greta_tile.store {{.*}} strides [512, 1] {{.*}} : tensor<256x64xf16>
func.func @tokens_first(%q: tensor<1x?x8x64xf16>, %k: tensor<?x16x2x64xf16>, %t: tensor<1x?xi32>, %l: tensor<1xi32>) -> tensor<1x?x8x64xf16> {
  %0 = greta.paged_attention %q, %k, %k, %t, %l {tokens_first} : tensor<1x?x8x64xf16>, tensor<?x16x2x64xf16>, tensor<?x16x2x64xf16>, tensor<1x?xi32>, tensor<1xi32> -> tensor<1x?x8x64xf16>
  return %0 : tensor<1x?x8x64xf16>
}
