// Messages of the verifier of attention's gradients; those of what they share with attention are in attention-invalid.mlir.
// RUN: greta-opt %s --split-input-file --verify-diagnostics -o /dev/null

func.func @q(%q: tensor<2x3x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %o: tensor<2x8x4x64xf16>, %l: tensor<2x8x4xf32>, %do: tensor<2x8x4x64xf16>) {
  // expected-error @below {{'k' has 2 heads, which do not divide 3}}
  %0, %1, %2 = greta.attention_backward %q, %k, %v, %o, %l, %do : tensor<2x3x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4xf32>, tensor<2x8x4x64xf16> -> tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>
  return
}
// -----
func.func @o(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %o: tensor<2x8x4xf16>, %l: tensor<2x8x4xf32>, %do: tensor<2x8x4x64xf16>) {
  // expected-error @below {{'o' has type 'tensor<2x8x4xf16>'; it is attention's result, 'tensor<2x8x4x64xf16>', or the rows' sums of do * o, 'tensor<2x8x4xf32>'}}
  %0, %1, %2 = greta.attention_backward %q, %k, %v, %o, %l, %do : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2x8x4xf16>, tensor<2x8x4xf32>, tensor<2x8x4x64xf16> -> tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>
  return
}
// -----
func.func @lse(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %o: tensor<2x8x4x64xf16>, %l: tensor<2x8x4x1xf32>, %do: tensor<2x8x4x64xf16>) {
  // expected-error @below {{'lse' has type 'tensor<2x8x4x1xf32>'; it must be 'tensor<2x8x4xf32>', a number per row}}
  %0, %1, %2 = greta.attention_backward %q, %k, %v, %o, %l, %do : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4x1xf32>, tensor<2x8x4x64xf16> -> tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>
  return
}
// -----
func.func @do(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %o: tensor<2x8x4x64xf16>, %l: tensor<2x8x4xf32>, %do: tensor<2x8x4x64xf32>) {
  // expected-error @below {{'do' has type 'tensor<2x8x4x64xf32>'; it must be 'tensor<2x8x4x64xf16>', the type of 'q'}}
  %0, %1, %2 = greta.attention_backward %q, %k, %v, %o, %l, %do : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4xf32>, tensor<2x8x4x64xf32> -> tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>
  return
}
// -----
func.func @dq(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %o: tensor<2x8x4x64xf16>, %l: tensor<2x8x4xf32>, %do: tensor<2x8x4x64xf16>) {
  // expected-error @below {{'dq' has type 'tensor<2x8x4x64xf32>'; it must be 'tensor<2x8x4x64xf16>', the type of 'q'}}
  %0, %1, %2 = greta.attention_backward %q, %k, %v, %o, %l, %do : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4xf32>, tensor<2x8x4x64xf16> -> tensor<2x8x4x64xf32>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>
  return
}
// -----
func.func @dk(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %o: tensor<2x8x4x64xf16>, %l: tensor<2x8x4xf32>, %do: tensor<2x8x4x64xf16>) {
  // expected-error @below {{'dk' has type 'tensor<2x8x16x64xf16>'; it must be 'tensor<2x2x16x64xf16>', the type of 'k'}}
  %0, %1, %2 = greta.attention_backward %q, %k, %v, %o, %l, %do : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4xf32>, tensor<2x8x4x64xf16> -> tensor<2x8x4x64xf16>, tensor<2x8x16x64xf16>, tensor<2x2x16x64xf16>
  return
}
// -----
func.func @dv(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %o: tensor<2x8x4x64xf16>, %l: tensor<2x8x4xf32>, %do: tensor<2x8x4x64xf16>) {
  // expected-error @below {{'dv' has type 'tensor<2x8x16x64xf16>'; it must be 'tensor<2x2x16x64xf16>', the type of 'v'}}
  %0, %1, %2 = greta.attention_backward %q, %k, %v, %o, %l, %do : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4xf32>, tensor<2x8x4x64xf16> -> tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x8x16x64xf16>
  return
}
// -----
func.func @delta(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %o: tensor<2x8x4x64xf16>, %l: tensor<2x8x4xf32>, %do: tensor<2x8x4x64xf16>) {
  // expected-error @below {{'delta' has type 'tensor<2x8x4xf16>'; it must be 'tensor<2x8x4xf32>', a number per row}}
  %0, %1, %2, %3 = greta.attention_backward %q, %k, %v, %o, %l, %do : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4xf32>, tensor<2x8x4x64xf16> -> tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2x8x4xf16>
  return
}
// -----
func.func @quantised(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xi8>, %l: tensor<2x8x4xf32>) {
  // expected-error @below {{'k' has element type 'i8'; it is 'f16': gradients are of numbers of the type of 'q', not of a quantised cache; convert it with arith}}
  %0, %1, %2 = greta.attention_backward %q, %k, %k, %q, %l, %q : tensor<2x8x4x64xf16>, tensor<2x2x16x64xi8>, tensor<2x2x16x64xi8>, tensor<2x8x4x64xf16>, tensor<2x8x4xf32>, tensor<2x8x4x64xf16> -> tensor<2x8x4x64xf16>, tensor<2x2x16x64xi8>, tensor<2x2x16x64xi8>
  return
}
// -----
func.func @tokens_first(%q: tensor<2x4x8x64xf16>, %k: tensor<2x16x3x64xf16>, %l: tensor<2x8x4xf32>) {
  // expected-error @below {{'k' has 3 heads, which do not divide 8}}
  %0, %1, %2 = greta.attention_backward %q, %k, %k, %q, %l, %q {tokens_first} : tensor<2x4x8x64xf16>, tensor<2x16x3x64xf16>, tensor<2x16x3x64xf16>, tensor<2x4x8x64xf16>, tensor<2x8x4xf32>, tensor<2x4x8x64xf16> -> tensor<2x4x8x64xf16>, tensor<2x16x3x64xf16>, tensor<2x16x3x64xf16>
  return
}
// -----
func.func @tokens_first_rank(%q: tensor<2x4x8x64xf16>, %k: tensor<16x3x64xf16>, %l: tensor<2x8x4xf32>) {
  // expected-error @below {{'k' has rank 3; it is [B, T, Hkv, D] of rank 4: reshape it}}
  %0, %1, %2 = greta.attention_backward %q, %k, %k, %q, %l, %q {tokens_first} : tensor<2x4x8x64xf16>, tensor<16x3x64xf16>, tensor<16x3x64xf16>, tensor<2x4x8x64xf16>, tensor<2x8x4xf32>, tensor<2x4x8x64xf16> -> tensor<2x4x8x64xf16>, tensor<16x3x64xf16>, tensor<16x3x64xf16>
  return
}
