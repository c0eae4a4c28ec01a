// Blocks for which registers have no room are loaded in the loop, from shared memory, where they go once: one loop, with a branch around the comparisons.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx1100 --greta-to-tile --cse %s | FileCheck %s

// CHECK-LABEL: greta_tile.func @queries_0(
// CHECK: scf.for
// CHECK: %[[Q:.*]] = greta_tile.load {{.*}} -> tensor<64x256xf16>
// CHECK: %[[DOT:.*]] = greta_tile.dot %[[Q]],
// CHECK: %[[X:.*]] = arith.mulf %[[DOT]],
// CHECK: %[[BEHIND:.*]] = arith.cmpi sge, %arg{{.*}} : i32
// CHECK: %[[SEEN:.*]] = scf.if %[[BEHIND]]
// CHECK: arith.cmpi sle, {{.*}} : tensor<64x16xi32>
// CHECK: else
// CHECK-NEXT: scf.yield %[[X]]
// CHECK: greta_tile.reduce {arith.maxnumf {{.*}}} %[[SEEN]]
// CHECK-NOT: scf.for
func.func @queries(%q: tensor<?x8x?x256xf16>, %k: tensor<?x2x?x256xf16>) -> tensor<?x8x?x256xf16> {
  %0 = greta.attention %q, %k, %k {causal} : tensor<?x8x?x256xf16>, tensor<?x2x?x256xf16>, tensor<?x2x?x256xf16> -> tensor<?x8x?x256xf16>
  return %0 : tensor<?x8x?x256xf16>
}

// -----

// The loop of gradients goes over the query heads of a key head, too, once for each sum; every query meets every key, so nothing is compared.
// CHECK-LABEL: greta_tile.func @keys_0(
// CHECK: scf.for
// CHECK: %[[HEAD:.*]] = arith.remui %[[TURN:.*]], %[[HEADS:c4_i32]] : i32
// CHECK: arith.divui %[[TURN]], %[[HEADS]] : i32
// CHECK: greta_tile.load {{.*}} -> tensor<64x128xf16>
// CHECK-NOT: scf.if
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK-NOT: scf.for
// CHECK: greta_tile.return
func.func @keys(%q: tensor<?x8x?x128xf16>, %k: tensor<?x2x?x128xf16>, %delta: tensor<?x8x?xf32>, %lse: tensor<?x8x?xf32>) -> (tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>) {
  %dq, %dk, %dv = greta.attention_backward %q, %k, %k, %delta, %lse, %q : tensor<?x8x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x8x?xf32>, tensor<?x8x?xf32>, tensor<?x8x?x128xf16> -> tensor<?x8x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>
  return %dk, %dv : tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>
}
