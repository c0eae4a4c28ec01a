"""Convolutions of three dimensions as ones of two: the taps along depth become channels.

In: x [B, C, D, H, W] as it lies. Out: images [B * Do, taps * C, H, W] whose channels lie next to each other, which one kernel writes; image (b, p) has for each tap along depth
the plane that the tap reads for depth p of the result, or zeros. A kernel of 1 x R x S needs no copy where the channels lie next to each other already. With groups the taps
are within each group. The transposed convolution gathers planes of the result's gradient so, whatever its stride along depth.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ._convolution_patches import MOST_PATCH_BYTES
from ._convolution_taps import source_of
from ._device import block_of
from ._operators import MOST_PROGRAMS


@triton.jit(do_not_specialize=["depth", "x_d", "width", "plane", "channels", "padding", "dilation", "blocks"])
def fold_kernel(out, x, depth, x_d, width, plane, channels, padding, dilation, blocks, x_n, x_c, x_sd, x_sh, x_sw, STRIDE: tl.constexpr, TAPS: tl.constexpr, GROUP: tl.constexpr, TRANSPOSED: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Rows are positions of a plane, columns channels, of one tap, depth and image: out [B, depth, plane, channels / GROUP, TAPS, GROUP]."""
    number = tl.program_id(0) + tl.program_id(1) * tl.num_programs(0)
    row = number % blocks * BLOCK_M + tl.arange(0, BLOCK_M)
    tap = number // blocks % TAPS
    image = number // blocks // TAPS
    c = tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)
    at, inside = source_of(image % depth, tap, STRIDE, padding, dilation, x_d, TRANSPOSED)
    mask = (row < plane)[:, None] & (c < channels)[None, :]
    source = x + (image // depth).to(tl.int64) * x_n + at.to(tl.int64) * x_sd
    places = (row // width).to(tl.int64) * x_sh + (row % width).to(tl.int64) * x_sw
    values = tl.load(source + places[:, None] + (c.to(tl.int64) * x_c)[None, :], mask=mask & inside, other=0.0)
    target = out + (image.to(tl.int64) * plane + row)[:, None] * (channels * TAPS)
    tl.store(target + ((c // GROUP * TAPS + tap) * GROUP + c % GROUP)[None, :], values, mask=mask)


def folded(x: torch.Tensor, depth: int, taps: int, setting: tuple[int, int, int], groups: int = 1, isTransposed: bool = False) -> torch.Tensor | None:
    """The images for `depth` planes of the result; stride, padding and dilation along depth. None where they would take too much memory."""
    count, channels, extent, height, width = x.shape
    if taps == 1 and setting[:2] == (1, 0) and depth == extent and x.movedim(1, -1).is_contiguous() and x.data_ptr() % 16 == 0:
        return x.movedim(1, -1).view(count * depth, height, width, channels).permute(0, 3, 1, 2)
    stride, padding, dilation = setting
    blocks = dict(BLOCK_M=block_of(height * width, 64), BLOCK_N=block_of(channels, 64))
    rows = triton.cdiv(height * width, blocks["BLOCK_M"])
    programs = rows * taps * count * depth
    columns = triton.cdiv(channels, blocks["BLOCK_N"])
    if count * depth * height * width * channels * taps * x.element_size() > MOST_PATCH_BYTES or programs > MOST_PROGRAMS * MOST_PROGRAMS or columns > MOST_PROGRAMS:
        return None
    with torch.rdna.device(x.device):
        try:
            out = torch.empty((count * depth, height, width, taps * channels), dtype=x.dtype, device=x.device)
        except torch.OutOfMemoryError:
            return None
        grid = min(programs, MOST_PROGRAMS), triton.cdiv(programs, MOST_PROGRAMS), columns
        fold_kernel[grid](
            out, x, depth, extent, width, height * width, channels, padding, dilation, rows, *x.stride(), STRIDE=stride, TAPS=taps, GROUP=channels // groups, TRANSPOSED=isTransposed, **blocks
        )
    return out.permute(0, 3, 1, 2)


def folded_weight(weight: torch.Tensor, groups: int, isTransposed: bool) -> torch.Tensor:
    """A weight [KO, C / groups, D, R, S] for such images: [KO, D * C / groups, R, S], or transposed, where the images are of KO channels, [D * KO, C / groups, R, S]."""
    if not isTransposed:
        return weight.permute(0, 3, 4, 2, 1).flatten(3).permute(0, 3, 1, 2)
    return weight.unflatten(0, (groups, -1)).permute(0, 3, 1, 2, 4, 5).flatten(0, 2)


def unfolded_weight(weight: torch.Tensor, taps: int) -> torch.Tensor:
    """The weight [KO, C, D, R, S] of [KO, D * C, R, S]."""
    return weight.unflatten(1, (taps, -1)).movedim(1, 2)
