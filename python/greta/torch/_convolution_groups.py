"""Convolutions of many groups of few channels, depthwise ones above all: neighbouring columns are channels of different groups, and nothing is a product of matrices.

A group of one channel would use one column and one row of a matrix unit's block. Here each output channel of a position is a sum over taps and the few channels of its group,
on the vector units, with loads of neighbouring channels where they lie next to each other. The transposed convolution is the same kernel; the gradient of the weight sums over
positions, in parts.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl

from ._convolution_taps import gathered, split_of
from ._operators import _DOTS, _SUMS, MOST_NEAR, MOST_PROGRAMS, reaches_far

MOST_INPUTS = 8  # of a group


@triton.jit(do_not_specialize=["positions", "channels", "out_d", "out_h", "out_w", "x_d", "x_h", "x_w", "taps", "padding_d", "padding_h", "padding_w", "dilation_d", "dilation_h", "dilation_w", "out_n", "kernel_h", "kernel_w"])
def grouped_kernel(out, x, w, bias, positions, channels, out_d, out_h, out_w, x_d, x_h, x_w, kernel_h, kernel_w, taps, stride_d, stride_h, stride_w, padding_d, padding_h, padding_w, dilation_d, dilation_h, dilation_w, out_n, out_c, out_sd, out_sh, out_sw, x_n, x_c, x_sd, x_sh, x_sw, w_group, w_out, w_in, w_sd, w_sh, w_sw, TRANSPOSED: tl.constexpr, HAS_BIAS: tl.constexpr, ACCUMULATOR: tl.constexpr, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Rows are positions, columns all output channels; a group has INPUTS and OUTPUTS."""
    row = (tl.program_id(0) + tl.program_id(1) * tl.num_programs(0)) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)
    n, pd, ph, pw = split_of(row, out_d, out_h, out_w)
    isRow, isCol = row < positions, col < channels
    group = col // OUTPUTS
    weights = w + group.to(tl.int64) * w_group + col % OUTPUTS * w_out
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACCUMULATOR)
    for tap in range(0, taps):
        td = tap // (kernel_h * kernel_w)
        th = tap // kernel_w % kernel_h
        tw = tap % kernel_w
        source, inside = gathered(x, n, pd, ph, pw, td, th, tw, stride_d, stride_h, stride_w, padding_d, padding_h, padding_w, dilation_d, dilation_h, dilation_w, x_d, x_h, x_w, x_n, x_sd, x_sh, x_sw, TRANSPOSED)
        mask = (inside & isRow)[:, None] & isCol[None, :]
        for i in range(0, INPUTS):
            a = tl.load(source[:, None] + ((group * INPUTS + i).to(tl.int64) * x_c)[None, :], mask=mask, other=0)
            b = tl.load(weights + td * w_sd + th * w_sh + tw * w_sw + i * w_in, mask=isCol, other=0)
            sums += a.to(ACCUMULATOR) * b.to(ACCUMULATOR)[None, :]
    if HAS_BIAS:
        sums += tl.load(bias + col, mask=isCol, other=0).to(ACCUMULATOR)[None, :]
    at = out + n.to(tl.int64) * out_n + pd * out_sd + ph * out_sh + pw * out_sw
    tl.store(at[:, None] + (col.to(tl.int64) * out_c)[None, :], sums.to(out.dtype.element_ty), mask=isRow[:, None] & isCol[None, :])


@triton.jit(do_not_specialize=["positions", "channels", "x_d", "x_h", "x_w", "padding_d", "padding_h", "padding_w", "dilation_d", "dilation_h", "dilation_w", "x_n", "grad_d", "grad_h", "grad_w", "grad_n", "kernel_h", "kernel_w", "taps", "share", "w_part"])
def grouped_weight_kernel(w, x, grad, positions, channels, grad_d, grad_h, grad_w, x_d, x_h, x_w, kernel_h, kernel_w, taps, stride_d, stride_h, stride_w, padding_d, padding_h, padding_w, dilation_d, dilation_h, dilation_w, grad_n, grad_c, grad_sd, grad_sh, grad_sw, x_n, x_c, x_sd, x_sh, x_sw, w_group, w_out, w_in, w_sd, w_sh, w_sw, share, w_part, ACCUMULATOR: tl.constexpr, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Columns are channels of grad, of part program_id(1), and of tap and channel of a group program_id(2); each sums over `share` positions, BLOCK_M at a time."""
    col = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    isCol = col < channels
    part = tl.program_id(1)
    tap = tl.program_id(2) % taps
    i = tl.program_id(2) // taps
    td = tap // (kernel_h * kernel_w)
    th = tap // kernel_w % kernel_h
    tw = tap % kernel_w
    begin = part * share
    end = tl.minimum(begin + share, positions)
    group = col // OUTPUTS
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACCUMULATOR)
    for start in range(begin, end, BLOCK_M):
        p = start + tl.arange(0, BLOCK_M)
        n, pd, ph, pw = split_of(p, grad_d, grad_h, grad_w)
        source, inside = gathered(x, n, pd, ph, pw, td, th, tw, stride_d, stride_h, stride_w, padding_d, padding_h, padding_w, dilation_d, dilation_h, dilation_w, x_d, x_h, x_w, x_n, x_sd, x_sh, x_sw, False)
        mask = (inside & (p < end))[:, None] & isCol[None, :]
        grads = grad + n.to(tl.int64) * grad_n + pd * grad_sd + ph * grad_sh + pw * grad_sw
        a = tl.load(grads[:, None] + (col.to(tl.int64) * grad_c)[None, :], mask=mask, other=0)
        b = tl.load(source[:, None] + ((group * INPUTS + i).to(tl.int64) * x_c)[None, :], mask=mask, other=0)
        sums += a.to(ACCUMULATOR) * b.to(ACCUMULATOR)
    at = w + part.to(tl.int64) * w_part + group.to(tl.int64) * w_group + col % OUTPUTS * w_out + i * w_in + td * w_sd + th * w_sh + tw * w_sw
    tl.store(at, tl.sum(sums, 0).to(w.dtype.element_ty), mask=isCol)


def takes(inputs: int, groups: int, *tensors: torch.Tensor) -> bool:
    """Whether a convolution whose groups have so many input channels is one of these."""
    return groups > 1 and inputs <= MOST_INPUTS and not reaches_far(*tensors) and all(one.numel() < MOST_NEAR for one in tensors)


def _blocks(positions: int, channels: int, isNear: bool) -> dict[str, int]:
    """A thousand elements of a program, long in the dim whose elements lie next to each other."""
    from ._device import target_of

    most = 256 if target_of(torch.rdna.current_device()) == "vulkan:lavapipe" else 1024
    if isNear:
        columns = min(triton.next_power_of_2(channels), 64)
        return dict(BLOCK_M=max(1, most // columns), BLOCK_N=columns)
    rows = min(triton.next_power_of_2(positions), most // 4)
    return dict(BLOCK_M=rows, BLOCK_N=min(triton.next_power_of_2(channels), most // rows))


def _settings(dtype: torch.dtype, inputs: int, outputs: int) -> dict[str, Any]:
    return dict(ACCUMULATOR=tl.float32 if dtype in _DOTS else _SUMS[dtype], INPUTS=inputs, OUTPUTS=outputs)


def convolve(out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, places: tuple[int, ...], numbers: tuple[int, ...], channels: tuple[int, int], isNear: bool, isTransposed: bool) -> bool:
    """Fills `out`. `places` are the arguments from the extents to the dilations, `numbers` the strides; `channels` are a group's inputs and outputs."""
    positions, count = out.numel() // out.shape[1], out.shape[1]
    blocks = _blocks(positions, count, isNear)
    rows, columns = triton.cdiv(positions, blocks["BLOCK_M"]), triton.cdiv(count, blocks["BLOCK_N"])
    if columns > MOST_PROGRAMS:
        return False
    grid = min(rows, MOST_PROGRAMS), triton.cdiv(rows, MOST_PROGRAMS), columns
    given = out, x, weight, out if bias is None else bias, positions, count
    grouped_kernel[grid](*given, *places, *numbers, TRANSPOSED=isTransposed, HAS_BIAS=bias is not None, **_settings(x.dtype, *channels), **blocks)
    return True


def weight_gradient(weight: torch.Tensor, x: torch.Tensor, grad: torch.Tensor, places: tuple[int, ...], numbers: tuple[int, ...], channels: tuple[int, int], isNear: bool) -> torch.Tensor | None:
    """The gradient in parts [parts, *weight.shape], which lie as `weight` does: the weight itself if it is one. None where there are too many programs."""
    positions, count = grad.numel() // grad.shape[1], grad.shape[1]
    blocks = _blocks(positions, count, isNear)
    taps = math.prod(weight.shape[2:])
    columns = triton.cdiv(count, blocks["BLOCK_N"])
    if taps * channels[0] > MOST_PROGRAMS:
        return None
    wanted = 4 * torch.rdna.get_device_properties().multi_processor_count // (columns * taps * channels[0])
    isParted = x.dtype in _DOTS and torch.ops.aten.is_non_overlapping_and_dense(weight)
    parts = max(1, min(wanted, positions // (8 * blocks["BLOCK_M"]), MOST_PROGRAMS)) if isParted else 1
    share = triton.cdiv(triton.cdiv(positions, parts), blocks["BLOCK_M"]) * blocks["BLOCK_M"]
    parts = triton.cdiv(positions, share)
    filled = weight if parts == 1 else torch.empty_strided((parts, *weight.shape), (weight.numel(), *weight.stride()), dtype=torch.float32, device=weight.device)
    given = filled, x, grad, positions, count
    grouped_weight_kernel[(columns, parts, taps * channels[0])](*given, *places, *numbers, share, weight.numel(), **_settings(x.dtype, *channels), **blocks)
    return filled
