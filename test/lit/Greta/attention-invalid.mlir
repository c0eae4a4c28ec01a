// Messages of the verifiers of attention and of the KV cache's updates.
// RUN: greta-opt %s --split-input-file --verify-diagnostics -o /dev/null

func.func @q_type(%q: tensor<2x8x4x64xf64>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>) {
  // expected-error @below {{'q' has element type 'f64'; it takes f32, f16 or bf16: convert with arith before this op}}
  %0 = greta.attention %q, %k, %v : tensor<2x8x4x64xf64>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16> -> tensor<2x8x4x64xf64>
  return
}
// -----
func.func @q_rank(%q: tensor<8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>) {
  // expected-error @below {{'q' has rank 3; it is [B, Hq, S, D] of rank 4: reshape it}}
  %0 = greta.attention %q, %k, %v : tensor<8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16> -> tensor<8x4x64xf16>
  return
}
// -----
func.func @q_heads(%q: tensor<2x?x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>) {
  // expected-error @below {{'q' has dynamic heads; give the number in the type}}
  %0 = greta.attention %q, %k, %v : tensor<2x?x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16> -> tensor<2x?x4x64xf16>
  return
}
// -----
func.func @q_no_heads(%q: tensor<2x0x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>) {
  // expected-error @below {{'q' has no heads; there is at least one}}
  %0 = greta.attention %q, %k, %v : tensor<2x0x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16> -> tensor<2x0x4x64xf16>
  return
}
// -----
func.func @q_head_size(%q: tensor<2x8x4x?xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>) {
  // expected-error @below {{'q' has dynamic head size; give the number in the type}}
  %0 = greta.attention %q, %k, %v : tensor<2x8x4x?xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16> -> tensor<2x8x4x?xf16>
  return
}
// -----
func.func @q_odd(%q: tensor<2x8x4x20xf16>, %k: tensor<2x2x16x20xf16>, %v: tensor<2x2x16x20xf16>) {
  // expected-error @below {{'q' has heads of 20 elements; D is a multiple of 8: pad the head}}
  %0 = greta.attention %q, %k, %v : tensor<2x8x4x20xf16>, tensor<2x2x16x20xf16>, tensor<2x2x16x20xf16> -> tensor<2x8x4x20xf16>
  return
}
// -----
func.func @result_type(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>) {
  // expected-error @below {{'result' has type 'tensor<2x8x4x64xf32>'; it must be 'tensor<2x8x4x64xf16>', the type of 'q'}}
  %0 = greta.attention %q, %k, %v : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16> -> tensor<2x8x4x64xf32>
  return
}
// -----
func.func @k_type(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf32>, %v: tensor<2x2x16x64xf32>) {
  // expected-error @below {{'k' has element type 'f32'; it is that of 'q', 'f16', or i8, a float of 8 bits or, beside f32, f16 or bf16: convert it with arith}}
  %0 = greta.attention %q, %k, %v : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf32>, tensor<2x2x16x64xf32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @k_rank(%q: tensor<2x8x4x64xf16>, %k: tensor<2x16x64xf16>, %v: tensor<2x16x64xf16>) {
  // expected-error @below {{'k' has rank 3; it is [B, Hkv, T, D] of rank 4: reshape it}}
  %0 = greta.attention %q, %k, %v : tensor<2x8x4x64xf16>, tensor<2x16x64xf16>, tensor<2x16x64xf16> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @k_dynamic(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x?xf16>, %v: tensor<2x2x16x?xf16>) {
  // expected-error @below {{'k' has a dynamic last dimension; give D in the type}}
  %0 = greta.attention %q, %k, %v : tensor<2x8x4x64xf16>, tensor<2x2x16x?xf16>, tensor<2x2x16x?xf16> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @k_head_size(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x32xf16>, %v: tensor<2x2x16x32xf16>) {
  // expected-error @below {{'k' has 32 elements in dimension 3, not 64; it must match D of 'q'}}
  %0 = greta.attention %q, %k, %v : tensor<2x8x4x64xf16>, tensor<2x2x16x32xf16>, tensor<2x2x16x32xf16> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @k_heads(%q: tensor<2x8x4x64xf16>, %k: tensor<2x3x16x64xf16>, %v: tensor<2x3x16x64xf16>) {
  // expected-error @below {{'k' has 3 heads, which do not divide 8, those of 'q': each is read by as many query heads}}
  %0 = greta.attention %q, %k, %v : tensor<2x8x4x64xf16>, tensor<2x3x16x64xf16>, tensor<2x3x16x64xf16> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @k_batch(%q: tensor<2x8x4x64xf16>, %k: tensor<3x2x16x64xf16>, %v: tensor<3x2x16x64xf16>) {
  // expected-error @below {{'k' has 3 elements in dimension 0, not 2; it must match B of 'q'}}
  %0 = greta.attention %q, %k, %v : tensor<2x8x4x64xf16>, tensor<3x2x16x64xf16>, tensor<3x2x16x64xf16> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @v_heads(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x4x16x64xf16>) {
  // expected-error @below {{'v' has 4 elements in dimension 1, not 2; it must match the heads of 'k'}}
  %0 = greta.attention %q, %k, %v : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x4x16x64xf16> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @v_keys(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x15x64xf16>) {
  // expected-error @below {{'v' has 15 elements in dimension 2, not 16; it must match T of 'k'}}
  %0 = greta.attention %q, %k, %v : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x15x64xf16> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @scale(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>) {
  // expected-error @below {{'scale' is not finite}}
  %0 = greta.attention %q, %k, %v {scale = 0x7F800000 : f32} : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @window(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>) {
  // expected-error @below {{'window' is 0; a row sees at least one key: leave it out to see all}}
  %0 = greta.attention %q, %k, %v {window = 0 : i64} : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @softcap(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>) {
  // expected-error @below {{'softcap' is -1.000000e+00; it is finite and above 0: leave it out for no cap}}
  %0 = greta.attention %q, %k, %v {softcap = -1.0 : f32} : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @lengths_type(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %lengths: tensor<2xi64>) {
  // expected-error @below {{'lengths' has element type 'i64'; it is 'i32': convert it with arith}}
  %0 = greta.attention %q, %k, %v lengths(%lengths) : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2xi64> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @lengths_rank(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %lengths: tensor<2x1xi32>) {
  // expected-error @below {{'lengths' has rank 2; it is [B] of rank 1: reshape it}}
  %0 = greta.attention %q, %k, %v lengths(%lengths) : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2x1xi32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @lengths_size(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %lengths: tensor<3xi32>) {
  // expected-error @below {{'lengths' has 3 elements in dimension 0, not 2; it must match B of 'q'}}
  %0 = greta.attention %q, %k, %v lengths(%lengths) : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<3xi32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @mask_type(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %mask: tensor<1x1x4x16xi1>) {
  // expected-error @below {{'mask' has element type 'i1'; it takes f32, f16 or bf16}}
  %0 = greta.attention %q, %k, %v mask(%mask) : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<1x1x4x16xi1> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @mask_rank(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %mask: tensor<4x16xf32>) {
  // expected-error @below {{'mask' has rank 2; it is [B or 1, Hq or 1, S or 1, T] of rank 4: reshape it}}
  %0 = greta.attention %q, %k, %v mask(%mask) : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<4x16xf32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @mask_batch(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %mask: tensor<3x1x4x16xf32>) {
  // expected-error @below {{'mask' has 3 elements in dimension 0, not 2; it must match B of 'q', or be 1}}
  %0 = greta.attention %q, %k, %v mask(%mask) : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<3x1x4x16xf32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @mask_heads(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %mask: tensor<1x2x4x16xf32>) {
  // expected-error @below {{'mask' has 2 elements in dimension 1, not 8; it must match the heads of 'q', or be 1}}
  %0 = greta.attention %q, %k, %v mask(%mask) : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<1x2x4x16xf32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @mask_rows(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %mask: tensor<1x1x5x16xf32>) {
  // expected-error @below {{'mask' has 5 elements in dimension 2, not 4; it must match S of 'q', or be 1}}
  %0 = greta.attention %q, %k, %v mask(%mask) : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<1x1x5x16xf32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @mask_keys(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %mask: tensor<1x1x4x17xf32>) {
  // expected-error @below {{'mask' has 17 elements in dimension 3, not 16; it must match T of 'k'}}
  %0 = greta.attention %q, %k, %v mask(%mask) : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<1x1x4x17xf32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @sinks_type(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %sinks: tensor<8xf16>) {
  // expected-error @below {{'sinks' has element type 'f16'; it is 'f32': convert it with arith}}
  %0 = greta.attention %q, %k, %v sinks(%sinks) : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<8xf16> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @sinks_size(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>, %sinks: tensor<2xf32>) {
  // expected-error @below {{'sinks' has 2 elements in dimension 0, not 8; it must match the heads of 'q'}}
  %0 = greta.attention %q, %k, %v sinks(%sinks) : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2xf32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @paged_sinks_size(%q: tensor<2x8x4x64xf16>, %k: tensor<10x16x2x64xf16>, %t: tensor<2x4xi32>, %l: tensor<2xi32>, %s: tensor<2xf32>) {
  // expected-error @below {{'sinks' has 2 elements in dimension 0, not 8; it must match the heads of 'q'}}
  %0 = greta.paged_attention %q, %k, %k, %t, %l sinks(%s) : tensor<2x8x4x64xf16>, tensor<10x16x2x64xf16>, tensor<10x16x2x64xf16>, tensor<2x4xi32>, tensor<2xi32>, tensor<2xf32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @sinks_dynamic(%q: tensor<2x8x4x64xf16>, %k: tensor<10x16x2x64xf16>, %t: tensor<2x4xi32>, %l: tensor<2xi32>, %s: tensor<?xf32>) {
  // expected-error @below {{'sinks' has dynamic heads; give the number in the type}}
  %0 = greta.paged_attention %q, %k, %k, %t, %l sinks(%s) : tensor<2x8x4x64xf16>, tensor<10x16x2x64xf16>, tensor<10x16x2x64xf16>, tensor<2x4xi32>, tensor<2xi32>, tensor<?xf32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @scales_type(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xi8>, %s: tensor<1x2x1xf16>) {
  // expected-error @below {{'k_scale' has element type 'f16'; it is 'f32': convert it with arith}}
  %0 = greta.attention %q, %k, %k scales(%s, %s) : tensor<2x8x4x64xf16>, tensor<2x2x16x64xi8>, tensor<2x2x16x64xi8>, tensor<1x2x1xf16>, tensor<1x2x1xf16> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @scales_rank(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xi8>, %s: tensor<2xf32>) {
  // expected-error @below {{'k_scale' has rank 1; it is [B or 1, Hkv or 1, T or 1] of rank 3: reshape it}}
  %0 = greta.attention %q, %k, %k scales(%s, %s) : tensor<2x8x4x64xf16>, tensor<2x2x16x64xi8>, tensor<2x2x16x64xi8>, tensor<2xf32>, tensor<2xf32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @scales_size(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xi8>, %s: tensor<1x2x1xf32>, %t: tensor<1x8x1xf32>) {
  // expected-error @below {{'v_scale' has 8 elements in dimension 1, not 2; it must match 'v', or be 1}}
  %0 = greta.attention %q, %k, %k scales(%s, %t) : tensor<2x8x4x64xf16>, tensor<2x2x16x64xi8>, tensor<2x2x16x64xi8>, tensor<1x2x1xf32>, tensor<1x8x1xf32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @paged_scales(%q: tensor<2x8x4x64xf16>, %k: tensor<10x16x2x64xi8>, %t: tensor<2x4xi32>, %l: tensor<2xi32>, %s: tensor<10x8x2xf32>) {
  // expected-error @below {{'k_scale' has 8 elements in dimension 1, not 16; it must match 'k_cache', or be 1}}
  %0 = greta.paged_attention %q, %k, %k, %t, %l scales(%s, %s) : tensor<2x8x4x64xf16>, tensor<10x16x2x64xi8>, tensor<10x16x2x64xi8>, tensor<2x4xi32>, tensor<2xi32>, tensor<10x8x2xf32>, tensor<10x8x2xf32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @groups_of_floats(%q: tensor<2x8x4x64xf16>, %k: tensor<10x16x2x64xf8E4M3FN>, %t: tensor<2x4xi32>, %l: tensor<2xi32>, %s: tensor<10x16x2x2xf16>) {
  // expected-error @below {{'k_scale' are scales of groups, beside 'k_cache' of 'f8E4M3FN'; they are of i8 alone}}
  %0 = greta.paged_attention %q, %k, %k, %t, %l scales(%s, %s) : tensor<2x8x4x64xf16>, tensor<10x16x2x64xf8E4M3FN>, tensor<10x16x2x64xf8E4M3FN>, tensor<2x4xi32>, tensor<2xi32>, tensor<10x16x2x2xf16>, tensor<10x16x2x2xf16> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @groups_of_one(%q: tensor<2x8x4x64xf16>, %k: tensor<10x16x2x64xi8>, %t: tensor<2x4xi32>, %l: tensor<2xi32>, %s: tensor<10x16x2x2xf16>, %v: tensor<1x1x1xf32>) {
  // expected-error @below {{has scales of groups for one of 'k_cache' and 'v_cache'; both have them, or none}}
  %0 = greta.paged_attention %q, %k, %k, %t, %l scales(%s, %v) : tensor<2x8x4x64xf16>, tensor<10x16x2x64xi8>, tensor<10x16x2x64xi8>, tensor<2x4xi32>, tensor<2xi32>, tensor<10x16x2x2xf16>, tensor<1x1x1xf32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @update_groups(%k: tensor<10x16x2x96xi8>, %n: tensor<5x2x96xf16>, %i: tensor<5xi32>, %s: tensor<10x16x2x4xf16>) {
  // expected-error @below {{'scales' has 'tensor<10x16x2x4xf16>' for rows of 96 numbers of 'cache'; a scale is of 16, 32 or 64 neighbours}}
  %0, %1 = greta.paged_kv_update %k, %n, %i, %s : tensor<10x16x2x96xi8>, tensor<5x2x96xf16>, tensor<5xi32>, tensor<10x16x2x4xf16> -> tensor<10x16x2x96xi8>, tensor<10x16x2x4xf16>
  return
}
// -----
func.func @update_without_scales(%k: tensor<10x16x2x64xi8>, %n: tensor<5x2x64xf16>, %i: tensor<5xi32>, %s: tensor<10x16x2x2xf16>) {
  // expected-error @below {{has no second result; it is what 'scales' become}}
  %0 = greta.paged_kv_update %k, %n, %i, %s : tensor<10x16x2x64xi8>, tensor<5x2x64xf16>, tensor<5xi32>, tensor<10x16x2x2xf16> -> tensor<10x16x2x64xi8>
  return
}
// -----
func.func @lse(%q: tensor<2x8x4x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>) {
  // expected-error @below {{'lse' has type 'tensor<2x8x4xf16>'; it must be 'tensor<2x8x4xf32>', a number per row}}
  %0, %1 = greta.attention %q, %k, %v : tensor<2x8x4x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16> -> tensor<2x8x4x64xf16>, tensor<2x8x4xf16>
  return
}
// -----
func.func @paged_cache(%q: tensor<2x8x4x64xf16>, %k: tensor<10x16x64xf16>, %v: tensor<10x16x64xf16>, %t: tensor<2x4xi32>, %l: tensor<2xi32>) {
  // expected-error @below {{'k_cache' has rank 3; it is [P, page, Hkv, D] of rank 4: reshape it}}
  %0 = greta.paged_attention %q, %k, %v, %t, %l : tensor<2x8x4x64xf16>, tensor<10x16x64xf16>, tensor<10x16x64xf16>, tensor<2x4xi32>, tensor<2xi32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @paged_rows(%q: tensor<2x8x4x64xf16>, %k: tensor<10x?x2x64xf16>, %v: tensor<10x?x2x64xf16>, %t: tensor<2x4xi32>, %l: tensor<2xi32>) {
  // expected-error @below {{'k_cache' has dynamic rows in a page; give the number in the type}}
  %0 = greta.paged_attention %q, %k, %v, %t, %l : tensor<2x8x4x64xf16>, tensor<10x?x2x64xf16>, tensor<10x?x2x64xf16>, tensor<2x4xi32>, tensor<2xi32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @paged_heads(%q: tensor<2x8x4x64xf16>, %k: tensor<10x16x3x64xf16>, %v: tensor<10x16x3x64xf16>, %t: tensor<2x4xi32>, %l: tensor<2xi32>) {
  // expected-error @below {{'k_cache' has 3 heads, which do not divide 8}}
  %0 = greta.paged_attention %q, %k, %v, %t, %l : tensor<2x8x4x64xf16>, tensor<10x16x3x64xf16>, tensor<10x16x3x64xf16>, tensor<2x4xi32>, tensor<2xi32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @paged_values(%q: tensor<2x8x4x64xf16>, %k: tensor<10x16x2x64xf16>, %v: tensor<11x16x2x64xf16>, %t: tensor<2x4xi32>, %l: tensor<2xi32>) {
  // expected-error @below {{'v_cache' has type 'tensor<11x16x2x64xf16>'; it must be 'tensor<10x16x2x64xf16>', the type of 'k_cache'}}
  %0 = greta.paged_attention %q, %k, %v, %t, %l : tensor<2x8x4x64xf16>, tensor<10x16x2x64xf16>, tensor<11x16x2x64xf16>, tensor<2x4xi32>, tensor<2xi32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @paged_table_rank(%q: tensor<2x8x4x64xf16>, %k: tensor<10x16x2x64xf16>, %v: tensor<10x16x2x64xf16>, %t: tensor<8xi32>, %l: tensor<2xi32>) {
  // expected-error @below {{'table' has rank 1; it is [B, maxpages] of rank 2: reshape it}}
  %0 = greta.paged_attention %q, %k, %v, %t, %l : tensor<2x8x4x64xf16>, tensor<10x16x2x64xf16>, tensor<10x16x2x64xf16>, tensor<8xi32>, tensor<2xi32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @paged_table_type(%q: tensor<2x8x4x64xf16>, %k: tensor<10x16x2x64xf16>, %v: tensor<10x16x2x64xf16>, %t: tensor<2x4xi64>, %l: tensor<2xi32>) {
  // expected-error @below {{'table' has element type 'i64'; it is 'i32': convert it with arith}}
  %0 = greta.paged_attention %q, %k, %v, %t, %l : tensor<2x8x4x64xf16>, tensor<10x16x2x64xf16>, tensor<10x16x2x64xf16>, tensor<2x4xi64>, tensor<2xi32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @paged_table_size(%q: tensor<2x8x4x64xf16>, %k: tensor<10x16x2x64xf16>, %v: tensor<10x16x2x64xf16>, %t: tensor<3x4xi32>, %l: tensor<2xi32>) {
  // expected-error @below {{'table' has 3 elements in dimension 0, not 2; it must match B of 'q'}}
  %0 = greta.paged_attention %q, %k, %v, %t, %l : tensor<2x8x4x64xf16>, tensor<10x16x2x64xf16>, tensor<10x16x2x64xf16>, tensor<3x4xi32>, tensor<2xi32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @paged_lengths(%q: tensor<2x8x4x64xf16>, %k: tensor<10x16x2x64xf16>, %v: tensor<10x16x2x64xf16>, %t: tensor<2x4xi32>, %l: tensor<3xi32>) {
  // expected-error @below {{'lengths' has 3 elements in dimension 0, not 2; it must match B of 'q'}}
  %0 = greta.paged_attention %q, %k, %v, %t, %l : tensor<2x8x4x64xf16>, tensor<10x16x2x64xf16>, tensor<10x16x2x64xf16>, tensor<2x4xi32>, tensor<3xi32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @begins_queries(%q: tensor<2x8x4x64xf16>, %k: tensor<10x16x2x64xf16>, %t: tensor<2x4xi32>, %l: tensor<2xi32>, %b: tensor<3xi32>) {
  // expected-error @below {{'q' has rank 4; it is [T, Hq, D] of rank 3: reshape it}}
  %0 = greta.paged_attention %q, %k, %k, %t, %l begins(%b) : tensor<2x8x4x64xf16>, tensor<10x16x2x64xf16>, tensor<10x16x2x64xf16>, tensor<2x4xi32>, tensor<2xi32>, tensor<3xi32> -> tensor<2x8x4x64xf16>
  return
}
// -----
func.func @begins_tokens_first(%q: tensor<9x8x64xf16>, %k: tensor<10x16x2x64xf16>, %t: tensor<2x4xi32>, %l: tensor<2xi32>, %b: tensor<3xi32>) {
  // expected-error @below {{has 'begins' and 'tokens_first'; the rows of 'begins' are tokens first: leave 'tokens_first' out}}
  %0 = greta.paged_attention %q, %k, %k, %t, %l begins(%b) {tokens_first} : tensor<9x8x64xf16>, tensor<10x16x2x64xf16>, tensor<10x16x2x64xf16>, tensor<2x4xi32>, tensor<2xi32>, tensor<3xi32> -> tensor<9x8x64xf16>
  return
}
// -----
func.func @begins_rank(%q: tensor<9x8x64xf16>, %k: tensor<10x16x2x64xf16>, %t: tensor<2x4xi32>, %l: tensor<2xi32>, %b: tensor<1x3xi32>) {
  // expected-error @below {{'begins' has rank 2; it is [B + 1] of rank 1: reshape it}}
  %0 = greta.paged_attention %q, %k, %k, %t, %l begins(%b) : tensor<9x8x64xf16>, tensor<10x16x2x64xf16>, tensor<10x16x2x64xf16>, tensor<2x4xi32>, tensor<2xi32>, tensor<1x3xi32> -> tensor<9x8x64xf16>
  return
}
// -----
func.func @begins_type(%q: tensor<9x8x64xf16>, %k: tensor<10x16x2x64xf16>, %t: tensor<2x4xi32>, %l: tensor<2xi32>, %b: tensor<3xi64>) {
  // expected-error @below {{'begins' has element type 'i64'; it is 'i32': convert it with arith}}
  %0 = greta.paged_attention %q, %k, %k, %t, %l begins(%b) : tensor<9x8x64xf16>, tensor<10x16x2x64xf16>, tensor<10x16x2x64xf16>, tensor<2x4xi32>, tensor<2xi32>, tensor<3xi64> -> tensor<9x8x64xf16>
  return
}
// -----
func.func @begins_size(%q: tensor<9x8x64xf16>, %k: tensor<10x16x2x64xf16>, %t: tensor<?x4xi32>, %l: tensor<2xi32>, %b: tensor<2xi32>) {
  // expected-error @below {{'begins' has 2 elements in dimension 0, not 3; it must match B of 'lengths' and one more}}
  %0 = greta.paged_attention %q, %k, %k, %t, %l begins(%b) : tensor<9x8x64xf16>, tensor<10x16x2x64xf16>, tensor<10x16x2x64xf16>, tensor<?x4xi32>, tensor<2xi32>, tensor<2xi32> -> tensor<9x8x64xf16>
  return
}
// -----
func.func @begins_lengths(%q: tensor<9x8x64xf16>, %k: tensor<10x16x2x64xf16>, %t: tensor<2x4xi32>, %l: tensor<3xi32>, %b: tensor<3xi32>) {
  // expected-error @below {{'lengths' has 3 elements in dimension 0, not 2; it must match B of 'table'}}
  %0 = greta.paged_attention %q, %k, %k, %t, %l begins(%b) : tensor<9x8x64xf16>, tensor<10x16x2x64xf16>, tensor<10x16x2x64xf16>, tensor<2x4xi32>, tensor<3xi32>, tensor<3xi32> -> tensor<9x8x64xf16>
  return
}
// -----
func.func @begins_heads(%q: tensor<9x9x64xf16>, %k: tensor<10x16x2x64xf16>, %t: tensor<2x4xi32>, %l: tensor<2xi32>, %b: tensor<3xi32>) {
  // expected-error @below {{'k_cache' has 2 heads, which do not divide 9}}
  %0 = greta.paged_attention %q, %k, %k, %t, %l begins(%b) : tensor<9x9x64xf16>, tensor<10x16x2x64xf16>, tensor<10x16x2x64xf16>, tensor<2x4xi32>, tensor<2xi32>, tensor<3xi32> -> tensor<9x9x64xf16>
  return
}
// -----
func.func @update_cache(%c: tensor<4x32x64xf16>, %n: tensor<2x4x3x64xf16>, %p: tensor<2xi32>) {
  // expected-error @below {{'cache' has rank 3; it is [B, H, Tmax, D] of rank 4: reshape it}}
  %0 = greta.kv_update %c, %n, %p : tensor<4x32x64xf16>, tensor<2x4x3x64xf16>, tensor<2xi32> -> tensor<4x32x64xf16>
  return
}
// -----
func.func @update_new_rank(%c: tensor<2x4x32x64xf16>, %n: tensor<2x4x64xf16>, %p: tensor<2xi32>) {
  // expected-error @below {{'new' has rank 3; it is [B, H, S, D] of rank 4: reshape it}}
  %0 = greta.kv_update %c, %n, %p : tensor<2x4x32x64xf16>, tensor<2x4x64xf16>, tensor<2xi32> -> tensor<2x4x32x64xf16>
  return
}
// -----
func.func @update_new_type(%c: tensor<2x4x32x64xf16>, %n: tensor<2x4x3x64xf32>, %p: tensor<2xi32>) {
  // expected-error @below {{'new' has element type 'f32'; it is 'f16': it must match 'cache'; convert it with arith}}
  %0 = greta.kv_update %c, %n, %p : tensor<2x4x32x64xf16>, tensor<2x4x3x64xf32>, tensor<2xi32> -> tensor<2x4x32x64xf16>
  return
}
// -----
func.func @update_result(%c: tensor<2x4x32x64xf16>, %n: tensor<2x4x3x64xf16>, %p: tensor<2xi32>) {
  // expected-error @below {{'result' has type 'tensor<2x4x31x64xf16>'; it must be 'tensor<2x4x32x64xf16>', the type of 'cache'}}
  %0 = greta.kv_update %c, %n, %p : tensor<2x4x32x64xf16>, tensor<2x4x3x64xf16>, tensor<2xi32> -> tensor<2x4x31x64xf16>
  return
}
// -----
func.func @update_batch(%c: tensor<2x4x32x64xf16>, %n: tensor<3x4x3x64xf16>, %p: tensor<2xi32>) {
  // expected-error @below {{'new' has 3 elements in dimension 0, not 2; it must match B of 'cache'}}
  %0 = greta.kv_update %c, %n, %p : tensor<2x4x32x64xf16>, tensor<3x4x3x64xf16>, tensor<2xi32> -> tensor<2x4x32x64xf16>
  return
}
// -----
func.func @update_heads(%c: tensor<2x4x32x64xf16>, %n: tensor<2x5x3x64xf16>, %p: tensor<2xi32>) {
  // expected-error @below {{'new' has 5 elements in dimension 1, not 4; it must match the heads of 'cache'}}
  %0 = greta.kv_update %c, %n, %p : tensor<2x4x32x64xf16>, tensor<2x5x3x64xf16>, tensor<2xi32> -> tensor<2x4x32x64xf16>
  return
}
// -----
func.func @update_columns(%c: tensor<2x4x32x64xf16>, %n: tensor<2x4x3x32xf16>, %p: tensor<2xi32>) {
  // expected-error @below {{'new' has 32 elements in dimension 3, not 64; it must match D of 'cache'}}
  %0 = greta.kv_update %c, %n, %p : tensor<2x4x32x64xf16>, tensor<2x4x3x32xf16>, tensor<2xi32> -> tensor<2x4x32x64xf16>
  return
}
// -----
func.func @update_pos(%c: tensor<2x4x32x64xf16>, %n: tensor<2x4x3x64xf16>, %p: tensor<3xi32>) {
  // expected-error @below {{'pos' has 3 elements in dimension 0, not 2; it must match B of 'cache'}}
  %0 = greta.kv_update %c, %n, %p : tensor<2x4x32x64xf16>, tensor<2x4x3x64xf16>, tensor<3xi32> -> tensor<2x4x32x64xf16>
  return
}
// -----
func.func @paged_update_cache(%c: tensor<16x4x64xf16>, %n: tensor<3x4x64xf16>, %p: tensor<3xi32>) {
  // expected-error @below {{'cache' has rank 3; it is [P, page, H, D] of rank 4: reshape it}}
  %0 = greta.paged_kv_update %c, %n, %p : tensor<16x4x64xf16>, tensor<3x4x64xf16>, tensor<3xi32> -> tensor<16x4x64xf16>
  return
}
// -----
func.func @paged_update_new(%c: tensor<2x16x4x64xf16>, %n: tensor<1x3x4x64xf16>, %p: tensor<3xi32>) {
  // expected-error @below {{'new' has rank 4; it is [T, H, D] of rank 3: reshape it}}
  %0 = greta.paged_kv_update %c, %n, %p : tensor<2x16x4x64xf16>, tensor<1x3x4x64xf16>, tensor<3xi32> -> tensor<2x16x4x64xf16>
  return
}
// -----
func.func @paged_update_heads(%c: tensor<2x16x4x64xf16>, %n: tensor<3x5x64xf16>, %p: tensor<3xi32>) {
  // expected-error @below {{'new' has 5 elements in dimension 1, not 4; it must match the heads of 'cache'}}
  %0 = greta.paged_kv_update %c, %n, %p : tensor<2x16x4x64xf16>, tensor<3x5x64xf16>, tensor<3xi32> -> tensor<2x16x4x64xf16>
  return
}
// -----
func.func @paged_update_slots(%c: tensor<2x16x4x64xf16>, %n: tensor<3x4x64xf16>, %p: tensor<4xi32>) {
  // expected-error @below {{'slots' has 4 elements in dimension 0, not 3; it must match T of 'new'}}
  %0 = greta.paged_kv_update %c, %n, %p : tensor<2x16x4x64xf16>, tensor<3x4x64xf16>, tensor<4xi32> -> tensor<2x16x4x64xf16>
  return
}

// -----

func.func @paged_tokens_first(%q: tensor<2x4x?x64xf16>, %k: tensor<10x16x2x64xf16>, %t: tensor<2x4xi32>, %l: tensor<2xi32>) -> tensor<2x4x?x64xf16> {
  // expected-error @+1 {{'q' has dynamic heads; give the number in the type}}
  %0 = greta.paged_attention %q, %k, %k, %t, %l {tokens_first} : tensor<2x4x?x64xf16>, tensor<10x16x2x64xf16>, tensor<10x16x2x64xf16>, tensor<2x4xi32>, tensor<2xi32> -> tensor<2x4x?x64xf16>
  return %0 : tensor<2x4x?x64xf16>
}

// -----

func.func @paged_tokens_first_rank(%q: tensor<2x8x64xf16>, %k: tensor<10x16x2x64xf16>, %t: tensor<2x4xi32>, %l: tensor<2xi32>) -> tensor<2x8x64xf16> {
  // expected-error @+1 {{'q' has rank 3; it is [B, S, Hq, D] of rank 4}}
  %0 = greta.paged_attention %q, %k, %k, %t, %l {tokens_first} : tensor<2x8x64xf16>, tensor<10x16x2x64xf16>, tensor<10x16x2x64xf16>, tensor<2x4xi32>, tensor<2xi32> -> tensor<2x8x64xf16>
  return %0 : tensor<2x8x64xf16>
}
// -----
func.func @dynamic_rows(%c: tensor<2x2x16x?xf16>, %n: tensor<2x2x3x?xf16>, %p: tensor<2xi32>) {
  // expected-error @below {{'cache' has dynamic row size; give the number in the type}}
  %0 = greta.kv_update %c, %n, %p : tensor<2x2x16x?xf16>, tensor<2x2x3x?xf16>, tensor<2xi32> -> tensor<2x2x16x?xf16>
  return
}
// -----
func.func @no_rows(%c: tensor<4x16x2x0xf16>, %n: tensor<3x2x0xf16>, %s: tensor<3xi32>) {
  // expected-error @below {{'cache' has no row size; there is at least one}}
  %0 = greta.paged_kv_update %c, %n, %s : tensor<4x16x2x0xf16>, tensor<3x2x0xf16>, tensor<3xi32> -> tensor<4x16x2x0xf16>
  return
}
