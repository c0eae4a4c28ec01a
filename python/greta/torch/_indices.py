"""Operators that read and write at indices: sums and other reductions there, and masks as indices.

Inductor has atomics for sums of numbers of 32 bits and for floats of 16. The other reductions sort the places that they reduce to. Values of one place then stand side by
side, and join the ones 1, 2, 4, .. further on, so that the first of them has the whole: as many kernels as the number of values has bits, and the same result each time.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from . import _eager
from ._operators import MOST_NEAR, implements
from ._sorts import grid_of, program, sorted_rows

aten = torch.ops.aten
_WIDE = 256  # elements of a program
# The type that sums at indices are computed in: narrow floats would be rounded at each addition, in any order, narrow integers have no atomics, and a sum of bool says whether one is true.
_SUMMED = {torch.float16: torch.float32, torch.bfloat16: torch.float32} | dict.fromkeys((torch.bool, torch.uint8, torch.int8, torch.int16), torch.int32)


def _without_masks(self: torch.Tensor, indices: Any) -> list[torch.Tensor | None] | None:
    """The indices, in which a mask is the places where it is true; None where a mask does not fit."""
    places: list[torch.Tensor | None] = []
    for one in indices:
        if one is None or one.dtype not in (torch.bool, torch.uint8):
            places.append(one)
        elif one.dim() and one.shape == self.shape[len(places) : len(places) + one.dim()]:
            places += one.nonzero().unbind(1)
        else:
            return None
    return places


@implements(aten.index.Tensor_out)
def _index(self: torch.Tensor, indices: Any, *, out: torch.Tensor) -> Any:
    places = _without_masks(self, indices)
    return NotImplemented if places is None else _eager.run(aten.index.Tensor_out, (self, places), {"out": out})


@implements(aten._index_put_impl_.default)
def _index_put(self: torch.Tensor, indices: Any, values: torch.Tensor, accumulate: bool = False, unsafe: bool = False) -> Any:
    indices = _without_masks(self, indices)
    if indices is None:
        return NotImplemented
    if accumulate and self.dtype == values.dtype == torch.int64:
        places = torch.ops.aten.index.Tensor(torch.arange(self.numel(), device=self.device).view(self.shape), indices)
        if places.numel() == 0:
            return self
        wide = self.clone(memory_format=torch.contiguous_format)
        _reduce(wide, places, values.expand(places.shape), "sum", True)
        return self.copy_(wide)
    if not accumulate or self.dtype not in _SUMMED:
        return _eager.run(aten.index_put_.default, (self, indices, values, accumulate), {})
    kind = _SUMMED[self.dtype]
    return self.copy_(self.to(kind).index_put_(indices, values.to(kind), accumulate=True))


@triton.jit
def _joined(one, other, KIND: tl.constexpr):
    """Of the largest and the least, NaN is both."""
    if KIND == "sum":
        return one + other
    elif KIND == "prod":
        return one * other
    elif KIND == "amax":
        return tl.where((one > other) | (one != one), one, other)
    else:
        return tl.where((one < other) | (one != one), one, other)


@triton.jit(do_not_specialize=["n", "step"])
def join_kernel(out, values, order, places, n, step, KIND: tl.constexpr, BY_ORDER: tl.constexpr, BLOCK: tl.constexpr):
    """Joins each value with the one `step` further on if that is of the same place. BY_ORDER: the values are where `order` says."""
    i = program() * BLOCK + tl.arange(0, BLOCK)
    isThere = i < n
    place = tl.load(places + i, mask=isThere, other=0)
    isSame = tl.load(places + i + step, mask=i + step < n, other=-1) == place
    at = i.to(tl.int64)
    further = at + step
    if BY_ORDER:
        at = tl.load(order + i, mask=isThere, other=0)
        further = tl.load(order + i + step, mask=i + step < n, other=0)
    value = tl.load(values + at, mask=isThere, other=0)
    other = tl.load(values + further, mask=isSame, other=0)
    tl.store(out + i, tl.where(isSame, _joined(value, other, KIND), value), mask=isThere)


@triton.jit(do_not_specialize=["n", "size"])
def put_kernel(out, values, places, n, size, KIND: tl.constexpr, INCLUDES: tl.constexpr, BLOCK: tl.constexpr):
    """Writes the first value of each place there, joined with what is there if that is included. A place beyond `out` is that of an index that is out of range, which an
    assertion before has found and nobody has been told yet; nothing is written there."""
    i = program() * BLOCK + tl.arange(0, BLOCK)
    isThere = i < n
    place = tl.load(places + i, mask=isThere, other=0)
    isFirst = isThere & (place >= 0) & (place < size) & ((tl.load(places + i - 1, mask=isThere & (i > 0), other=-1) != place) | (i == 0))
    value = tl.load(values + i, mask=isFirst, other=0)
    if INCLUDES:
        value = _joined(tl.load(out + place, mask=isFirst, other=0), value, KIND)
    tl.store(out + place, value, mask=isFirst)


def _reduce(out: torch.Tensor, places: torch.Tensor, values: torch.Tensor, kind: str, includes: bool) -> None:
    """out[places[i]], of contiguous memory, becomes it and all values[i] of that place joined."""
    n = places.numel()
    places, order = sorted_rows(places.reshape(-1).contiguous(), False)
    values = values.reshape(-1).contiguous()
    made, spare = torch.empty_like(values), torch.empty_like(values)
    grid = grid_of(triton.cdiv(n, _WIDE))
    with torch.rdna.device(out.device):
        join_kernel[grid](made, values, order, places, n, 1, KIND=kind, BY_ORDER=True, BLOCK=_WIDE)
        step = 2
        while step < n:
            join_kernel[grid](spare, made, order, places, n, step, KIND=kind, BY_ORDER=False, BLOCK=_WIDE)
            made, spare = spare, made
            step *= 2
        put_kernel[grid](out, made, places, n, out.numel(), KIND=kind, INCLUDES=includes, BLOCK=_WIDE)


def _are_right(self: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor) -> bool:
    """Whether a scatter's arguments fit each other; others say what is wrong with those that do not."""
    if self.dim() == 0 or not self.dim() == index.dim() == src.dim() or not -self.dim() <= dim < self.dim() or index.dtype not in (torch.int32, torch.int64):
        return False
    if any(size > src.shape[place] or (place != dim % self.dim() and size > self.shape[place]) for place, size in enumerate(index.shape)):
        return False
    return index.numel() <= MOST_NEAR and (index.numel() == 0 or bool(((index >= 0) & (index < self.shape[dim])).all().item()))


def _places(like: torch.Tensor, dim: int, index: torch.Tensor) -> torch.Tensor:
    """Where a scatter writes in a contiguous tensor."""
    places = index.long() * like.stride(dim)
    for other, size in enumerate(index.shape):
        if other != dim % like.dim():
            shape = [size if place == other else 1 for place in range(like.dim())]
            places = places + (torch.arange(size, device=like.device) * like.stride(other)).view(shape)
    return places


def _taken(src: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return src[tuple(slice(size) for size in index.shape)]


def _mean(self: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, includes: bool) -> torch.Tensor:
    sums = (self if includes else self.scatter(dim, index, 0)).scatter_add(dim, index, src)
    counts = torch.full_like(self, int(includes)).scatter_add(dim, index, torch.ones_like(src)).clamp(min=1)
    return sums / counts if self.is_floating_point() else sums.div(counts, rounding_mode="floor")


@implements(aten.scatter_reduce.two_out)
def _scatter_reduce(self: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, reduce: str, *, include_self: bool = True, out: torch.Tensor) -> Any:
    if not self.dtype == src.dtype == out.dtype or self.is_complex():
        return NotImplemented
    kind = _SUMMED.get(self.dtype, self.dtype)
    if reduce == "sum" and kind != torch.int64:
        if self.dtype == kind or self.is_floating_point():
            return NotImplemented
        return out.resize_(self.shape).copy_(self.to(kind).scatter_reduce(dim, index, src.to(kind), reduce, include_self=include_self))
    if self.dim() == 0 and dim in (0, -1) and index.numel() == src.numel() == 1:
        result = self.reshape(1).scatter_reduce(0, index.reshape(1), src.reshape(1), reduce, include_self=include_self)
        return out.resize_(()).copy_(result.reshape(()))
    if reduce not in ("sum", "prod", "mean", "amax", "amin") or not _are_right(self, dim, index, src):
        return NotImplemented
    wide = self.to(kind, copy=True, memory_format=torch.contiguous_format)
    taken = _taken(src, index).to(kind)
    if reduce == "mean":
        wide = _mean(wide, dim, index.long(), taken, include_self)
    elif index.numel():
        _reduce(wide, _places(wide, dim, index), taken, reduce, include_self)
    return out.resize_(self.shape).copy_(wide)


@implements(aten.scatter_add.out)
def _scatter_add(self: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, *, out: torch.Tensor) -> Any:
    return _scatter_reduce(self, dim, index, src, "sum", out=out)


@implements(aten.index_reduce.out)
def _index_reduce(self: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduce: str, *, include_self: bool = True, out: torch.Tensor) -> Any:
    if self.dim() == 0:
        return _scatter_reduce(self, dim, index, source, reduce, include_self=include_self, out=out)
    index = index.reshape(1) if index.dim() == 0 else index
    if self.dim() != source.dim() or index.dim() != 1 or not -self.dim() <= dim < self.dim():
        return NotImplemented
    shape = [-1 if place == dim % self.dim() else 1 for place in range(self.dim())]
    expected = [index.numel() if place == dim % self.dim() else size for place, size in enumerate(self.shape)]
    if list(source.shape) != expected:
        return NotImplemented
    return _scatter_reduce(self, dim, index.view(shape).expand(expected), source, reduce, include_self=include_self, out=out)


@implements(aten.index_add.out)
def _index_add(self: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, alpha: Any = 1, out: torch.Tensor) -> Any:
    kind = _SUMMED.get(self.dtype)
    index = index.reshape(1) if index.dim() == 0 and self.dim() else index
    if self.dtype == source.dtype == out.dtype:
        if kind is not None and self.dtype != torch.float16:
            return out.resize_(self.shape).copy_(self.to(kind).index_add(dim, index, source.to(kind), alpha=alpha))
        if self.dtype == torch.int64 and self.dim():
            result = _index_reduce(self, dim, index, source * alpha, "sum", out=out)
            if result is not NotImplemented:
                return result
    # Inductor counts negative indices from the end; here they are errors, as those behind the end are.
    index = torch.where(index < 0, self.shape[dim] if self.dim() else 1, index)
    return _eager.run(aten.index_add.out, (self, dim, index, source), {"alpha": alpha, "out": out})


@implements(aten.scatter.src_out)
def _scatter(self: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, *, out: torch.Tensor) -> Any:
    """Inductor has no scatter of i64 and bool, as it has no sums of them."""
    if self.dtype not in (torch.int64, torch.bool) or not self.dtype == src.dtype == out.dtype or torch.are_deterministic_algorithms_enabled():
        return NotImplemented
    if not _are_right(self, dim, index, src):
        return NotImplemented
    made = self.clone(memory_format=torch.contiguous_format)
    if index.numel():
        made.view(-1).index_put_((_places(made, dim, index),), _taken(src, index))
    return out.resize_(self.shape).copy_(made)
