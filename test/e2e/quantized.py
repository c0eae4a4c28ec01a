"""Rows quantised to 8 bits, GEMMs of them, and reductions of rows, for test_quantized.py: the functions, their inputs, and their definition in NumPy.

A name says everything: quantize_KIND_DIM_T_K_DTYPE_OUT, with DIM "d" for a dynamic T and OUT the type of 8 bits, or of a reduction's result.
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


REDUCTIONS = {
    "sum": ("arith.addf", "0.0", np.sum),
    "product": ("arith.mulf", "1.0", np.prod),
    "maximum": ("arith.maximumf", "0xFF800000", np.max),
    "minimum": ("arith.minimumf", "0x7F800000", np.min),
    "sumi": ("arith.addi", "0", np.sum),
    "leasti": ("arith.minsi", "2147483647", np.min),
    "mosti": ("arith.maxsi", "-2147483648", np.max),
}


def reduce_mlir(p, target):
    combine, start, _ = REDUCTIONS[p.kind]
    x, y = x_type(p), tensor(p.rows, p.dtype)
    size, dim = size_text(p, x)
    return f"""func.func @{p.name}(%x: {x}) -> {y} {{
{dim}  %start = arith.constant {start} : {p.dtype}
  %e = tensor.empty({size}) : {y}
  %f = linalg.fill ins(%start : {p.dtype}) outs(%e : {y}) -> {y}
  %y = linalg.reduce {{ {combine} }} ins(%x : {x}) outs(%f : {y}) dimensions = [1]
  return %y : {y}
}}
"""


def reduce_inputs(p, rng):
    if p.kind == "product":
        yield rng.choice([0.5, 1, 2, -1], (p.t, p.k)), p.dtype
    else:
        yield rng.integers(-1000, 1000, (p.t, p.k)), p.dtype  # sums are exact


def softmax_mlir(p, target):
    """By hand: two reductions, and what goes back to the rows."""
    x, v = x_type(p), tensor(p.rows, "f32")
    size, dim = size_text(p, x)
    reduce = lambda name, combine, start, of: f"""  %start{name} = arith.constant {start} : f32
  %f{name} = linalg.fill ins(%start{name} : f32) outs(%e : {v}) -> {v}
  %{name} = linalg.reduce {{ {combine} }} ins({of} : {x}) outs(%f{name} : {v}) dimensions = [1]
  %b{name} = linalg.broadcast ins(%{name} : {v}) outs(%w : {x}) dimensions = [1]
"""
    return f"""func.func @{p.name}(%x: {x}) -> {x} {{
{dim}  %e = tensor.empty({size}) : {v}
  %w = tensor.empty({size}) : {x}
{reduce("m", "arith.maximumf", "0xFF800000", "%x")}  %0 = arith.subf %x, %bm : {x}
  %1 = math.exp %0 : {x}
{reduce("s", "arith.addf", "0.0", "%1")}  %2 = arith.divf %1, %bs : {x}
  return %2 : {x}
}}
"""


def softmax(p, rounded, x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


KINDS = {
    "rows": Kind(rows_mlir, inputs, lambda p, r, x: list(quantised(p, x)), "exact"),
    "norm": Kind(norm_mlir, norm_inputs, norm, "exact"),
    "gemm": Kind(gemm_mlir, gemm_inputs, gemm, "gemm"),
    "softmax": Kind(softmax_mlir, lambda p, rng: iter([(rng.standard_normal((p.t, p.k)), p.dtype)]), softmax, "gemm, row op"),
    **{name: Kind(reduce_mlir, reduce_inputs, lambda p, r, x: REDUCTIONS[p.kind][2](x.astype(np.float64), axis=1), "exact") for name in REDUCTIONS},
}
