"""torch.ops.greta: the operators of language models, each one kernel on rdna, on the CPU as they are written here.

    rms_norm(x, weight, eps)              x over its root mean square in the last dim, times the weight
    layer_norm(x, weight, bias, eps)      bias may be None
    rope(x, cos, sin)                     x [batch, heads, n, D] with the halves of D rotated; cos and sin [batch or 1, n, D]
    swiglu(gate, up)                      silu(gate) * up
    attention(q, k, v, causal, scale)     softmax(q k^T * scale) v, without the matrix; several heads of queries may share one of keys
    paged_attention(q, k_cache, v_cache, table, lengths, scale)
                                          causal, of q [B, heads, S, D], the last S tokens of each sequence, over caches [pages, page, heads, D]: sequence b has
                                          lengths[b] keys, those of q included, in the pages table[b]
    linear_q4(x, codes, scales)           x W^T, W[n, k] = (code - 8) * scale; codes [N, K / 2], the even k in the low half of a byte; scales [N, K / group]
    dequantize_q4(codes, scales)          that W
    grouped_linear(x, weight, ends)       rows ends[g - 1] to ends[g] - 1 of x times weight[g]^T; rows behind the last end are 0
    cache_update(cache, new, positions)   writes new[:, :, i] to cache[:, :, positions[i]]; a position that there is not is left out

torch.compile puts three more into its graphs (_fusion.py):

    product(a, b, operands, epilogue, dtype)
                                          a @ b [.., M, N] with the epilogue's steps (_epilogues.py) in f32, rounded to dtype; operands are numbers of an element, rows of N,
                                          columns of M or matrices of the result's elements
    convolution(x, weight, operands, epilogue, stride, padding, dilation, dtype)
                                          likewise of 2 dimensions and one group, x [B, C, H, W], rows along C; the result's channels lie next to each other
    fused_attention(q, k, v, bias, operands, epilogue, causal, scale, by_tokens, dtype, keeps_result)
                                          likewise on the result of attention (_attention_epilogues.py), [B, H, S, D] or by_tokens [B, S, H, D], in a list; with keeps_result
                                          it goes on with what aten's operator has for gradients: the result as it is, the logarithms of the sums, and two seeds

Norms, rope and swiglu compute narrow types in f32 and round once. All but paged_attention, cache_update and dequantize_q4 have gradients: of the scales, codes, cos and
sin there are none. Operators without a kernel in _fused.py become one by Inductor (_eager.py), and parts of the kernels around them under torch.compile.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from . import _epilogues

_library = torch.library.Library("greta", "DEF")
# The definition of each operator in torch's own operators: Inductor makes a kernel of it in eager mode, and inlines those of IN_GRAPHS into its graphs.
references: dict[Any, Callable[..., Any]] = {}
IN_GRAPHS = ("rms_norm", "rms_norm_backward", "layer_norm", "layer_norm_backward", "rope", "swiglu", "swiglu_backward", "dequantize_q4")


def _define(schema: str, fake: Callable[..., Any] | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An operator that is this function on the CPU. Without a `fake` the function says shapes, too, and may be compiled."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        name = schema.partition("(")[0]
        _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        for key in ("CPU", "CUDA"):
            _library.impl(name, function, key)
        torch.library.register_fake(f"greta::{name}", fake or function, lib=_library)
        if fake is None:
            references[getattr(torch.ops.greta, name).default] = function
        return function

    return add


def _differentiate(name: str, saved: Callable[..., Any], backward: Callable[..., Any]) -> None:
    """The gradients are backward(grad, what saved(*inputs) returns): tensors, then other things."""

    def set_up(ctx: Any, inputs: Any, output: Any) -> None:
        kept = saved(*inputs)
        ctx.save_for_backward(*(one for one in kept if one is None or isinstance(one, torch.Tensor)))
        ctx.numbers = [one for one in kept if one is not None and not isinstance(one, torch.Tensor)]

    def gradients(context: Any, grad: torch.Tensor) -> Any:
        return backward(grad, *context.saved_tensors, *context.numbers)

    torch.library.register_autograd(f"greta::{name}", gradients, setup_context=set_up, lib=_library)


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _over_rows(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1, x.shape[-1]).sum(0).to(like.dtype)


#
# Norms
#


@_define("rms_norm(Tensor x, Tensor weight, float eps) -> Tensor")
def _rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    wide = _wide(x)
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * weight.to(wide.dtype)).to(x.dtype)


@_define("rms_norm_backward(Tensor grad, Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)")
def _rms_norm_backward(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float) -> Any:
    wide, grad = _wide(x), _wide(grad)
    factor = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    normal, weighted = wide * factor, grad * weight.to(wide.dtype)
    inner = (weighted - normal * (weighted * normal).mean(-1, keepdim=True)) * factor
    return inner.to(x.dtype), _over_rows(grad * normal, weight)


@_define("layer_norm(Tensor x, Tensor weight, Tensor? bias, float eps) -> Tensor")
def _layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
    wide = _wide(x)
    centred = wide - wide.mean(-1, keepdim=True)
    out = centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps) * weight.to(wide.dtype)
    return (out if bias is None else out + bias.to(wide.dtype)).to(x.dtype)


@_define("layer_norm_backward(Tensor grad, Tensor x, Tensor weight, float eps) -> (Tensor, Tensor, Tensor)")
def _layer_norm_backward(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float) -> Any:
    wide, grad = _wide(x), _wide(grad)
    centred = wide - wide.mean(-1, keepdim=True)
    factor = torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)
    normal, weighted = centred * factor, grad * weight.to(wide.dtype)
    inner = (weighted - weighted.mean(-1, keepdim=True) - normal * (weighted * normal).mean(-1, keepdim=True)) * factor
    return inner.to(x.dtype), _over_rows(grad * normal, weight), _over_rows(grad, weight)


def _layer_norm_gradients(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float, hasBias: bool) -> Any:
    inner, of_weight, of_bias = torch.ops.greta.layer_norm_backward(grad, x, weight, eps)
    return inner, of_weight, of_bias if hasBias else None, None


_differentiate("rms_norm", lambda x, weight, eps: (x, weight, eps), lambda grad, *saved: (*torch.ops.greta.rms_norm_backward(grad, *saved), None))
_differentiate("layer_norm", lambda x, weight, bias, eps: (x, weight, eps, bias is not None), _layer_norm_gradients)


#
# Parts of a layer
#


@_define("rope(Tensor x, Tensor cos, Tensor sin) -> Tensor")
def _rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    wide, half = _wide(x), x.shape[-1] // 2
    rotated = torch.cat((-wide[..., half:], wide[..., :half]), -1)
    return (wide * _wide(cos).unsqueeze(1) + rotated * _wide(sin).unsqueeze(1)).to(x.dtype)


@_define("swiglu(Tensor gate, Tensor up) -> Tensor")
def _swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    wide = _wide(gate)
    return (wide * torch.sigmoid(wide) * _wide(up)).to(gate.dtype)


@_define("swiglu_backward(Tensor grad, Tensor gate, Tensor up) -> (Tensor, Tensor)")
def _swiglu_backward(grad: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> Any:
    wide, grad = _wide(gate), _wide(grad)
    part = torch.sigmoid(wide)
    return (grad * _wide(up) * part * (1 + wide * (1 - part))).to(gate.dtype), (grad * wide * part).to(up.dtype)


def _rope_gradients(grad: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> Any:
    return torch.ops.greta.rope(grad, cos, -sin.roll(sin.shape[-1] // 2, -1)), None, None


_differentiate("rope", lambda x, cos, sin: (cos, sin), _rope_gradients)
_differentiate("swiglu", lambda gate, up: (gate, up), lambda grad, gate, up: torch.ops.greta.swiglu_backward(grad, gate, up))

_library.define("attention(Tensor q, Tensor k, Tensor v, bool causal=False, float? scale=None) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))


@torch.library.impl(_library, "attention", "CompositeImplicitAutograd")
def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False, scale: float | None = None) -> torch.Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=bool(q.shape[1] != k.shape[1]))


@_define("paged_attention(Tensor q, Tensor k_cache, Tensor v_cache, Tensor table, Tensor lengths, float? scale=None) -> Tensor")
def _paged_attention(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor, scale: float | None = None) -> torch.Tensor:
    pages, page, keyHeads, depth = k_cache.shape
    batch, heads, queries = q.shape[:3]
    key = torch.arange(table.shape[1] * page, device=q.device)
    isKey = key < lengths[:, None]
    isSeen = (key <= torch.arange(queries, device=q.device)[:, None] + (lengths - queries)[:, None, None])[:, None, None] & isKey[:, None, None, None]
    used = table.long().clamp(0, pages - 1)  # entries beyond the length may be anything, and so may their rows
    keys, values = (_wide(cache)[used].reshape(batch, -1, keyHeads, depth).where(isKey[:, :, None, None], 0).transpose(1, 2).unsqueeze(2) for cache in (k_cache, v_cache))
    rows = _wide(q).reshape(batch, keyHeads, heads // keyHeads, queries, depth)
    logits = (rows @ keys.mT * (depth**-0.5 if scale is None else scale)).masked_fill(~isSeen, -math.inf)
    weights = torch.softmax(logits, -1).masked_fill(~isSeen, 0)  # rows without a key are 0
    return (weights @ values).reshape(q.shape).to(q.dtype).contiguous()


def _cache_update_fake(cache: torch.Tensor, new: torch.Tensor, positions: torch.Tensor) -> None:
    return None


@_define("cache_update(Tensor(a!) cache, Tensor new, Tensor positions) -> ()", fake=_cache_update_fake)
def _cache_update(cache: torch.Tensor, new: torch.Tensor, positions: torch.Tensor) -> None:
    there = (positions >= 0) & (positions < cache.shape[2])
    cache.index_copy_(2, positions[there], new[:, :, there])


#
# Linear layers
#


@_define("dequantize_q4(Tensor codes, Tensor scales) -> Tensor")
def _dequantize_q4(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    n, bytes_of_row = codes.shape
    values = torch.stack((codes & 15, codes >> 4), -1).view(n, scales.shape[1], -1)
    return ((values.to(scales.dtype) - 8) * scales[:, :, None]).view(n, 2 * bytes_of_row)


@_define("linear_q4(Tensor x, Tensor codes, Tensor scales) -> Tensor")
def _linear_q4(x: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return x @ _dequantize_q4(codes, scales).to(x.dtype).t()


def _linear_q4_gradients(grad: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor) -> Any:
    return grad @ torch.ops.greta.dequantize_q4(codes, scales).to(grad.dtype), None, None


def _grouped_linear_fake(x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    return x.new_empty((x.shape[0], weight.shape[1]))


def _ranges(ends: torch.Tensor) -> Any:
    all = ends.tolist()
    return enumerate(zip([0, *all[:-1]], all))


@_define("grouped_linear(Tensor x, Tensor weight, Tensor ends) -> Tensor", fake=_grouped_linear_fake)
def _grouped_linear(x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    out = x.new_zeros((x.shape[0], weight.shape[1]))
    for group, (begin, end) in _ranges(ends):
        out[begin:end] = x[begin:end] @ weight[group].t()
    return out


def _grouped_weight_gradient_fake(grad: torch.Tensor, x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    return x.new_empty((ends.shape[0], grad.shape[1], x.shape[1]))


@_define("grouped_weight_gradient(Tensor grad, Tensor x, Tensor ends) -> Tensor", fake=_grouped_weight_gradient_fake)
def _grouped_weight_gradient(grad: torch.Tensor, x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    return torch.stack([grad[begin:end].t() @ x[begin:end] for _, (begin, end) in _ranges(ends)])


def _grouped_linear_gradients(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor) -> Any:
    ops = torch.ops.greta
    return ops.grouped_linear(grad, weight.transpose(1, 2), ends), ops.grouped_weight_gradient(grad, x, ends), None


_differentiate("linear_q4", lambda x, codes, scales: (codes, scales), _linear_q4_gradients)
_differentiate("grouped_linear", lambda x, weight, ends: (x, weight, ends), _grouped_linear_gradients)


#
# Products and convolutions with what torch.compile finds behind them
#


def _product_fake(a: torch.Tensor, b: torch.Tensor, operands: list[torch.Tensor], epilogue: str, dtype: torch.dtype) -> torch.Tensor:
    return a.new_empty((*a.shape[:-1], b.shape[-1]), dtype=dtype)


@_define("product(Tensor a, Tensor b, Tensor[] operands, str epilogue, ScalarType dtype) -> Tensor", fake=_product_fake)
def _product(a: torch.Tensor, b: torch.Tensor, operands: list[torch.Tensor], epilogue: str, dtype: torch.dtype) -> torch.Tensor:
    return _epilogues.computed(_epilogues.parsed(epilogue), a.float() @ b.float(), operands).to(dtype).contiguous()


def _convolution_fake(
    x: torch.Tensor, weight: torch.Tensor, operands: list[torch.Tensor], epilogue: str, stride: list[int], padding: list[int], dilation: list[int], dtype: torch.dtype
) -> torch.Tensor:
    extents = [(size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d in zip(x.shape[2:], weight.shape[2:], stride, padding, dilation)]
    return torch.empty((x.shape[0], weight.shape[0], *extents), dtype=dtype, device=x.device, memory_format=torch.channels_last)


@_define("convolution(Tensor x, Tensor weight, Tensor[] operands, str epilogue, int[] stride, int[] padding, int[] dilation, ScalarType dtype) -> Tensor", fake=_convolution_fake)
def _convolution(
    x: torch.Tensor, weight: torch.Tensor, operands: list[torch.Tensor], epilogue: str, stride: list[int], padding: list[int], dilation: list[int], dtype: torch.dtype
) -> torch.Tensor:
    sums = torch.nn.functional.conv2d(x.float(), weight.float(), None, stride, padding, dilation)
    return _epilogues.computed(_epilogues.parsed(epilogue), sums, operands, axis=-3).to(dtype).contiguous(memory_format=torch.channels_last)


def empty_results(q: torch.Tensor, byTokens: bool, dtype: torch.dtype, keepsResult: bool) -> list[torch.Tensor]:
    """The memory of fused_attention's results."""
    batch, heads, tokens, depth = q.shape
    shape = (batch, tokens, heads, depth) if byTokens else (batch, heads, tokens, depth)
    results = [torch.empty(shape, dtype=dtype, device=q.device)]
    if keepsResult:
        own = torch.empty(shape, dtype=q.dtype, device=q.device)
        results += [own.transpose(1, 2) if byTokens else own, torch.empty((batch, heads, tokens), dtype=torch.float32, device=q.device)]
        results += [torch.empty((), dtype=torch.int64, device=q.device) for _ in range(2)]
    return results


def _fused_attention_fake(q: Any, k: Any, v: Any, bias: Any, operands: Any, epilogue: str, causal: bool, scale: Any, by_tokens: bool, dtype: torch.dtype, keeps_result: bool) -> Any:
    return empty_results(q, by_tokens, dtype, keeps_result)


@_define(
    "fused_attention(Tensor q, Tensor k, Tensor v, Tensor? bias, Tensor[] operands, str epilogue, bool causal, float? scale, bool by_tokens, ScalarType dtype, bool keeps_result) -> Tensor[]",
    fake=_fused_attention_fake,
)
def _fused_attention(q: Any, k: Any, v: Any, bias: Any, operands: Any, epilogue: str, causal: bool, scale: Any, by_tokens: bool, dtype: torch.dtype, keeps_result: bool) -> Any:
    from ._attention_epilogues import on_tensors

    results = empty_results(q, by_tokens, dtype, keeps_result)
    rows = _wide(q)
    keys, values = (_wide(one).repeat_interleave(q.shape[1] // k.shape[1], 1) for one in (k, v))
    logits = rows @ keys.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        logits = logits + bias
    if causal:
        logits = logits.masked_fill(torch.ones(logits.shape[-2:], dtype=torch.bool, device=q.device).triu(1), -math.inf)
    own = (torch.softmax(logits, -1).nan_to_num() @ values).to(q.dtype)
    results[0].copy_(on_tensors(epilogue, own, operands, by_tokens))
    if keeps_result:
        results[1].copy_(own)
        results[2].copy_(logits.logsumexp(-1))
    return results
