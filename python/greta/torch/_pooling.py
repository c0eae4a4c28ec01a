"""Pooling that Inductor lacks: gradients of maxima add each number up where its maximum was; means of large windows and their gradients are products with a matrix for each dimension (_resize.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ._operators import implements
from ._resize import _along, _sums_of

aten = torch.ops.aten


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


def _windows(extent: int, to: int, kernel: int, stride: int, padding: int, isShare: bool, countsPadding: bool, like: torch.Tensor) -> torch.Tensor:
    """[to, extent]: the elements of each window, or their shares in its mean. The last window may reach over the padding's end, which is never counted."""
    begin = torch.arange(to, device=like.device)[:, None] * stride - padding
    end = (begin + kernel).clamp(max=extent + padding)
    i = torch.arange(extent, device=like.device)
    isInside = ((i >= begin) & (i < end)).to(_sums_of(like))
    if not isShare:
        return isInside
    return isInside / (end - begin if countsPadding else end.clamp(max=extent) - begin.clamp(min=0))


_MOST = {2: 25, 3: 125}  # elements of a window that Inductor takes, by dims


def _matrices(x: torch.Tensor, to: Sequence[int] | None, dims: int, kernel: Any, stride: Any, padding: Any, ceil: bool, countsPadding: bool, divisor: int | None) -> list[torch.Tensor] | None:
    """The shares of each dimension's elements in the means, of which there are `to` if that is given; None where the windows are none."""
    kernel, stride, padding = (list(one) * dims if len(one) == 1 else list(one) for one in (kernel, stride or kernel, padding))
    extents = x.shape[-dims:]
    if divisor == 0 or not x.is_floating_point() or x.dim() not in (dims + 1, dims + 2) or x.numel() == 0:
        return None
    if any(s < 1 or p < 0 or 2 * p > k or k > extent + 2 * p for k, s, p, extent in zip(kernel, stride, padding, extents)):
        return None
    if to is None:
        to = []
        for k, s, p, extent in zip(kernel, stride, padding, extents):
            found = (extent + 2 * p - k + (s - 1 if ceil else 0)) // s + 1
            to.append(found - (ceil and (found - 1) * s >= extent + p))  # no window begins behind the elements
    made = [_windows(*one, divisor is None, countsPadding, x) for one in zip(extents, to, kernel, stride, padding)]
    if divisor is not None:
        made[0] = made[0] / divisor
    return made


def _means(x: torch.Tensor, dims: int, kernel: Sequence[int], stride: Any, padding: Any, ceil: bool, countsPadding: bool, divisor: int | None, out: torch.Tensor) -> Any:
    """Smaller windows are Inductor's."""
    if math.prod(list(kernel) * dims if len(kernel) == 1 else kernel) <= _MOST[dims]:
        return NotImplemented
    matrices = _matrices(x, None, dims, kernel, stride, padding, ceil, countsPadding, divisor)
    if matrices is None:
        return NotImplemented
    made = _along(x, [one.t() for one in matrices])
    return out.resize_(made.shape).copy_(made)


def _means_backward(grad: torch.Tensor, x: torch.Tensor, dims: int, kernel: Sequence[int], stride: Any, padding: Any, ceil: bool, countsPadding: bool, divisor: int | None, out: torch.Tensor) -> Any:
    """Inductor's are smaller windows that end within the padding."""
    if not ceil and math.prod(list(kernel) * dims if len(kernel) == 1 else kernel) <= _MOST[dims]:
        return NotImplemented
    matrices = _matrices(x, grad.shape[-dims:], dims, kernel, stride, padding, ceil, countsPadding, divisor)
    return NotImplemented if matrices is None else out.resize_(x.shape).copy_(_along(grad, matrices))


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
