// Gradients of attention: keys and values add up over the query heads that read them; what no row sees may be anything.
// RUN: greta-opt %s --greta-decompose --canonicalize --cse | FileCheck %s --implicit-check-not="= greta."

// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4, d5, d2)>
// CHECK-LABEL: func.func @backward(
// CHECK: math.exp
// CHECK: math.tanh
// CHECK: tensor.expand_shape {{.*}} : tensor<?x8x?x?xf64> into tensor<?x2x4x?x?xf64>
// CHECK: linalg.generic {indexing_maps = [#[[ALL]], {{.*}}"reduction", "reduction"]}
// CHECK: arith.cmpf oeq
// CHECK: arith.truncf {{.*}} : f32 to f16
// CHECK: return
func.func @backward(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>, %o: tensor<?x8x?x64xf16>, %l: tensor<?x8x?xf32>, %do: tensor<?x8x?x64xf16>) -> (tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>) {
  %dq, %dk, %dv = greta.attention_backward %q, %k, %v, %o, %l, %do {softcap = 30.0 : f32} : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?xf32>, tensor<?x8x?x64xf16> -> tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>
  return %dq, %dk, %dv : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>
}
