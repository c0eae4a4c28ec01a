//===- AttentionOps.td - attention and the KV cache -----------------------===//
#ifndef GRETA_ATTENTIONOPS_TD
#define GRETA_ATTENTIONOPS_TD

include "Greta/OpBase.td"

def Greta_AttentionOp : Greta_Op<"attention", [AttrSizedOperandSegments]> {
  let summary = "Scaled dot-product attention";
  let description = [{
    | operand | shape |
    |---|---|
    | `q` | `[B, Hq, S, D]`, f32, f16 or bf16; heads and D static, D a multiple of 8 |
    | `k`, `v` | `[B, Hkv, T, D]`; Hkv divides Hq, query head h reads head h / (Hq / Hkv). The element type of `q`, or one whose numbers that type has: i8, floats of 8 bits, f16 and bf16 beside f32 |
    | `lengths` | `[B]`, i32: how many keys of a sequence are valid; without it all T |
    | `mask` | `[B or 1, Hq or 1, S or 1, T]`, f32, f16 or bf16: added to the scaled products |
    | `sinks` | `[Hq]`, f32: a logit per head whose weight goes to no value |
    | `k_scale`, `v_scale` | `[B or 1, Hkv or 1, T or 1]`, f32: what a key and a value are multiplied by; without them 1 |
    | result | the type of `q` |
    | `lse` | `[B, Hq, S]`, f32: log of the sum of the exponentials; a second result where the op has two |

    With n the valid keys of a sequence (at most T), `x[i, j] = scale * q[i] . k[j]`, then `softcap * tanh(x / softcap)` where there is
    a `softcap`, then `+ mask[i, j]`. Row i stands at key `p = i + n - S`: `causal` rows see keys `j <= p`, with a `window` `j > p - window`, and
    `j < p + window` too where they are not causal. `result[i] = sum_j exp(x[i, j]) v[j] / (sum_j exp(x[i, j]) + exp(sink))` over the
    visible keys, in f32 with the maximum subtracted, rounded once; the weights may be rounded to the type of `v` before they
    are multiplied. A row without a visible key is zero, and its `lse` -inf. `scale` is 1 / sqrt(D) if it is not given.

    Source: A. Vaswani et al., "Attention Is All You Need", 2017, arXiv:1706.03762; the one pass over the keys: M. Milakov, N. Gimelshein, "Online
    normalizer calculation for softmax", 2018, arXiv:1805.02867; T. Dao, "FlashAttention-2", 2023, arXiv:2307.08691.

    With `tokens_first` `q` and the result are `[B, S, Hq, D]`, as projections have them. Keys and values that lie so are views: `linalg.transpose` of
    the operand moves nothing, nor does a slice of the columns of one product for queries, keys and values.

    Elementwise work on the result, of its shape and with operands that are broadcast to it, is part of the kernel, which also stores the result itself where others read it.

    Keys and values of 8 bits are widened on their way to the product; a scale multiplies a column of logits, or of weights, and not the key or
    the value itself: one for each token and head (i8) costs next to nothing, one for each head, or for all (floats of 8 bits), less.

    ```mlir
    %0 = greta.attention %q, %k, %v lengths(%l) {scale = 0.125 : f32, causal} : tensor<?x32x?x64xf16>, tensor<?x8x?x64xf16>,
        tensor<?x8x?x64xf16>, tensor<?xi32> -> tensor<?x32x?x64xf16>
    %1 = greta.attention %q, %k8, %v8 scales(%ks, %vs) {causal} : tensor<?x32x?x64xf16>, tensor<?x8x?x64xi8>, tensor<?x8x?x64xi8>,
        tensor<?x8x?xf32>, tensor<?x8x?xf32> -> tensor<?x32x?x64xf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$q, AnyRankedTensor:$k, AnyRankedTensor:$v, Optional<AnyRankedTensor>:$lengths,
                       Optional<AnyRankedTensor>:$mask, Optional<AnyRankedTensor>:$sinks, Optional<AnyRankedTensor>:$k_scale,
                       Optional<AnyRankedTensor>:$v_scale, OptionalAttr<F32Attr>:$scale, UnitAttr:$causal, OptionalAttr<I64Attr>:$window, OptionalAttr<F32Attr>:$softcap,
                       UnitAttr:$tokens_first);
  let results = (outs AnyRankedTensor:$result, Optional<AnyRankedTensor>:$lse);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`lengths` `(` $lengths^ `)`)? (`mask` `(` $mask^ `)`)? (`sinks` `(` $sinks^ `)`)?
    (`scales` `(` $k_scale^ `,` $v_scale `)`)? attr-dict `:`
    custom<GivenTypes>(ref($lengths), ref($mask), ref($sinks), ref($k_scale), ref($v_scale), type($q), type($k), type($v), type($lengths),
                       type($mask), type($sinks), type($k_scale), type($v_scale))
    `->` type(results)
  }];
}

def Greta_AttentionBackwardOp : Greta_Op<"attention_backward", [AttrSizedOperandSegments]> {
  let summary = "Gradients of attention";
  let description = [{
    | operand | shape |
    |---|---|
    | `q`, `k`, `v`, `lengths`, `mask` | those of `greta.attention` |
    | `o` | its result, the type of `q`; or in its place `delta`, `[B, Hq, S]`, f32 |
    | `lse` | its log of the sums, `[B, Hq, S]`, f32 |
    | `do` | the gradient of its result, the type of `q` |
    | `dq`, `dk`, `dv` | the gradients of `q`, `k` and `v`, in their types |
    | `delta` | `[B, Hq, S]`, f32: the sum of `do * o` of each row; a fourth result where the op has four |

    With `x` as in `greta.attention`, `p[i, j] = exp(x[i, j] - lse[i])` for the keys that row i sees, else 0, and
    `dx[i, j] = p[i, j] * (do[i] . v[j] - delta[i])`, times `1 - tanh^2` of what a `softcap` capped:
    `dv[j] = sum_i p[i, j] do[i]`, `dk[j] = scale * sum_i dx[i, j] q[i]`, `dq[i] = scale * sum_j dx[i, j] k[j]`, in f32 and rounded once; `p` and `dx` may be rounded
    to the type of `q` before they are multiplied. `dk` and `dv` are sums over all query heads that read a head too, in one order always. Rows whose `lse` is -inf add nothing,
    and keys beyond the valid ones have gradients of zero. Sinks are in `lse`, so they are no operand; neither they nor `mask` get a gradient. Keys and values have the type of `q`:
    what a cache of 8 bits was quantised from has gradients, the quantised numbers have none.

    With `tokens_first` `q`, `k`, `v`, `o`, `do` and the three gradients are `[B, S or T, heads, D]`, as projections have them. Operands that lie so are views without it too, as those of `greta.attention` are,
    and gradients that are only transposed are stored transposed.

    `greta-fuse` makes two kernels of it: one for `dq` and `delta`, one for `dk` and `dv` from `delta`.

    Source: T. Dao, "FlashAttention-2", 2023, arXiv:2307.08691, algorithm 2, with the loop over keys in a kernel of its own, so that nothing is added up in memory.

    ```mlir
    %dq, %dk, %dv = greta.attention_backward %q, %k, %v, %o, %lse, %do {causal} : tensor<?x32x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>,
        tensor<?x32x?x64xf16>, tensor<?x32x?xf32>, tensor<?x32x?x64xf16> -> tensor<?x32x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?x64xf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$q, AnyRankedTensor:$k, AnyRankedTensor:$v, AnyRankedTensor:$o, AnyRankedTensor:$lse,
                       AnyRankedTensor:$d_o, Optional<AnyRankedTensor>:$lengths, Optional<AnyRankedTensor>:$mask,
                       OptionalAttr<F32Attr>:$scale, UnitAttr:$causal, OptionalAttr<I64Attr>:$window, OptionalAttr<F32Attr>:$softcap,
                       UnitAttr:$tokens_first);
  let results = (outs AnyRankedTensor:$dq, AnyRankedTensor:$dk, AnyRankedTensor:$dv, Optional<AnyRankedTensor>:$delta);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $o `,` $lse `,` $d_o (`lengths` `(` $lengths^ `)`)? (`mask` `(` $mask^ `)`)? attr-dict `:`
    type(operands) `->` type(results)
  }];
}

def Greta_PagedAttentionOp : Greta_Op<"paged_attention", [AttrSizedOperandSegments]> {
  let summary = "Attention over a KV cache in pages";
  let description = [{
    | operand | shape |
    |---|---|
    | `q` | `[B, Hq, S, D]`, f32, f16 or bf16: the last S tokens of each sequence; with `begins` `[T, Hq, D]` |
    | `k_cache`, `v_cache` | `[P, page, Hkv, D]`, of the element types that `greta.attention` takes |
    | `table` | `[B, maxpages]`, i32: the pages of each sequence, in order |
    | `lengths` | `[B]`, i32: how many keys each sequence has, those of `q` included |
    | `begins` | `[B + 1]`, i32, ascending from 0: sequence b has the rows `begins[b]` to `begins[b + 1] - 1` of `q`, which are its last tokens |
    | `sinks` | `[Hq]`, f32: a logit per head whose weight goes to no value |
    | `k_scale`, `v_scale` | `[P or 1, page or 1, Hkv or 1]`, f32: what a key and a value are multiplied by; without them 1. A cache of i8 may have `[P, page, Hkv, D / g]`, f16, instead: a scale for each g neighbours of a row, g 16, 32 or 64 |
    | result | the type of `q` |

    `greta.attention`, causal, over the keys `k_cache[table[b, j / page], j % page, h]` for j below the sequence's length. Entries of the
    table beyond it are not read; one that names no page reads some page, and is an error of checked functions. With `tokens_first` `q` and
    the result are `[B, S, Hq, D]`, as projections have them. Numbers with scales of groups are multiplied by them where they are loaded, and rounded to
    the type of `q`.

    With `begins` each sequence has its own number of rows, which may be 0, so that prompts and single tokens share a launch; B is below 2^20. A row has the same bits whatever
    else is in the launch. Rows from `begins[B]` on are in no sequence, and zero. `begins` come from the device, as the offsets of `greta.grouped_matmul` do, and nobody checks them but checked functions: each is taken as 0
    where it is negative and as T beyond T, and the first as 0. If they do not ascend it is not defined which sequence has a row, or whether one has.

    Source: W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention", 2023, arXiv:2309.06180.

    ```mlir
    %0 = greta.paged_attention %q, %k, %v, %table, %lengths {scale = 0.088 : f32} : tensor<?x32x1x128xf16>, tensor<?x16x8x128xf16>,
        tensor<?x16x8x128xf16>, tensor<?x?xi32>, tensor<?xi32> -> tensor<?x32x1x128xf16>
    %1 = greta.paged_attention %rows, %k, %v, %table, %lengths begins(%b) : tensor<?x32x128xf16>, tensor<?x16x8x128xf16>,
        tensor<?x16x8x128xf16>, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x32x128xf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$q, AnyRankedTensor:$k_cache, AnyRankedTensor:$v_cache, AnyRankedTensor:$table,
                       AnyRankedTensor:$lengths, Optional<AnyRankedTensor>:$begins, Optional<AnyRankedTensor>:$sinks, Optional<AnyRankedTensor>:$k_scale,
                       Optional<AnyRankedTensor>:$v_scale, OptionalAttr<F32Attr>:$scale, OptionalAttr<I64Attr>:$window, OptionalAttr<F32Attr>:$softcap,
                       UnitAttr:$tokens_first);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $q `,` $k_cache `,` $v_cache `,` $table `,` $lengths (`begins` `(` $begins^ `)`)? (`sinks` `(` $sinks^ `)`)?
    (`scales` `(` $k_scale^ `,` $v_scale `)`)? attr-dict `:` type(operands) `->` type($result)
  }];
}

def Greta_KvUpdateOp : Greta_Op<"kv_update"> {
  let summary = "New rows of a KV cache";
  let description = [{
    | operand | shape |
    |---|---|
    | `cache` | `[B, H, Tmax, D]`, any element type that buffers hold |
    | `new` | `[B, H, S, D]`, the element type of `cache` |
    | `pos` | `[B]`, i32 |
    | result | the type of `cache` |

    `cache` with the rows `pos[b]` to `pos[b] + S - 1` of each sequence replaced by `new`; rows beyond the cache are dropped.

    ```mlir
    %0 = greta.kv_update %cache, %new, %pos : tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?xi32> -> tensor<?x8x?x128xf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$cache, AnyRankedTensor:$new_rows, AnyRankedTensor:$pos);
  let results = (outs AnyRankedTensor:$result);
}

def Greta_PagedKvUpdateOp : Greta_Op<"paged_kv_update"> {
  let summary = "New rows of a KV cache in pages";
  let description = [{
    | operand | shape |
    |---|---|
    | `cache` | `[P, page, H, D]`, any element type that buffers hold |
    | `new` | `[T, H, D]`, the element type of `cache`; with `scales` f32, f16 or bf16 |
    | `slots` | `[T]`, i32: page * size + place; tokens with a negative one, or one beyond the cache, are skipped |
    | `scales` | `[P, page, H, D / g]`, f16, beside a `cache` of i8: a scale for each g neighbours of a row, g 16, 32 or 64 |
    | result | the type of `cache` |
    | `new_scales` | the type of `scales`; a second result where the op has them |

    `cache` with the row of each token replaced. No two tokens have one slot.

    With `scales` the rows are quantised: of each g neighbours `s = max(|x[j]|) * (1 / 127)`, rounded to f16, and `y[i] = x[i] * (1 / s)` in f32, rounded to the nearest
    number, ties to even, and at most 127 away from 0; zeros where s is 0. With g = 32 this is GGUF's Q8_0, with numbers and scales apart.

    ```mlir
    %0 = greta.paged_kv_update %cache, %new, %slots : tensor<?x16x8x128xf16>, tensor<?x8x128xf16>, tensor<?xi32> -> tensor<?x16x8x128xf16>
    %1, %s = greta.paged_kv_update %cache8, %new, %slots, %scales : tensor<?x16x8x128xi8>, tensor<?x8x128xf16>, tensor<?xi32>, tensor<?x16x8x4xf16>
        -> tensor<?x16x8x128xi8>, tensor<?x16x8x4xf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$cache, AnyRankedTensor:$new_rows, AnyRankedTensor:$slots, Optional<AnyRankedTensor>:$scales);
  let results = (outs AnyRankedTensor:$result, Optional<AnyRankedTensor>:$new_scales);
}

#endif
