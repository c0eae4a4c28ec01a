// Attention and updates have kernels of their own; what is around them fuses without them.
// RUN: greta-opt --split-input-file --greta-fuse %s | FileCheck %s

// CHECK-LABEL: func.func @around(
// CHECK: %[[SUM:.*]] = greta.kernel(%arg0)
// CHECK: arith.addf
// CHECK: %[[Y:.*]]:2 = greta.kernel(%[[SUM]], %arg1, %arg2)
// CHECK: %[[R:.*]], %[[LSE:.*]] = greta.attention
// CHECK-NEXT: greta.yield %[[R]], %[[LSE]]
// CHECK: greta.kernel(%[[Y]]#0)
// CHECK: arith.mulf
func.func @around(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>) -> (tensor<?x8x?x64xf16>, tensor<?x8x?xf32>) {
  %0 = arith.addf %q, %q : tensor<?x8x?x64xf16>
  %1, %lse = greta.attention %0, %k, %v {causal} : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x8x?x64xf16>, tensor<?x8x?xf32>
  %2 = arith.mulf %1, %1 : tensor<?x8x?x64xf16>
  return %2, %lse : tensor<?x8x?x64xf16>, tensor<?x8x?xf32>
}

// -----

// A cache that is an argument and returned is updated in place, and then read.
// CHECK-LABEL: func.func @in_place(
// CHECK: %[[CACHE:.*]] = greta.kernel(%arg0, %arg1, %arg2)
// CHECK: greta.kv_update
// CHECK: %[[Y:.*]] = greta.kernel(%arg3, %[[CACHE]])
// CHECK: greta.attention
// CHECK: return %[[CACHE]], %[[Y]]
func.func @in_place(%c: tensor<?x2x?x64xf16>, %n: tensor<?x2x?x64xf16>, %p: tensor<?xi32>, %q: tensor<?x2x?x64xf16>) -> (tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>) {
  %0 = greta.kv_update %c, %n, %p : tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?xi32> -> tensor<?x2x?x64xf16>
  %1 = greta.attention %q, %0, %0 : tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x2x?x64xf16>
  return %0, %1 : tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>
}

// -----

// One that nobody gets back keeps its contents.
// CHECK-LABEL: func.func @not_returned(
// CHECK: %[[COPY:.*]] = greta.kernel(%arg0)
// CHECK: greta.broadcast
// CHECK: greta.kernel(%[[COPY]], %arg1, %arg2)
// CHECK: greta.paged_kv_update
func.func @not_returned(%c: tensor<?x16x2x64xf16>, %n: tensor<?x2x64xf16>, %p: tensor<?xi32>) -> tensor<?x16x2x64xf16> {
  %0 = greta.paged_kv_update %c, %n, %p : tensor<?x16x2x64xf16>, tensor<?x2x64xf16>, tensor<?xi32> -> tensor<?x16x2x64xf16>
  %1 = arith.addf %0, %0 : tensor<?x16x2x64xf16>
  return %1 : tensor<?x16x2x64xf16>
}
