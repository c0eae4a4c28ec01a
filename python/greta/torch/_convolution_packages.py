"""Convolutions as packages of greta.conv2d: two dimensions, one group, channels next to each other (NHWC), f16, bf16 and f32.

A package knows all extents, as a layer of a model sees the same images at each step. The gradient of x is the convolution of the result's gradient with the
weight turned around, where the stride is 1. The gradient of the weight is a product of the result's gradient and the patches of x, which are written to memory
by a kernel here: a GEMM that gathered them would read each element as often as there are taps, and would sum over all positions in few programs.
Everything else is a kernel of _convolution.py.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from .. import _torch
from .._compile import compile_cached
from .._trace import Trace
from ._device import target_of
from ._products import NAMES, gemm

MOST_PACKAGES = 256
ON_CPU_DRIVER = False  # lavapipe takes longer to compile a package than the kernel that serves all extents saves; tests try it nevertheless
MOST_PATCH_BYTES = 1 << 29  # that the patches of a weight's gradient take


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


_known: set[Window] = set()


@functools.lru_cache(None)
def _compiled(window: Window, target: str) -> _torch.Kernel:
    return _torch.Kernel(compile_cached(window.text(), target), "convolution")


def _lies_near(x: torch.Tensor) -> bool:
    return x.numel() > 0 and x.permute(0, 2, 3, 1).is_contiguous() and x.data_ptr() % 16 == 0


def _has_package(window: Window, device: torch.device) -> bool:
    if window in _known:
        return True
    # Other channels would be loaded element by element.
    if (target_of(device.index) == "vulkan:lavapipe" and not ON_CPU_DRIVER) or window.inputs % 8 or window.outputs % 8 or len(_known) >= MOST_PACKAGES:
        return False
    _known.add(window)
    return True


def convolve(out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: list[int], padding: list[int], dilation: list[int]) -> bool:
    """Fills out [B, KO, Ho, Wo] from x [B, C, H, W] and weight [KO, C, R, S]; False where no package does that."""
    if out.dtype not in NAMES or not (_lies_near(x) and _lies_near(out)):
        return False
    window = Window(NAMES[out.dtype], x.shape[0], tuple(x.shape[2:]), x.shape[1], out.shape[1], tuple(weight.shape[2:]), tuple(stride), tuple(padding), tuple(dilation), bias is not None)
    if window.out() != tuple(out.shape[2:]) or not _has_package(window, out.device):
        return False
    near = weight.permute(0, 2, 3, 1)
    if not near.is_contiguous() or near.data_ptr() % 16:
        near = near.clone(memory_format=torch.contiguous_format)
    arguments = [x.permute(0, 2, 3, 1), near]
    if bias is not None:
        arguments.append(bias if bias.is_contiguous() and bias.data_ptr() % 16 == 0 else bias.clone(memory_format=torch.contiguous_format))
    with torch.rdna.device(out.device):
        _compiled(window, target_of(out.device.index))(arguments, [out.permute(0, 2, 3, 1)])
    return True


def input_gradient(out: torch.Tensor, grad: torch.Tensor, weight: torch.Tensor, stride: list[int], padding: list[int], dilation: list[int]) -> bool:
    """Fills out, the gradient of x, from that of the result and weight [KO, C, R, S]; False where no package does that."""
    around = [d * (k - 1) - p for k, p, d in zip(weight.shape[2:], padding, dilation)]
    if list(stride) != [1, 1] or min(around) < 0 or not _lies_near(grad):
        return False
    return convolve(out, grad, weight.flip(2, 3).transpose(0, 1), None, [1, 1], around, dilation)


@triton.jit(do_not_specialize=["positions", "out_h", "out_w", "x_h", "x_w", "padding_h", "padding_w", "dilation_h", "dilation_w"])
def patches_kernel(
    patches,
    x,
    positions,
    out_h,
    out_w,
    x_h,
    x_w,
    stride_h,
    stride_w,
    padding_h,
    padding_w,
    dilation_h,
    dilation_w,
    KERNEL_W: tl.constexpr,
    TAPS: tl.constexpr,
    CHANNELS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Rows are positions of the result, columns channels of tap program_id(1): patches [positions, taps, channels] of x [B, H, W, C]."""
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    tap = tl.program_id(1)
    image = row // (out_h * out_w)
    h = row // out_w % out_h * stride_h - padding_h + tap // KERNEL_W * dilation_h
    w = row % out_w * stride_w - padding_w + tap % KERNEL_W * dilation_w
    inside = (h >= 0) & (h < x_h) & (w >= 0) & (w < x_w) & (row < positions)
    source = ((image.to(tl.int64) * x_h + h) * x_w + w) * CHANNELS
    target = (row.to(tl.int64) * TAPS + tap) * CHANNELS
    for start in range(0, CHANNELS, BLOCK_N):
        c = start + tl.arange(0, BLOCK_N)
        near = c < CHANNELS
        values = tl.load(x + source[:, None] + c[None, :], mask=inside[:, None] & near[None, :], other=0.0)
        tl.store(patches + target[:, None] + c[None, :], values, mask=(row < positions)[:, None] & near[None, :])


def weight_gradient(weight: torch.Tensor, x: torch.Tensor, grad: torch.Tensor, stride: list[int], padding: list[int], dilation: list[int]) -> bool:
    """Fills weight [KO, C, R, S], whose channels are next to each other, from x [B, C, H, W] and grad [B, KO, Ho, Wo]; False where that takes too much memory."""
    near = weight.permute(0, 2, 3, 1)
    outputs, inputs = weight.shape[:2]
    taps = math.prod(weight.shape[2:])
    positions = grad.shape[0] * grad.shape[2] * grad.shape[3]
    if weight.dtype not in NAMES or not (_lies_near(x) and _lies_near(grad) and near.is_contiguous()) or inputs % 8 or outputs % 8:
        return False
    if positions * taps * inputs * x.element_size() > MOST_PATCH_BYTES:
        return False
    with torch.rdna.device(weight.device):
        try:
            patches = torch.empty((positions, taps * inputs), dtype=x.dtype, device=x.device)
        except torch.OutOfMemoryError:
            return False
        width = min(triton.next_power_of_2(inputs), 128)
        height = max(1, 2048 // width)
        patches_kernel[(triton.cdiv(positions, height), taps)](
            patches, x, positions, *grad.shape[2:], *x.shape[2:], *stride, *padding, *dilation, KERNEL_W=weight.shape[3], TAPS=taps, CHANNELS=inputs, BLOCK_M=height, BLOCK_N=width
        )
    gemm(grad.permute(0, 2, 3, 1).reshape(positions, outputs).t(), patches, near.view(outputs, taps * inputs))
    return True
