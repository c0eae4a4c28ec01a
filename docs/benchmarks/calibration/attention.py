"""AMD's bf16 attention (forward, batch mode) on the simulator with all checks, against NumPy.

In: hsa/CHIP/fmha_v3_fwd of a checkout of ROCm/aiter, with one code object per kind of compute unit and rounding. Out: small cases for numerics.py.
Arguments and grids follow csrc/cpp_itfs/mha_fwd.cu; each argument takes 16 bytes.
"""

import csv
import dataclasses
import pathlib

import aiter
import numpy as np
from bf16 import from_bf16, to_bf16

LIMIT = 0.03  # of results of the order of one, and of the logarithms of the sums
SHAPES = ((512, 512, 8, 8), (300, 413, 8, 2))  # queries, keys, heads, heads of keys


@dataclasses.dataclass(frozen=True)
class Attention:
    chip: str
    name: str
    code: pathlib.Path
    head: int
    head_v: int
    tile: int  # queries of a workgroup
    causal: bool


def kernels(checkout):
    for chip in aiter.CHIPS:
        folder = checkout / "hsa" / chip / "fmha_v3_fwd"
        if not (folder / "fmha_fwd.csv").exists():
            continue
        for row in csv.DictReader(open(folder / "fmha_fwd.csv")):
            if (row["dtype"], row["mode"]) == ("bf16", "0"):
                for code in sorted(folder.rglob(row["co_name"])):
                    yield Attention(chip, row["knl_name"], code, int(row["hdim_q"]), int(row["hdim_v"]), int(row["ts_qo"]), row["mask"] == "2")


def reference(q, k, v, causal):
    """Result and logarithm of the sum of exponentials, in float64; [heads, queries, ...]. A causal mask ends at the last key."""
    group = q.shape[1] // k.shape[1]
    q, k, v = (np.repeat(from_bf16(x).astype(float), times, 1).transpose(1, 0, 2) for x, times in ((q, 1), (k, group), (v, group)))
    scores = q @ k.transpose(0, 2, 1) * q.shape[2] ** -0.5
    if causal:
        queries, keys = scores.shape[1:]
        scores = np.where(np.arange(keys) <= np.arange(queries)[:, None] + keys - queries, scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    powers = np.exp(scores - largest)
    total = powers.sum(-1, keepdims=True)
    return (powers / total) @ v, (largest + np.log(total))[..., 0]


def launch(kernel, shape, buffers):
    """Options of greta-sim. Strides are in bytes, of rows, heads and batches."""
    queries, keys, heads, heads_k = shape
    tiles = aiter.up(queries, kernel.tile)
    transposed = (kernel.chip, kernel.head, kernel.head_v) == ("gfx942", 192, 128)  # heads first in the grid, half the waves
    tune = 0 if transposed else 3 if kernel.causal and heads % 8 else 5
    row, row_k, row_v, row_d = (2 * h * d for h, d in ((heads, kernel.head), (heads_k, kernel.head), (heads_k, kernel.head_v), (heads, kernel.head_v)))
    integers = lambda *values: [f"i32:{value}" for value in values]
    arguments = [
        buffers["d"], buffers["q"], buffers["k"], buffers["v"], buffers["lse"], f"f32:{kernel.head**-0.5}",
        *integers(queries, row, kernel.tile * row, 2 * kernel.head, queries * row, heads // heads_k, row_k, 2 * kernel.head, keys * row_k, tune, 1, keys),
        *integers(kernel.head, kernel.head_v, heads, row_v, 2 * kernel.head_v, keys * row_v, row_d, 2 * kernel.head_v, queries * row_d), "null", "null",
        *integers(4 * queries), *["null"] * 5, *integers(*[0] * 6),
    ]  # fmt: skip
    grid = (heads, tiles, 1) if transposed else (aiter.up(tiles, 2) if kernel.causal else tiles, heads, 1)
    padded = [option for argument in arguments for option in (f"--arg={argument}", "--arg=align:16")]
    return [f"--kernel={kernel.name}", "--grid=" + ",".join(map(str, grid)), f"--block={256 if (kernel.head, kernel.head_v) == (192, 128) else 512}", *padded,
            "--arg=align:512"]  # fmt: skip


def cases(kernel):
    """As gemm.cases."""
    for shape in SHAPES:
        queries, keys, heads, heads_k = shape
        random = np.random.default_rng(3)
        sizes = dict(q=(queries, heads, kernel.head), k=(keys, heads_k, kernel.head), v=(keys, heads_k, kernel.head_v))
        arrays = {name: to_bf16(random.standard_normal(size)) for name, size in sizes.items()}

        def is_right(results, arrays=arrays, size=(queries, heads, kernel.head_v)):
            want, want_sums = reference(*arrays.values(), kernel.causal)
            got = from_bf16(results["d"].view(np.uint16)).reshape(size).transpose(1, 0, 2)
            sums = results["lse"].view(np.float32).reshape(want_sums.shape)
            return np.abs(got - want).max() <= LIMIT and np.abs(sums - want_sums).max() <= LIMIT

        results = dict(d=2 * queries * heads * kernel.head_v, lse=4 * heads * queries)
        yield arrays, results, lambda buffers, shape=shape: launch(kernel, shape, buffers), is_right
