"""Scaled dot-product attention and its gradients without the S x T matrix, as torch's overrideable operators.

Keys are read in blocks, with a running maximum and sum of the exponentials; the gradients compute the block's weights again from the stored logsumexp.
A bias of any strides is added to the logits; several heads of queries may share one of keys.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl

from . import _attention_epilogues, _attention_packages, ops
from ._device import block_of
from ._operators import counted, implements, reaches_far, step_of


@triton.jit
def _logits(q, kt, bias, row, col, S, T, scale, b_row, b_col, CAUSAL: tl.constexpr, HAS_BIAS: tl.constexpr, EVEN: tl.constexpr):
    """A block of logits, -inf where a key is no query's; EVEN: no block has a rest."""
    logits = tl.dot(q, kt, input_precision="ieee") * scale
    inside = (row[:, None] < S) & (col[None, :] < T)
    if HAS_BIAS:
        logits += tl.load(bias + row[:, None] * b_row + col[None, :] * b_col, mask=inside, other=0.0).to(tl.float32)
    if CAUSAL:
        inside = inside & (row[:, None] >= col[None, :])
    if CAUSAL or not EVEN:
        logits = tl.where(inside, logits, -float("inf"))
    return logits


@triton.jit
def _block(at, row, col, row_stride, col_stride, ROWS, COLS):
    """A block of a matrix, zeros beyond its end."""
    return tl.load(at + row[:, None] * row_stride + col[None, :] * col_stride, mask=(row[:, None] < ROWS) & (col[None, :] < COLS), other=0.0)


@triton.jit
def _gradients(queries, kt, vt, grads, bias, row, col, high, less, S, T, scale, b_row, b_col, CAUSAL: tl.constexpr, HAS_BIAS: tl.constexpr):
    """A block of weights, again from the logsumexp `high`, and of the logits' gradient; `less` is the rows' sum of the result times its gradient."""
    p = tl.exp(_logits(queries, kt, bias, row, col, S, T, scale, b_row, b_col, CAUSAL, HAS_BIAS, False) - high[:, None])
    return p, p * (tl.dot(grads, vt, input_precision="ieee") - less[:, None]) * scale


@triton.jit(do_not_specialize=["S", "T", "H", "shared", "q_b", "q_h", "k_b", "k_h", "v_b", "v_h", "b_b", "b_h", "o_b", "o_h"])
def forward_kernel(
    out,
    lse,
    q,
    k,
    v,
    bias,
    scale,
    S,
    T,
    H,
    shared,
    q_b,
    q_h,
    q_s,
    q_d,
    k_b,
    k_h,
    k_s,
    k_d,
    v_b,
    v_h,
    v_s,
    v_d,
    o_b,
    o_h,
    o_s,
    o_d,
    b_b,
    b_h,
    b_s,
    b_t,
    D: tl.constexpr,
    DV: tl.constexpr,
    CAUSAL: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    EVEN: tl.constexpr,
    FAR: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_DV: tl.constexpr,
):
    batch = (tl.program_id(1) // H).to(tl.int64)
    head = (tl.program_id(1) % H).to(tl.int64)
    row = counted(tl.program_id(0) * BLOCK_S, BLOCK_S, FAR)
    d = counted(0, BLOCK_D, FAR)
    dv = counted(0, BLOCK_DV, FAR)
    q += batch * q_b + head * q_h
    k += batch * k_b + head // shared * k_h
    v += batch * v_b + head // shared * v_h
    bias += batch * b_b + head * b_h
    queries = _block(q, row, d, q_s, q_d, S, D)
    most = tl.full((BLOCK_S,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_S,), tl.float32)
    sums = tl.zeros((BLOCK_S, BLOCK_DV), tl.float32)
    end = T
    if CAUSAL:
        end = tl.minimum(T, (tl.program_id(0) + 1) * BLOCK_S)
    first = counted(0, BLOCK_T, FAR)
    at_k = k + d[:, None] * k_d + first[None, :] * k_s
    at_v = v + first[:, None] * v_s + dv[None, :] * v_d
    k_step, v_step = step_of(k_s, BLOCK_T, FAR), step_of(v_s, BLOCK_T, FAR)
    for start in range(0, end, BLOCK_T):
        col = counted(start, BLOCK_T, FAR)
        if EVEN:
            kt, values = tl.load(at_k), tl.load(at_v)
        else:
            kt = tl.load(at_k, mask=(d[:, None] < D) & (col[None, :] < T), other=0.0)
            values = tl.load(at_v, mask=(col[:, None] < T) & (dv[None, :] < DV), other=0.0)
        at_k += k_step
        at_v += v_step
        logits = _logits(queries, kt, bias, row, col, S, T, scale, b_s, b_t, CAUSAL, HAS_BIAS, EVEN)
        higher = tl.maximum(most, tl.max(logits, 1))
        finite = tl.where(higher == -float("inf"), 0.0, higher)
        p = tl.exp(logits - finite[:, None])
        shrink = tl.exp(most - finite)
        total = total * shrink + tl.sum(p, 1)
        sums = sums * shrink[:, None] + tl.dot(p.to(values.dtype), values, input_precision="ieee")
        most = higher
    isEmpty = total == 0.0
    sums = sums / tl.where(isEmpty, 1.0, total)[:, None]
    tl.store(lse + tl.program_id(1).to(tl.int64) * S + row, tl.where(isEmpty, 0.0, most + tl.log(tl.where(isEmpty, 1.0, total))), mask=row < S)
    at = out + batch * o_b + head * o_h + row[:, None] * o_s + dv[None, :] * o_d
    tl.store(at, sums.to(out.dtype.element_ty), mask=(row[:, None] < S) & (dv[None, :] < DV))


@triton.jit(do_not_specialize=["S", "T", "H", "shared", "q_b", "q_h", "k_b", "k_h", "v_b", "v_h", "b_b", "b_h", "g_b", "g_h", "dq_b", "dq_h"])
def query_gradient_kernel(
    dq,
    q,
    k,
    v,
    bias,
    grad,
    lse,
    delta,
    scale,
    S,
    T,
    H,
    shared,
    q_b,
    q_h,
    q_s,
    q_d,
    k_b,
    k_h,
    k_s,
    k_d,
    v_b,
    v_h,
    v_s,
    v_d,
    g_b,
    g_h,
    g_s,
    g_d,
    b_b,
    b_h,
    b_s,
    b_t,
    dq_b,
    dq_h,
    dq_s,
    dq_d,
    D: tl.constexpr,
    DV: tl.constexpr,
    CAUSAL: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    FAR: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_DV: tl.constexpr,
):
    """dq [B, H, S, D], a block of queries a program."""
    batch = (tl.program_id(1) // H).to(tl.int64)
    head = (tl.program_id(1) % H).to(tl.int64)
    row = counted(tl.program_id(0) * BLOCK_S, BLOCK_S, FAR)
    d = counted(0, BLOCK_D, FAR)
    dv = counted(0, BLOCK_DV, FAR)
    k += batch * k_b + head // shared * k_h
    v += batch * v_b + head // shared * v_h
    bias += batch * b_b + head * b_h
    queries = _block(q + batch * q_b + head * q_h, row, d, q_s, q_d, S, D)
    grads = _block(grad + batch * g_b + head * g_h, row, dv, g_s, g_d, S, DV)
    high = tl.load(lse + tl.program_id(1).to(tl.int64) * S + row, mask=row < S, other=0.0)
    less = tl.load(delta + tl.program_id(1).to(tl.int64) * S + row, mask=row < S, other=0.0)
    sums = tl.zeros((BLOCK_S, BLOCK_D), tl.float32)
    end = T
    if CAUSAL:
        end = tl.minimum(T, (tl.program_id(0) + 1) * BLOCK_S)
    for start in range(0, end, BLOCK_T):
        col = counted(start, BLOCK_T, FAR)
        kt = _block(k, d, col, k_d, k_s, D, T)
        vt = _block(v, dv, col, v_d, v_s, DV, T)
        _, ds = _gradients(queries, kt, vt, grads, bias, row, col, high, less, S, T, scale, b_s, b_t, CAUSAL, HAS_BIAS)
        keys = _block(k, col, d, k_s, k_d, T, D)
        sums += tl.dot(ds.to(keys.dtype), keys, input_precision="ieee")
    tl.store(dq + batch * dq_b + head * dq_h + row[:, None] * dq_s + d[None, :] * dq_d, sums.to(dq.dtype.element_ty), mask=(row[:, None] < S) & (d[None, :] < D))


@triton.jit(do_not_specialize=["S", "T", "H", "shared", "q_b", "q_h", "k_b", "k_h", "v_b", "v_h", "b_b", "b_h", "g_b", "g_h", "dk_b", "dk_h", "dv_b", "dv_h"])
def key_gradient_kernel(
    dk,
    dv_out,
    q,
    k,
    v,
    bias,
    grad,
    lse,
    delta,
    scale,
    S,
    T,
    H,
    shared,
    q_b,
    q_h,
    q_s,
    q_d,
    k_b,
    k_h,
    k_s,
    k_d,
    v_b,
    v_h,
    v_s,
    v_d,
    g_b,
    g_h,
    g_s,
    g_d,
    b_b,
    b_h,
    b_s,
    b_t,
    dk_b,
    dk_h,
    dk_t,
    dk_d,
    dv_b,
    dv_h,
    dv_t,
    dv_d,
    D: tl.constexpr,
    DV: tl.constexpr,
    CAUSAL: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    FAR: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_DV: tl.constexpr,
):
    """dk [B, H, T, D] and dv [B, H, T, DV] by head of the queries, a block of keys a program."""
    batch = (tl.program_id(1) // H).to(tl.int64)
    head = (tl.program_id(1) % H).to(tl.int64)
    col = counted(tl.program_id(0) * BLOCK_T, BLOCK_T, FAR)
    d = counted(0, BLOCK_D, FAR)
    dv = counted(0, BLOCK_DV, FAR)
    q += batch * q_b + head * q_h
    k += batch * k_b + head // shared * k_h
    v += batch * v_b + head // shared * v_h
    bias += batch * b_b + head * b_h
    grad += batch * g_b + head * g_h
    kt = _block(k, d, col, k_d, k_s, D, T)
    vt = _block(v, dv, col, v_d, v_s, DV, T)
    keySums = tl.zeros((BLOCK_T, BLOCK_D), tl.float32)
    valueSums = tl.zeros((BLOCK_T, BLOCK_DV), tl.float32)
    begin = 0
    if CAUSAL:
        begin = tl.program_id(0) * BLOCK_T // BLOCK_S * BLOCK_S
    for start in range(begin, S, BLOCK_S):
        row = counted(start, BLOCK_S, FAR)
        queries = _block(q, row, d, q_s, q_d, S, D)
        grads = _block(grad, row, dv, g_s, g_d, S, DV)
        high = tl.load(lse + tl.program_id(1).to(tl.int64) * S + row, mask=row < S, other=0.0)
        less = tl.load(delta + tl.program_id(1).to(tl.int64) * S + row, mask=row < S, other=0.0)
        p, ds = _gradients(queries, kt, vt, grads, bias, row, col, high, less, S, T, scale, b_s, b_t, CAUSAL, HAS_BIAS)
        valueSums += tl.dot(tl.trans(p).to(grads.dtype), grads, input_precision="ieee")
        keySums += tl.dot(tl.trans(ds).to(queries.dtype), queries, input_precision="ieee")
    tl.store(dk + batch * dk_b + head * dk_h + col[:, None] * dk_t + d[None, :] * dk_d, keySums.to(dk.dtype.element_ty), mask=(col[:, None] < T) & (d[None, :] < D))
    tl.store(dv_out + batch * dv_b + head * dv_h + col[:, None] * dv_t + dv[None, :] * dv_d, valueSums.to(dv_out.dtype.element_ty), mask=(col[:, None] < T) & (dv[None, :] < DV))


def _settings(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, isCausal: bool, bias: Any, *others: torch.Tensor) -> dict[str, Any]:
    depth, width = q.shape[-1], v.shape[-1]
    return dict(
        D=depth,
        DV=width,
        CAUSAL=isCausal,
        HAS_BIAS=bias is not None,
        FAR=reaches_far(q, k, v, bias, *others),
        BLOCK_S=block_of(q.shape[-2], 32),
        BLOCK_T=block_of(k.shape[-2], 32),
        BLOCK_D=max(16, triton.next_power_of_2(depth)),
        BLOCK_DV=max(16, triton.next_power_of_2(width)),
    )


def _as_four(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.dim() == 4 else tensor[None]


def _laid_out_as(query: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """As torch says of these operators' results: the dims in the order that the queries have in memory."""
    if query.shape == shape:
        return torch.empty_like(query)
    order = sorted(range(4), key=lambda dim: query.stride(dim), reverse=True)
    return torch.empty_permuted(shape, order, dtype=query.dtype, device=query.device)


def attention(q: Any, k: Any, v: Any, bias: Any = None, dropout: float = 0.0, isCausal: bool = False, wantsMask: bool = False, *, scale: float | None = None) -> Any:
    """aten::_scaled_dot_product_fused_attention_overrideable."""
    if dropout > 0:
        raise NotImplementedError("attention with dropout has no kernel for rdna")
    q4, k4, v4 = map(_as_four, (q, k, v))
    batch, heads, s, depth = q4.shape
    t = k4.shape[-2]
    scale = 1 / math.sqrt(depth) if scale is None else scale
    out = _laid_out_as(q4, (*q4.shape[:-1], v4.shape[-1]))
    lse = torch.empty((batch, heads, s), dtype=torch.float32, device=q.device)
    if bias is not None:
        bias = bias.expand(batch, heads, s, t)
    if out.numel() and _attention_packages.fits(q4, k4, v4, isCausal, scale):
        _attention_packages.forward(q4, k4, v4, bias, isCausal, scale, out, lse)
        return _with_rest(q, out, lse, s, t)
    settings = _settings(q4, k4, v4, isCausal, bias, out)
    if q.dtype.itemsize == 2 and s % 128 == 0 and t % 64 == 0 and max(depth, v4.shape[-1]) <= 128:
        settings.update(BLOCK_S=block_of(s, 128), BLOCK_T=block_of(t, 64), num_warps=8)
    isEven = s % settings["BLOCK_S"] == 0 and t % settings["BLOCK_T"] == 0 and depth == settings["BLOCK_D"] and v4.shape[-1] == settings["BLOCK_DV"]
    if out.numel():
        with torch.rdna.device(q.device):
            forward_kernel[(triton.cdiv(s, settings["BLOCK_S"]), batch * heads)](
                out,
                lse,
                q4,
                k4,
                v4,
                q4 if bias is None else bias,
                float(scale),
                s,
                t,
                heads,
                heads // k4.shape[1],
                *q4.stride(),
                *k4.stride(),
                *v4.stride(),
                *out.stride(),
                *((0, 0, 0, 0) if bias is None else bias.stride()),
                EVEN=isEven,
                **settings,
            )
    return _with_rest(q, out, lse, s, t)


@implements(torch.ops.greta.fused_attention.default)
def fused_attention(q: Any, k: Any, v: Any, bias: Any, operands: Any, epilogue: str, causal: bool, scale: Any, byTokens: bool, dtype: torch.dtype, keepsResult: bool) -> Any:
    results = ops.empty_results(q, byTokens, dtype, keepsResult)
    batch, heads, tokens, depth = q.shape
    factor = 1 / math.sqrt(depth) if scale is None else scale
    if results[0].numel() and _attention_packages.fits(q, k, v, causal, factor):
        behind, memory = _attention_epilogues.as_package(epilogue, operands, (batch, tokens, heads, depth), byTokens, dtype, keepsResult)
        lse = results[2] if keepsResult else torch.empty((batch, heads, tokens), dtype=torch.float32, device=q.device)
        made = [results[0], *(one.transpose(1, 2) if byTokens else one for one in results[1:2])]
        bias = None if bias is None else bias.expand(batch, heads, tokens, k.shape[2])
        _attention_packages.forward_and(q, k, v, bias, causal, factor, behind, memory, made, byTokens, lse)
        return results
    own, lse = attention(q, k, v, bias, 0.0, causal, scale=scale)[:2]
    results[0].copy_(_attention_epilogues.on_tensors(epilogue, own, operands, byTokens))
    for result, one in zip(results[1:3], (own, lse)):
        result.copy_(one)
    return results


def _with_rest(q: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, s: int, t: int) -> Any:
    """All that the operator returns."""
    seed = torch.empty((), dtype=torch.int64, device=q.device)
    return out if q.dim() == 4 else out[0], lse, None, None, s, t, seed, torch.empty_like(seed), None


def attention_backward(
    grad: Any,
    q: Any,
    k: Any,
    v: Any,
    bias: Any,
    wanted: Any,
    out: Any,
    lse: Any,
    _startsQ: Any,
    _startsK: Any,
    _mostQ: int,
    _mostK: int,
    dropout: float,
    isCausal: bool,
    _seed: Any,
    _offset: Any,
    *,
    scale: float | None = None,
) -> Any:
    """aten::_scaled_dot_product_fused_attention_overrideable_backward."""
    if wanted[3] and bias is not None:
        raise NotImplementedError("the gradient of attention's bias has no kernel for rdna")
    q4, k4, v4, grad4, out4 = map(_as_four, (q, k, v, grad, out))
    batch, heads, s, depth = q4.shape
    t, width, shared = k4.shape[-2], v4.shape[-1], heads // k4.shape[1]
    scale = 1 / math.sqrt(depth) if scale is None else scale
    if bias is not None:
        bias = bias.expand(batch, heads, s, t)
    if out4.numel() and _attention_packages.fits(q4, k4, v4, isCausal, scale):
        results = _attention_packages.backward(grad4, q4, k4, v4, bias, out4, lse, isCausal, scale)
        return *(one if q.dim() == 4 else one[0] for one in results), None
    delta = (grad4.float() * out4.float()).sum(-1)
    dq = torch.empty_like(q4)
    if shared > 1:
        dk = torch.empty((batch, heads, t, depth), dtype=q.dtype, device=q.device)
        dv = torch.empty((batch, heads, t, width), dtype=q.dtype, device=q.device)
    else:
        dk, dv = torch.empty_like(k4), torch.empty_like(v4)
    settings = _settings(q4, k4, v4, isCausal, bias, grad4, dk, dv)
    inputs = (q4, k4, v4, q4 if bias is None else bias, grad4, lse, delta.contiguous(), float(scale), s, t, heads, shared)
    strides = (*q4.stride(), *k4.stride(), *v4.stride(), *grad4.stride(), *((0, 0, 0, 0) if bias is None else bias.stride()))
    if batch * heads:
        with torch.rdna.device(q.device):
            if dq.numel():
                query_gradient_kernel[(triton.cdiv(s, settings["BLOCK_S"]), batch * heads)](dq, *inputs, *strides, *dq.stride(), **settings)
            if dk.numel():
                key_gradient_kernel[(triton.cdiv(t, settings["BLOCK_T"]), batch * heads)](dk, dv, *inputs, *strides, *dk.stride(), *dv.stride(), **settings)
    if shared > 1:
        dk, dv = (torch.empty_like(like).copy_(one.view(batch, heads // shared, shared, t, -1).sum(2)) for one, like in ((dk, k4), (dv, v4)))
    results = [one if q.dim() == 4 else one[0] for one in (dq, dk, dv)]
    return *results, None
