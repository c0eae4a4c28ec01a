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

// Blocks have 80 columns for heads of 72 elements; the last 8 are not in memory. A maximum stays as long as weights are small enough; when one moves, the sums are rescaled.
// CHECK-LABEL: greta_tile.func @odd_0(
// CHECK: greta_tile.load {{.*}} bounds [0, 1](%{{.*}}, %c72_i32) : <f16> -> tensor<256x80xf16>
// CHECK: greta_tile.load {{.*}} bounds [0](%c72_i32) : <f16> -> tensor<80x64xf16>
// CHECK: %[[GROWS:.*]] = arith.cmpf ogt, %[[TOP:.*]], %{{.*}} : tensor<256xf32>
// CHECK: %[[MAX:.*]] = arith.select %[[GROWS]], %[[TOP]],
// CHECK: greta_tile.rescale {{.*}} : tensor<256x80xf32>, tensor<256x80xi1>
// CHECK: greta_tile.store {{.*}} bounds [0, 1]({{.*}}, %c72_i32) : tensor<256x80xf16>
func.func @odd(%q: tensor<?x2x?x72xf16>, %k: tensor<?x2x?x72xf16>, %v: tensor<?x2x?x72xf16>) -> tensor<?x2x?x72xf16> {
  %0 = greta.attention %q, %k, %v : tensor<?x2x?x72xf16>, tensor<?x2x?x72xf16>, tensor<?x2x?x72xf16> -> tensor<?x2x?x72xf16>
  return %0 : tensor<?x2x?x72xf16>
}

// -----

// Four heads that read the same keys are a tile of rows. A key's place comes from the table, and is some page whatever the entry says. In place of what is not valid the last valid key comes again, so that nothing is masked but logits. An iteration has a tile of keys for each wave, whose results meet behind
// the loop; then workgroups have parts of the keys: a part alone is the result, of several the last workgroup there adds up the rows that are queries.
// CHECK-LABEL: greta_tile.func @paged_0(
// CHECK-SAME: %[[RESULTS:[a-z0-9]+]]: !greta_tile.ptr<f32>, %[[SUMS:[a-z0-9]+]]: !greta_tile.ptr<f32>, %[[COUNTERS:[a-z0-9]+]]: !greta_tile.ptr<i32>,
// CHECK: scf.if
// CHECK: greta_tile.load {{.*}} -> tensor<4x4x64xf16>
// CHECK: greta_tile.reshape {{.*}} : tensor<4x4x64xf16> -> tensor<16x64xf16>
// CHECK: greta_tile.broadcast {{.*}} -> tensor<4x16x64xf16>
// CHECK: %[[ENTRY:.*]] = greta_tile.load_scattered %{{[0-9]+}} : tensor<128x!greta_tile.ptr<i32>> -> tensor<128xi32>
// CHECK: arith.minui %[[ENTRY]],
// CHECK: greta_tile.load_scattered %{{[0-9]+}} : tensor<64x128x!greta_tile.ptr<f16>> -> tensor<64x128xf16>
// CHECK: greta_tile.dot {{.*}} tensor<4x16x64xf16>, tensor<4x64x32xf16> -> tensor<4x16x32xf32>
// CHECK: } {greta_tile.pipeline = #greta_tile.pipeline<stages = 0, slice = 64>}
// CHECK: greta_tile.contract {{.*}} dims [0] : tensor<4x16x64xf32>, tensor<4x16x1xf32> -> tensor<1x16x64xf32>
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

// -----

// Keys of 8 bits are widened as they are loaded. A key's scale multiplies its column of logits; values' scales are relative to the largest so far, which the
// loop carries, and which the result is a multiple of.
// CHECK-LABEL: greta_tile.func @quantised_0(
// CHECK: scf.for {{.*}} -> (tensor<256xf32>, tensor<256xf32>, tensor<256x64xf32>, tensor<1xf32>)
// CHECK: %[[K:.*]] = greta_tile.load {{.*}} -> tensor<64x64xi8>
// CHECK: %[[WIDE:.*]] = arith.sitofp %[[K]] : tensor<64x64xi8> to tensor<64x64xf16>
// CHECK: %[[DOT:.*]] = greta_tile.dot %{{.*}}, %[[WIDE]]
// CHECK: greta_tile.load {{.*}} -> tensor<64xf32>
// CHECK: %[[SCALES:.*]] = greta_tile.broadcast {{.*}} -> tensor<256x64xf32>
// CHECK: arith.mulf %[[DOT]], %[[SCALES]]
// CHECK: math.absf {{.*}} : tensor<1x64xf32>
// CHECK: %[[UNIT:.*]] = arith.maxnumf
// CHECK: arith.divf {{.*}} : tensor<1x64xf32>
// CHECK: greta_tile.dot {{.*}} tensor<256x64xf16>, tensor<64x64xf16> -> tensor<256x64xf32>
// CHECK: scf.yield {{.*}}, %[[UNIT]]
func.func @quantised(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xi8>, %s: tensor<?x2x?xf32>) -> tensor<?x8x?x64xf16> {
  %0 = greta.attention %q, %k, %k scales(%s, %s) : tensor<?x8x?x64xf16>, tensor<?x2x?x64xi8>, tensor<?x2x?x64xi8>, tensor<?x2x?xf32>, tensor<?x2x?xf32> -> tensor<?x8x?x64xf16>
  return %0 : tensor<?x8x?x64xf16>
}

// -----

// Scales of heads are loaded before the loop; the values' multiply the result behind it.
// CHECK-LABEL: greta_tile.func @per_head_0(
// CHECK: %[[KS:.*]] = greta_tile.load_scattered {{.*}} : !greta_tile.ptr<f32> -> f32
// CHECK: %[[VS:.*]] = greta_tile.load_scattered {{.*}} : !greta_tile.ptr<f32> -> f32
// CHECK: scf.for
// CHECK: arith.extf {{.*}} : tensor<64x64xf8E4M3FN> to tensor<64x64xf16>
// CHECK: greta_tile.splat %[[KS]] : tensor<256x64xf32>
// CHECK: greta_tile.splat %[[VS]] : tensor<256x64xf32>
// CHECK: greta_tile.return
func.func @per_head(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf8E4M3FN>, %s: tensor<1x2x1xf32>, %t: tensor<1x1x1xf32>) -> tensor<?x8x?x64xf16> {
  %0 = greta.attention %q, %k, %k scales(%s, %t) : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf8E4M3FN>, tensor<?x2x?x64xf8E4M3FN>, tensor<1x2x1xf32>, tensor<1x1x1xf32> -> tensor<?x8x?x64xf16>
  return %0 : tensor<?x8x?x64xf16>
}

// -----

// Scales of groups multiply numbers where they are loaded, and the update makes both, in place.
// CHECK-LABEL: greta_tile.func @groups_0(
// CHECK: %[[PEAK:.*]] = greta_tile.reduce {arith.maximumf
// CHECK: %[[SCALE:.*]] = arith.truncf {{.*}} : tensor<32x2xf32> to tensor<32x2xf16>
// CHECK: math.roundeven
// CHECK: greta_tile.store_scattered %{{.*}} : tensor<32x64xi8>
// CHECK: greta_tile.store_scattered %[[SCALE]]
// CHECK-LABEL: greta_tile.func @groups_1(
// CHECK: greta_tile.broadcast {{.*}} : tensor<2x1x64xf16> -> tensor<2x32x64xf16>
// CHECK: %[[K:.*]] = arith.mulf {{.*}} : tensor<64x64xf16>
// CHECK: greta_tile.broadcast {{.*}} : tensor<64x2x1xf16> -> tensor<64x2x32xf16>
// CHECK: %[[V:.*]] = arith.mulf {{.*}} : tensor<64x64xf16>
// CHECK: %[[X:.*]] = greta_tile.dot %{{.*}}, %[[K]]
// CHECK-NEXT: greta_tile.reduce {arith.maxnumf {{.*}} %[[X]]
// CHECK: greta_tile.dot %{{.*}}, %[[V]]
// CHECK: greta_tile.launch @groups_0 {{.*}} tied [0, 3] shapes []
func.func @groups(%q: tensor<1x8x?x64xf16>, %c: tensor<?x16x2x64xi8>, %n: tensor<?x2x64xf16>, %i: tensor<?xi32>, %s: tensor<?x16x2x2xf16>, %t: tensor<1x?xi32>, %l: tensor<1xi32>)
    -> (tensor<1x8x?x64xf16>, tensor<?x16x2x64xi8>, tensor<?x16x2x2xf16>) {
  %0, %1 = greta.paged_kv_update %c, %n, %i, %s : tensor<?x16x2x64xi8>, tensor<?x2x64xf16>, tensor<?xi32>, tensor<?x16x2x2xf16> -> tensor<?x16x2x64xi8>, tensor<?x16x2x2xf16>
  %2 = greta.paged_attention %q, %0, %0, %t, %l scales(%1, %1) : tensor<1x8x?x64xf16>, tensor<?x16x2x64xi8>, tensor<?x16x2x64xi8>, tensor<1x?xi32>, tensor<1xi32>, tensor<?x16x2x2xf16>, tensor<?x16x2x2xf16> -> tensor<1x8x?x64xf16>
  return %2, %0, %1 : tensor<1x8x?x64xf16>, tensor<?x16x2x64xi8>, tensor<?x16x2x2xf16>
}

// -----

// A checked function asserts what tables, lengths and slots say; the table's entries in a loop in front of the others.
// CHECK-LABEL: greta_tile.func @checked_0(
// CHECK: %[[LENGTH:.*]] = arith.cmpi ule
// CHECK: greta_tile.assert %[[LENGTH]], "paged_attention: 'lengths' is negative, or beyond the table" : i1
// CHECK: scf.for
// CHECK-NOT: greta_tile.dot
// CHECK: greta_tile.assert %{{.*}}, "paged_attention: an entry of 'table' names no page" : tensor<64xi1>
// CHECK: scf.for
// CHECK-NOT: greta_tile.assert
// CHECK: greta_tile.dot
// CHECK-LABEL: greta_tile.func @checked_1(
// CHECK: greta_tile.assert %{{.*}}, "paged_kv_update: an entry of 'slots' is beyond the cache" : tensor<32xi1>
func.func @checked(%q: tensor<1x8x?x64xf16>, %c: tensor<?x16x2x64xf16>, %n: tensor<?x2x64xf16>, %s: tensor<?xi32>, %t: tensor<1x?xi32>, %l: tensor<1xi32>)
    -> (tensor<1x8x?x64xf16>, tensor<?x16x2x64xf16>) attributes {greta.checked} {
  %0 = greta.paged_attention %q, %c, %c, %t, %l : tensor<1x8x?x64xf16>, tensor<?x16x2x64xf16>, tensor<?x16x2x64xf16>, tensor<1x?xi32>, tensor<1xi32> -> tensor<1x8x?x64xf16>
  %1 = greta.paged_kv_update %c, %n, %s : tensor<?x16x2x64xf16>, tensor<?x2x64xf16>, tensor<?xi32> -> tensor<?x16x2x64xf16>
  return %0, %1 : tensor<1x8x?x64xf16>, tensor<?x16x2x64xf16>
}

// -----

// Work behind the result is done on its blocks before they are stored: operands lie as the result does, a row has one block for all rows, and where keys are split the work is at both places that store.
// CHECK-LABEL: greta_tile.func @gated_0(
// CHECK: %[[ALONE:.*]] = arith.cmpi eq, %{{.*}}, %c1_i32
// CHECK: scf.if %[[ALONE]]
// CHECK: %[[O:.*]] = arith.truncf %{{.*}} : tensor<16x64xf32> to tensor<16x64xf16>
// CHECK: %[[G:.*]] = greta_tile.load {{.*}} : <f16> -> tensor<4x4x64xf16>
// CHECK: %[[GATE:.*]] = greta_tile.reshape %[[G]] : tensor<4x4x64xf16> -> tensor<16x64xf16>
// CHECK: %[[M:.*]] = arith.mulf %[[O]], %[[GATE]] : tensor<16x64xf16>
// CHECK: greta_tile.load {{.*}} : <f16> -> tensor<1x1x64xf16>
// CHECK: %[[ROW:.*]] = greta_tile.broadcast {{.*}} : tensor<1x64xf16> -> tensor<16x64xf16>
// CHECK: %[[Y:.*]] = arith.addf %[[M]], %[[ROW]]
// CHECK: %[[S:.*]] = greta_tile.reshape %[[Y]] : tensor<16x64xf16> -> tensor<4x4x64xf16>
// CHECK: greta_tile.store %[[S]],
// CHECK: else
// CHECK: greta_tile.atomic_rmw
// CHECK: arith.mulf %{{.*}}, %{{.*}} : tensor<4x64xf16>
// CHECK: greta_tile.store {{.*}} : tensor<4x1x64xf16> -> <f16>
// CHECK: greta_tile.launch @gated_0
func.func @gated(%q: tensor<?x8x1x64xf16>, %k: tensor<?x2x?x64xf16>, %g: tensor<?x8x1x64xf16>, %w: tensor<64xf16>) -> tensor<?x8x1x64xf16> {
  %c0 = arith.constant 0 : index
  %b = tensor.dim %q, %c0 : tensor<?x8x1x64xf16>
  %0 = greta.attention %q, %k, %k : tensor<?x8x1x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x8x1x64xf16>
  %1 = arith.mulf %0, %g : tensor<?x8x1x64xf16>
  %init = tensor.empty(%b) : tensor<?x8x1x64xf16>
  %row = linalg.broadcast ins(%w : tensor<64xf16>) outs(%init : tensor<?x8x1x64xf16>) dimensions = [0, 1, 2]
  %2 = arith.addf %1, %row : tensor<?x8x1x64xf16>
  return %2 : tensor<?x8x1x64xf16>
}
