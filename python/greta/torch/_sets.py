"""Which values there are and how often: `unique`, `unique_consecutive`, `mode` and `bincount`.

Equal values stand side by side when they are sorted. An element that differs from the one before it begins a group; the sum of these flags is the group's number, so the
values, the group of each element and the size of each group are found without a search. NaN is equal to nothing, as on the CPU, so each is a group of its own.
`unique` along a dim sorts its slices, which are compared element by element. All results are the same each time; a sum of weights is in the order of the elements.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from ._indices import _reduce
from ._operators import MOST_NEAR, TYPES, implements
from ._sorts import _comes, _compared, grid_of, other_run, program, sorted_rows

aten = torch.ops.aten
_WIDE = 256  # elements of a program
_INTEGERS = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
_COLUMNS = 32  # of a slice that a program reads at once
_MOST_STEPS = 65535  # of a lane's loops, behind which llvmpipe ends them
MOST_COUNTED = 1 << 30  # of bincount's numbers


@triton.jit(do_not_specialize=["n", "size"])
def first_kernel(firsts, x, order, n, size, BY_ORDER: tl.constexpr, BLOCK: tl.constexpr, COLUMNS: tl.constexpr):
    """Whether each of n slices of `size` elements differs from the one before it. BY_ORDER: the slices are where `order` says."""
    i = program() * BLOCK + tl.arange(0, BLOCK)
    isThere = i < n
    isLater = isThere & (i > 0)
    at, before = i.to(tl.int64), i.to(tl.int64) - 1
    if BY_ORDER:
        at = tl.load(order + i, mask=isThere, other=0)
        before = tl.load(order + i - 1, mask=isLater, other=0)
    differs = tl.where(isLater, 0, 1)
    for start in range(0, size, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        mask = isLater[:, None] & (column < size)[None, :]
        one = _compared(tl.load(x + (at * size)[:, None] + column[None, :], mask=mask, other=0))
        other = _compared(tl.load(x + (before * size)[:, None] + column[None, :], mask=mask, other=0))
        differs = differs | tl.max((one != other).to(tl.int32), 1)
    tl.store(firsts + i, differs.to(tl.int8), mask=isThere)


@triton.jit(do_not_specialize=["n"])
def group_kernel(starts, inverse, numbers, order, n, BY_ORDER: tl.constexpr, HAS_INVERSE: tl.constexpr, BLOCK: tl.constexpr):
    """Writes where each group begins, and the group of each element; `numbers` are those of the groups, from 1."""
    i = program() * BLOCK + tl.arange(0, BLOCK)
    isThere = i < n
    group = tl.load(numbers + i, mask=isThere, other=1) - 1
    before = tl.load(numbers + i - 1, mask=isThere & (i > 0), other=0) - 1
    tl.store(starts + group, i.to(tl.int64), mask=isThere & (group != before))
    if HAS_INVERSE:
        at = i.to(tl.int64)
        if BY_ORDER:
            at = tl.load(order + i, mask=isThere, other=0)
        tl.store(inverse + at, group, mask=isThere)


@triton.jit(do_not_specialize=["n", "groups"])
def size_kernel(counts, starts, n, groups, BLOCK: tl.constexpr):
    """How many elements there are from each group's begin to the next one's."""
    i = program() * BLOCK + tl.arange(0, BLOCK)
    end = tl.load(starts + i + 1, mask=i + 1 < groups, other=0)
    end = tl.where(i + 1 < groups, end, n)
    tl.store(counts + i, end - tl.load(starts + i, mask=i < groups, other=0), mask=i < groups)


@triton.jit(do_not_specialize=["n", "size", "run"])
def merge_slices_kernel(out, order, x, n, size, run, BLOCK: tl.constexpr, COLUMNS: tl.constexpr):
    """Merges each two runs of `run` sorted slices; among equal ones the first run's come first. The slices [n, size] are where `order` says."""
    i = program() * BLOCK + tl.arange(0, BLOCK)
    isThere = i < n
    own = tl.load(order + i, mask=isThere, other=0)
    isFirst, begin, high = other_run(i, n, run)
    low = begin
    width = run
    while width > 0:
        at = (low + high) // 2
        isOpen = (low < high) & isThere
        other = tl.load(order + at, mask=isOpen, other=0)
        less = tl.zeros((BLOCK,), tl.int1)  # the other one comes first
        more = tl.zeros((BLOCK,), tl.int1)
        for start in range(0, size, COLUMNS):
            isEqual = isOpen & ~less & ~more
            column = start + tl.arange(0, COLUMNS)
            mask = isEqual[:, None] & (column < size)[None, :]
            a = _compared(tl.load(x + (other * size)[:, None] + column[None, :], mask=mask, other=0))
            b = _compared(tl.load(x + (own * size)[:, None] + column[None, :], mask=mask, other=0))
            isLess = tl.min(tl.where(_comes(a, b, False), column[None, :], size), 1)  # the first column that says so
            isMore = tl.min(tl.where(_comes(b, a, False), column[None, :], size), 1)
            less = less | (isEqual & (isLess < isMore))
            more = more | (isEqual & (isMore < isLess))
        isBefore = less | (~more & ~isFirst)
        low = tl.where(isOpen & isBefore, at + 1, low)
        high = tl.where(isOpen & ~isBefore, at, high)
        width = width // 2
    tl.store(out + tl.where(isFirst, i, i - run) + low - begin, own, mask=isThere)


@triton.jit(do_not_specialize=["n", "rows"])
def repeats_kernel(keys, x, n, rows, BLOCK: tl.constexpr):
    """For the last of equal elements of a sorted row: how many there are, above its distance from the row's last element; 0 for the others. The largest number of a row is
    that of the value that is there most often, of the least one of several."""
    blocks = tl.cdiv(n, BLOCK)
    row = program() // blocks
    i = program() % blocks * BLOCK + tl.arange(0, BLOCK)
    isThere = (i < n) & (row < rows)
    x += row.to(tl.int64) * n
    key = _compared(tl.load(x + i, mask=isThere, other=0))
    isLast = (i == n - 1) | (_compared(tl.load(x + i + 1, mask=isThere & (i + 1 < n), other=0)) != key)
    low = tl.zeros((BLOCK,), tl.int32)
    high = i
    width = n
    while width > 0:
        at = (low + high) // 2
        isOpen = (low < high) & isThere
        isBefore = _comes(_compared(tl.load(x + at, mask=isOpen, other=0)), key, False)
        low = tl.where(isOpen & isBefore, at + 1, low)
        high = tl.where(isOpen & ~isBefore, at, high)
        width = width // 2
    count = tl.where(key != key, 1, i - low + 1).to(tl.int64)
    tl.store(keys + row.to(tl.int64) * n + i, tl.where(isLast, count * (1 << 32) + (n - 1 - i), 0), mask=isThere)


@triton.jit(do_not_specialize=["n"])
def count_kernel(counts, x, n, BLOCK: tl.constexpr):
    i = program() * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(counts + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n, sem="relaxed")


def _grid(n: int) -> tuple[int, int]:
    return grid_of(triton.cdiv(n, _WIDE))


def _slices(n: int, size: int) -> tuple[tuple[int, int], dict[str, int]]:
    """The grid and the blocks of a kernel for n slices of `size` elements. Slices are read many elements at a time: llvmpipe ends a lane's loops behind 65,535 steps."""
    columns = min(triton.next_power_of_2(size), _COLUMNS)
    block = _WIDE // columns
    return grid_of(triton.cdiv(n, block)), dict(BLOCK=block, COLUMNS=columns)


def _no_indices(x: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=torch.int64, device=x.device)


def _groups(slices: torch.Tensor, order: torch.Tensor | None, inverse: bool, counts: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Where the groups of equal slices [n, size] begin, the group of each slice, and how many each group has; what is not asked for is empty. `order`: the slices are
    sorted by it; None where they stand as they are."""
    n, size = slices.shape
    device = slices.device
    firsts = torch.empty(n, dtype=torch.int8, device=device)
    like, byOrder = firsts if order is None else order, order is not None
    grid, blocks = _slices(n, size)
    with torch.rdna.device(device):
        first_kernel[grid](firsts, slices, like, n, size, BY_ORDER=byOrder, **blocks)
        numbers = firsts.cumsum(0, dtype=torch.int64)
        groups = int(numbers[-1].item())
        starts = torch.empty(groups, dtype=torch.int64, device=device)
        group = torch.empty(n if inverse else 0, dtype=torch.int64, device=device)
        group_kernel[_grid(n)](starts, group if inverse else starts, numbers, like, n, BY_ORDER=byOrder, HAS_INVERSE=inverse, BLOCK=_WIDE)
        sizes = torch.empty(groups if counts else 0, dtype=torch.int64, device=device)
        if counts:
            size_kernel[_grid(groups)](sizes, starts, n, groups, BLOCK=_WIDE)
    return starts, group, sizes


def _is_taken(self: torch.Tensor) -> bool:
    return (self.dtype in TYPES or self.dtype == torch.bool) and 0 < self.numel() <= MOST_NEAR


def _sorted_slices(slices: torch.Tensor) -> torch.Tensor:
    """The order of slices [n, size], the first elements first."""
    n, size = slices.shape
    if size == 1:
        return sorted_rows(slices.view(1, n), False)[1].view(n)
    grid, blocks = _slices(n, size)
    order = torch.arange(n, device=slices.device)
    spare, run = torch.empty_like(order), 1
    with torch.rdna.device(slices.device):
        while run < n:
            merge_slices_kernel[grid](spare, order, slices, n, size, run, **blocks)
            order, spare, run = spare, order, run * 2
    return order


def _of_slices(self: torch.Tensor, dim: int, isSorted: bool, inverse: bool, counts: bool) -> Any:
    if not _is_taken(self) or not -self.dim() <= dim < self.dim():
        return NotImplemented
    n = self.shape[dim]
    if triton.cdiv(self.numel() // n, _COLUMNS) * (n.bit_length() + 1) > _MOST_STEPS:
        return NotImplemented
    slices = self.movedim(dim, 0).reshape(n, -1)
    slices = (slices.to(torch.uint8) if self.dtype == torch.bool else slices).contiguous()
    order = _sorted_slices(slices) if isSorted else None
    starts, group, sizes = _groups(slices, order, inverse, counts)
    return self.index_select(dim, starts if order is None else order[starts]), group, sizes


def _of_all(self: torch.Tensor, isSorted: bool, inverse: bool, counts: bool) -> Any:
    """The values that differ, or that differ from the one before, the group of each element, and the sizes of the groups."""
    if self.numel() == 0 and not self.is_complex():
        return self.new_empty(0), torch.empty(self.shape if inverse else 0, dtype=torch.int64, device=self.device), _no_indices(self)
    if not _is_taken(self):
        return NotImplemented
    found, group, sizes = _of_slices(self.reshape(-1), 0, isSorted, inverse, counts)
    return found, group.view(self.shape) if inverse else group, sizes


@implements(aten._unique2.default)
def _unique(self: torch.Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> Any:
    return _of_all(self, True, return_inverse, return_counts)


@implements(aten.unique_dim.default)
def _unique_slices(self: torch.Tensor, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> Any:
    return _of_slices(self, dim, True, return_inverse, return_counts)


@implements(aten.unique_consecutive.default)
def _unique_consecutive(self: torch.Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    return _of_all(self, False, return_inverse, return_counts) if dim is None else _of_slices(self, dim, False, return_inverse, return_counts)


@implements(aten.unique_dim_consecutive.default)
def _unique_slices_consecutive(self: torch.Tensor, dim: int, return_inverse: bool = False, return_counts: bool = False) -> Any:
    return _of_slices(self, dim, False, return_inverse, return_counts)


@implements(aten.mode.default)
def _mode(self: torch.Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The value that is there most often, of several the least one, and the last place that has it."""
    if self.dtype == torch.bool:
        values, places = self.to(torch.uint8).mode(dim, keepdim)
        return values.to(torch.bool), places
    if not _is_taken(self):
        return NotImplemented
    if self.dim() == 0 and dim in (0, -1):
        return self.clone(), torch.zeros((), dtype=torch.int64, device=self.device)
    if not -self.dim() <= dim < self.dim():
        return NotImplemented
    rows = self.movedim(dim, -1).contiguous()
    n = rows.shape[-1]
    count = rows.numel() // n
    values, places = sorted_rows(rows, False)
    keys = torch.empty(rows.shape, dtype=torch.int64, device=self.device)
    with torch.rdna.device(self.device):
        repeats_kernel[grid_of(count * triton.cdiv(n, _WIDE))](keys, values, n, count, BLOCK=_WIDE)
    at = n - 1 - (keys.amax(-1, keepdim=True) & 0xFFFFFFFF)
    found = (one.gather(-1, at).movedim(-1, dim) for one in (values, places))
    values, places = (one if keepdim else one.squeeze(dim) for one in found)
    return values, places


@implements(aten.bincount.default)
def _bincount(self: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0) -> Any:
    """How often each number is there, or the sum of its weights, which is of f32 for weights of f32 and of f64 for others."""
    if self.dim() != 1 or self.dtype not in _INTEGERS or not 0 <= minlength <= MOST_COUNTED or self.numel() > MOST_NEAR:
        return NotImplemented
    if weights is not None and (weights.shape != self.shape or weights.is_complex() or weights.device != self.device):
        return NotImplemented
    if self.numel() == 0:
        return torch.zeros(minlength, dtype=torch.int64, device=self.device)
    x = self.to(torch.int64).contiguous()
    least, most = (int(one) for one in torch.stack(x.aminmax()).tolist())
    if least < 0 or most >= MOST_COUNTED:
        return NotImplemented
    size, n = max(most + 1, minlength), x.numel()
    if weights is None:
        counts = torch.zeros(size, dtype=torch.int32, device=self.device)
        with torch.rdna.device(self.device):
            count_kernel[_grid(n)](counts, x, n, BLOCK=_WIDE)
        return counts.to(torch.int64)
    sums = torch.zeros(size, dtype=torch.float32 if weights.dtype == torch.float32 else torch.float64, device=self.device)
    _reduce(sums, x, weights.to(sums.dtype), "sum", True)
    return sums
