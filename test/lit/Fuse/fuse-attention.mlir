// Attention and updates have kernels of their own; elementwise work behind greta.attention is part of its kernel, what else is around them fuses without them.
// RUN: greta-opt --split-input-file --greta-fuse %s | FileCheck %s

// CHECK-LABEL: func.func @around(
// CHECK: %[[SUM:.*]] = greta.kernel(%arg0)
// CHECK: arith.addf
// CHECK: greta.kernel(%[[SUM]], %arg1, %arg2)
// CHECK: %[[R:.*]], %[[LSE:.*]] = greta.attention
// CHECK-NEXT: %[[SQUARE:.*]] = arith.mulf %[[R]], %[[R]]
// CHECK-NEXT: greta.yield %[[LSE]], %[[SQUARE]]
// CHECK-NOT: greta.kernel(
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

// -----

// Keys by token are a view; what is only read by token is stored so, though somebody asks for its size.
// CHECK-DAG: #[[Q:.+]] = affine_map<()[s0] -> (s0 * 768, 768, 64, 1, 0)>
// CHECK-DAG: #[[K:.+]] = affine_map<()[s0] -> (s0 * 768, 64, 768, 1, 512)>
// CHECK-LABEL: func.func @by_token(
// CHECK-SAME: %[[X:.*]]: tensor<1x?x768xf16>
// CHECK: %[[Y:.*]] = greta.kernel(%[[X]], %[[X]]) {{.*}}views = [#[[Q]], #[[K]]]
// CHECK: greta.attention {{.*}} {tokens_first} : tensor<1x?x8x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16> -> tensor<1x?x8x64xf16>
// CHECK-NOT: greta.kernel
// CHECK: tensor.collapse_shape %[[Y]]
func.func @by_token(%x: tensor<1x?x768xf16>) -> tensor<1x?x512xf16> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = tensor.dim %x, %c1 : tensor<1x?x768xf16>
  %qs = tensor.extract_slice %x[0, 0, 0] [1, %t, 512] [1, 1, 1] : tensor<1x?x768xf16> to tensor<1x?x512xf16>
  %ks = tensor.extract_slice %x[0, 0, 512] [1, %t, 128] [1, 1, 1] : tensor<1x?x768xf16> to tensor<1x?x128xf16>
  %qt = tensor.expand_shape %qs [[0], [1], [2, 3]] output_shape [1, %t, 8, 64] : tensor<1x?x512xf16> into tensor<1x?x8x64xf16>
  %kt = tensor.expand_shape %ks [[0], [1], [2, 3]] output_shape [1, %t, 2, 64] : tensor<1x?x128xf16> into tensor<1x?x2x64xf16>
  %qe = tensor.empty(%t) : tensor<1x8x?x64xf16>
  %q = linalg.transpose ins(%qt : tensor<1x?x8x64xf16>) outs(%qe : tensor<1x8x?x64xf16>) permutation = [0, 2, 1, 3]
  %ke = tensor.empty(%t) : tensor<1x2x?x64xf16>
  %k = linalg.transpose ins(%kt : tensor<1x?x2x64xf16>) outs(%ke : tensor<1x2x?x64xf16>) permutation = [0, 2, 1, 3]
  %y = greta.attention %q, %k, %k : tensor<1x8x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16> -> tensor<1x8x?x64xf16>
  %n = tensor.dim %y, %c2 : tensor<1x8x?x64xf16>
  %ye = tensor.empty(%n) : tensor<1x?x8x64xf16>
  %yt = linalg.transpose ins(%y : tensor<1x8x?x64xf16>) outs(%ye : tensor<1x?x8x64xf16>) permutation = [0, 2, 1, 3]
  %0 = tensor.collapse_shape %yt [[0], [1], [2, 3]] : tensor<1x?x8x64xf16> into tensor<1x?x512xf16>
  return %0 : tensor<1x?x512xf16>
}

// -----

// Operands that the work behind alone takes are computed there: a gate, a row, numbers of rows. The result itself, which somebody else wants, and one of another type are stored beside it.
// CHECK-LABEL: func.func @gated(
// CHECK: %[[Y:.*]]:2 = greta.kernel(%arg2, %arg0, %arg1, %arg3, %arg4)
// CHECK: %[[E:.*]] = math.exp
// CHECK: %[[R:.*]] = greta.attention {{.*}} {tokens_first}
// CHECK: %[[M:.*]] = arith.mulf %[[R]], %[[E]]
// CHECK: greta.broadcast %{{.*}} dims [3]
// CHECK: greta.broadcast %{{.*}} dims [0, 1, 2]
// CHECK: %[[S:.*]] = arith.addf
// CHECK: %[[W:.*]] = arith.extf %[[S]]
// CHECK: greta.yield %[[R]], %[[W]]
// CHECK-NOT: greta.kernel(
// CHECK: return %[[Y]]#1, %[[Y]]#0
func.func @gated(%q: tensor<?x?x8x64xf16>, %k: tensor<?x2x?x64xf16>, %g: tensor<?x?x8x64xf16>, %w: tensor<64xf16>, %n: tensor<?x?x8xf16>) -> (tensor<?x?x8x64xf32>, tensor<?x?x8x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x8x64xf16>
  %s = tensor.dim %q, %c1 : tensor<?x?x8x64xf16>
  %e = math.exp %g : tensor<?x?x8x64xf16>
  %0 = greta.attention %q, %k, %k {tokens_first} : tensor<?x?x8x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x?x8x64xf16>
  %1 = arith.mulf %0, %e : tensor<?x?x8x64xf16>
  %init = tensor.empty(%b, %s) : tensor<?x?x8x64xf16>
  %row = linalg.broadcast ins(%w : tensor<64xf16>) outs(%init : tensor<?x?x8x64xf16>) dimensions = [0, 1, 2]
  %2 = arith.mulf %1, %row : tensor<?x?x8x64xf16>
  %numbers = linalg.broadcast ins(%n : tensor<?x?x8xf16>) outs(%init : tensor<?x?x8x64xf16>) dimensions = [3]
  %3 = arith.addf %2, %numbers : tensor<?x?x8x64xf16>
  %4 = arith.extf %3 : tensor<?x?x8x64xf16> to tensor<?x?x8x64xf32>
  return %4, %0 : tensor<?x?x8x64xf32>, tensor<?x?x8x64xf16>
}

// -----

// Work on the logarithms of sums is no work on the result; of two attentions one takes the sum of both.
// CHECK-LABEL: func.func @others(
// CHECK-COUNT-4: greta.kernel(
func.func @others(%q: tensor<2x4x32x64xf16>, %k: tensor<2x4x?x64xf16>) -> (tensor<2x4x32xf32>, tensor<2x4x32x64xf16>, tensor<2x4x32x64xf16>) {
  %0, %lse = greta.attention %q, %k, %k {causal} : tensor<2x4x32x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x32x64xf16>, tensor<2x4x32xf32>
  %1 = greta.attention %q, %k, %k : tensor<2x4x32x64xf16>, tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16> -> tensor<2x4x32x64xf16>
  %2 = math.exp %lse : tensor<2x4x32xf32>
  %3 = arith.addf %0, %1 : tensor<2x4x32x64xf16>
  // A second reading of the queries has nothing to do with the result.
  %4 = arith.negf %q : tensor<2x4x32x64xf16>
  return %2, %3, %4 : tensor<2x4x32xf32>, tensor<2x4x32x64xf16>, tensor<2x4x32x64xf16>
}

// -----

// Paged attention and gradients take no work behind them, and a norm is no elementwise work.
// CHECK-LABEL: func.func @apart(
// CHECK: greta.attention
// CHECK-NEXT: greta.yield
// CHECK: greta.rms_norm
// CHECK: greta.paged_attention
// CHECK-NEXT: greta.yield
// CHECK: arith.negf
func.func @apart(%q: tensor<2x4x32x64xf16>, %k: tensor<2x4x32x64xf16>, %w: tensor<64xf16>, %c: tensor<9x16x4x64xf16>, %t: tensor<2x?xi32>, %l: tensor<2xi32>) -> (tensor<2x4x32x64xf16>, tensor<2x4x32x64xf16>) {
  %0 = greta.attention %q, %k, %k : tensor<2x4x32x64xf16>, tensor<2x4x32x64xf16>, tensor<2x4x32x64xf16> -> tensor<2x4x32x64xf16>
  %1 = greta.rms_norm %0, %w {eps = 1.0e-5 : f32} : tensor<2x4x32x64xf16>, tensor<64xf16> -> tensor<2x4x32x64xf16>
  %2 = greta.paged_attention %1, %c, %c, %t, %l : tensor<2x4x32x64xf16>, tensor<9x16x4x64xf16>, tensor<9x16x4x64xf16>, tensor<2x?xi32>, tensor<2xi32> -> tensor<2x4x32x64xf16>
  %3 = arith.negf %2 : tensor<2x4x32x64xf16>
  return %1, %3 : tensor<2x4x32x64xf16>, tensor<2x4x32x64xf16>
}
