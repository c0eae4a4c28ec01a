"""Gradients of interpolation, and adaptive average pooling: both are linear along each dimension, so they are products with a matrix for each. Gradients of what shrinks small numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._operators import implements

aten = torch.ops.aten
Resize = Callable[[torch.Tensor, int], torch.Tensor]  # of images [n, 1, extent] to another extent


def _sums_of(x: torch.Tensor) -> torch.dtype:
    """The type in which products are summed; the result is rounded once."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def _along(x: torch.Tensor, matrices: Sequence[torch.Tensor]) -> torch.Tensor:
    """x [.., n0, n1, ..] by a matrix [n, m] for each of its last dimensions: [.., m0, m1, ..]."""
    out = x.to(matrices[0].dtype)
    for dim, matrix in zip(range(-len(matrices), 0), matrices):
        out = (out.movedim(dim, -1) @ matrix).movedim(-1, dim)
    return out.to(x.dtype)


def _linear(align: bool, scale: Any) -> Resize:
    return lambda x, to: aten.upsample_linear1d(x, [to], align, scale)


def _cubic(align: bool, scale: Any) -> Resize:
    return lambda x, to: aten.upsample_bicubic2d(x[:, :, None], [1, to], align, None, scale)[:, :, 0]


def _nearest(scale: Any) -> Resize:
    return lambda x, to: aten.upsample_nearest1d(x, [to], scale)


def _nearest_exact(scale: Any) -> Resize:
    return lambda x, to: aten._upsample_nearest_exact1d(x, [to], scale)


def _gradient(kind: Callable[..., Resize], options: tuple[Any, ...], scales: tuple[Any, ...], grad: torch.Tensor, before: Sequence[int], out: torch.Tensor) -> torch.Tensor:
    """The rows of each matrix are what the interpolation makes of an image with a one in one place; `before` are the extents before it, `scales` may end early."""
    matrices = []
    for dim, extent in enumerate(before):
        resize = kind(*options, scales[dim] if dim < len(scales) else None)
        units = torch.eye(extent, dtype=_sums_of(grad), device=grad.device)[:, None]
        matrices.append(resize(units, grad.shape[2 + dim])[:, 0].t())
    return out.copy_(_along(grad, matrices))


@implements(aten.upsample_linear1d_backward.grad_input, aten.upsample_bilinear2d_backward.grad_input, aten.upsample_trilinear3d_backward.grad_input)
def _linear_backward(grad: Any, _: Any, before: Any, align: bool, *scales: Any, grad_input: Any) -> Any:
    return _gradient(_linear, (align,), scales, grad, before[2:], grad_input)


@implements(aten.upsample_bicubic2d_backward.grad_input)
def _cubic_backward(grad: Any, _: Any, before: Any, align: bool, *scales: Any, grad_input: Any) -> Any:
    return _gradient(_cubic, (align,), scales, grad, before[2:], grad_input)


@implements(aten.upsample_nearest1d_backward.grad_input, aten.upsample_nearest3d_backward.grad_input)
def _nearest_backward(grad: Any, _: Any, before: Any, *scales: Any, grad_input: Any) -> Any:
    return _gradient(_nearest, (), scales, grad, before[2:], grad_input)


@implements(aten._upsample_nearest_exact1d_backward.grad_input, aten._upsample_nearest_exact2d_backward.grad_input, aten._upsample_nearest_exact3d_backward.grad_input)
def _nearest_exact_backward(grad: Any, _: Any, before: Any, *scales: Any, grad_input: Any) -> Any:
    return _gradient(_nearest_exact, (), scales, grad, before[2:], grad_input)


def _windows(extent: int, to: int, like: torch.Tensor) -> torch.Tensor:
    """[extent, to]: the share of each element in each mean of adaptive pooling."""
    j = torch.arange(to, device=like.device)
    begin, end = j * extent // to, ((j + 1) * extent + to - 1) // to
    i = torch.arange(extent, device=like.device)[:, None]
    return ((i >= begin) & (i < end)).to(_sums_of(like)) / (end - begin)


@implements(aten._adaptive_avg_pool3d.default)
def _adaptive_mean(x: torch.Tensor, to: Sequence[int]) -> torch.Tensor:
    return _along(x, [_windows(x.shape[dim], extent, x) for dim, extent in zip((-3, -2, -1), to)])


def _adaptive_mean_backward(grad: torch.Tensor, x: torch.Tensor, dims: int) -> torch.Tensor:
    return _along(grad, [_windows(x.shape[dim], grad.shape[dim], grad).t() for dim in range(-dims, 0)])


@implements(aten._adaptive_avg_pool2d_backward.default)
def _adaptive_mean_backward_2d(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return _adaptive_mean_backward(grad, x, 2)


@implements(aten._adaptive_avg_pool3d_backward.default)
def _adaptive_mean_backward_3d(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return _adaptive_mean_backward(grad, x, 3)


@implements(aten.hardshrink_backward.grad_input, aten.softshrink_backward.grad_input)
def _shrink_backward(grad: torch.Tensor, x: torch.Tensor, limit: float, *, grad_input: torch.Tensor) -> torch.Tensor:
    return grad_input.copy_(torch.where((x >= -limit) & (x <= limit), 0, grad))
