"""Embedding, and the loss of one class a row, for tables and rows of any size: a kernel each.

A program looks up some rows, or a part of each; the sum or mean of a loss is one program's, which adds in f32 in the order of the rows. An index that is out of range is told when the
stream is waited for (docs/guide/torch.md); nothing is read there.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from ._operators import MOST_PROGRAMS, aten, implements, reaches_far

_TYPES = (torch.float16, torch.bfloat16, torch.float32)
MOST_ROWS = 1 << 16  # of a loss that is summed: Inductor divides more rows
NONE, MEAN = 0, 1  # torch's numbers of reductions; the other one is the sum


@triton.jit(debug=True, do_not_specialize=["n", "rows"])
def embedding_kernel(out, table, indices, n, rows, length, FAR: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_L: tl.constexpr):
    """Elements of BLOCK_L columns of BLOCK_N rows, each from the row of the table that its index names."""
    i = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    column = tl.program_id(1) * BLOCK_L + tl.arange(0, BLOCK_L)
    index = tl.load(indices + i, mask=i < n, other=0)
    isRow = (index >= 0) & (index < rows)
    tl.device_assert(isRow | (tl.program_id(1) > 0), "index out of range in embedding")
    inside = (i < n)[:, None] & (column < length)[None, :]
    index = index.to(tl.int64) if FAR else index.to(tl.int32)
    i = i.to(tl.int64) if FAR else i
    value = tl.load(table + index[:, None] * length + column[None, :], mask=inside & isRow[:, None])
    tl.store(out + i[:, None] * length + column[None, :], value, mask=inside)


def _is_table(x: torch.Tensor, *others: torch.Tensor | None) -> bool:
    """Whether the kernels take it, and the others on its device, as they lie."""
    return x.dtype in _TYPES and x.is_contiguous() and all(one is None or (one.is_contiguous() and one.device == x.device) for one in others)


def _blocks(rows: int, length: int) -> tuple[tuple[int, int], int, int]:
    """The grid of programs that write rows, and the rows and columns of each."""
    columns = min(triton.next_power_of_2(length), 1024)
    block = max(4, 4096 // columns)
    return (triton.cdiv(rows, block), triton.cdiv(length, columns)), block, columns


@implements(aten.embedding.default)
def _embedding(weight: torch.Tensor, indices: torch.Tensor, padding: int = -1, scales: bool = False, isSparse: bool = False) -> Any:
    if weight.dim() != 2 or indices.dtype not in (torch.int64, torch.int32) or not _is_table(weight, indices) or not weight.numel() or not indices.numel():
        return NotImplemented
    length, n = weight.shape[1], indices.numel()
    grid, block, columns = _blocks(n, length)
    if max(grid) > MOST_PROGRAMS:
        return NotImplemented
    out = torch.empty((*indices.shape, length), dtype=weight.dtype, device=weight.device)
    with torch.rdna.device(weight.device):
        embedding_kernel[grid](out, weight, indices, n, weight.shape[0], length, reaches_far(weight, out), BLOCK_N=block, BLOCK_L=columns, sanitize_overflow=False)
    return out


@triton.jit
def _class_of(targets, i, rows, ignored):
    """The class of each row, and whether the row counts."""
    isRow = i < rows
    target = tl.load(targets + i, mask=isRow, other=0)
    return target, isRow & (target != ignored)


@triton.jit
def _weight_of(weight, target, counts, HAS_WEIGHT: tl.constexpr):
    """The weight of each row's class, 0 where the row does not count."""
    if HAS_WEIGHT:
        return tl.load(weight + target, mask=counts, other=0.0).to(tl.float32)
    else:
        return counts.to(tl.float32)


@triton.jit(debug=True, do_not_specialize=["rows", "classes", "ignored"])
def loss_kernel(out, total, x, targets, weight, rows, classes, ignored, REDUCTION: tl.constexpr, HAS_WEIGHT: tl.constexpr, BLOCK: tl.constexpr):
    """-x[i, targets[i]] times the class's weight, for each row, or their sum, or that divided by the sum of weights, `total`."""
    losses = tl.zeros((BLOCK,), tl.float32)
    weights = tl.zeros((BLOCK,), tl.float32)
    begin = tl.program_id(0) * BLOCK
    for start in range(begin, begin + BLOCK if REDUCTION == 0 else rows, BLOCK):
        i = start + tl.arange(0, BLOCK)
        target, counts = _class_of(targets, i, rows, ignored)
        isClass = (target >= 0) & (target < classes)
        tl.device_assert(isClass | (counts == 0), "class out of range in nll_loss")
        w = _weight_of(weight, target, counts & isClass, HAS_WEIGHT)
        value = tl.load(x + i.to(tl.int64) * classes + target, mask=counts & isClass, other=0.0).to(tl.float32)
        losses -= tl.where(counts, value * w, 0.0)
        weights += w
    if REDUCTION == 0:
        tl.store(out + begin + tl.arange(0, BLOCK), losses.to(out.dtype.element_ty), mask=begin + tl.arange(0, BLOCK) < rows)
        tl.store(total, 0.0)
    else:
        loss = tl.sum(losses)
        if REDUCTION == 1:
            loss = loss / tl.sum(weights)
        tl.store(out, loss.to(out.dtype.element_ty))
        tl.store(total, tl.sum(weights).to(total.dtype.element_ty))


@triton.jit(do_not_specialize=["rows", "ignored"])
def loss_gradient_kernel(
    out, grad, targets, weight, total, rows, classes, ignored, REDUCTION: tl.constexpr, HAS_WEIGHT: tl.constexpr, FAR: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr
):
    """The gradient of x in BLOCK_C classes of BLOCK_M rows; the forward kernel tells of classes that are out of range."""
    i = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    target, counts = _class_of(targets, i, rows, ignored)
    counts = counts & (target >= 0) & (target < classes)
    slope = -_weight_of(weight, target, counts, HAS_WEIGHT)
    if REDUCTION == 0:
        slope = slope * tl.load(grad + i, mask=i < rows, other=0.0).to(tl.float32)
    else:
        slope = slope * tl.load(grad).to(tl.float32)
    if REDUCTION == 1:
        slope = slope / tl.load(total).to(tl.float32)
    isThere = (column[None, :] == target[:, None]) & counts[:, None]
    i = i.to(tl.int64) if FAR else i
    value = tl.where(isThere, slope[:, None], 0.0).to(out.dtype.element_ty)
    tl.store(out + i[:, None] * classes + column[None, :], value, mask=(i < rows)[:, None] & (column < classes)[None, :])


def _is_loss(x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, *others: torch.Tensor) -> bool:
    """Whether there are rows of classes [rows, classes] or [classes], and each has a class."""
    isRight = x.dim() in (1, 2) and x.numel() > 0 and target.dtype == torch.int64 and target.shape == x.shape[:-1]
    return isRight and _is_table(x, target, weight, *others) and (weight is None or (weight.dtype == x.dtype and weight.shape == x.shape[-1:])) and all(one.dtype == x.dtype for one in others)


@implements(aten.nll_loss_forward.output)
def _loss(x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, reduction: int, ignored: int, *, output: torch.Tensor, total_weight: torch.Tensor) -> Any:
    if not _is_loss(x, target, weight, output, total_weight) or output.shape != (target.shape if reduction == NONE else ()) or total_weight.dim():
        return NotImplemented
    rows = target.numel()
    block = min(triton.next_power_of_2(rows), 256 if reduction == NONE else 4096)
    programs = triton.cdiv(rows, block) if reduction == NONE else 1
    if programs > MOST_PROGRAMS or (reduction != NONE and rows > MOST_ROWS):
        return NotImplemented
    with torch.rdna.device(x.device):
        loss_kernel[(programs,)](
            output, total_weight, x, target, x if weight is None else weight, rows, x.shape[-1], ignored, reduction, weight is not None, block, num_warps=4 if block <= 512 else 8, sanitize_overflow=False
        )
    return output, total_weight


@implements(aten.nll_loss_backward.grad_input)
def _loss_gradient(
    grad: torch.Tensor, x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, reduction: int, ignored: int, total: torch.Tensor, *, grad_input: torch.Tensor
) -> Any:
    if not _is_loss(x, target, weight, grad, total, grad_input) or grad_input.shape != x.shape or grad.shape != (target.shape if reduction == NONE else ()):
        return NotImplemented
    rows, classes = target.numel(), x.shape[-1]
    grid, block, columns = _blocks(rows, classes)
    if max(grid) > MOST_PROGRAMS:
        return NotImplemented
    with torch.rdna.device(x.device):
        loss_gradient_kernel[grid](grad_input, grad, target, x if weight is None else weight, total, rows, classes, ignored, reduction, weight is not None, reaches_far(x), block, columns)
    return grad_input
