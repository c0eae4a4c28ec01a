"""Products with few rows for test_decode.py: the functions, their inputs, and their definition in float64 NumPy.

Unlike the cases of cases.py these have a static number of rows, which is what the compiler chooses its decode schedule by. A name says
everything: product_KIND_LAYOUT_M_N_K_DTYPE, with LAYOUT "nt" for A as it is and B transposed.
"""

import dataclasses
import zlib

import numpy as np

from cases import rounder, varied_rows
from greta_runtime import DTYPES


def tensor(*shape):
    return f"tensor<{'x'.join(map(str, shape))}>"


@dataclasses.dataclass(frozen=True)
class Product:
    kind: str
    layout: str
    m: int
    n: int
    k: int
    dtype: str

    @property
    def name(self):
        return f"product_{self.kind}_{self.layout}_{self.m}_{self.n}_{self.k}_{self.dtype}"

    @property
    def shapes(self):
        """Of A and B as they are stored."""
        a, b = (self.m, self.k), (self.k, self.n)
        return a[::-1] if self.layout[0] == "t" else a, b[::-1] if self.layout[1] == "t" else b

    def mlir(self):
        return KINDS[self.kind].mlir(self).replace("$NAME", self.name)

    def inputs(self, rows):
        assert rows == self.m
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [array.astype(DTYPES[kind]) for array, kind in KINDS[self.kind].inputs(self, rng)]

    def reference(self, inputs):
        wide = np.int64 if self.dtype == "i8" else np.float64
        return [KINDS[self.kind].reference(self, *(a.astype(wide) if a.dtype != np.int32 else a for a in inputs))]

    def product(self, a, b):
        return (a.T if self.layout[0] == "t" else a) @ (b.T if self.layout[1] == "t" else b)

    @property
    def tolerances(self):
        """docs/numerics.md, as in cases.py."""
        tolerance = {"f16": 1e-3, "bf16": 8e-3, "f32": 1e-5 * max(1.0, np.sqrt(self.k / 4096)), "i8": 0.0}[self.dtype]
        return tolerance, tolerance * KINDS[self.kind].roundings


@dataclasses.dataclass(frozen=True)
class Kind:
    mlir: object
    inputs: object
    reference: object
    roundings: int = 1


def matmul(p, result):
    flags = ", ".join(name for name, letter in zip(("transpose_a", "transpose_b"), p.layout) if letter == "t")
    a, b = (tensor(*shape, p.dtype) for shape in p.shapes)
    return f"greta.matmul %a, %b {{{flags}}} : {a}, {b} -> {result}"


def plain_mlir(p):
    a, b = (tensor(*shape, p.dtype) for shape in p.shapes)
    result = tensor(p.m, p.n, "i32" if p.dtype == "i8" else p.dtype)
    return f"""func.func @$NAME(%a: {a}, %b: {b}) -> {result} {{
  %0 = {matmul(p, result)}
  return %0 : {result}
}}"""


def plain_inputs(p, rng):
    if p.dtype == "i8":
        yield rng.integers(-128, 128, p.shapes[0]), "i8"
        yield rng.integers(-128, 128, p.shapes[1]), "i8"
        return
    a = varied_rows(rng, (p.m, p.k))
    yield a.T if p.layout[0] == "t" else a, p.dtype
    yield rng.standard_normal(p.shapes[1]) / np.sqrt(p.k), p.dtype


def layer_mlir(p):
    """silu(a b + bias) + residual, the middle in f32."""
    a, b = (tensor(*shape, p.dtype) for shape in p.shapes)
    y, wide, bias = tensor(p.m, p.n, p.dtype), tensor(p.m, p.n, "f32"), tensor(p.n, "f32")
    return f"""func.func @$NAME(%a: {a}, %b: {b}, %bias: {bias}, %residual: {y}) -> {y} {{
  %0 = {matmul(p, y)}
  %1 = arith.extf %0 : {y} to {wide}
  %e = tensor.empty() : {wide}
  %2 = linalg.broadcast ins(%bias : {bias}) outs(%e : {wide}) dimensions = [0]
  %3 = arith.addf %1, %2 : {wide}
  %4 = arith.negf %3 : {wide}
  %5 = math.exp %4 : {wide}
  %one = arith.constant dense<1.0> : {wide}
  %6 = arith.addf %5, %one : {wide}
  %7 = arith.divf %3, %6 : {wide}
  %8 = arith.truncf %7 : {wide} to {y}
  %9 = arith.addf %8, %residual : {y}
  return %9 : {y}
}}"""


def layer_inputs(p, rng):
    yield rng.standard_normal(p.shapes[0]), p.dtype
    yield rng.standard_normal(p.shapes[1]) / np.sqrt(p.k), p.dtype
    yield rng.standard_normal(p.n), "f32"
    yield rng.standard_normal((p.m, p.n)), p.dtype


def layer(p, a, b, bias, residual):
    rounded = rounder(p.dtype)
    z = rounded(p.product(a, b)) + bias
    return rounded(rounded(z / (1 + np.exp(-z))) + residual)


KINDS = {
    "plain": Kind(plain_mlir, plain_inputs, Product.product),
    "layer": Kind(layer_mlir, layer_inputs, layer, roundings=3),
}


def by_name(name):
    _, kind, layout, *sizes, dtype = name.split("_")
    return Product(kind, layout, *map(int, sizes), dtype)


FLOATS = ("f16", "bf16", "f32")
# Depths that runs of 16 bytes divide, and that nothing divides; widths below and above a workgroup's.
WIDE = (
    [Product("plain", "nt", m, n, k, t) for t in FLOATS for m in (1, 2, 3, 16) for n, k in ((33, 1000), (7, 129), (130, 4096))]
    + [Product("plain", layout, m, n, k, t) for t in FLOATS for layout, m, n, k in (("nn", 1, 200, 1000), ("nn", 3, 33, 129), ("tn", 2, 200, 129), ("tt", 2, 33, 1000), ("tt", 16, 7, 129))]
    + [Product("plain", "nt", m, n, k, "i8") for m in (1, 16) for n, k in ((33, 1000), (7, 129))]
    + [Product("layer", "nt", m, 33, 1000, t) for t in ("f16", "bf16") for m in (1, 3)]
)
NARROW = (
    [Product("plain", "nt", m, 33, k, t) for t in FLOATS for m in (1, 3) for k in (129, 1000)]
    + [Product("plain", "nt", 16, 130, 4096, "f16"), Product("plain", "nn", 1, 200, 1000, "f16"), Product("plain", "tt", 2, 33, 1000, "f16"), Product("plain", "nt", 2, 33, 1000, "i8")]
    + [Product("layer", "nt", 3, 33, 1000, "f16")]
)
