"""Images whose channels lie next to each other (NHWC) made of those that lie channel by channel (NCHW), and back: the matrix [channels, positions] of each image is turned around."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ._device import block_of
from ._operators import MOST_NEAR, MOST_PROGRAMS


@triton.jit(do_not_specialize=["rows", "columns"])
def turn_images_kernel(out, x, rows, columns, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """out [images, columns, rows] of x [images, rows, columns]."""
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    begin = tl.program_id(2).to(tl.int64) * rows * columns
    values = tl.load(x + begin + row[:, None] * columns + col[None, :], mask=(row < rows)[:, None] & (col < columns)[None, :], other=0.0)
    tl.store(out + begin + col[:, None] * rows + row[None, :], tl.trans(values), mask=(col < columns)[:, None] & (row < rows)[None, :])


def _turn(out: torch.Tensor, x: torch.Tensor, rows: int, columns: int) -> None:
    blocks = dict(BLOCK_M=block_of(rows, 64), BLOCK_N=block_of(columns, 64))
    grid = triton.cdiv(rows, blocks["BLOCK_M"]), triton.cdiv(columns, blocks["BLOCK_N"]), len(x)
    if not out.is_contiguous() and not x.is_contiguous() or rows * columns >= MOST_NEAR or max(grid) > MOST_PROGRAMS:
        out.copy_(x)
        return
    with torch.rdna.device(out.device):
        turn_images_kernel[grid](out, x, rows, columns, **blocks)


def with_near_channels(x: torch.Tensor) -> torch.Tensor:
    """The same images in other memory, with their channels next to each other."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)
    _turn(out, x, x.shape[1], x.shape[2] * x.shape[3])
    return out


def copy_near_channels(out: torch.Tensor, x: torch.Tensor) -> None:
    """Fills out from images x whose channels are next to each other."""
    _turn(out, x, x.shape[2] * x.shape[3], x.shape[1])
