"""Pooling that Inductor lacks: gradients of maxima add each number up where its maximum was; means of large windows and their gradients are sums along one dim after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from ._operators import MOST_NEAR, implements
from ._sorts import grid_of, program

aten = torch.ops.aten
_WIDE = 256  # elements of a program
_MOST_STEPS = 65535  # llvmpipe ends a lane's loops behind so many


def _at_maxima(grad: torch.Tensor, x: torch.Tensor, indices: torch.Tensor, dims: int, out: torch.Tensor | None) -> Any:
    """`indices` are places in the last dims of x."""
    if not grad.shape == indices.shape or grad.dtype != x.dtype or not x.is_floating_point():
        return NotImplemented
    made = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
    if grad.numel():
        made.flatten(-dims).scatter_add_(-1, indices.flatten(-dims), grad.flatten(-dims))
    return made if out is None else out.resize_(x.shape).copy_(made)


@implements(aten.max_pool3d_with_indices_backward.default)
def _maxima_3d(grad: torch.Tensor, x: torch.Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, indices: torch.Tensor) -> Any:
    return _at_maxima(grad, x, indices, 3, None)


@implements(aten.max_pool3d_with_indices_backward.grad_input)
def _maxima_3d_to(grad: torch.Tensor, x: torch.Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, indices: torch.Tensor, *, grad_input: torch.Tensor) -> Any:
    return _at_maxima(grad, x, indices, 3, grad_input)


@implements(aten.adaptive_max_pool2d_backward.grad_input)
def _adaptive_maxima_2d(grad: torch.Tensor, x: torch.Tensor, indices: torch.Tensor, *, grad_input: torch.Tensor) -> Any:
    return _at_maxima(grad, x, indices, 2, grad_input)


def _with_rows(op: Any, dims: int) -> None:
    """Inductor numbers the elements of large windows in the order of their strides, so that the places of maxima would be wrong where columns lie behind each other."""

    @implements(op)
    def pool(x: torch.Tensor, kernel: Sequence[int], *settings: Any, **out: torch.Tensor) -> Any:
        strides = [stride for stride, size in zip(x.stride()[-dims:], x.shape[-dims:]) if size > 1]
        if _elements(dims, kernel) <= _MOST or strides == sorted(strides, reverse=True):
            return NotImplemented
        return op(x.contiguous(), kernel, *settings, **out)


for _op, _dims in ((aten.max_pool2d_with_indices.out, 2), (aten.max_pool3d_with_indices.out, 3), (aten.max_pool3d_with_indices.default, 3)):
    _with_rows(_op, _dims)


@triton.jit(do_not_specialize=["count", "inner", "extent", "to", "kernel", "padding", "divisor", "steps"])
def windows_kernel(out, x, count, inner, extent, to, kernel, padding, divisor, steps, stride, COUNTS: tl.constexpr, BACKWARD: tl.constexpr, BLOCK: tl.constexpr):
    """One dim of means, x [.., extent, inner] to [.., to, inner], or of their gradients, x [.., to, inner] to [.., extent, inner]. A window of `kernel` elements, which begins at
    each `stride`, is divided by `divisor`, or by the number of its elements, with those of the padding (COUNTS 2) or without (1). The last one ends where the padding does."""
    i = program() * BLOCK + tl.arange(0, BLOCK)
    isThere = i < count
    column = i % inner
    length = extent if BACKWARD else to
    other = to if BACKWARD else extent
    place = i // inner % length
    row = (i // inner // length).to(tl.int64) * other
    sums = tl.zeros((BLOCK,), tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32)
    for step in range(0, steps):
        if BACKWARD:
            window = (place + padding) // stride - step
            at = window
            isInside = (window >= 0) & (window < to) & (window * stride + kernel > place + padding)
        else:
            window = place
            at = place * stride - padding + step
            isInside = (at >= 0) & (at < extent)
        begin = window * stride - padding
        end = tl.minimum(begin + kernel, extent + padding)
        elements = divisor
        if COUNTS == 2:
            elements = end - begin
        elif COUNTS == 1:
            elements = tl.minimum(end, extent) - tl.maximum(begin, 0)
        values = tl.load(x + (row + at) * inner + column, mask=isThere & isInside, other=0.0).to(sums.dtype)
        sums += tl.where(isInside, values / elements.to(sums.dtype), 0.0)
    tl.store(out + i, sums.to(out.dtype.element_ty), mask=isThere)


_MOST = 25  # elements of a window that Inductor takes
_MOST_BACKWARD = {2: 25, 3: 125}  # in a gradient, by dims


def _windows(given: torch.Tensor, extents: Sequence[int], to: Sequence[int] | None, kernel: Any, stride: Any, padding: Any, ceil: bool, countsPadding: bool, divisor: int | None) -> torch.Tensor | None:
    """The means of `given`, whose last dims are `extents`, or its gradient where there are `to` windows; None where there are no such windows."""
    dims, isBackward = len(extents), to is not None
    kernel, stride, padding = (list(one) * dims if len(one) == 1 else list(one) for one in (kernel, stride or kernel, padding))
    if divisor == 0 or not given.is_floating_point() or given.dim() not in (dims + 1, dims + 2) or given.numel() == 0:
        return None
    if any(s < 1 or p < 0 or 2 * p > k or k > extent + 2 * p for k, s, p, extent in zip(kernel, stride, padding, extents)):
        return None
    if to is None:
        to = []
        for k, s, p, extent in zip(kernel, stride, padding, extents):
            found = (extent + 2 * p - k + (s - 1 if ceil else 0)) // s + 1
            to.append(found - (ceil and (found - 1) * s >= extent + p))  # no window begins behind the elements
    if max(kernel) > _MOST_STEPS:
        return None
    x = given.contiguous()
    for dim, (extent, windows, k, s, p) in enumerate(zip(extents, to, kernel, stride, padding)):
        shape = list(x.shape)
        shape[dim - dims] = extent if isBackward else windows
        # Between two dims numbers are not rounded to 16 bits.
        kind = given.dtype if dim == dims - 1 or given.dtype == torch.float64 else torch.float32
        if math.prod(shape) > MOST_NEAR or x.numel() > MOST_NEAR:
            return None
        out = torch.empty(shape, dtype=kind, device=x.device)
        counts = 0 if divisor is not None else 2 if countsPadding else 1
        steps = triton.cdiv(k, s) if isBackward else k
        with torch.rdna.device(x.device):
            windows_kernel[grid_of(triton.cdiv(out.numel(), _WIDE))](
                out, x, out.numel(), math.prod(shape[dim - dims + 1 :]) if dim < dims - 1 else 1, extent, windows, k, p, divisor if divisor is not None and dim == 0 else 1, steps, s, COUNTS=counts, BACKWARD=isBackward, BLOCK=_WIDE
            )
        x = out
    return x


def _elements(dims: int, kernel: Sequence[int]) -> int:
    return math.prod(list(kernel) * dims if len(kernel) == 1 else kernel)


def _means(x: torch.Tensor, dims: int, kernel: Sequence[int], stride: Any, padding: Any, ceil: bool, countsPadding: bool, divisor: int | None, out: torch.Tensor) -> Any:
    """Smaller windows are Inductor's."""
    made = None if _elements(dims, kernel) <= _MOST else _windows(x, x.shape[-dims:], None, kernel, stride, padding, ceil, countsPadding, divisor)
    return NotImplemented if made is None else out.resize_(made.shape).copy_(made)


def _means_backward(grad: torch.Tensor, x: torch.Tensor, dims: int, kernel: Sequence[int], stride: Any, padding: Any, ceil: bool, countsPadding: bool, divisor: int | None, out: torch.Tensor) -> Any:
    """Inductor's are smaller windows that end within the padding."""
    if not ceil and _elements(dims, kernel) <= _MOST_BACKWARD[dims]:
        return NotImplemented
    made = _windows(grad, x.shape[-dims:], grad.shape[-dims:], kernel, stride, padding, ceil, countsPadding, divisor)
    return NotImplemented if made is None else out.resize_(made.shape).copy_(made)


@implements(aten.avg_pool2d.out)
def _means_2d(x: torch.Tensor, kernel: Any, stride: Any = (), padding: Any = (0,), ceil: bool = False, countsPadding: bool = True, divisor: int | None = None, *, out: torch.Tensor) -> Any:
    return _means(x, 2, kernel, stride, padding, ceil, countsPadding, divisor, out)


@implements(aten.avg_pool3d.out)
def _means_3d(x: torch.Tensor, kernel: Any, stride: Any = (), padding: Any = (0,), ceil: bool = False, countsPadding: bool = True, divisor: int | None = None, *, out: torch.Tensor) -> Any:
    return _means(x, 3, kernel, stride, padding, ceil, countsPadding, divisor, out)


@implements(aten.avg_pool2d_backward.grad_input)
def _means_backward_2d(grad: torch.Tensor, x: torch.Tensor, kernel: Any, stride: Any, padding: Any, ceil: bool, countsPadding: bool, divisor: int | None, *, grad_input: torch.Tensor) -> Any:
    return _means_backward(grad, x, 2, kernel, stride, padding, ceil, countsPadding, divisor, grad_input)


@implements(aten.avg_pool3d_backward.grad_input)
def _means_backward_3d(grad: torch.Tensor, x: torch.Tensor, kernel: Any, stride: Any, padding: Any, ceil: bool, countsPadding: bool, divisor: int | None, *, grad_input: torch.Tensor) -> Any:
    return _means_backward(grad, x, 3, kernel, stride, padding, ceil, countsPadding, divisor, grad_input)
