"""Operands and results of AMD's GEMM kernels: small cases for numerics.py.

Shapes cover a partial tile of M, two tiles of N and several of K; kernels that split K run with two parts as well. Weights and scales lie as csrc expects them,
small floats follow their definitions.
"""

import zlib

import aiter
import numpy as np
from bf16 import from_bf16, to_bf16

# A result's rounding to bf16: to the nearest, and of i8 and fp8 toward zero (all results are, half of them differ from the nearest).
ROUNDED = {"bf16": 2.0**-8, "fp4": 2.0**-8, "i8": 2.0**-7, "fp8": 2.0**-7}
SUMMED = 1e-6  # of the largest result: f32 sums where they cancel
SPLIT = 2.0**-8  # of the largest result: parts of K that are added in bf16
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
FP4 = np.concatenate([FP4, -FP4])


def fp8_values(chip):
    """E4M3 by code: gfx942 has the form without infinities and negative zero (bias 8), gfx950 OCP's (bias 7)."""
    bias = 8 if chip == "gfx942" else 7
    code = np.arange(256)
    exponent, mantissa = code >> 3 & 15, code & 7
    value = np.where(exponent == 0, mantissa / 8 * 2.0 ** (1 - bias), (1 + mantissa / 8) * 2.0 ** (exponent - bias)) * np.where(code >> 7, -1, 1)
    value[[0x80] if bias == 8 else [0x7F, 0xFF]] = np.nan
    return value


def shuffle(weight):
    """[N, K] as tiles of 16 rows and 32 elements of K; within one, columns of 16 bytes with their 16 rows."""
    n, k = weight.shape
    run = 16 // weight.itemsize
    return np.ascontiguousarray(weight.reshape(n // 16, 16, k // 32, 32 // run, run).transpose(0, 2, 3, 1, 4))


def shuffle_scales(scales):
    """fp4's, padded to 256 rows and 8 columns of ones: 32 rows and 8 columns side by side."""
    rows, columns = scales.shape
    padded = np.full((aiter.up(rows, 256) * 256, aiter.up(columns, 8) * 8), 127, np.uint8)
    padded[:rows, :columns] = scales
    return np.ascontiguousarray(padded.reshape(padded.shape[0] // 32, 2, 16, padded.shape[1] // 8, 2, 4).transpose(0, 3, 5, 2, 4, 1))


def operands(kernel, shape, random):
    """Arrays by buffer, and the product in float64."""
    m, n, k = shape.m, shape.n, shape.k
    layout = shuffle if kernel.shuffled or kernel.family in ("i8", "fp8") else np.ascontiguousarray
    if kernel.family == "bf16":
        a, b = (to_bf16(random.uniform(-1, 1, (rows, k))) for rows in (m, n))
        return dict(a=a, b=layout(b), semaphores=np.zeros(4096, np.uint32)), from_bf16(a).astype(float) @ from_bf16(b).astype(float).T
    if kernel.family == "i8":
        a, b = (random.integers(-127, 128, (rows, k), dtype=np.int8) for rows in (m, n))
        sa, sb = (random.uniform(0.5, 1, count).astype(np.float32) for count in (m, n))
        bias = random.uniform(-1e5, 1e5, n).astype(np.float32)  # as large as the sums
        return dict(a=a, b=layout(b), scale_a=sa, scale_b=sb, bias=bias), (a.astype(float) @ b.astype(float).T) * sa[:, None] * sb + bias
    if kernel.family == "fp8":
        values, block = fp8_values(kernel.chip), aiter.SCALE_BLOCK
        codes = np.array([code for code in range(256) if 2.0**-6 <= abs(values[code]) <= 2], np.uint8)
        a, b = (random.choice(codes, (rows, k)) for rows in (m, n))
        sa, sb = (random.uniform(0.5, 1, (rows, k // block)).astype(np.float32) for rows in (m, aiter.up(n, block)))
        wide = lambda scales: np.repeat(scales.astype(float), block, 1)
        product = (values[a] * wide(sa)) @ (values[b] * np.repeat(wide(sb), block, 0)[:n]).T
        return dict(a=a, b=layout(b), scale_a=np.ascontiguousarray(sa.T), scale_b=sb, bias=np.zeros(n, np.float32)), product
    a, b = (random.integers(0, 256, (rows, k // 2), dtype=np.uint8) for rows in (m, n))
    sa, sb = (random.integers(125, 130, (rows, k // 32), dtype=np.uint8) for rows in (m, n))
    real = lambda x, s: FP4[np.stack([x & 15, x >> 4], -1).reshape(len(x), -1)] * np.repeat(2.0 ** (s.astype(float) - 127), 32, 1)
    return dict(a=a, b=layout(b), scale_a=shuffle_scales(sa), scale_b=shuffle_scales(sb)), real(a, sa) @ real(b, sb).T


def shapes(kernel):
    """(shape, split)"""
    if kernel.family == "fp4":
        yield aiter.Shape(kernel.tile_m + 16, 2 * kernel.tile_n, 1024), 0
    elif kernel.family == "bf16" and kernel.tile_m == 256:  # takes whole tiles of M
        yield aiter.Shape(256, 2 * kernel.tile_n, 256), 1
    else:
        least = 2 if kernel.family == "bf16" and kernel.splits else 1
        for split in range(least, 3 if kernel.splits else 2):
            yield aiter.Shape(kernel.tile_m + 8, 2 * kernel.tile_n, 512), split


def cases(kernel):
    """Arrays and bytes of results by buffer, greta-sim's options for the buffers' arguments, whether results are right."""
    for shape, split in shapes(kernel):
        arrays, want = operands(kernel, shape, np.random.default_rng(zlib.crc32(kernel.name.encode())))

        def is_right(results, want=want, split=split):
            got = from_bf16(results["d"].view(np.uint16)[: want.size]).reshape(want.shape)
            return np.all(np.abs(got - want) <= ROUNDED[kernel.family] * np.abs(want) + (SUMMED if split <= 1 else SPLIT) * np.abs(want).max())

        yield arrays, dict(d=aiter.sizes(kernel, shape)["d"]), lambda buffers, shape=shape, split=split: aiter.launch(kernel, shape, split, buffers), is_right
