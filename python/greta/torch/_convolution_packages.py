"""Convolutions as packages of greta.conv2d: two dimensions, one group, channels next to each other (NHWC), f16, bf16 and f32.

A package knows all extents, as a layer of a model sees the same images at each step. The gradient of x is the convolution of the result's gradient with the
weight turned around, where the stride is 1. Everything else is a kernel of _convolution.py.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from .. import _torch
from .._compile import compile_cached
from .._trace import Trace
from ._device import target_of
from ._products import NAMES, row_by_row

MOST_PACKAGES = 256
ON_CPU_DRIVER = False  # lavapipe takes longer to compile a package than the kernel that serves all extents saves; tests try it nevertheless


class Window(NamedTuple):
    """A convolution: x [B, H, W, C] by w [KO, R, S, C], extents and settings of rows and columns."""

    type: str
    images: int
    x: tuple[int, int]
    inputs: int
    outputs: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    hasBias: bool

    def out(self) -> tuple[int, int]:
        rows, columns = ((x + 2 * p - d * (k - 1) - 1) // s + 1 for x, k, s, p, d in zip(self.x, self.kernel, self.stride, self.padding, self.dilation))
        return rows, columns

    def text(self) -> str:
        trace = Trace()
        operands = [trace.argument((self.images, *self.x, self.inputs), self.type), trace.argument((self.outputs, *self.kernel, self.inputs), self.type)]
        if self.hasBias:
            operands.append(trace.argument((self.outputs,), self.type))
        attributes = f"strides = {list(self.stride)}, padding = {list(self.padding * 2)}, dilations = {list(self.dilation)}"
        return trace.text("convolution", [trace.op("conv2d", operands, attributes, (self.images, *self.out(), self.outputs), self.type)])


_kernels: dict[tuple[Window, str], _torch.Kernel] = {}  # by convolution and target


def lies_near(x: torch.Tensor) -> bool:
    """Whether x [B, C, H, W] lies as packages take it: channels next to each other, from a multiple of 16 bytes on."""
    return x.numel() > 0 and x.permute(0, 2, 3, 1).is_contiguous() and x.data_ptr() % 16 == 0


def _kernel(window: Window, target: str) -> _torch.Kernel | None:
    key = window, target
    if key not in _kernels:
        # Other channels would be loaded element by element.
        if (target == "vulkan:lavapipe" and not ON_CPU_DRIVER) or window.inputs % 8 or window.outputs % 8 or len(_kernels) >= MOST_PACKAGES:
            return None
        _kernels[key] = _torch.Kernel(compile_cached(window.text(), target), "convolution")
    return _kernels[key]


def convolve(out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: list[int], padding: list[int], dilation: list[int]) -> bool:
    """Fills out [B, KO, Ho, Wo] from x [B, C, H, W] and weight [KO, C, R, S]; False where no package does that."""
    if out.dtype not in NAMES or not (lies_near(x) and lies_near(out)):
        return False
    window = Window(NAMES[out.dtype], x.shape[0], tuple(x.shape[2:]), x.shape[1], out.shape[1], tuple(weight.shape[2:]), tuple(stride), tuple(padding), tuple(dilation), bias is not None)
    kernel = _kernel(window, target_of(out.device.index)) if window.out() == tuple(out.shape[2:]) else None
    if kernel is None:
        return False
    arguments = [x.permute(0, 2, 3, 1), row_by_row(weight.permute(0, 2, 3, 1))]
    if bias is not None:
        arguments.append(row_by_row(bias))
    with torch.rdna.device(out.device):
        kernel(arguments, [out.permute(0, 2, 3, 1)])
    return True


def input_gradient(out: torch.Tensor, grad: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: list[int], padding: list[int], dilation: list[int]) -> bool:
    """Fills out, the gradient of x, from that of the result and weight [KO, C, R, S]; a bias is a transposed convolution's. False where no package does that."""
    around = [d * (k - 1) - p for k, p, d in zip(weight.shape[2:], padding, dilation)]
    if list(stride) != [1, 1] or min(around) < 0 or not lies_near(grad):
        return False
    return convolve(out, grad, weight.flip(2, 3).transpose(0, 1), bias, [1, 1], around, dilation)
