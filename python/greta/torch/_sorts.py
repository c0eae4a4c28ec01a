"""Sorts, and what is found by sorting.

A row is sorted in runs of RUN elements, in which every element counts those that come before it. Then runs are merged two by two: an element's place is its own in its
run, and how many of the other run come before it, which it finds by halving.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from ._operators import MOST_NEAR, MOST_PROGRAMS, TYPES, implements

aten = torch.ops.aten
RUN = 1024
_BLOCK = 64  # of a run: a program compares a block with each block of its run
_WIDE = 256  # elements of a program of the others


@triton.jit
def program():
    """The number of a program, which may be more than a dim has."""
    return tl.program_id(0) + tl.program_id(1) * tl.num_programs(0)


def grid_of(programs: int) -> tuple[int, int]:
    return min(programs, MOST_PROGRAMS), triton.cdiv(programs, MOST_PROGRAMS)


@triton.jit
def _compared(values):
    """Numbers as they are compared."""
    if values.dtype.is_floating() and values.dtype.primitive_bitwidth < 32:
        return values.to(tl.float32)
    else:
        return values


@triton.jit
def _comes(one, other, DESCENDING: tl.constexpr):
    """Whether `one` comes before `other`; NaN is the largest."""
    if DESCENDING:
        return (one > other) | ((one != one) & (other == other))
    else:
        return (one < other) | ((other != other) & (one == one))


@triton.jit(do_not_specialize=["n", "rows"])
def rank_sort_kernel(values, indices, x, n, rows, DESCENDING: tl.constexpr, RUN: tl.constexpr, BLOCK: tl.constexpr):
    """Sorts the runs of each row by the number of elements that come before one; equal elements keep their order."""
    blocks = tl.cdiv(n, BLOCK)
    row = program() // blocks
    first = program() % blocks * BLOCK
    i = first + tl.arange(0, BLOCK)
    isThere = (i < n) & (row < rows)
    begin = first // RUN * RUN
    x += row.to(tl.int64) * n
    own = tl.load(x + i, mask=isThere, other=0)
    key = _compared(own)
    place = tl.zeros((BLOCK,), tl.int32) + begin
    for start in range(begin, tl.minimum(begin + RUN, n), BLOCK):
        j = start + tl.arange(0, BLOCK)
        other = _compared(tl.load(x + j, mask=(j < n) & (row < rows), other=0))
        a, b = key[:, None], other[None, :]
        isBefore = _comes(b, a, DESCENDING) | (~_comes(a, b, DESCENDING) & (j[None, :] < i[:, None]))
        place += tl.sum((isBefore & (j[None, :] < n)).to(tl.int32), 1)
    to = row.to(tl.int64) * n + place
    tl.store(values + to, own, mask=isThere)
    tl.store(indices + to, i.to(tl.int64), mask=isThere)


@triton.jit
def other_run(i, n, run):
    """Whether each element is of the first of two runs that are merged, and where the other one begins and ends."""
    pair = i // run // 2 * run * 2
    isFirst = i - pair < run
    begin = tl.minimum(tl.where(isFirst, pair + run, pair), n)
    return isFirst, begin, tl.minimum(begin + run, n)


@triton.jit(do_not_specialize=["n", "rows", "run"])
def merge_kernel(values, indices, x, places, n, rows, run, DESCENDING: tl.constexpr, BLOCK: tl.constexpr):
    """Merges each two runs of `run` sorted elements; among equal ones the first run's come first."""
    blocks = tl.cdiv(n, BLOCK)
    row = program() // blocks
    i = program() % blocks * BLOCK + tl.arange(0, BLOCK)
    isThere = (i < n) & (row < rows)
    base = row.to(tl.int64) * n
    own = tl.load(x + base + i, mask=isThere, other=0)
    key = _compared(own)
    isFirst, begin, high = other_run(i, n, run)
    low = begin
    width = run
    while width > 0:
        at = (low + high) // 2
        isOpen = (low < high) & isThere
        other = _compared(tl.load(x + base + at, mask=isOpen, other=0))
        isBefore = (isFirst & _comes(other, key, DESCENDING)) | (~isFirst & ~_comes(key, other, DESCENDING))
        low = tl.where(isOpen & isBefore, at + 1, low)
        high = tl.where(isOpen & ~isBefore, at, high)
        width = width // 2
    to = base + tl.where(isFirst, i, i - run) + low - begin
    tl.store(values + to, own, mask=isThere)
    tl.store(indices + to, tl.load(places + base + i, mask=isThere), mask=isThere)


def sorted_rows(rows: torch.Tensor, descending: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The last dim of a contiguous tensor in order, and the places that its elements had."""
    n = rows.shape[-1]
    count = rows.numel() // n
    made = torch.empty_like(rows), torch.empty(rows.shape, dtype=torch.int64, device=rows.device)
    with torch.rdna.device(rows.device):
        rank_sort_kernel[grid_of(count * triton.cdiv(n, _BLOCK))](*made, rows, n, count, DESCENDING=descending, RUN=RUN, BLOCK=_BLOCK)
        run = RUN
        spare = tuple(map(torch.empty_like, made)) if run < n else made
        while run < n:
            merge_kernel[grid_of(count * triton.cdiv(n, _WIDE))](*spare, *made, n, count, run, DESCENDING=descending, BLOCK=_WIDE)
            made, spare = spare, made
            run *= 2
    return made


def _write(values: torch.Tensor, indices: torch.Tensor, found: tuple[torch.Tensor, torch.Tensor]) -> Any:
    for out, one in zip((values, indices), found):
        out.resize_(one.shape).copy_(one)
    return values, indices


@implements(aten.sort.values_stable)
def _sort(self: torch.Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False, values: torch.Tensor, indices: torch.Tensor) -> Any:
    """Inductor sorts up to 512 elements, and where their number is not fixed it calls this operator."""
    if self.dtype == torch.bool:
        found, places = self.to(torch.uint8).sort(dim=dim, descending=descending, stable=True)
    else:
        n = self.shape[dim] if self.dim() else 1
        if self.dim() == 0 or not 0 < n <= MOST_NEAR or not 0 < self.numel() // n * triton.cdiv(n, _BLOCK) <= MOST_NEAR or self.dtype not in TYPES:
            return NotImplemented
        found, places = (one.movedim(-1, dim) for one in sorted_rows(self.movedim(dim, -1).contiguous(), descending))
    return _write(values, indices, (found, places))


@implements(aten.topk.values)
def _topk(self: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, values: torch.Tensor, indices: torch.Tensor) -> Any:
    if self.dim() == 0 or not 0 <= k <= self.shape[dim]:
        return NotImplemented
    all, places = self.sort(dim=dim, descending=largest, stable=True)
    return _write(values, indices, (all.narrow(dim, 0, k), places.narrow(dim, 0, k)))


def _nth(self: torch.Tensor, at: Any, dim: int, keeps: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The elements that stand at a number, or at one for each row, when they are sorted, and their places."""
    both = self.sort(dim=dim, stable=True)
    found = [one.narrow(dim, at, 1) if isinstance(at, int) else one.gather(dim, at) for one in both]
    values, places = found if keeps else (one.squeeze(dim) for one in found)
    return values, places


def _middle(self: torch.Tensor, dim: int, leavesOut: bool) -> Any:
    """Where the median stands: in front of NaNs, which are last, if these are left out; else one of them is the median where there is one."""
    n = self.shape[dim]
    if not self.is_floating_point():
        return (n - 1) // 2
    others = (self == self).sum(dim, keepdim=True)
    return ((others - 1).clamp(min=0) // 2) if leavesOut else torch.where(others < n, others, (n - 1) // 2)


def _is_sorted_here(self: torch.Tensor, dim: int) -> bool:
    """Whether it has such rows; others say what is wrong if it has not."""
    return self.numel() > 0 and self.dtype in TYPES and -self.dim() <= dim < self.dim()


@implements(aten.kthvalue.values)
def _kthvalue(self: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False, *, values: torch.Tensor, indices: torch.Tensor) -> Any:
    if self.dim() == 0 and dim in (0, -1):
        return _kthvalue(self.reshape(1), k, values=values, indices=indices)
    if not _is_sorted_here(self, dim) or not 1 <= k <= self.shape[dim]:
        return NotImplemented
    return _write(values, indices, _nth(self, k - 1, dim, keepdim))


def _median_of(leavesOut: bool) -> Any:
    def of_rows(self: torch.Tensor, dim: int, keepdim: bool = False, *, values: torch.Tensor, indices: torch.Tensor) -> Any:
        if self.dim() == 0 and dim in (0, -1):
            return of_rows(self.reshape(1), 0, values=values, indices=indices)
        if not _is_sorted_here(self, dim):
            return NotImplemented
        return _write(values, indices, _nth(self, _middle(self, dim, leavesOut), dim, keepdim))

    def of_all(self: torch.Tensor) -> Any:
        flat = self.reshape(-1)
        return _nth(flat, _middle(flat, 0, leavesOut), 0, False)[0] if _is_sorted_here(flat, 0) else NotImplemented

    return of_rows, of_all


for _rows, _all, _leavesOut in ((aten.median.dim_values, aten.median.default, False), (aten.nanmedian.dim_values, aten.nanmedian.default, True)):
    for _op, _function in zip((_rows, _all), _median_of(_leavesOut)):
        implements(_op)(_function)
