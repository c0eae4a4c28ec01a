// Gradients of attention are two kernels: that of the queries gives delta, from which those of keys and values follow.
// RUN: greta-opt --split-input-file --greta-fuse %s | FileCheck %s

// CHECK-LABEL: func.func @both(
// CHECK: %[[ROWS:.*]]:2 = greta.kernel(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5)
// CHECK: %[[DQ:.*]], %{{.*}}, %{{.*}}, %[[DELTA:.*]] = greta.attention_backward {{.*}} {causal}
// CHECK-NEXT: greta.yield %[[DQ]], %[[DELTA]]
// CHECK: %[[KEYS:.*]]:2 = greta.kernel(%arg0, %arg1, %arg2, %[[ROWS]]#1, %arg4, %arg5)
// CHECK: %{{.*}}, %[[DK:.*]], %[[DV:.*]] = greta.attention_backward {{.*}} {causal}
// CHECK-NEXT: greta.yield %[[DK]], %[[DV]]
// CHECK: return %[[ROWS]]#0, %[[KEYS]]#0, %[[KEYS]]#1
func.func @both(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>, %o: tensor<?x8x?x64xf16>, %l: tensor<?x8x?xf32>, %do: tensor<?x8x?x64xf16>) -> (tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>) {
  %dq, %dk, %dv = greta.attention_backward %q, %k, %v, %o, %l, %do {causal} : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?xf32>, tensor<?x8x?x64xf16> -> tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>
  return %dq, %dk, %dv : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>
}

// -----

// Gradients that nobody uses are not computed, nor is a delta that is given.
// CHECK-LABEL: func.func @queries(
// CHECK-COUNT-1: greta.kernel
// CHECK-NOT: greta.kernel
// CHECK: greta.yield %dq : 
func.func @queries(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>, %o: tensor<?x8x?x64xf16>, %l: tensor<?x8x?xf32>, %do: tensor<?x8x?x64xf16>) -> (tensor<?x8x?x64xf16>) {
  %dq, %dk, %dv = greta.attention_backward %q, %k, %v, %o, %l, %do : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?xf32>, tensor<?x8x?x64xf16> -> tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>
  return %dq : tensor<?x8x?x64xf16>
}

// -----

// CHECK-LABEL: func.func @values(
// CHECK: %[[DELTA:.*]] = greta.kernel
// CHECK: greta.yield %delta
// CHECK: greta.kernel(%arg0, %arg1, %arg2, %[[DELTA]]
// CHECK: greta.yield %dv
func.func @values(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>, %o: tensor<?x8x?x64xf16>, %l: tensor<?x8x?xf32>, %do: tensor<?x8x?x64xf16>) -> (tensor<?x2x?x64xf16>) {
  %dq, %dk, %dv = greta.attention_backward %q, %k, %v, %o, %l, %do : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?xf32>, tensor<?x8x?x64xf16> -> tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>
  return %dv : tensor<?x2x?x64xf16>
}

// -----

// CHECK-LABEL: func.func @given(
// CHECK-COUNT-1: greta.kernel
// CHECK-NOT: greta.kernel
// CHECK: greta.yield %dk, %dv
func.func @given(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>, %o: tensor<?x8x?xf32>, %l: tensor<?x8x?xf32>, %do: tensor<?x8x?x64xf16>) -> (tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>) {
  %dq, %dk, %dv = greta.attention_backward %q, %k, %v, %o, %l, %do : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x8x?xf32>, tensor<?x8x?xf32>, tensor<?x8x?x64xf16> -> tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>
  return %dk, %dv : tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>
}

// -----

// CHECK-LABEL: func.func @delta(
// CHECK: %[[ROWS:.*]]:2 = greta.kernel
// CHECK: greta.yield %dq, %delta
// CHECK: greta.kernel(%arg0, %arg1, %arg2, %[[ROWS]]#1
// CHECK: greta.yield %dk
// CHECK: return %[[ROWS]]#0, %{{.*}}, %[[ROWS]]#1
func.func @delta(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>, %o: tensor<?x8x?x64xf16>, %l: tensor<?x8x?xf32>, %do: tensor<?x8x?x64xf16>) -> (tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x8x?xf32>) {
  %dq, %dk, %dv, %delta = greta.attention_backward %q, %k, %v, %o, %l, %do : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?xf32>, tensor<?x8x?x64xf16> -> tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x8x?xf32>
  return %dq, %dk, %delta : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x8x?xf32>
}

// -----

// Gradients that are only read by token are stored so, each kernel's by themselves; what it reads is a view.
// CHECK-DAG: #[[TURNED:.+]] = affine_map<()[s0, s1{{.*}}] -> ({{.*}}, 64, {{.*}}, 1, 0)>
// CHECK-LABEL: func.func @by_token(
// CHECK: %[[ROWS:.*]]:2 = greta.kernel
// CHECK: greta.attention_backward {{.*}} {tokens_first} : tensor<?x?x8x64xf16>, tensor<?x?x2x64xf16>, {{.*}} -> tensor<?x?x8x64xf16>, tensor<?x?x2x64xf16>, tensor<?x?x2x64xf16>, tensor<?x8x?xf32>
// CHECK: greta.kernel
// CHECK: greta.attention_backward {{.*}}%{{.*}} : tensor<?x8x?x64xf16>, {{.*}} -> tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>
// CHECK-NOT: greta.kernel
// CHECK: return %[[ROWS]]#0
func.func @by_token(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>, %o: tensor<?x8x?x64xf16>, %l: tensor<?x8x?xf32>, %do: tensor<?x8x?x64xf16>) -> (tensor<?x?x8x64xf16>, tensor<?x2x?x64xf16>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %q, %c0 : tensor<?x8x?x64xf16>
  %s = tensor.dim %q, %c2 : tensor<?x8x?x64xf16>
  %dq, %dk, %dv = greta.attention_backward %q, %k, %v, %o, %l, %do : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?xf32>, tensor<?x8x?x64xf16> -> tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>
  %e = tensor.empty(%b, %s) : tensor<?x?x8x64xf16>
  %0 = linalg.transpose ins(%dq : tensor<?x8x?x64xf16>) outs(%e : tensor<?x?x8x64xf16>) permutation = [0, 2, 1, 3]
  return %0, %dk : tensor<?x?x8x64xf16>, tensor<?x2x?x64xf16>
}
