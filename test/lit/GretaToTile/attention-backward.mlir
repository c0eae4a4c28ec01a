// Gradients of attention are two block programs, one with the roles of queries and keys exchanged.
// RUN: greta-opt --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --cse %s | FileCheck %s

// A tile of queries goes over the keys, those that all see whole, then the others. Its delta is stored.
// CHECK-LABEL: greta_tile.func @both_0(
// CHECK: greta_tile.reduce {arith.addf} {{.*}} axis 1 : tensor<128x64xf32> -> tensor<128xf32>
// CHECK: %[[WHOLE:.*]] = scf.for %{{.*}} = %{{.*}} to %[[END:.*]] step
// CHECK: %[[KEYS:.*]] = greta_tile.load {{.*}} bounds [] : <f16> -> tensor<64x64xf16>
// CHECK: %[[TURNED:.*]] = greta_tile.trans %[[KEYS]] [1, 0]
// CHECK: greta_tile.dot %{{.*}}, %[[TURNED]],
// CHECK-NOT: arith.cmpi sle
// CHECK: math.exp2
// CHECK: %[[SLOPES:.*]] = arith.truncf {{.*}} : tensor<128x64xf32> to tensor<128x64xf16>
// CHECK: greta_tile.dot %[[SLOPES]], %[[KEYS]], %{{.*}}
// CHECK: scf.for %{{.*}} = %[[END]] to {{.*}} iter_args(%{{.*}} = %[[WHOLE]]
// CHECK: arith.cmpi sle, {{.*}} : tensor<128x64xi32>
// CHECK: greta_tile.store {{.*}} : tensor<128x64xf16>
// CHECK: greta_tile.store {{.*}} : tensor<128xf32>
// CHECK: greta_tile.return

// A tile of keys goes over the queries of all heads that read it: the diagonal, all behind it, the end, where keys need no comparison.
// CHECK-LABEL: greta_tile.func @both_1(
// CHECK: scf.for %{{.*}} to %c4_i32 step %c1_i32
// CHECK: scf.for
// CHECK: arith.cmpi sle, {{.*}} : tensor<128x64xi32>
// CHECK: scf.for
// CHECK: %[[LOGS:.*]] = greta_tile.load {{.*}} bounds [] : <f32> -> tensor<64xf32>
// CHECK: greta_tile.broadcast {{.*}} : tensor<1x64xf32> -> tensor<128x64xf32>
// CHECK-NOT: arith.cmpi sle
// CHECK-COUNT-3: greta_tile.dot
// CHECK: scf.for
// CHECK-NOT: arith.cmpi sle
// CHECK-COUNT-4: greta_tile.dot
// CHECK-NOT: scf.for
// CHECK-COUNT-2: greta_tile.store {{.*}} : tensor<128x64xf16>
// CHECK: greta_tile.return
func.func @both(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>, %o: tensor<?x8x?x64xf16>, %l: tensor<?x8x?xf32>, %do: tensor<?x8x?x64xf16>) -> (tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>) {
  %dq, %dk, %dv = greta.attention_backward %q, %k, %v, %o, %l, %do {causal} : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?xf32>, tensor<?x8x?x64xf16> -> tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>
  return %dq, %dk, %dv : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>
}
