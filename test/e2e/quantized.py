"""Rows quantised to 8 bits, and GEMMs of them, for test_quantized.py: the functions, their inputs, and their definition in NumPy.

A name says everything: quantize_KIND_DIM_T_K_DTYPE_OUT, with DIM "d" for a dynamic T and OUT the type of 8 bits.
"""

import dataclasses

import numpy as np

from case import EPS, EPS_TEXT, Case, Kind, tensor, varied_rows
from greta_runtime import DTYPES

LARGEST = {"i8": 127, "f8e4m3fn": 448, "f8e4m3fnuz": 240}
MLIR = {"i8": "i8", "f8e4m3fn": "f8E4M3FN", "f8e4m3fnuz": "f8E4M3FNUZ"}
COLUMNS = 48  # of a GEMM's result


@dataclasses.dataclass(frozen=True)
class Quantize(Case, family="quantize"):
    kind: str
    dim: str
    t: int
    k: int
    dtype: str
    out: str

    @property
    def rows(self):
        return "?" if self.dim == "d" else self.t

    @property
    def precision(self):
        return "f16" if self.kind == "gemm" else "f32"

    @property
    def depth(self):
        return self.k


def x_type(p):
    return tensor(p.rows, p.k, p.dtype)


def quantize_text(p, x):
    x_, y, s = x_type(p), tensor(p.rows, p.k, MLIR[p.out]), tensor(p.rows, 1, "f32")
    return f"  %y, %s = greta.quantize_rows {x} : {x_} -> {y}, {s}\n"


def rows_mlir(p, target):
    y, s = tensor(p.rows, p.k, MLIR[p.out]), tensor(p.rows, 1, "f32")
    if p.out == "i8":
        return f"func.func @{p.name}(%x: {x_type(p)}) -> ({y}, {s}) {{\n{quantize_text(p, '%x')}  return %y, %s : {y}, {s}\n}}\n"
    # The package's users have no 8-bit floats: as f32.
    wide = tensor(p.rows, p.k, "f32")
    return f"func.func @{p.name}(%x: {x_type(p)}) -> ({wide}, {s}) {{\n{quantize_text(p, '%x')}  %f = arith.extf %y : {y} to {wide}\n  return %f, %s : {wide}, {s}\n}}\n"


def norm_mlir(p, target):
    y, s, w = tensor(p.rows, p.k, MLIR[p.out]), tensor(p.rows, 1, "f32"), tensor(p.k, p.dtype)
    x = x_type(p)
    return f"""func.func @{p.name}(%x: {x}, %w: {w}) -> ({y}, {s}) {{
  %n = greta.rms_norm %x, %w {{eps = {EPS_TEXT} : f32}} : {x}, {w} -> {x}
{quantize_text(p, "%n")}  return %y, %s : {y}, {s}
}}
"""


def size_text(p, x):
    return ("%t", f"  %c0 = arith.constant 0 : index\n  %t = tensor.dim %x, %c0 : {x}\n") if p.rows == "?" else ("", "")


def gemm_mlir(p, target):
    """x and weights of 8 bits; the scales of the rows and of the columns are the epilogue."""
    x, y, w = x_type(p), tensor(p.rows, p.k, "i8"), tensor(COLUMNS, p.k, "i8")
    i, f, h, c, v, s = tensor(p.rows, COLUMNS, "i32"), tensor(p.rows, COLUMNS, "f32"), tensor(p.rows, COLUMNS, "f16"), tensor(COLUMNS, "f32"), tensor(p.rows, "f32"), tensor(p.rows, 1, "f32")
    size, dim = size_text(p, x)
    return f"""func.func @{p.name}(%x: {x}, %w: {w}, %c: {c}) -> {h} {{
{quantize_text(p, "%x")}{dim}  %0 = greta.matmul %y, %w {{transpose_b}} : {y}, {w} -> {i}
  %1 = arith.sitofp %0 : {i} to {f}
  %v = tensor.collapse_shape %s [[0, 1]] : {s} into {v}
  %e = tensor.empty({size}) : {f}
  %rows = linalg.broadcast ins(%v : {v}) outs(%e : {f}) dimensions = [1]
  %columns = linalg.broadcast ins(%c : {c}) outs(%e : {f}) dimensions = [0]
  %2 = arith.mulf %1, %rows : {f}
  %3 = arith.mulf %2, %columns : {f}
  %4 = arith.truncf %3 : {f} to {h}
  return %4 : {h}
}}
"""


def quantised(p, x):
    """In f32, as it is defined: what is rounded there decides which of two numbers a tie becomes."""
    x = x.astype(np.float32)
    peak = np.abs(x).max(axis=1, keepdims=True)
    largest = np.float32(LARGEST[p.out])
    with np.errstate(divide="ignore"):
        factor = np.where(peak == 0, np.float32(0), largest / peak).astype(np.float32)
    scaled = x * factor
    scale = peak * (np.float32(1) / largest)
    return np.rint(scaled).astype(np.int8) if p.out == "i8" else scaled.astype(DTYPES[p.out]).astype(np.float32), scale


def inputs(p, rng):
    x = varied_rows(rng, (p.t, p.k))
    if p.t > 2:
        x[2] = 0  # a row of zeros
    yield x, p.dtype


def norm_inputs(p, rng):
    yield rng.choice([-1, 1], (p.t, p.k)), p.dtype  # whose norms are the weights
    yield rng.integers(1, 4, p.k), p.dtype


def norm(p, rounded, x, w):
    normed = (x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPS) * w).astype(DTYPES[p.dtype])
    return list(quantised(p, normed))


def gemm_inputs(p, rng):
    yield from inputs(p, rng)
    yield rng.integers(-128, 128, (COLUMNS, p.k)), "i8"
    yield rng.uniform(0.5, 1.5, COLUMNS) / 1000, "f32"


def gemm(p, rounded, x, w, c):
    y, scale = quantised(p, x)
    return (y.astype(np.float64) @ w.T) * scale * c


KINDS = {
    "rows": Kind(rows_mlir, inputs, lambda p, r, x: list(quantised(p, x)), "exact"),
    "norm": Kind(norm_mlir, norm_inputs, norm, "exact"),
    "gemm": Kind(gemm_mlir, gemm_inputs, gemm, "gemm"),
}
