"""Operators that have kernels of their own: sequences and `nonzero`; and those by way of others."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from . import _eager

aten = torch.ops.aten
table: dict[Any, Callable[..., Any]] = {}
TYPES = {torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8}  # that the kernels here make
# Types whose products are dots of matrix units, summed in f32, and what sums those of the others.
_DOTS = {torch.float16, torch.bfloat16, torch.float32}
_SUMS = {torch.float64: tl.float64, torch.int64: tl.int64, torch.int32: tl.int32, torch.int16: tl.int32, torch.int8: tl.int32, torch.uint8: tl.int32}


def implements(*ops: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        table.update(dict.fromkeys(ops, function))
        return function

    return add


#
# Places in memory that 32 bits do not count, and numbers of 64 bits
#


MOST_NEAR = 1 << 30  # blocks reach further than the last element
MOST_PROGRAMS = 65535  # of a dim on every device


def reaches_far(*tensors: torch.Tensor | None) -> bool:
    """Whether the kernel has to compute places in 64 bits."""
    return any(one is not None and sum((size - 1) * stride for size, stride in zip(one.shape, one.stride())) >= MOST_NEAR for one in tensors)


@triton.jit
def counted(start, BLOCK: tl.constexpr, FAR: tl.constexpr):
    """start to start + BLOCK - 1."""
    i = start + tl.arange(0, BLOCK)
    if FAR:
        i = i.to(tl.int64)
    return i


@triton.jit
def begin_of(block, BLOCK: tl.constexpr, FAR: tl.constexpr):
    """The first element of a block."""
    if FAR:
        return block.to(tl.int64) * BLOCK
    else:
        return block * BLOCK


@triton.jit
def step_of(stride, BLOCK: tl.constexpr, FAR: tl.constexpr):
    """From a block to the next. In 32 bits the block is a constant factor, so the compiler knows what divides the step: loads stay wide."""
    if FAR:
        return tl.full((), BLOCK, tl.int64) * stride
    else:
        return BLOCK * stride


@triton.jit
def places(BLOCK: tl.constexpr, FAR: tl.constexpr):
    """The elements of a program of one dim."""
    return begin_of(tl.program_id(0), BLOCK, FAR) + tl.arange(0, BLOCK)


@triton.jit
def number(given, WIDE: tl.constexpr):
    """A number of a kernel's arguments: Triton passes floats as f32, so those of f64 come as their bits."""
    if WIDE:
        return given.to(tl.int64).to(tl.float64, bitcast=True)
    else:
        return given


def as_argument(value: float, isWide: bool) -> float | int:
    return struct.unpack("<q", struct.pack("<d", value))[0] if isWide else float(value)


#
# Tensors of nothing but numbers
#


@triton.jit(do_not_specialize=["n", "first", "step", "last"])
def sequence_kernel(out, n, first, step, last, KIND: tl.constexpr, FAR: tl.constexpr, BLOCK: tl.constexpr):
    """first + i * step; as f64 of these bits but for KIND integers, and counted from both ends where both are exact."""
    i = places(BLOCK, FAR)
    if KIND == "integers":
        value = first + i.to(tl.int64) * step
    else:
        wide = number(step, True)
        value = number(first, True) + i.to(tl.float64) * wide
        if KIND == "between":
            value = tl.where(i < n // 2, value, number(last, True) - (n - 1 - i).to(tl.float64) * wide)
    tl.store(out + i, value.to(out.dtype.element_ty), mask=i < n)


def _sequence(out: torch.Tensor, n: int, kind: str, first: float, step: float, last: float = 0) -> Any:
    if out.dtype not in TYPES:
        return NotImplemented
    if out.shape != (n,):
        out.resize_(n)
    if n == 0:
        return out
    filled = out if out.is_contiguous() else torch.empty(n, dtype=out.dtype, device=out.device)
    numbers = (first, step, last) if kind == "integers" else (as_argument(one, True) for one in (first, step, last))
    with torch.rdna.device(out.device):
        sequence_kernel[(triton.cdiv(n, 512),)](filled, n, *numbers, KIND=kind, FAR=reaches_far(filled), BLOCK=512)
    return out if filled is out else out.copy_(filled)


@implements(aten.arange.start_out)
def _arange(start: float, end: float, step: float = 1, *, out: torch.Tensor) -> Any:
    if step == 0 or (end - start) * step < 0 or not all(math.isfinite(one) for one in (start, end, step)):
        return NotImplemented
    if all(isinstance(one, int) for one in (start, end, step)):
        n = -((start - end) // step)
        return _sequence(out, n, "from" if out.is_floating_point() else "integers", start, step)
    if not out.is_floating_point():
        return NotImplemented
    return _sequence(out, math.ceil((end - start) / step), "from", start, step)


@implements(aten.linspace.out)
def _linspace(start: float, end: float, steps: int, *, out: torch.Tensor) -> Any:
    if steps < 0 or not out.is_floating_point():
        return NotImplemented
    return _sequence(out, steps, "between", start, (end - start) / (steps - 1), end) if steps > 1 else _sequence(out, steps, "from", start, 0)


@implements(aten.eye.m_out)
def _eye(n: int, m: int, *, out: torch.Tensor) -> Any:
    if n < 0 or m < 0:
        return NotImplemented
    out.resize_((n, m)).zero_()
    if n and m:
        out.diagonal().fill_(1)
    return out


@implements(aten.eye.out)
def _eye_square(n: int, *, out: torch.Tensor) -> Any:
    return _eye(n, n, out=out)


#
# Operators by way of others
#


@implements(aten._cummax_helper.default)
def _cummax(self: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, dim: int) -> Any:
    return _cumulative(aten.cummax.default, self, values, indices, dim)


@implements(aten._cummin_helper.default)
def _cummin(self: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, dim: int) -> Any:
    return _cumulative(aten.cummin.default, self, values, indices, dim)


def _cumulative(op: Any, self: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, dim: int) -> Any:
    results = _eager.run(op, (self, dim), {})
    if results is NotImplemented:
        return results
    values.copy_(results[0])
    indices.copy_(results[1])
    return None


@triton.jit(do_not_specialize=["n"])
def nonzero_kernel(out, x, counts, n, FAR: tl.constexpr, BLOCK: tl.constexpr):
    """Writes the index of each element that is not zero to its place, which `counts` has from 1."""
    i = places(BLOCK, FAR)
    isThere = tl.load(x + i, mask=i < n, other=0) != 0
    at = tl.load(counts + i, mask=i < n, other=1) - 1
    tl.store(out + at, i.to(tl.int64), mask=isThere & (i < n))


def _flat_nonzero(x: torch.Tensor) -> torch.Tensor:
    flags = (x != 0).reshape(-1)
    if flags.numel() == 0:
        return torch.empty(0, dtype=torch.int64, device=x.device)
    counts = flags.cumsum(0)
    out = torch.empty(int(counts[-1].item()), dtype=torch.int64, device=x.device)
    if out.numel():
        with torch.rdna.device(x.device):
            nonzero_kernel[(triton.cdiv(flags.numel(), 512),)](out, flags, counts, flags.numel(), FAR=reaches_far(flags), BLOCK=512)
    return out


@implements(aten.nonzero.default)
def _nonzero(self: torch.Tensor) -> Any:
    if self.is_complex():
        return NotImplemented
    flat = _flat_nonzero(self)
    columns = []
    for size in reversed(self.shape):
        columns.append(flat % size)
        flat = flat // size
    return torch.stack(columns[::-1], 1) if columns else torch.empty((flat.numel(), 0), dtype=torch.int64, device=self.device)


@implements(aten.masked_select.default)
def _masked_select(self: torch.Tensor, mask: torch.Tensor) -> Any:
    if self.is_complex() or mask.dtype != torch.bool or mask.device != self.device:
        return NotImplemented
    x, mask = torch.broadcast_tensors(self, mask)
    return x.reshape(-1)[_flat_nonzero(mask)]


@implements(aten.equal.default)
def _equal(self: torch.Tensor, other: torch.Tensor) -> Any:
    if self.is_complex() or self.device != other.device or self.dtype != other.dtype:
        return NotImplemented
    return self.shape == other.shape and bool((self == other).all().item())


@implements(aten.nonzero_static.default)
def _nonzero_static(self: torch.Tensor, *, size: int, fill_value: int = -1) -> Any:
    found = _nonzero(self)
    if found is NotImplemented or size < 0:
        return NotImplemented
    out = torch.full((size, self.dim()), fill_value, dtype=torch.int64, device=self.device)
    out[: min(size, found.shape[0])] = found[:size]
    return out


#
# Losses in narrow types
#


@triton.jit(do_not_specialize=["growth", "backoff", "interval"])
def scale_kernel(scale, good, found, growth, backoff, interval):
    """Shrinks the scale where an infinity was found, and lets it grow after `interval` steps without one, if it stays finite."""
    old = tl.load(scale)
    steps = tl.load(good) + 1
    overflowed = tl.load(found) != 0.0
    isDue = steps == interval
    larger = old * growth
    kept = tl.where(isDue & (larger < float("inf")), larger, old)
    tl.store(scale, tl.where(overflowed, old * backoff, kept))
    tl.store(good, tl.where(overflowed | isDue, 0, steps))


@implements(aten._amp_update_scale_.default)
def _update_scale(scale: torch.Tensor, good: torch.Tensor, found: torch.Tensor, growth: float, backoff: float, interval: int) -> Any:
    if scale.dtype != torch.float32 or good.dtype != torch.int32 or found.dtype != torch.float32:
        return NotImplemented
    with torch.rdna.device(scale.device):
        scale_kernel[(1,)](scale, good, found, growth, backoff, interval)
    return scale


def group_norm(x: torch.Tensor, weight: Any, bias: Any, n: int, channels: int, inner: int, groups: int, eps: float) -> Any:
    """aten::native_group_norm, in f32 for narrower types and rounded once; torch composes it of operators that round in between."""
    isNarrow = x.dtype in (torch.float16, torch.bfloat16)
    rows = (x.float() if isNarrow else x).reshape(n * groups, channels // groups * inner)
    variance, mean = torch.var_mean(rows, 1, correction=0)
    rstd = (variance + eps).rsqrt()
    out = ((rows - mean[:, None]) * rstd[:, None]).view(n, channels, inner)
    if weight is not None:
        out = out * weight.to(out.dtype).view(channels, 1)
    if bias is not None:
        out = out + bias.to(out.dtype).view(channels, 1)
    return out.view(x.shape).to(x.dtype), mean.view(n, groups).to(x.dtype), rstd.view(n, groups).to(x.dtype)
