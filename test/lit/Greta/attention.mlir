// Attention and the KV cache's updates print as they are written in the contract, and read themselves back.
// RUN: greta-opt %s | greta-opt | FileCheck %s

// CHECK-LABEL: func.func @plain(
// CHECK: greta.attention %arg0, %arg1, %arg2 : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x8x?x64xf16>
func.func @plain(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>) -> tensor<?x8x?x64xf16> {
  %0 = greta.attention %q, %k, %v : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x8x?x64xf16>
  return %0 : tensor<?x8x?x64xf16>
}

// CHECK-LABEL: func.func @options(
// CHECK: greta.attention %arg0, %arg1, %arg2 lengths(%arg3) mask(%arg4) {causal, scale = 1.250000e-01 : f32} : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2xi32>, tensor<1x1x4x16xf32> -> tensor<2x8x4x64xf16>
// CHECK: %{{.*}}, %[[LSE:.*]] = greta.attention %arg0, %arg1, %arg2 mask(%arg6) sinks(%arg5) {softcap = 3.000000e+01 : f32, window = 128 : i64} : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2x1x1x16xf32>, tensor<8xf32> -> tensor<2x8x4x64xf16>, tensor<2x8x4xf32>
// CHECK: return %{{.*}}, %[[LSE]]
func.func @options(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %l: tensor<2xi32>, %m: tensor<1x1x4x16xf32>, %s: tensor<8xf32>, %r: tensor<2x1x1x16xf32>) -> (tensor<2x8x4x64xf16>, tensor<2x8x4xf32>) {
  %0 = greta.attention %q, %k, %v lengths(%l) mask(%m) {scale = 0.125 : f32, causal} : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2xi32>, tensor<1x1x4x16xf32> -> tensor<2x8x4x64xf16>
  %1, %lse = greta.attention %q, %k, %v mask(%r) sinks(%s) {window = 128, softcap = 30.0 : f32} : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2x1x1x16xf32>, tensor<8xf32> -> tensor<2x8x4x64xf16>, tensor<2x8x4xf32>
  return %0, %lse : tensor<2x8x4x64xf16>, tensor<2x8x4xf32>
}

// CHECK-LABEL: func.func @scales(
// CHECK: greta.attention %arg0, %arg1, %arg1 lengths(%arg2) scales(%arg3, %arg4) {causal} : tensor<2x8x4x64xf16>, tensor<2x2x16x64xi8>, tensor<2x2x16x64xi8>, tensor<2xi32>, tensor<2x2x16xf32>, tensor<1x2x1xf32> -> tensor<2x8x4x64xf16>
// CHECK: greta.attention %arg0, %arg5, %arg5 : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf8E4M3FN>, tensor<2x2x16x64xf8E4M3FN> -> tensor<2x8x4x64xf16>
// CHECK: greta.paged_attention %arg0, %arg6, %arg6, %arg7, %arg2 scales(%arg8, %arg9) {window = 4 : i64} : tensor<2x8x4x64xf16>, tensor<?x16x2x64xf8E5M2>, tensor<?x16x2x64xf8E5M2>, tensor<2x?xi32>, tensor<2xi32>, tensor<?x16x2xf32>, tensor<1x1x1xf32> -> tensor<2x8x4x64xf16>
func.func @scales(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xi8>, %l: tensor<2xi32>, %ks: tensor<2x2x16xf32>, %vs: tensor<1x2x1xf32>, %k8: tensor<2x2x16x64xf8E4M3FN>,
    %pages: tensor<?x16x2x64xf8E5M2>, %t: tensor<2x?xi32>, %ps: tensor<?x16x2xf32>, %one: tensor<1x1x1xf32>) -> (tensor<2x8x4x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4x64xf16>) {
  %0 = greta.attention %q, %k, %k lengths(%l) scales(%ks, %vs) {causal} : tensor<2x8x4x64xf16>, tensor<2x2x16x64xi8>, tensor<2x2x16x64xi8>, tensor<2xi32>, tensor<2x2x16xf32>, tensor<1x2x1xf32> -> tensor<2x8x4x64xf16>
  %1 = greta.attention %q, %k8, %k8 : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf8E4M3FN>, tensor<2x2x16x64xf8E4M3FN> -> tensor<2x8x4x64xf16>
  %2 = greta.paged_attention %q, %pages, %pages, %t, %l scales(%ps, %one) {window = 4} : tensor<2x8x4x64xf16>, tensor<?x16x2x64xf8E5M2>, tensor<?x16x2x64xf8E5M2>, tensor<2x?xi32>, tensor<2xi32>, tensor<?x16x2xf32>, tensor<1x1x1xf32> -> tensor<2x8x4x64xf16>
  return %0, %1, %2 : tensor<2x8x4x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4x64xf16>
}

// CHECK-LABEL: func.func @paged(
// CHECK: greta.paged_attention %arg0, %arg1, %arg1, %arg2, %arg3 {scale = 0.0879999995 : f32} : tensor<?x32x1x128xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>, tensor<?x?xi32>, tensor<?xi32> -> tensor<?x32x1x128xf16>
func.func @paged(%q: tensor<?x32x1x128xf16>, %k: tensor<?x16x8x128xf16>, %t: tensor<?x?xi32>, %l: tensor<?xi32>) -> tensor<?x32x1x128xf16> {
  %0 = greta.paged_attention %q, %k, %k, %t, %l {scale = 0.088 : f32} : tensor<?x32x1x128xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>, tensor<?x?xi32>, tensor<?xi32> -> tensor<?x32x1x128xf16>
  return %0 : tensor<?x32x1x128xf16>
}

// CHECK-LABEL: func.func @paged_sinks(
// CHECK: greta.paged_attention %arg0, %arg1, %arg1, %arg2, %arg3 sinks(%arg4) {window = 4 : i64} : tensor<?x32x1x128xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>, tensor<?x?xi32>, tensor<?xi32>, tensor<32xf32> -> tensor<?x32x1x128xf16>
func.func @paged_sinks(%q: tensor<?x32x1x128xf16>, %k: tensor<?x16x8x128xf16>, %t: tensor<?x?xi32>, %l: tensor<?xi32>, %s: tensor<32xf32>) -> tensor<?x32x1x128xf16> {
  %0 = greta.paged_attention %q, %k, %k, %t, %l sinks(%s) {window = 4} : tensor<?x32x1x128xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>, tensor<?x?xi32>, tensor<?xi32>, tensor<32xf32> -> tensor<?x32x1x128xf16>
  return %0 : tensor<?x32x1x128xf16>
}

// CHECK-LABEL: func.func @begins(
// CHECK: greta.paged_attention %arg0, %arg1, %arg1, %arg2, %arg3 begins(%arg4) sinks(%arg5) {window = 4 : i64} : tensor<?x32x128xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<32xf32> -> tensor<?x32x128xf16>
func.func @begins(%q: tensor<?x32x128xf16>, %k: tensor<?x16x8x128xf16>, %t: tensor<?x?xi32>, %l: tensor<?xi32>, %b: tensor<?xi32>, %s: tensor<32xf32>) -> tensor<?x32x128xf16> {
  %0 = greta.paged_attention %q, %k, %k, %t, %l begins(%b) sinks(%s) {window = 4} : tensor<?x32x128xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<32xf32> -> tensor<?x32x128xf16>
  return %0 : tensor<?x32x128xf16>
}

// CHECK-LABEL: func.func @groups(
// CHECK: %[[ROWS:.*]], %[[SCALES:.*]] = greta.paged_kv_update %arg1, %arg4, %arg5, %arg6 : tensor<?x16x8x128xi8>, tensor<?x8x128xf16>, tensor<?xi32>, tensor<?x16x8x4xf16> -> tensor<?x16x8x128xi8>, tensor<?x16x8x4xf16>
// CHECK: greta.paged_attention %arg0, %[[ROWS]], %[[ROWS]], %arg2, %arg3 scales(%[[SCALES]], %[[SCALES]])
func.func @groups(%q: tensor<?x32x1x128xf16>, %k: tensor<?x16x8x128xi8>, %t: tensor<?x?xi32>, %l: tensor<?xi32>, %new: tensor<?x8x128xf16>, %slots: tensor<?xi32>, %s: tensor<?x16x8x4xf16>) -> tensor<?x32x1x128xf16> {
  %0, %1 = greta.paged_kv_update %k, %new, %slots, %s : tensor<?x16x8x128xi8>, tensor<?x8x128xf16>, tensor<?xi32>, tensor<?x16x8x4xf16> -> tensor<?x16x8x128xi8>, tensor<?x16x8x4xf16>
  %2 = greta.paged_attention %q, %0, %0, %t, %l scales(%1, %1) : tensor<?x32x1x128xf16>, tensor<?x16x8x128xi8>, tensor<?x16x8x128xi8>, tensor<?x?xi32>, tensor<?xi32>, tensor<?x16x8x4xf16>, tensor<?x16x8x4xf16> -> tensor<?x32x1x128xf16>
  return %2 : tensor<?x32x1x128xf16>
}

// CHECK-LABEL: func.func @updates(
// CHECK: greta.kv_update %arg0, %arg1, %arg2 : tensor<?x8x?x128xi8>, tensor<?x8x?x128xi8>, tensor<?xi32> -> tensor<?x8x?x128xi8>
// CHECK: greta.paged_kv_update %arg3, %arg4, %arg2 : tensor<?x16x8x128xf16>, tensor<?x8x128xf16>, tensor<?xi32> -> tensor<?x16x8x128xf16>
func.func @updates(%cache: tensor<?x8x?x128xi8>, %new: tensor<?x8x?x128xi8>, %pos: tensor<?xi32>, %pages: tensor<?x16x8x128xf16>, %tokens: tensor<?x8x128xf16>) -> (tensor<?x8x?x128xi8>, tensor<?x16x8x128xf16>) {
  %0 = greta.kv_update %cache, %new, %pos : tensor<?x8x?x128xi8>, tensor<?x8x?x128xi8>, tensor<?xi32> -> tensor<?x8x?x128xi8>
  %1 = greta.paged_kv_update %pages, %tokens, %pos : tensor<?x16x8x128xf16>, tensor<?x8x128xf16>, tensor<?xi32> -> tensor<?x16x8x128xf16>
  return %0, %1 : tensor<?x8x?x128xi8>, tensor<?x16x8x128xf16>
}
