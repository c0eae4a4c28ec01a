"""Kernels of torch.ops.greta (ops.py): linear layers of 4-bit weights and of groups of rows, and writes to a cache."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from ._device import block_of
from ._operators import _DOTS, counted, implements, reaches_far

ops = torch.ops.greta


def _blocks(m: int, n: int, k: int) -> dict[str, int]:
    return dict(BLOCK_M=block_of(m, 64), BLOCK_N=block_of(n, 64), BLOCK_K=block_of(k, 32))


@triton.jit(do_not_specialize=["M"])
def linear_q4_kernel(out, x, codes, scales, M, N, K, GROUP: tl.constexpr, FAR: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """A GEMM whose B is made of 4-bit codes and the scales of GROUP of them; all are row-major."""
    row = counted(tl.program_id(0) * BLOCK_M, BLOCK_M, FAR)
    col = counted(tl.program_id(1) * BLOCK_N, BLOCK_N, FAR)
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = counted(start, BLOCK_K, FAR)
        a = tl.load(x + row[:, None] * K + k[None, :], mask=(row[:, None] < M) & (k[None, :] < K), other=0.0)
        mask = (k[:, None] < K) & (col[None, :] < N)
        pair = tl.load(codes + col[None, :] * (K // 2) + (k // 2)[:, None], mask=mask, other=0).to(tl.int32)
        scale = tl.load(scales + col[None, :] * (K // GROUP) + (k // GROUP)[:, None], mask=mask, other=0.0).to(tl.float32)
        code = (pair >> ((k & 1) * 4).to(tl.int32)[:, None]) & 15
        sums = tl.dot(a, ((code - 8).to(tl.float32) * scale).to(a.dtype), sums, input_precision="ieee")
    tl.store(out + row[:, None] * N + col[None, :], sums.to(out.dtype.element_ty), mask=(row[:, None] < M) & (col[None, :] < N))


@implements(ops.linear_q4.default)
def _linear_q4(x: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor) -> Any:
    n, k = codes.shape[0], 2 * codes.shape[1]
    if x.shape[-1] != k or scales.shape[0] != n or k % scales.shape[1] or codes.dtype != torch.uint8:
        raise RuntimeError(f"x of {tuple(x.shape)}, codes of {tuple(codes.shape)} in {codes.dtype} and scales of {tuple(scales.shape)} are no linear layer: codes are [N, K / 2] in uint8, scales [N, K / group]")
    if x.dtype not in _DOTS:
        return NotImplemented
    rows, codes, scales = x.reshape(-1, k).contiguous(), codes.contiguous(), scales.contiguous()
    m = rows.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel():
        blocks = _blocks(m, n, k)
        with torch.rdna.device(x.device):
            linear_q4_kernel[(triton.cdiv(m, blocks["BLOCK_M"]), triton.cdiv(n, blocks["BLOCK_N"]))](
                out, rows, codes, scales, m, n, k, GROUP=k // scales.shape[1], FAR=reaches_far(rows, codes, out), **blocks
            )
    return out.view(*x.shape[:-1], n)


@triton.jit
def _group(ends, group):
    """The first row of a group, and the one behind its last."""
    begin = 0
    if group > 0:
        begin = tl.load(ends + group - 1).to(tl.int32)
    return begin, tl.load(ends + group).to(tl.int32)


@triton.jit(do_not_specialize=["w_group"])
def grouped_linear_kernel(out, x, w, ends, N, K, x_row, x_col, w_group, w_row, w_col, FAR: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """A tile of rows of the group program_id(2), with any strides; tiles behind the group's end have no work."""
    group = tl.program_id(2)
    begin, end = _group(ends, group)
    first = begin + tl.program_id(0) * BLOCK_M
    if first < end:
        row = counted(first, BLOCK_M, FAR)
        col = counted(tl.program_id(1) * BLOCK_N, BLOCK_N, FAR)
        w += group.to(tl.int64) * w_group
        sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, K, BLOCK_K):
            k = counted(start, BLOCK_K, FAR)
            a = tl.load(x + row[:, None] * x_row + k[None, :] * x_col, mask=(row[:, None] < end) & (k[None, :] < K), other=0.0)
            b = tl.load(w + col[None, :] * w_row + k[:, None] * w_col, mask=(k[:, None] < K) & (col[None, :] < N), other=0.0)
            sums = tl.dot(a, b, sums, input_precision="ieee")
        tl.store(out + row[:, None] * N + col[None, :], sums.to(out.dtype.element_ty), mask=(row[:, None] < end) & (col[None, :] < N))


@triton.jit
def grouped_gradient_kernel(out, grad, x, ends, N, K, grad_row, grad_col, x_row, x_col, FAR: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """A tile of the group's weight: its K loop passes over the group's rows."""
    group = tl.program_id(2)
    begin, end = _group(ends, group)
    row = counted(tl.program_id(0) * BLOCK_M, BLOCK_M, FAR)
    col = counted(tl.program_id(1) * BLOCK_N, BLOCK_N, FAR)
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(begin, end, BLOCK_K):
        at = counted(start, BLOCK_K, FAR)
        a = tl.load(grad + row[:, None] * grad_col + at[None, :] * grad_row, mask=(row[:, None] < N) & (at[None, :] < end), other=0.0)
        b = tl.load(x + at[:, None] * x_row + col[None, :] * x_col, mask=(at[:, None] < end) & (col[None, :] < K), other=0.0)
        sums = tl.dot(a, b, sums, input_precision="ieee")
    place = out + group.to(tl.int64) * N * K + row[:, None] * K + col[None, :]
    tl.store(place, sums.to(out.dtype.element_ty), mask=(row[:, None] < N) & (col[None, :] < K))


@implements(ops.grouped_linear.default)
def _grouped_linear(x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor) -> Any:
    if x.dim() != 2 or weight.dim() != 3 or x.shape[1] != weight.shape[2] or ends.shape != weight.shape[:1] or x.dtype != weight.dtype:
        raise RuntimeError(f"x of {tuple(x.shape)}, weights of {tuple(weight.shape)} and {tuple(ends.shape)} ends are no grouped linear layer: they are [rows, K], [groups, N, K] and [groups]")
    if x.dtype not in _DOTS:
        return NotImplemented
    (m, k), (groups, n) = x.shape, weight.shape[:2]
    out = torch.zeros((m, n), dtype=x.dtype, device=x.device)
    if out.numel() and groups:
        blocks = _blocks(triton.cdiv(m, groups), n, k)
        with torch.rdna.device(x.device):
            grouped_linear_kernel[(triton.cdiv(m, blocks["BLOCK_M"]), triton.cdiv(n, blocks["BLOCK_N"]), groups)](
                out, x, weight, ends.contiguous(), n, k, *x.stride(), *weight.stride(), FAR=reaches_far(x, weight, out), **blocks
            )
    return out


@implements(ops.grouped_weight_gradient.default)
def _grouped_weight_gradient(grad: torch.Tensor, x: torch.Tensor, ends: torch.Tensor) -> Any:
    if x.dtype not in _DOTS or grad.dtype != x.dtype:
        return NotImplemented
    n, k, groups = grad.shape[1], x.shape[1], ends.shape[0]
    out = torch.empty((groups, n, k), dtype=x.dtype, device=x.device)
    if out.numel():
        blocks = _blocks(n, k, triton.cdiv(x.shape[0], groups))
        with torch.rdna.device(x.device):
            grouped_gradient_kernel[(triton.cdiv(n, blocks["BLOCK_M"]), triton.cdiv(k, blocks["BLOCK_N"]), groups)](
                out, grad, x, ends.contiguous(), n, k, *grad.stride(), *x.stride(), FAR=reaches_far(grad, x, out), **blocks
            )
    return out


@triton.jit(do_not_specialize=["H", "S", "c_b", "c_h", "n_b", "n_h"])
def cache_update_kernel(cache, new, positions, H, S, D, c_b, c_h, c_s, c_d, n_b, n_h, n_s, n_d, BLOCK: tl.constexpr):
    """A row of a head."""
    batch, head = (tl.program_id(1) // H).to(tl.int64), (tl.program_id(1) % H).to(tl.int64)
    at = tl.program_id(0).to(tl.int64)
    place = tl.load(positions + at).to(tl.int64)
    for start in range(0, D, BLOCK):
        i = start + tl.arange(0, BLOCK)
        mask = (i < D) & (place >= 0) & (place < S)
        value = tl.load(new + batch * n_b + head * n_h + at * n_s + i * n_d, mask=mask)
        tl.store(cache + batch * c_b + head * c_h + place * c_s + i * c_d, value.to(cache.dtype.element_ty), mask=mask)


@implements(ops.cache_update.default)
def _cache_update(cache: torch.Tensor, new: torch.Tensor, positions: torch.Tensor) -> Any:
    batch, heads, size, depth = cache.shape
    if new.shape != (batch, heads, positions.numel(), depth) or positions.dim() != 1:
        raise RuntimeError(f"{tuple(new.shape)} rows for {tuple(positions.shape)} positions do not fit a cache of {tuple(cache.shape)}: [batch, heads, n, D] and [n] do")
    if cache.dtype != new.dtype or cache.is_complex():
        return NotImplemented
    if new.numel():
        with torch.rdna.device(cache.device):
            cache_update_kernel[(positions.numel(), batch * heads)](
                cache, new, positions.contiguous(), heads, size, depth, *cache.stride(), *new.stride(), BLOCK=min(128, triton.next_power_of_2(depth))
            )
    return None
