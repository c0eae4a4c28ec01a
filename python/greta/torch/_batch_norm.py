"""Batch norm in training, of f16, bf16 and f32 with statistics of f32, channels last or first: three launches each way.

A row is what the channels have at one position of one image. Forward: sums of differences from the first row and of their squares, in parts of the rows; mean
and 1 / sqrt(variance + eps) of their sum, and the running statistics; y = (x - mean) * invstd * weight + bias. Backward: with xhat = (x - mean) * invstd, the
gradient of the bias is the sum of dy, that of the weight the sum of dy * xhat, and that of x is weight * invstd * (dy - (grad_bias + xhat * grad_weight) / rows).
A difference from a number near the mean keeps the digits that squares of large numbers lose.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from ._operators import MOST_PROGRAMS, aten, implements, reaches_far

_TYPES = (torch.float16, torch.bfloat16, torch.float32)


@triton.jit
def _load(pointer, c, inside, default: tl.constexpr, HAS: tl.constexpr):
    """A number of each channel, or the same one where there is no such tensor."""
    if HAS:
        return tl.load(pointer + c, mask=inside, other=0.0).to(tl.float32)
    else:
        return tl.full(c.shape, default, tl.float32)


@triton.jit
def _places(row, c, channels, span, NEAR: tl.constexpr, FAR: tl.constexpr):
    """Elements of rows and channels; an image has `span` rows where its channels do not lie next to each other."""
    if NEAR:
        row = row.to(tl.int64) if FAR else row
        return row[:, None] * channels + c[None, :]
    else:
        image = (row // span).to(tl.int64) if FAR else row // span
        return (image * channels * span + row % span)[:, None] + (c * span)[None, :]


@triton.jit(do_not_specialize=["rows", "parts", "share"])
def sums_kernel(
    sums, x, dy, mean, invstd, rows, channels, span, parts, share, BACKWARD: tl.constexpr, NEAR: tl.constexpr, FAR: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr
):
    """Part program_id(0) of the rows, BLOCK_C channels: sums [2, parts, channels] of x - x[0] and of its square, backward of dy and of dy * xhat."""
    part = tl.program_id(0)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    near = c < channels
    if BACKWARD:
        base = tl.load(mean + c, mask=near, other=0.0)
        scale = tl.load(invstd + c, mask=near, other=0.0)
    else:
        base = tl.load(x + (c if NEAR else c * span), mask=near, other=0.0).to(tl.float32)
    first = tl.zeros((BLOCK_M, BLOCK_C), tl.float32)
    second = tl.zeros((BLOCK_M, BLOCK_C), tl.float32)
    begin = part * share
    end = tl.minimum(begin + share, rows)
    for start in range(begin, end, BLOCK_M):
        row = start + tl.arange(0, BLOCK_M)
        inside = (row < end)[:, None] & near[None, :]
        at = _places(row, c, channels, span, NEAR, FAR)
        values = tl.where(inside, tl.load(x + at, mask=inside, other=0.0).to(tl.float32) - base[None, :], 0.0)
        if BACKWARD:
            grads = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
            first += grads
            second += grads * (values * scale[None, :])
        else:
            first += values
            second += values * values
    tl.store(sums + part * channels + c, tl.sum(first, 0), mask=near)
    tl.store(sums + (parts + part) * channels + c, tl.sum(second, 0), mask=near)


@triton.jit
def _total(sums, parts, channels, c, near, BLOCK_M: tl.constexpr):
    total = tl.zeros((BLOCK_M, c.shape[0]), tl.float32)
    for start in range(0, parts, BLOCK_M):
        part = start + tl.arange(0, BLOCK_M)
        total += tl.load(sums + part[:, None] * channels + c[None, :], mask=(part < parts)[:, None] & near[None, :], other=0.0)
    return tl.sum(total, 0)


@triton.jit(do_not_specialize=["rows", "span", "parts", "momentum", "eps"])
def statistics_kernel(
    mean, invstd, running_mean, running_var, x, sums, rows, channels, span, parts, momentum, eps, HAS_RUNNING: tl.constexpr, NEAR: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr
):
    c = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    near = c < channels
    difference = _total(sums, parts, channels, c, near, BLOCK_M) / rows
    variance = tl.maximum(_total(sums + parts * channels, parts, channels, c, near, BLOCK_M) / rows - difference * difference, 0.0)
    average = difference + tl.load(x + (c if NEAR else c * span), mask=near, other=0.0).to(tl.float32)
    tl.store(mean + c, average, mask=near)
    tl.store(invstd + c, 1 / tl.sqrt_rn(variance + eps), mask=near)
    if HAS_RUNNING:
        kind = running_mean.dtype.element_ty
        before = tl.load(running_mean + c, mask=near, other=0.0).to(tl.float32)
        tl.store(running_mean + c, (before * (1 - momentum) + average * momentum).to(kind), mask=near)
        unbiased = variance * (rows / (rows - 1.0))
        before = tl.load(running_var + c, mask=near, other=0.0).to(tl.float32)
        tl.store(running_var + c, (before * (1 - momentum) + unbiased * momentum).to(kind), mask=near)


@triton.jit(do_not_specialize=["parts"])
def gradients_kernel(grad_weight, grad_bias, sums, channels, parts, BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr):
    c = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    near = c < channels
    tl.store(grad_bias + c, _total(sums, parts, channels, c, near, BLOCK_M), mask=near)
    tl.store(grad_weight + c, _total(sums + parts * channels, parts, channels, c, near, BLOCK_M), mask=near)


@triton.jit(do_not_specialize=["rows"])
def normalized_kernel(
    out,
    x,
    dy,
    mean,
    invstd,
    weight,
    bias,
    grad_weight,
    grad_bias,
    rows,
    channels,
    span,
    BACKWARD: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    NEAR: tl.constexpr,
    FAR: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """y of BLOCK_M rows and BLOCK_C channels, or backward the gradient of x."""
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    near = c < channels
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = (row < rows)[:, None] & near[None, :]
    at = _places(row, c, channels, span, NEAR, FAR)
    scale = tl.load(invstd + c, mask=near, other=0.0)
    factor = scale * _load(weight, c, near, 1.0, HAS_WEIGHT)
    values = tl.load(x + at, mask=inside, other=0.0).to(tl.float32) - tl.load(mean + c, mask=near, other=0.0)[None, :]
    if BACKWARD:
        given = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        by_bias = tl.load(grad_bias + c, mask=near, other=0.0) / rows
        by_weight = scale * tl.load(grad_weight + c, mask=near, other=0.0) / rows
        result = factor[None, :] * (given - by_bias[None, :] - values * by_weight[None, :])
    else:
        result = values * factor[None, :] + _load(bias, c, near, 0.0, HAS_BIAS)[None, :]
    tl.store(out + at, result.to(out.dtype.element_ty), mask=inside)


class _Plan(NamedTuple):
    """Extents, blocks and grids for tensors of one shape and layout."""

    rows: int
    channels: int
    span: int  # rows of an image
    isNear: bool  # channels lie next to each other
    isFar: bool
    width: int
    height: int
    across: int
    share: int
    parts: int

    def blocks(self) -> dict[str, int]:
        return dict(BLOCK_M=self.height, BLOCK_C=self.width)

    def blocks_of_channels(self) -> dict[str, int]:
        """For kernels that only have numbers of channels, which lie next to each other."""
        return dict(BLOCK_M=32, BLOCK_C=64)


@functools.lru_cache(4096)
def _plan(images: int, channels: int, span: int, isNear: bool, isFar: bool, processors: int) -> _Plan | None:
    rows = images * span
    width = min(triton.next_power_of_2(channels), 64 if isNear else 8)
    height = 2048 // width
    across = triton.cdiv(channels, width)
    wanted = max(1, 8 * processors // across)
    share = triton.cdiv(triton.cdiv(rows, min(wanted, triton.cdiv(rows, 4 * height))), height) * height
    if rows < 2 or rows * 2 >= 1 << 31 or max(triton.cdiv(rows, height), across) > MOST_PROGRAMS:
        return None
    return _Plan(rows, channels, span, isNear, isFar, width, height, across, share, triton.cdiv(rows, share))


def _plan_of(x: torch.Tensor, *numbers: torch.Tensor | None) -> _Plan | None:
    """None where the kernels do not take such tensors."""
    if x.dim() < 2 or x.numel() == 0 or x.dtype not in _TYPES or any(one is not None and (one.dtype not in _TYPES or not one.is_contiguous()) for one in numbers):
        return None
    isNear = x.movedim(1, -1).is_contiguous()
    if not (isNear or x.is_contiguous()):
        return None
    images, channels = x.shape[:2]
    return _plan(images, channels, x.numel() // (images * channels), isNear, reaches_far(x), torch.rdna.get_device_properties(x.device).multi_processor_count)


def _forward(plan: _Plan, x: torch.Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float) -> tuple[torch.Tensor, ...]:
    out = torch.empty_like(x)
    with torch.rdna.device(x.device):
        mean, invstd, sums = (torch.empty(size, dtype=torch.float32, device=x.device) for size in (plan.channels, plan.channels, 2 * plan.parts * plan.channels))
        lies = dict(NEAR=plan.isNear, FAR=plan.isFar)
        sums_kernel[plan.parts, plan.across](sums, x, x, mean, invstd, plan.rows, plan.channels, plan.span, plan.parts, plan.share, BACKWARD=False, **lies, **plan.blocks())
        hasRunning = running_mean is not None
        running = (running_mean, running_var) if hasRunning else (mean, invstd)
        statistics_kernel[(triton.cdiv(plan.channels, 64),)](
            mean, invstd, *running, x, sums, plan.rows, plan.channels, plan.span, plan.parts, momentum, eps, HAS_RUNNING=hasRunning, NEAR=plan.isNear, **plan.blocks_of_channels()
        )
        given = (mean if weight is None else weight, mean if bias is None else bias)
        has = dict(BACKWARD=False, HAS_WEIGHT=weight is not None, HAS_BIAS=bias is not None)
        normalized_kernel[triton.cdiv(plan.rows, plan.height), plan.across](out, x, x, mean, invstd, *given, mean, mean, plan.rows, plan.channels, plan.span, **has, **lies, **plan.blocks())
    return out, mean, invstd


def _backward(plan: _Plan, dy: torch.Tensor, x: torch.Tensor, weight: Any, mean: torch.Tensor, invstd: torch.Tensor, mask: Any) -> tuple[Any, ...]:
    if dy.stride() != x.stride():
        dy = torch.empty_like(x).copy_(dy)
    out = None
    with torch.rdna.device(x.device):
        sums, *grads = (torch.empty(size, dtype=torch.float32, device=x.device) for size in (2 * plan.parts * plan.channels, plan.channels, plan.channels))
        lies = dict(NEAR=plan.isNear, FAR=plan.isFar)
        sums_kernel[plan.parts, plan.across](sums, x, dy, mean, invstd, plan.rows, plan.channels, plan.span, plan.parts, plan.share, BACKWARD=True, **lies, **plan.blocks())
        gradients_kernel[(triton.cdiv(plan.channels, 64),)](*grads, sums, plan.channels, plan.parts, **plan.blocks_of_channels())
        if mask[0]:
            out = torch.empty_like(x)
            has = dict(BACKWARD=True, HAS_WEIGHT=weight is not None, HAS_BIAS=False)
            given = (mean if weight is None else weight, mean)
            normalized_kernel[triton.cdiv(plan.rows, plan.height), plan.across](out, x, dy, mean, invstd, *given, *grads, plan.rows, plan.channels, plan.span, **has, **lies, **plan.blocks())
    if weight is not None and weight.dtype != torch.float32:
        grads = [one.to(weight.dtype) for one in grads]
    return out, grads[0] if mask[1] else None, grads[1] if mask[2] else None


@implements(aten.native_batch_norm.default)
def _native_batch_norm(x: torch.Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, isTraining: bool, momentum: float, eps: float) -> Any:
    if not isTraining or (running_mean is None) != (running_var is None) or (running_mean is not None and running_mean.dtype != running_var.dtype):
        return NotImplemented
    plan = _plan_of(x, weight, bias, running_mean, running_var)
    return NotImplemented if plan is None else _forward(plan, x, weight, bias, running_mean, running_var, float(momentum), float(eps))


@implements(aten.native_batch_norm_backward.default)
def _native_batch_norm_backward(dy: torch.Tensor, x: torch.Tensor, weight: Any, running_mean: Any, running_var: Any, mean: Any, invstd: Any, isTraining: bool, eps: float, mask: Any) -> Any:
    if not isTraining or mean is None or invstd is None or mean.dtype != torch.float32 or invstd.dtype != torch.float32 or dy.dtype != x.dtype or dy.shape != x.shape:
        return NotImplemented
    plan = _plan_of(x, weight, mean, invstd)
    return NotImplemented if plan is None else _backward(plan, dy, x, weight, mean, invstd, mask)
