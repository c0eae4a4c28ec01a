"""Convolutions of one to three dimensions and their gradients, as implicit GEMMs.

A convolution is out[n, o, p] = sum over taps t and channels c of x[n, c, p * stride - padding + t * dilation] * w[o, c, t]: a GEMM whose rows are positions of
all images, whose columns are a group's output channels, and whose K loop passes over taps and channels. The gradient of x, which is a transposed convolution, is
the same kernel, with positions divided by the stride and skipped where that leaves a remainder. The gradient of w is a second kernel: a GEMM for each tap,
whose K loop passes over positions. Fewer than three dimensions are extents of 1. Tensors may have any strides (NCHW, NHWC).

Packages compute convolutions of tensors whose channels lie next to each other. A kernel of 1 x 1 that takes each position as it is makes plain products
(_products.py); greta.conv2d convolves images and computes gradients of x (_convolution_packages.py). The gradient of w is then a product of the result's
gradient and patches of x in memory: a GEMM that gathered patches would read each element once for each tap, and would sum over all positions in few programs.
Channels that are no multiple of 8, as the 3 of a picture, have no package: their convolution is a product of patches and the weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from . import _convolution_groups as few
from . import _convolution_packages as packages
from ._device import dot_tile, target_of
from ._convolution_depth import folded, folded_weight, unfolded_weight
from ._convolution_patches import convolve_by_patches, gradient_by_patches, is_rows, rows_of
from ._convolution_taps import gathered, split_of
from ._images import copy_near_channels, with_near_channels
from ._layouts import format_of
from ._operators import _DOTS, _SUMS, MOST_PROGRAMS, begin_of, counted, places, reaches_far, step_of
from ._products import gemm

@triton.jit(do_not_specialize=["positions", "outputs", "x_d", "x_h", "x_w", "taps", "padding_d", "padding_h", "padding_w", "dilation_d", "dilation_h", "dilation_w", "out_d", "out_h", "out_w", "out_n", "kernel_h", "kernel_w"])
def convolution_kernel(
    out,
    x,
    w,
    bias,
    positions,
    outputs,
    inputs,
    out_d,
    out_h,
    out_w,
    x_d,
    x_h,
    x_w,
    kernel_h,
    kernel_w,
    taps,
    stride_d,
    stride_h,
    stride_w,
    padding_d,
    padding_h,
    padding_w,
    dilation_d,
    dilation_h,
    dilation_w,
    out_n,
    out_c,
    out_sd,
    out_sh,
    out_sw,
    x_n,
    x_c,
    x_sd,
    x_sh,
    x_sw,
    w_group,
    w_out,
    w_in,
    w_sd,
    w_sh,
    w_sw,
    TRANSPOSED: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    BY_DOT: tl.constexpr,
    EVEN: tl.constexpr,
    FAR: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Rows are positions, columns are output channels of group program_id(2), which has `inputs` channels; EVEN: blocks have no rest in channels.

    Neighbouring programs take the columns of the same rows, which are in the cache for each other."""
    group = tl.program_id(2)
    across = tl.cdiv(outputs, BLOCK_N)
    tile = tl.program_id(0) + tl.program_id(1) * tl.num_programs(0)
    row = counted(begin_of(tile // across, BLOCK_M, FAR), BLOCK_M, FAR)
    col = counted(tile % across * BLOCK_N, BLOCK_N, FAR)
    n, pd, ph, pw = split_of(row, out_d, out_h, out_w)
    x += group.to(tl.int64) * inputs * x_c
    w += group.to(tl.int64) * w_group
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACCUMULATOR)
    a_step, b_step = step_of(x_c, BLOCK_K, FAR), step_of(w_in, BLOCK_K, FAR)
    for tap in range(0, taps):
        td = tap // (kernel_h * kernel_w)
        th = tap // kernel_w % kernel_h
        tw = tap % kernel_w
        source, inside = gathered(x, n, pd, ph, pw, td, th, tw, stride_d, stride_h, stride_w, padding_d, padding_h, padding_w, dilation_d, dilation_h, dilation_w, x_d, x_h, x_w, x_n, x_sd, x_sh, x_sw, TRANSPOSED)
        inside = inside & (row < positions)
        weights = w + td * w_sd + th * w_sh + tw * w_sw
        if BY_DOT:
            # Addresses that go on cost half of ones that are made again.
            c = counted(0, BLOCK_K, FAR)
            at_a = source[:, None] + c[None, :] * x_c
            at_b = weights + col[None, :] * w_out + c[:, None] * w_in
            for start in range(0, inputs, BLOCK_K):
                if EVEN:
                    a = tl.load(at_a, mask=inside[:, None], other=0.0)
                    b = tl.load(at_b)
                else:
                    a = tl.load(at_a, mask=inside[:, None] & (c[None, :] < inputs - start), other=0.0)
                    b = tl.load(at_b, mask=(c[:, None] < inputs - start) & (col[None, :] < outputs), other=0.0)
                sums = tl.dot(a, b, sums, input_precision="ieee")
                at_a += a_step
                at_b += b_step
        else:
            for c in range(0, inputs):
                a = tl.load(source + c * x_c, mask=inside, other=0)
                b = tl.load(weights + col * w_out + c * w_in, mask=col < outputs, other=0)
                sums += a[:, None].to(ACCUMULATOR) * b[None, :].to(ACCUMULATOR)
    channel = group * outputs + col
    if HAS_BIAS:
        sums += tl.load(bias + channel, mask=col < outputs, other=0).to(ACCUMULATOR)[None, :]
    at = out + n.to(tl.int64) * out_n + pd * out_sd + ph * out_sh + pw * out_sw
    mask = (row[:, None] < positions) & (col[None, :] < outputs)
    tl.store(at[:, None] + channel[None, :] * out_c, sums.to(out.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["positions", "outputs", "inputs", "x_d", "x_h", "x_w", "padding_d", "padding_h", "padding_w", "dilation_d", "dilation_h", "dilation_w", "x_n", "w_group", "grad_d", "grad_h", "grad_w", "grad_n", "groups", "kernel_h", "kernel_w", "parts", "share", "w_part"])
def weight_kernel(
    w,
    x,
    grad,
    positions,
    outputs,
    inputs,
    grad_d,
    grad_h,
    grad_w,
    x_d,
    x_h,
    x_w,
    kernel_h,
    kernel_w,
    groups,
    stride_d,
    stride_h,
    stride_w,
    padding_d,
    padding_h,
    padding_w,
    dilation_d,
    dilation_h,
    dilation_w,
    grad_n,
    grad_c,
    grad_sd,
    grad_sh,
    grad_sw,
    x_n,
    x_c,
    x_sd,
    x_sh,
    x_sw,
    w_group,
    w_out,
    w_in,
    w_sd,
    w_sh,
    w_sw,
    parts,
    share,
    w_part,
    ACCUMULATOR: tl.constexpr,
    BY_DOT: tl.constexpr,
    FAR: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Rows are channels of grad, columns channels of x, of part, group and tap program_id(2): a part sums over `share` positions, and has its own w."""
    part = tl.program_id(2) % parts
    group = tl.program_id(2) // parts % groups
    tap = tl.program_id(2) // parts // groups
    if FAR:
        begin = part.to(tl.int64) * share
    else:
        begin = part * share
    end = tl.minimum(begin + share, positions)
    td = tap // (kernel_h * kernel_w)
    th = tap // kernel_w % kernel_h
    tw = tap % kernel_w
    row = counted(begin_of(tl.program_id(0), BLOCK_M, FAR), BLOCK_M, FAR)
    col = counted(begin_of(tl.program_id(1), BLOCK_N, FAR), BLOCK_N, FAR)
    grad += group.to(tl.int64) * outputs * grad_c
    x += group.to(tl.int64) * inputs * x_c
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACCUMULATOR)
    if BY_DOT:
        for start in range(begin, end, BLOCK_K):
            p = counted(start, BLOCK_K, FAR)
            n, pd, ph, pw = split_of(p, grad_d, grad_h, grad_w)
            source, inside = gathered(x, n, pd, ph, pw, td, th, tw, stride_d, stride_h, stride_w, padding_d, padding_h, padding_w, dilation_d, dilation_h, dilation_w, x_d, x_h, x_w, x_n, x_sd, x_sh, x_sw, False)
            inside = inside & (p < end)
            grads = grad + n.to(tl.int64) * grad_n + pd * grad_sd + ph * grad_sh + pw * grad_sw
            a = tl.load(grads[None, :] + row[:, None] * grad_c, mask=inside[None, :] & (row[:, None] < outputs), other=0.0)
            b = tl.load(source[:, None] + col[None, :] * x_c, mask=inside[:, None] & (col[None, :] < inputs), other=0.0)
            sums = tl.dot(a, b, sums, input_precision="ieee")
    else:
        for p in range(begin, end):
            n, pd, ph, pw = split_of(p, grad_d, grad_h, grad_w)
            source, inside = gathered(x, n, pd, ph, pw, td, th, tw, stride_d, stride_h, stride_w, padding_d, padding_h, padding_w, dilation_d, dilation_h, dilation_w, x_d, x_h, x_w, x_n, x_sd, x_sh, x_sw, False)
            a = tl.load(grad + n.to(tl.int64) * grad_n + pd * grad_sd + ph * grad_sh + pw * grad_sw + row * grad_c, mask=inside & (row < outputs), other=0)
            b = tl.load(source + col * x_c, mask=inside & (col < inputs), other=0)
            sums += a[:, None].to(ACCUMULATOR) * b[None, :].to(ACCUMULATOR)
    at = w + part.to(tl.int64) * w_part + group.to(tl.int64) * w_group + td * w_sd + th * w_sh + tw * w_sw + row[:, None] * w_out + col[None, :] * w_in
    tl.store(at, sums.to(w.dtype.element_ty), mask=(row[:, None] < outputs) & (col[None, :] < inputs))


@triton.jit(do_not_specialize=["n", "parts"])
def sum_kernel(out, given, n, parts, FAR: tl.constexpr, BLOCK: tl.constexpr):
    """The sum of so many tensors of n elements that follow each other."""
    i = places(BLOCK, FAR)
    sums = tl.zeros((BLOCK,), tl.float32)
    for part in range(0, parts):
        sums += tl.load(given + part.to(tl.int64) * n + i, mask=i < n, other=0.0)
    tl.store(out + i, sums.to(out.dtype.element_ty), mask=i < n)


def _sum_parts(out: torch.Tensor, parts: torch.Tensor) -> None:
    """Fills out with the sum of `parts`, which lie as it does; nothing if they are itself."""
    if parts is not out:
        sum_kernel[(triton.cdiv(out.numel(), 1024),)](out, parts, out.numel(), len(parts), FAR=reaches_far(out), BLOCK=1024)


def _as_images(x: torch.Tensor) -> torch.Tensor:
    """A signal is an image of one row."""
    return x.unsqueeze(2) if x.dim() == 3 else x


def _near(x: torch.Tensor) -> torch.Tensor:
    return x if packages.lies_near(x) else with_near_channels(x)


def _three(values: Sequence[int], fill: int) -> list[int]:
    return [fill] * (3 - len(values)) + list(values)


def _expanded(values: Sequence[int], dims: int) -> list[int]:
    return list(values) * dims if len(values) == 1 else list(values)


def _extents(tensor: torch.Tensor) -> list[int]:
    return _three(tensor.shape[2:], 1)


def _strides(tensor: torch.Tensor) -> list[int]:
    return [*tensor.stride()[:2], *_three(tensor.stride()[2:], 0)]


def _blocks(dtype: torch.dtype, rows: int, columns: int, depth: int, count: int) -> dict[str, Any]:
    if dtype in _DOTS:
        return dict(ACCUMULATOR=tl.float32, BY_DOT=True, **dot_tile(rows, columns, depth, dtype.itemsize == 2, count))
    return dict(ACCUMULATOR=_SUMS[dtype], BY_DOT=False, BLOCK_M=16, BLOCK_N=16, BLOCK_K=1)


def _parts(tiles: int, depth: int) -> tuple[int, int]:
    """Into how many parts the sums of a product of few tiles are cut, so that all of the device has work, and the length of one; a part is worth its own tiles."""
    wanted = 4 * torch.rdna.get_device_properties().multi_processor_count // tiles
    parts = max(1, min(wanted, depth // 1024))
    share = max(triton.cdiv(triton.cdiv(depth, parts), 64), 1) * 64
    return max(triton.cdiv(depth, share), 1), share


class _Geometry:
    """Stride, padding and dilation of a convolution, of three dimensions each, and its weight [groups, outputs, inputs, taps] as it is laid out."""

    def __init__(self, weight: torch.Tensor, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int):
        dims = weight.dim() - 2
        self.settings = [*_three(_expanded(stride, dims), 1), *_three(_expanded(padding, dims), 0), *_three(_expanded(dilation, dims), 1)]
        self.groups = groups
        self.kernel = _extents(weight)
        self.isProduct = math.prod(self.kernel) == 1 and groups == 1 and self.settings[:6] == [1, 1, 1, 0, 0, 0] and weight.dtype in _DOTS
        images = [self.settings[at : at + 2] for at in (1, 4, 7)]
        self.window = (*images, groups) if dims < 3 else None  # stride, padding and dilation of images
        self.planes = _Planes(self.settings[::3], *images, groups) if dims == 3 else None

    def gather(self, out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, isTransposed: bool) -> None:
        """Fills `out`; weight is [channels of x, of out / groups, ..] where it is transposed, else [channels of out, of x / groups, ..]."""
        out, x, weight = map(_as_images, (out, x, weight))
        if self._gather_near(out, x, weight, bias, isTransposed) or (self.planes and self.planes.gather(out, x, weight, bias, isTransposed)):
            return
        if self._turns(x, out) and not (isTransposed and x.shape[1] % 8) and not (packages.lies_near(x) and packages.lies_near(out)):
            try:
                made = torch.empty(out.shape, dtype=out.dtype, device=out.device, memory_format=torch.channels_last)
                if self._gather_near(made, _near(x), weight, bias, isTransposed):
                    copy_near_channels(out, made)
                    return
            except torch.OutOfMemoryError:
                pass
        outputs, inputs = out.shape[1] // self.groups, x.shape[1] // self.groups
        areFew = few.takes(inputs, self.groups, out, x, weight)
        weight = weight if areFew else _with_near_channels(weight)
        strides = _strides(weight)
        wGroup, wOut, wIn = (inputs * strides[0], strides[1], strides[0]) if isTransposed else (outputs * strides[0], strides[0], strides[1])
        positions = out.shape[0] * math.prod(_extents(out))
        extents = (*_extents(out), *_extents(x), *self.kernel[1:], math.prod(self.kernel), *self.settings)
        lies = (*_strides(out), *_strides(x), wGroup, wOut, wIn, *strides[2:])
        with torch.rdna.device(out.device):
            if areFew and few.convolve(out, x, weight, bias, extents, lies, (inputs, outputs), out.stride(1) == 1, isTransposed):
                return
            blocks = _blocks(x.dtype, positions, outputs, inputs, self.groups)
            tiles = triton.cdiv(positions, blocks["BLOCK_M"]) * triton.cdiv(outputs, blocks["BLOCK_N"])
            grid = (min(tiles, MOST_PROGRAMS), triton.cdiv(tiles, MOST_PROGRAMS), self.groups)
            convolution_kernel[grid](
                out,
                x,
                weight,
                out if bias is None else bias,
                positions,
                outputs,
                inputs,
                *extents,
                *lies,
                TRANSPOSED=isTransposed,
                HAS_BIAS=bias is not None,
                EVEN=outputs % blocks["BLOCK_N"] == 0 and inputs % blocks["BLOCK_K"] == 0,
                FAR=reaches_far(out, x, weight),
                **blocks,
            )

    def _gather_near(self, out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, isTransposed: bool) -> bool:
        """Fills `out` by a package, of images whose channels lie next to each other; False where none does that."""
        if self.isProduct and out.shape[2:] == x.shape[2:] and all(map(is_rows, (out, x))):
            matrix = weight.flatten(1)
            gemm(rows_of(x), matrix if isTransposed else matrix.t(), rows_of(out), bias)
            return True
        if not self.window:
            return False
        byPackage = packages.input_gradient if isTransposed else packages.convolve
        return byPackage(out, x, weight, bias, *self.window) or (not isTransposed and convolve_by_patches(out, x, weight, bias, *self.window))

    def _weight_gradient_near(self, weight: torch.Tensor, x: torch.Tensor, grad: torch.Tensor) -> bool:
        if self.isProduct and x.shape[2:] == grad.shape[2:] and all(map(is_rows, (x, grad))) and (matrix := weight.flatten(1)).data_ptr() == weight.data_ptr():
            gemm(rows_of(grad).t(), rows_of(x), matrix)
            return True
        return bool(self.window) and gradient_by_patches(weight, x, grad, *self.window)

    def _turns(self, x: torch.Tensor, near: torch.Tensor) -> bool:
        """Whether copies with channels next to each other, which packages take, are worth their time. `near` are images whose channels are loaded 16 bytes at a time, as those
        of x are where there are groups."""
        inputs = x.shape[1] // self.groups if self.groups > 1 else 8
        return bool(self.window) and x.dtype in _DOTS and near.numel() > 0 and packages.has_package(inputs, near.shape[1] // self.groups, target_of(x.device.index))

    def weight_gradient(self, weight: torch.Tensor, x: torch.Tensor, grad: torch.Tensor) -> None:
        """Fills `weight`, [channels of grad, of x / groups, ..]."""
        weight, x, grad = map(_as_images, (weight, x, grad))
        if self._weight_gradient_near(weight, x, grad) or (self.planes and self.planes.weight_gradient(weight, x, grad)):
            return
        if self._turns(x, grad):
            try:
                made = torch.empty(weight.shape, dtype=weight.dtype, device=weight.device, memory_format=torch.channels_last)
                if self._weight_gradient_near(made, _near(x), _near(grad)):
                    weight.copy_(made)
                    return
            except torch.OutOfMemoryError:
                pass
        outputs, inputs = grad.shape[1] // self.groups, x.shape[1] // self.groups
        positions = grad.shape[0] * math.prod(_extents(grad))
        strides = _strides(weight)
        with torch.rdna.device(weight.device):
            if few.takes(inputs, self.groups, weight, x, grad):
                extents = (*_extents(grad), *_extents(x), *self.kernel[1:], math.prod(self.kernel), *self.settings)
                lies = (*_strides(grad), *_strides(x), outputs * strides[0], *strides)
                parts = few.weight_gradient(weight, x, grad, extents, lies, (inputs, outputs), grad.stride(1) == 1)
                if parts is not None:
                    _sum_parts(weight, parts)
                    return
            blocks = _blocks(x.dtype, outputs, inputs, positions, 0)
            grid = triton.cdiv(outputs, blocks["BLOCK_M"]), triton.cdiv(inputs, blocks["BLOCK_N"]), self.groups * math.prod(self.kernel)
            parts, share = _parts(math.prod(grid), positions) if blocks["BY_DOT"] and torch.ops.aten.is_non_overlapping_and_dense(weight) else (1, positions)
            # Parts are laid out as the weight is.
            filled = weight if parts == 1 else torch.empty_strided((parts, *weight.shape), (weight.numel(), *weight.stride()), dtype=torch.float32, device=weight.device)
            weight_kernel[(*grid[:2], grid[2] * parts)](
                filled,
                x,
                grad,
                positions,
                outputs,
                inputs,
                *_extents(grad),
                *_extents(x),
                *self.kernel[1:],
                self.groups,
                *self.settings,
                *_strides(grad),
                *_strides(x),
                outputs * strides[0],
                strides[0],
                strides[1],
                *strides[2:],
                parts,
                share,
                weight.numel(),
                FAR=reaches_far(weight, x, grad),
                **blocks,
            )
            _sum_parts(weight, filled)


class _Planes:
    """A convolution of three dimensions as one of images, whose channels have the taps along depth (_convolution_depth.py)."""

    def __init__(self, depth: Sequence[int], stride: list[int], padding: list[int], dilation: list[int], groups: int):
        self.depth = tuple(depth)  # stride, padding and dilation
        self.images = stride, padding, dilation, groups
        self.groups = groups

    def _takes(self, x: torch.Tensor, channels: int, near: torch.Tensor) -> bool:
        """`channels`: of a group of x and all taps along depth. Others are patches in memory, if there is one group."""
        isEven = channels % 8 == 0 or self.groups == 1
        return x.dtype in _DOTS and x.numel() > 0 and near.numel() > 0 and isEven and packages.has_package(8, near.shape[1] // self.groups, target_of(x.device.index))

    def gather(self, out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, isTransposed: bool) -> bool:
        taps = weight.shape[2]
        channels = x.shape[1] // self.groups * taps
        if not self._takes(x, channels, out) or (isTransposed and channels % 8):
            return False
        images = folded(x, out.shape[2], taps, self.depth, self.groups, isTransposed)
        if images is None:
            return False
        isNear = is_rows(out) and out.data_ptr() % 16 == 0
        try:
            made = out.movedim(1, -1) if isNear else torch.empty((len(out), *out.shape[2:], out.shape[1]), dtype=out.dtype, device=out.device)
        except torch.OutOfMemoryError:
            return False
        flat = folded_weight(weight, self.groups, isTransposed)
        geometry = _Geometry(flat, *self.images)
        if not geometry._gather_near(made.flatten(0, 1).permute(0, 3, 1, 2), images, flat, bias, isTransposed):
            return False
        if not isNear:
            out.copy_(made.movedim(-1, 1))
        return True

    def weight_gradient(self, weight: torch.Tensor, x: torch.Tensor, grad: torch.Tensor) -> bool:
        taps = weight.shape[2]
        if not self._takes(x, weight.shape[1] * taps, grad):
            return False
        images = folded(x, grad.shape[2], taps, self.depth, self.groups)
        grads = None if images is None else folded(grad, grad.shape[2], 1, (1, 0, 1))
        if images is None or grads is None:
            return False
        made = torch.empty((len(weight), weight.shape[1] * taps, *weight.shape[3:]), dtype=weight.dtype, device=weight.device, memory_format=torch.channels_last)
        if not _Geometry(made, *self.images)._weight_gradient_near(made, images, grads):
            return False
        weight.copy_(unfolded_weight(made, taps))
        return True


def _with_near_channels(weight: torch.Tensor) -> torch.Tensor:
    """The weight with its second dim last in memory: otherwise neighbours lie as far apart as a kernel has taps."""
    if math.prod(weight.shape[2:]) == 1 or weight.stride(1) == 1:
        return weight
    return weight.movedim(1, -1).contiguous().movedim(-1, 1)


def _takes(*tensors: torch.Tensor | None) -> bool:
    given = [one for one in tensors if one is not None]
    return all(one.dtype == given[0].dtype and one.device == given[0].device for one in given) and (given[0].dtype in _DOTS or given[0].dtype in _SUMS)


def _on_cpu(op: Any, *args: Any) -> Any:
    """Types without a kernel, counted."""
    from ._dispatch import run_on_cpu

    return run_on_cpu(op, *args)


def convolution(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any, groups: int) -> Any:
    """aten::convolution_overrideable."""
    if not _takes(x, weight, bias):
        return _on_cpu(torch.ops.aten.convolution.default, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    dims = weight.dim() - 2
    isBatched = x.dim() == dims + 2
    batched = x if isBatched else x[None]
    full = [_expanded(values, dims) for values in (stride, padding, dilation, output_padding)]
    if transposed:
        extents = [(size - 1) * s - 2 * p + d * (k - 1) + o + 1 for size, k, s, p, d, o in zip(batched.shape[2:], weight.shape[2:], *full)]
        channels = weight.shape[1] * groups
    else:
        extents = [(size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d, _ in zip(batched.shape[2:], weight.shape[2:], *full)]
        channels = weight.shape[0]
    out = torch.empty((batched.shape[0], channels, *extents), dtype=x.dtype, device=x.device, memory_format=format_of(batched))
    if out.numel():
        _Geometry(weight, stride, padding, dilation, groups).gather(out, batched, weight, bias, transposed)
    return out if isBatched else out[0]


def convolution_backward(grad: Any, x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any, groups: int, mask: Any) -> Any:
    """aten::convolution_backward_overrideable: the gradients of x, of the weight and of the bias."""
    if not _takes(grad, x, weight):
        sizes = [grad.shape[1]] if mask[2] else None
        return _on_cpu(torch.ops.aten.convolution_backward.default, grad, x, weight, sizes, stride, padding, dilation, transposed, output_padding, groups, mask)
    geometry = _Geometry(weight, stride, padding, dilation, groups)
    results: list[Any] = [None, None, None]
    if mask[0]:
        results[0] = torch.empty_like(x)
        if x.numel():
            geometry.gather(results[0], grad, weight, None, not transposed)
    if mask[1]:
        results[1] = torch.empty_like(weight)
        if weight.numel():
            geometry.weight_gradient(results[1], *((grad, x) if transposed else (x, grad)))
    if mask[2]:
        results[2] = grad.sum([0, *range(2, grad.dim())])
    return tuple(results)
