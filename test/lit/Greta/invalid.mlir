// Every verifier message names the operand, the limit and the remedy.
// RUN: greta-opt %s --split-input-file --verify-diagnostics -o /dev/null

func.func @type(%x: tensor<4x8xf64>, %w: tensor<8xf32>) {
  // expected-error @below {{'greta.rms_norm' op 'x' has element type 'f64'; it takes f32, f16 or bf16: convert with arith before this op}}
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<4x8xf64>, tensor<8xf32> -> tensor<4x8xf64>
  return
}
// -----
func.func @weights(%x: tensor<4x8xf32>, %w: tensor<9xf32>) {
  // expected-error @below {{'w' is 'tensor<9xf32>'; it must be tensor<8x..> to match the last dimension of 'x'}}
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<4x8xf32>, tensor<9xf32> -> tensor<4x8xf32>
  return
}
// -----
func.func @weights_rank(%x: tensor<4x8xf32>, %w: tensor<1x8xf32>) {
  // expected-error @below {{'w' has rank 2; it is [D] of rank 1: reshape it}}
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<4x8xf32>, tensor<1x8xf32> -> tensor<4x8xf32>
  return
}
// -----
func.func @eps(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{'eps' is -1.000000e+00; it must be finite and not negative}}
  %0 = greta.rms_norm %x, %w {eps = -1.0 : f32} : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  return
}
// -----
func.func @no_eps(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{'greta.rms_norm' op requires attribute 'eps'}}
  %0 = greta.rms_norm %x, %w : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  return
}
// -----
func.func @result(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{'result' has type 'tensor<4x8xf16>'; it must be 'tensor<4x8xf32>', the type of 'x'}}
  %0 = greta.layer_norm %x, %w, %w {eps = 0.0 : f32} : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<4x8xf16>
  return
}
// -----
func.func @bias(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{'b' is 'tensor<4xf32>'; it must be tensor<8x..>}}
  %0 = greta.layer_norm %x, %w, %b {eps = 0.0 : f32} : tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32> -> tensor<4x8xf32>
  return
}
// -----
func.func @dynamic_row(%x: tensor<4x?xf32>) {
  // expected-error @below {{'x' has a dynamic last dimension; only leading dimensions may be dynamic: give the row length in the type}}
  %0 = greta.softmax %x : tensor<4x?xf32> -> tensor<4x?xf32>
  return
}
// -----
func.func @scalar(%x: tensor<f32>) {
  // expected-error @below {{'x' has rank 0; it is [.., D] with at least one dimension}}
  %0 = greta.softmax %x : tensor<f32> -> tensor<f32>
  return
}
// -----
func.func @empty_row(%x: tensor<4x0xf32>) {
  // expected-error @below {{'x' has rows of no elements; they have at least one}}
  %0 = greta.softmax %x : tensor<4x0xf32> -> tensor<4x0xf32>
  return
}
// -----
func.func @encoding(%x: tensor<4x8xf32, "rowwise">) {
  // expected-error @below {{has an operand of type 'tensor<4x8xf32, "rowwise">'; tensors of this level have no encoding}}
  %0 = greta.softmax %x : tensor<4x8xf32, "rowwise"> -> tensor<4x8xf32, "rowwise">
  return
}
// -----
func.func @gate(%x: tensor<4x8xf32>, %y: tensor<?x8xf32>) {
  // expected-error @below {{'up' has type 'tensor<?x8xf32>'; it must be 'tensor<4x8xf32>', the type of 'gate'}}
  %0 = greta.swiglu %x, %y : tensor<4x8xf32>, tensor<?x8xf32> -> tensor<4x8xf32>
  return
}
// -----
func.func @rope_rank(%x: tensor<4x8xf16>, %t: tensor<4x4xf32>) {
  // expected-error @below {{'x' has rank 2; it is [T, H, D] of rank 3: reshape it}}
  %0 = greta.rope %x, %t, %t {style = "neox"} : tensor<4x8xf16>, tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x8xf16>
  return
}
// -----
func.func @rope_odd(%x: tensor<4x2x7xf16>, %t: tensor<4x3xf32>) {
  // expected-error @below {{'x' has heads of 7 elements; D must be even: pad the head}}
  %0 = greta.rope %x, %t, %t {style = "neox"} : tensor<4x2x7xf16>, tensor<4x3xf32>, tensor<4x3xf32> -> tensor<4x2x7xf16>
  return
}
// -----
func.func @rope_table(%x: tensor<4x2x8xf16>, %t: tensor<4x4xf32>, %h: tensor<4x4xf16>) {
  // expected-error @below {{'sin' has element type 'f16'; the tables are f32: convert with arith}}
  %0 = greta.rope %x, %t, %h {style = "neox"} : tensor<4x2x8xf16>, tensor<4x4xf32>, tensor<4x4xf16> -> tensor<4x2x8xf16>
  return
}
// -----
func.func @rope_tokens(%x: tensor<4x2x8xf16>, %t: tensor<5x4xf32>) {
  // expected-error @below {{'cos' has 5 elements in dimension 0, not 4; it must match T of 'x'}}
  %0 = greta.rope %x, %t, %t {style = "neox"} : tensor<4x2x8xf16>, tensor<5x4xf32>, tensor<5x4xf32> -> tensor<4x2x8xf16>
  return
}
// -----
func.func @rope_columns(%x: tensor<4x2x8xf16>, %t: tensor<4x8xf32>) {
  // expected-error @below {{'cos' is 'tensor<4x8xf32>'; it must have 4 columns, half the head size of 'x'}}
  %0 = greta.rope %x, %t, %t {style = "neox"} : tensor<4x2x8xf16>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x2x8xf16>
  return
}
// -----
func.func @rope_style(%x: tensor<4x2x8xf16>, %t: tensor<4x4xf32>) {
  // expected-error @below {{'style' is "NEOX"; it is "neox" (halves) or "gptj" (pairs)}}
  %0 = greta.rope %x, %t, %t {style = "NEOX"} : tensor<4x2x8xf16>, tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x2x8xf16>
  return
}
// -----
func.func @matmul_k(%a: tensor<4x8xf16>, %b: tensor<4x8xf16>) {
  // expected-error @below {{'b' has 4 elements in dimension 0, not 8; it must match K of 'a'}}
  %0 = greta.matmul %a, %b : tensor<4x8xf16>, tensor<4x8xf16> -> tensor<4x8xf16>
  return
}
// -----
func.func @matmul_transposed(%a: tensor<4x8xf16>, %b: tensor<4x8xf16>) {
  // expected-error @below {{'result' has 8 elements in dimension 1, not 4; it must match N of 'b'}}
  %0 = greta.matmul %a, %b {transpose_b} : tensor<4x8xf16>, tensor<4x8xf16> -> tensor<4x8xf16>
  return
}
// -----
func.func @matmul_rank(%a: tensor<2x2x4x8xf16>, %b: tensor<2x8x4xf16>) {
  // expected-error @below {{'b' has rank 3; it is [.., K, N] of rank 2, or of no less than the rank of 'a', 4: reshape it}}
  %0 = greta.matmul %a, %b : tensor<2x2x4x8xf16>, tensor<2x8x4xf16> -> tensor<2x2x4x4xf16>
  return
}
// -----
func.func @matmul_result_rank(%a: tensor<2x4x8xf16>, %b: tensor<3x2x8x4xf16>) {
  // expected-error @below {{'result' has rank 3; it is [.., M, N] of rank 4: reshape it}}
  %0 = greta.matmul %a, %b : tensor<2x4x8xf16>, tensor<3x2x8x4xf16> -> tensor<2x4x4xf16>
  return
}
// -----
func.func @matmul_batch_of_b(%a: tensor<2x4x8xf16>, %b: tensor<3x2x8x4xf16>) {
  // expected-error @below {{'result' has 2 elements in dimension 0, not 3; it must match the batch of 'b'}}
  %0 = greta.matmul %a, %b : tensor<2x4x8xf16>, tensor<3x2x8x4xf16> -> tensor<2x2x4x4xf16>
  return
}
// -----
func.func @matmul_batch_of_a(%a: tensor<2x4x8xf16>, %b: tensor<3x5x8x4xf16>) {
  // expected-error @below {{'b' has 5 elements in dimension 1, not 2; it must match the batch of 'a'}}
  %0 = greta.matmul %a, %b : tensor<2x4x8xf16>, tensor<3x5x8x4xf16> -> tensor<3x2x4x4xf16>
  return
}
// -----
func.func @matmul_vector(%a: tensor<8xf16>, %b: tensor<8x4xf16>) {
  // expected-error @below {{'a' has rank 1; it is [.., M, K] of rank 2 or more: reshape it}}
  %0 = greta.matmul %a, %b : tensor<8xf16>, tensor<8x4xf16> -> tensor<4xf16>
  return
}
// -----
func.func @matmul_result_rank(%a: tensor<2x4x8xf16>, %b: tensor<8x4xf16>) {
  // expected-error @below {{'result' has rank 2; it is [.., M, N] of rank 3: reshape it}}
  %0 = greta.matmul %a, %b : tensor<2x4x8xf16>, tensor<8x4xf16> -> tensor<4x4xf16>
  return
}
// -----
func.func @matmul_batch(%a: tensor<2x4x8xf16>, %b: tensor<3x8x4xf16>) {
  // expected-error @below {{'b' has 3 elements in dimension 0, not 2; it must match the batch of 'a'}}
  %0 = greta.matmul %a, %b : tensor<2x4x8xf16>, tensor<3x8x4xf16> -> tensor<2x4x4xf16>
  return
}
// -----
func.func @matmul_float8(%a: tensor<4x8xf8E4M3FN>, %b: tensor<8x4xf8E4M3FNUZ>) {
  // expected-error @below {{'b' has element type 'f8E4M3FNUZ'; it must be 'f8E4M3FN', the element type of 'a', or the other 8-bit float of its kind: convert one with arith}}
  %0 = greta.matmul %a, %b : tensor<4x8xf8E4M3FN>, tensor<8x4xf8E4M3FNUZ> -> tensor<4x4xf32>
  return
}
// -----
func.func @matmul_float8_result(%a: tensor<4x8xf8E4M3FN>, %b: tensor<8x4xf8E5M2>) {
  // expected-error @below {{'result' has element type 'f8E4M3FN'; it takes f32, f16 or bf16: convert with arith after this op}}
  %0 = greta.matmul %a, %b : tensor<4x8xf8E4M3FN>, tensor<8x4xf8E5M2> -> tensor<4x4xf8E4M3FN>
  return
}
// -----
func.func @matmul_mixed(%a: tensor<4x8xf16>, %b: tensor<8x4xbf16>) {
  // expected-error @below {{'b' has element type 'bf16'; it must be 'f16', the element type of 'a'}}
  %0 = greta.matmul %a, %b : tensor<4x8xf16>, tensor<8x4xbf16> -> tensor<4x4xf16>
  return
}
// -----
func.func @matmul_result(%a: tensor<4x8xf16>, %b: tensor<8x4xf16>) {
  // expected-error @below {{'result' has element type 'bf16'; it must be 'f16' or f32: convert it after}}
  %0 = greta.matmul %a, %b : tensor<4x8xf16>, tensor<8x4xf16> -> tensor<4x4xbf16>
  return
}
// -----
func.func @matmul_i8(%a: tensor<4x8xi8>, %b: tensor<8x4xi8>) {
  // expected-error @below {{'result' has element type 'i8'; a product of i8 is i32: convert it after}}
  %0 = greta.matmul %a, %b : tensor<4x8xi8>, tensor<8x4xi8> -> tensor<4x4xi8>
  return
}
// -----
func.func @matmul_i4(%a: tensor<4x8xi4>, %b: tensor<8x4xi4>) {
  // expected-error @below {{'a' has element type 'i4'; it takes f32, f16, bf16, i8, f8E4M3FN, f8E5M2, f8E4M3FNUZ or f8E5M2FNUZ: convert}}
  %0 = greta.matmul %a, %b : tensor<4x8xi4>, tensor<8x4xi4> -> tensor<4x4xi32>
  return
}
// -----
func.func @dequant_group(%q: tensor<4x16xi32>, %s: tensor<4x4xf16>, %z: tensor<4x1xi32>) {
  // expected-error @below {{'group' is 48; it is 32, 64 or 128: repeat the scales of a larger group}}
  %0 = greta.dequant %q, %s, %z {group = 48} : tensor<4x16xi32>, tensor<4x4xf16>, tensor<4x1xi32> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_divides(%q: tensor<4x12xi32>, %s: tensor<4x4xf16>, %z: tensor<4x1xi32>) {
  // expected-error @below {{'q' has rows of 96 weights; 'group' 64 must divide them: pad K or take a smaller group}}
  %0 = greta.dequant %q, %s, %z {group = 64} : tensor<4x12xi32>, tensor<4x4xf16>, tensor<4x1xi32> -> tensor<4x96xf16>
  return
}
// -----
func.func @dequant_dynamic(%q: tensor<4x?xi32>, %s: tensor<4x4xf16>, %z: tensor<4x1xi32>) {
  // expected-error @below {{'q' has a dynamic last dimension; only N may be dynamic: give K/8 in the type}}
  %0 = greta.dequant %q, %s, %z {group = 32} : tensor<4x?xi32>, tensor<4x4xf16>, tensor<4x1xi32> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_words(%q: tensor<4x16xi8>, %s: tensor<4x4xf16>, %z: tensor<4x1xi32>) {
  // expected-error @below {{'q' has element type 'i8'; it is i32: pack eight weights of 4 bits into each}}
  %0 = greta.dequant %q, %s, %z {group = 32} : tensor<4x16xi8>, tensor<4x4xf16>, tensor<4x1xi32> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_scales(%q: tensor<4x16xi32>, %s: tensor<4x2xf16>, %z: tensor<4x1xi32>) {
  // expected-error @below {{'scales' is 'tensor<4x2xf16>'; it must have 4 columns: it is [N, K/group] with K = 128}}
  %0 = greta.dequant %q, %s, %z {group = 32} : tensor<4x16xi32>, tensor<4x2xf16>, tensor<4x1xi32> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_scale_type(%q: tensor<4x16xi32>, %s: tensor<4x4xf32>, %z: tensor<4x1xi32>) {
  // expected-error @below {{'scales' has element type 'f32'; it is f16: convert it with arith}}
  %0 = greta.dequant %q, %s, %z {group = 32} : tensor<4x16xi32>, tensor<4x4xf32>, tensor<4x1xi32> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_zeros(%q: tensor<4x16xi32>, %s: tensor<4x4xf16>, %z: tensor<3x1xi32>) {
  // expected-error @below {{'zeros' has 3 elements in dimension 0, not 4; it must match N of 'q'}}
  %0 = greta.dequant %q, %s, %z {group = 32} : tensor<4x16xi32>, tensor<4x4xf16>, tensor<3x1xi32> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_minima(%q: tensor<4x16xi32>, %s: tensor<4x4xf16>, %m: tensor<4x1xf16>) {
  // expected-error @below {{'minima' is 'tensor<4x1xf16>'; it must have 4 columns: it is [N, K/group] with K = 128}}
  %0 = greta.dequant %q, %s, %m {group = 32} : tensor<4x16xi32>, tensor<4x4xf16>, tensor<4x1xf16> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_minimum_type(%q: tensor<4x16xi32>, %s: tensor<4x4xf16>, %m: tensor<4x4xf32>) {
  // expected-error @below {{'zeros' has element type 'f32'; it is i32, eight zeros of 4 bits in each, or f16, minima}}
  %0 = greta.dequant %q, %s, %m {group = 32} : tensor<4x16xi32>, tensor<4x4xf16>, tensor<4x4xf32> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_format(%q: tensor<4x16xi32>, %s: tensor<4x4xf16>) {
  // expected-error @below {{'format' is "q7_0"; it is one of gptq4, q4_0, q4_1, q4_k, q4_0_interleaved, q4_1_interleaved}}
  %0 = greta.dequant %q, %s {format = "q7_0", group = 32} : tensor<4x16xi32>, tensor<4x4xf16> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_odd_rows(%q: tensor<5x16xi32>, %s: tensor<5x4xf16>) {
  // expected-error @below {{'q' has an odd number of rows, of which "q4_0_interleaved" has two together; give an even N in the type}}
  %0 = greta.dequant %q, %s {format = "q4_0_interleaved", group = 32} : tensor<5x16xi32>, tensor<5x4xf16> -> tensor<5x128xf16>
  return
}
// -----
func.func @dequant_dynamic_rows(%q: tensor<?x16xi32>, %s: tensor<?x4xf16>) {
  // expected-error @below {{'q' has a dynamic number of rows, of which "q4_0_interleaved" has two together; give an even N in the type}}
  %0 = greta.dequant %q, %s {format = "q4_0_interleaved", group = 32} : tensor<?x16xi32>, tensor<?x4xf16> -> tensor<?x128xf16>
  return
}
// -----
func.func @dequant_without_high(%q: tensor<4x16xi32>, %s: tensor<4x8xf16>) {
  // expected-error @below {{has 2 operands; "q6_k" takes q, high, scales}}
  %0 = greta.dequant %q, %s {format = "q6_k", group = 16} : tensor<4x16xi32>, tensor<4x8xf16> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_without_minima(%q: tensor<4x16xi32>, %s: tensor<4x4xf16>) {
  // expected-error @below {{has 2 operands; "q4_k" takes q, scales, minima}}
  %0 = greta.dequant %q, %s {format = "q4_k", group = 32} : tensor<4x16xi32>, tensor<4x4xf16> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_with_zeros(%q: tensor<4x16xi32>, %s: tensor<4x4xf16>, %z: tensor<4x4xi32>) {
  // expected-error @below {{'minima' has element type 'i32'; it is f16: convert it with arith}}
  %0 = greta.dequant %q, %s, %z {format = "q4_k", group = 32} : tensor<4x16xi32>, tensor<4x4xf16>, tensor<4x4xi32> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_small_group(%q: tensor<4x16xi32>, %s: tensor<4x4xf16>) {
  // expected-error @below {{'group' is 32; it is 64 or 128: repeat the scales of a larger group}}
  %0 = greta.dequant %q, %s {format = "nf4", group = 32} : tensor<4x16xi32>, tensor<4x4xf16> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_high(%q: tensor<4x16xi32>, %h: tensor<4x4xi32>, %s: tensor<4x8xf16>) {
  // expected-error @below {{'high' is 'tensor<4x4xi32>'; it must have 8 columns: it is [N, K/16] with K = 128}}
  %0 = greta.dequant %q, %h, %s {format = "q6_k", group = 16} : tensor<4x16xi32>, tensor<4x4xi32>, tensor<4x8xf16> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_bytes(%q: tensor<4x128xi8>, %s: tensor<4x4xf16>) {
  // expected-error @below {{'q' has element type 'i8'; it is i32: pack four weights of 8 bits into each}}
  %0 = greta.dequant %q, %s {format = "q8_0", group = 32} : tensor<4x128xi8>, tensor<4x4xf16> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_exponents(%q: tensor<4x16xi32>, %s: tensor<4x4xf16>) {
  // expected-error @below {{'scales' has element type 'f16'; it is i8, exponents of two plus 127}}
  %0 = greta.dequant %q, %s {format = "mxfp4", group = 32} : tensor<4x16xi32>, tensor<4x4xf16> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_floats(%q: tensor<4x32xi32>, %s: tensor<4x4xf16>) {
  // expected-error @below {{'scales' has element type 'f16'; it is f32: convert it with arith}}
  %0 = greta.dequant %q, %s {format = "e4m3", group = 32} : tensor<4x32xi32>, tensor<4x4xf16> -> tensor<4x128xf16>
  return
}
// -----
func.func @dequant_block(%q: tensor<130x32xi32>, %s: tensor<1x1xf32>) {
  // expected-error @below {{'scales' has 1 elements in dimension 0, not 2; it must match N/128 of 'q', rounded up}}
  %0 = greta.dequant %q, %s {format = "e4m3_block", group = 128} : tensor<130x32xi32>, tensor<1x1xf32> -> tensor<130x128xf16>
  return
}
// -----
func.func @dequant_block_of_unknown_scales(%q: tensor<300x32xi32>, %s: tensor<?x1xf32>) {
  // expected-error @below {{'scales' is 'tensor<?x1xf32>'; its rows have to be in the type: 3}}
  %0 = greta.dequant %q, %s {format = "e4m3_block", group = 128} : tensor<300x32xi32>, tensor<?x1xf32> -> tensor<300x128xf16>
  return
}
// -----
func.func @dequant_dynamic_block(%q: tensor<?x32xi32>, %s: tensor<?x1xf32>) {
  // expected-error @below {{'q' has a dynamic N, of which 128 rows share scales; give N in the type}}
  %0 = greta.dequant %q, %s {format = "e4m3_block", group = 128} : tensor<?x32xi32>, tensor<?x1xf32> -> tensor<?x128xf16>
  return
}
// -----
func.func @dequant_result(%q: tensor<4x16xi32>, %s: tensor<4x4xf16>, %z: tensor<4x1xi32>) {
  // expected-error @below {{'result' is 'tensor<4x64xf16>'; it must have 128 columns: it is [N, K] with K = 128}}
  %0 = greta.dequant %q, %s, %z {group = 32} : tensor<4x16xi32>, tensor<4x4xf16>, tensor<4x1xi32> -> tensor<4x64xf16>
  return
}
// -----
func.func @dequant_result_type(%q: tensor<4x16xi32>, %s: tensor<4x4xf16>) {
  // expected-error @below {{'result' has element type 'f32'; it is f16 or bf16: convert it with arith}}
  %0 = greta.dequant %q, %s {group = 32} : tensor<4x16xi32>, tensor<4x4xf16> -> tensor<4x128xf32>
  return
}
// -----
func.func @not_a_tensor(%x: memref<4x8xf32>) {
  // expected-error @below {{'greta.softmax' op operand #0 must be ranked tensor of any type values, but got 'memref<4x8xf32>'}}
  %0 = "greta.softmax"(%x) : (memref<4x8xf32>) -> tensor<4x8xf32>
  return
}
// -----
func.func @sum_of_integers(%x: tensor<4xi32>) {
  // expected-error @below {{'greta.all_reduce' op 'x' has element type 'i32'; it takes f32, f16 or bf16: convert with arith before this op}}
  %0 = greta.all_reduce %x : tensor<4xi32> -> tensor<4xi32>
  return
}
// -----
func.func @sum_of_another_type(%x: tensor<4xf16>) {
  // expected-error @below {{'greta.all_reduce' op 'result' has type 'tensor<4xf32>'; it must be 'tensor<4xf16>', the type of 'x'}}
  %0 = greta.all_reduce %x : tensor<4xf16> -> tensor<4xf32>
  return
}
// -----
func.func @sum_in_parts_of_less_than_nothing(%x: tensor<?x8xf16>) {
  // expected-error @below {{'greta.all_reduce' op has 'part_rows' -1; it is a number of rows up to 16777216, or 0 for one part}}
  %0 = greta.all_reduce %x {part_rows = -1 : i64} : tensor<?x8xf16> -> tensor<?x8xf16>
  return
}
// -----
func.func @sum_in_too_large_parts(%x: tensor<?x8xf16>) {
  // expected-error @below {{'greta.all_reduce' op has 'part_rows' 16777217; it is a number of rows up to 16777216, or 0 for one part}}
  %0 = greta.all_reduce %x {part_rows = 16777217 : i64} : tensor<?x8xf16> -> tensor<?x8xf16>
  return
}
// -----
func.func @sum_in_parts_of_one_number(%x: tensor<f32>) {
  // expected-error @below {{'greta.all_reduce' op has 'part_rows' 4, and 'x' has no rows; leave it out}}
  %0 = greta.all_reduce %x {part_rows = 4 : i64} : tensor<f32> -> tensor<f32>
  return
}
// -----
func.func @sum_of_a_shape(%x: tensor<?x8xf16>) {
  // expected-error @below {{'shape' is affine_map<()[s0] -> (s0, 4)>, not the extents of 'tensor<?x8xf16>' over the function's symbols}}
  %0 = greta.all_reduce %x {shape = affine_map<()[s0] -> (s0, 4)>} : tensor<?x8xf16> -> tensor<?x8xf16>
  return
}
