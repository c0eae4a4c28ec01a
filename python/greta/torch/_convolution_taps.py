"""Which elements the taps of a convolution read, in up to three dimensions; with TRANSPOSED, those of a transposed one."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def split_of(position, depth, height, width):
    """The image and the three coordinates of a position."""
    z = position % width
    rest = position // width
    y = rest % height
    rest = rest // height
    return rest // depth, rest % depth, y, z


@triton.jit
def source_of(p, tap, stride, padding, dilation, extent, TRANSPOSED: tl.constexpr):
    """The position that a tap reads for an output position in one dimension, and whether it is inside."""
    if TRANSPOSED:
        scaled = p + padding - tap * dilation
        at = scaled // stride
        return at, (scaled >= 0) & (at * stride == scaled) & (at < extent)
    else:
        at = p * stride - padding + tap * dilation
        return at, (at >= 0) & (at < extent)


@triton.jit
def gathered(x, n, pd, ph, pw, td, th, tw, stride_d, stride_h, stride_w, padding_d, padding_h, padding_w, dilation_d, dilation_h, dilation_w, x_d, x_h, x_w, x_n, x_sd, x_sh, x_sw, TRANSPOSED: tl.constexpr):
    """The element that a tap reads for output positions, and whether there is one."""
    sd, inD = source_of(pd, td, stride_d, padding_d, dilation_d, x_d, TRANSPOSED)
    sh, inH = source_of(ph, th, stride_h, padding_h, dilation_h, x_h, TRANSPOSED)
    sw, inW = source_of(pw, tw, stride_w, padding_w, dilation_w, x_w, TRANSPOSED)
    return x + n.to(tl.int64) * x_n + sd * x_sd + sh * x_sh + sw * x_sw, inD & inH & inW
