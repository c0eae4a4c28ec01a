"""Patches of images in memory, and the convolutions that are products of them: gradients of weights, and convolutions of channels that are no multiple of 8.

In: images [B, C, H, W] whose channels lie next to each other. A patch is what the taps of one position read, taps * channels numbers. With groups there is a matrix of patches
for each, so that the gradients of their weights are a batch of products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from . import _convolution_packages as packages
from ._convolution_taps import source_of
from ._operators import _DOTS, MOST_PROGRAMS
from ._products import gemm

MOST_PATCH_BYTES = 1 << 29  # that patches in memory take


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
    GROUP: tl.constexpr,
    COLUMNS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Rows are positions of the result, columns channels of tap program_id(2): patches [CHANNELS / GROUP, positions, TAPS, GROUP] of x [B, H, W, CHANNELS].

    With GROUP 0 for any number of channels: patches [positions, COLUMNS] have zeros behind their taps * channels."""
    row = ((tl.program_id(0) + tl.program_id(1) * tl.num_programs(0)) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    inRow = row < positions
    for start in range(0, CHANNELS if GROUP else BLOCK_N, BLOCK_N):
        at = start + tl.arange(0, BLOCK_N)[None, :]
        if GROUP == 0:
            at += tl.program_id(2) * BLOCK_N
            tap, channel = at // CHANNELS, at % CHANNELS
            inside, near = inRow & (tap < TAPS), at < COLUMNS
            target = row.to(tl.int64) * COLUMNS + at
        else:
            tap, channel = tl.program_id(2), at
            inside, near = inRow, at < CHANNELS
            at = at.to(tl.int64)
            if GROUP < CHANNELS:
                at = at // GROUP * positions * (TAPS * GROUP) + at % GROUP
            target = (row.to(tl.int64) * TAPS + tap) * GROUP + at
        h, inH = source_of(row // out_w % out_h, tap // KERNEL_W, stride_h, padding_h, dilation_h, x_h, False)
        w, inW = source_of(row % out_w, tap % KERNEL_W, stride_w, padding_w, dilation_w, x_w, False)
        source = (((row // (out_h * out_w)).to(tl.int64) * x_h + h) * x_w + w) * CHANNELS + channel
        values = tl.load(x + source, mask=inside & inH & inW & near, other=0.0)
        tl.store(patches + target, values, mask=inRow & near)


def _patches(x: torch.Tensor, near: torch.Tensor, taps: Sequence[int], stride: list[int], padding: list[int], dilation: list[int], groups: int) -> torch.Tensor | None:
    """Patches [positions, columns] of x [B, C, H, W] for the positions of near [B, KO, Ho, Wo]: columns are taps * channels, and zeros up to a multiple of 16 bytes.

    With groups [groups, positions, columns], each of its channels. None where they would take too much memory, or where x or near have channels that do not lie next to each other."""
    inputs, outputs = x.shape[1], near.shape[1]
    count, positions = math.prod(taps), near.numel() // outputs
    columns = triton.cdiv(count * inputs, 8) * 8
    if x.dtype not in _DOTS or not (packages.lies_near(x) and packages.lies_near(near)) or outputs // groups % 8:
        return None
    if groups > 1 and inputs // groups % 8:
        return None
    if positions * columns * x.element_size() > MOST_PATCH_BYTES:
        return None
    with torch.rdna.device(x.device):
        try:
            patches = torch.empty((positions, columns) if groups == 1 else (groups, positions, columns // groups), dtype=x.dtype, device=x.device)
        except torch.OutOfMemoryError:
            return None
        width = 32 if inputs % 8 else min(triton.next_power_of_2(inputs), 128)
        height = max(1, 2048 // width)
        blocks = triton.cdiv(positions, height)
        grid = min(blocks, MOST_PROGRAMS), triton.cdiv(blocks, MOST_PROGRAMS)
        given = (patches, x, positions, *near.shape[2:], *x.shape[2:], *stride, *padding, *dilation)
        group, across = (0, triton.cdiv(columns, width)) if inputs % 8 else (inputs // groups, count)
        settings = dict(KERNEL_W=taps[1], TAPS=count, CHANNELS=inputs, GROUP=group, COLUMNS=columns, BLOCK_M=height, BLOCK_N=width)
        patches_kernel[(*grid, across)](*given, **settings)
    return patches


def gradient_by_patches(weight: torch.Tensor, x: torch.Tensor, grad: torch.Tensor, *window: Any) -> bool:
    """Fills weight [KO, C / groups, R, S], whose channels are next to each other, from x and grad [B, KO, Ho, Wo]; False where there are no patches."""
    patches = _patches(x, grad, weight.shape[2:], *window) if is_rows(weight) else None
    if patches is None:
        return False
    if patches.dim() == 3:
        groups = len(patches)
        gemm(rows_of(grad).unflatten(1, (groups, -1)).permute(1, 2, 0), patches, weight.movedim(1, -1).view(groups, len(weight) // groups, -1))
        return True
    matrix = weight.movedim(1, -1).view(len(weight), -1)
    padded = matrix if matrix.shape[1] == patches.shape[1] else torch.empty((len(matrix), patches.shape[1]), dtype=x.dtype, device=x.device)
    gemm(rows_of(grad).t(), patches, padded)
    if padded is not matrix:
        _copy_columns(matrix, padded)
    return True


def convolve_by_patches(out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, *window: Any) -> bool:
    """Fills out [B, KO, Ho, Wo] from x, whose channels are no multiple of 8, as an image's 3 are, and weight [KO, C, R, S]; False where there are no patches."""
    patches = _patches(x, out, weight.shape[2:], *window) if x.shape[1] % 8 and weight.shape[1] == x.shape[1] else None
    if patches is None:
        return False
    matrix = torch.empty((len(weight), patches.shape[1]), dtype=x.dtype, device=x.device)
    _copy_columns(matrix, weight.movedim(1, -1).flatten(1).contiguous())
    gemm(patches, matrix.t(), rows_of(out), bias)
    return True


def _copy_columns(out: torch.Tensor, given: torch.Tensor) -> None:
    """Rows of a matrix into those of a wider one, with zeros behind them, or of a narrower one: each row is a patch of one tap."""
    rows, columns = out.shape
    with torch.rdna.device(out.device):
        patches_kernel[(triton.cdiv(rows, 64), 1, triton.cdiv(columns, 32))](
            out, given, rows, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, KERNEL_W=1, TAPS=1, CHANNELS=given.shape[1], GROUP=0, COLUMNS=columns, BLOCK_M=64, BLOCK_N=32
        )


def is_rows(x: torch.Tensor) -> bool:
    """Whether the channels of each position lie next to each other, and positions behind each other."""
    return x.numel() > 0 and x.movedim(1, -1).is_contiguous()


def rows_of(x: torch.Tensor) -> torch.Tensor:
    """The same memory as [positions, channels]."""
    return x.movedim(1, -1).view(-1, x.shape[1])
