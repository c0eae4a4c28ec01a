// Attention is a block program: one pass over the keys, tiles that every row sees whole without comparisons, then the others.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --cse %s | FileCheck %s

// CHECK-LABEL: greta_tile.func @causal_0(
// CHECK-SAME: attributes {waves = 4 : i32}
// CHECK: %[[Q:.*]] = greta_tile.load {{.*}} -> tensor<128x64xf16>
// CHECK: %[[WHOLE:.*]]:3 = scf.for %{{.*}} = %{{.*}} to %[[END:.*]] step
// CHECK: greta_tile.load {{.*}} bounds [] : <f16> -> tensor<64x64xf16>
// CHECK: greta_tile.dot %[[Q]],
// CHECK-NOT: arith.cmpi sle
// CHECK: greta_tile.reduce {arith.maximumf}
// CHECK: greta_tile.dot {{.*}} tensor<128x64xf16>, tensor<64x64xf16> -> tensor<128x64xf32>
// CHECK: scf.for %{{.*}} = %[[END]] to {{.*}} iter_args(%{{.*}} = %[[WHOLE]]#0
// CHECK: greta_tile.load {{.*}} bounds [1](
// CHECK: arith.cmpi sle, {{.*}} : tensor<128x64xi32>
// CHECK: greta_tile.store
// CHECK-NOT: scf.for
// CHECK: greta_tile.return
func.func @causal(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>) -> tensor<?x8x?x64xf16> {
  %0 = greta.attention %q, %k, %v {causal} : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x8x?x64xf16>
  return %0 : tensor<?x8x?x64xf16>
}

// -----

// Four heads that read the same keys are a tile of rows. A key's place comes from the table.
// CHECK-LABEL: greta_tile.func @paged_0(
// CHECK: greta_tile.load {{.*}} -> tensor<4x4x64xf16>
// CHECK: greta_tile.reshape {{.*}} : tensor<4x4x64xf16> -> tensor<16x64xf16>
// CHECK: %[[ENTRY:.*]] = greta_tile.load_scattered {{.*}} mask %{{.*}} : tensor<64x!greta_tile.ptr<i32>> -> tensor<64xi32>
// CHECK: arith.cmpi ult, %[[ENTRY]],
// CHECK: greta_tile.load_scattered {{.*}} -> tensor<64x64xf16>
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
// CHECK: greta_tile.load {{.*}} strides [512, 1] {{.*}} -> tensor<128x64xf16>
// CHECK: greta_tile.store {{.*}} strides [512, 1] {{.*}} : tensor<128x64xf16>
func.func @tokens_first(%q: tensor<1x?x8x64xf16>, %k: tensor<?x16x2x64xf16>, %t: tensor<1x?xi32>, %l: tensor<1xi32>) -> tensor<1x?x8x64xf16> {
  %0 = greta.paged_attention %q, %k, %k, %t, %l {tokens_first} : tensor<1x?x8x64xf16>, tensor<?x16x2x64xf16>, tensor<?x16x2x64xf16>, tensor<1x?xi32>, tensor<1xi32> -> tensor<1x?x8x64xf16>
  return %0 : tensor<1x?x8x64xf16>
}
