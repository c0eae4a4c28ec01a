"""Batched products, products of 8-bit floats and conversions of those for test_types.py: the functions, their inputs, and their definition in
float64 NumPy.

A name says everything, so that worker.py finds the case by it: typed_KIND_LAYOUT_BATCH_M_N_K_A_B_OUT. LAYOUT is "nt" for A as it is and B
transposed. BATCH is "1" for none, "3" or "2x3" for a batch in A and B, with "s" behind it for one B that serves the batch, with "d" for a
dynamic batch and M, with "k" for a dynamic K; A, B and OUT are element types.
"""

import dataclasses
import math
import re
import zlib

import numpy as np

from cases import rounder
from greta_runtime import DTYPES
from products import tensor

# Names in MLIR of the types whose names in the manifest are others.
MLIR = {"f8e4m3fn": "f8E4M3FN", "f8e5m2": "f8E5M2", "f8e4m3fnuz": "f8E4M3FNUZ", "f8e5m2fnuz": "f8E5M2FNUZ"}


def typed(shape, dtype):
    return tensor(*shape, MLIR.get(dtype, dtype)) if shape else f"tensor<{MLIR.get(dtype, dtype)}>"


@dataclasses.dataclass(frozen=True)
class Product:
    kind: str
    layout: str
    batch: str
    m: int
    n: int
    k: int
    a: str
    b: str
    out: str

    @property
    def name(self):
        return "_".join(map(str, ("typed", *dataclasses.astuple(self))))

    @property
    def leading(self):
        return () if self.batch[0] == "1" else tuple(map(int, re.match("[0-9x]*", self.batch)[0].split("x")))

    @property
    def shapes(self):
        """Of A, B and the result as they are stored."""
        a, b = (self.m, self.k), (self.k, self.n)
        a, b = a[::-1] if self.layout[0] == "t" else a, b[::-1] if self.layout[1] == "t" else b
        return (*self.leading, *a), b if "s" in self.batch else (*self.leading, *b), (*self.leading, self.m, self.n)

    def mlir(self):
        a, b, y = self.shapes
        if "d" in self.batch:
            batch = ("?",) * len(self.leading)
            a = (*batch, *("?" if size == self.m and i == int(self.layout[0] == "t") else size for i, size in enumerate(a[len(batch) :])))
            b = b if "s" in self.batch else (*batch, *b[len(batch) :])
            y = (*batch, "?", self.n)
        if "k" in self.batch:
            a = ("?", self.m) if self.layout[0] == "t" else (self.m, "?")
            b = (self.n, "?") if self.layout[1] == "t" else ("?", self.n)
        a, b, y = typed(a, self.a), typed(b, self.b), typed(y, self.out)
        kind = KINDS[self.kind]
        arguments = "".join(f", %{name}: {types}" for name, types in kind.arguments(self, y))
        flags = ", ".join(name for name, letter in zip(("transpose_a", "transpose_b"), self.layout) if letter == "t")
        body = kind.body(self, y)
        return f"""func.func @{self.name}(%a: {a}, %b: {b}{arguments}) -> {y} {{
  %0 = greta.matmul %a, %b {{{flags}}} : {a}, {b} -> {y}
{body}  return %{kind.result} : {y}
}}
"""

    def inputs(self, rows):
        assert rows == self.m
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        a, b, _ = self.shapes
        more = KINDS[self.kind].inputs(self, rng)
        return [rng.standard_normal(a).astype(DTYPES[self.a]), rng.standard_normal(b).astype(DTYPES[self.b]), *(x.astype(DTYPES[self.out]) for x in more)]

    def reference(self, inputs):
        a, b, *more = (x.astype(np.float64) for x in inputs)
        product = (np.swapaxes(a, -1, -2) if self.layout[0] == "t" else a) @ (np.swapaxes(b, -1, -2) if self.layout[1] == "t" else b)
        return [KINDS[self.kind].reference(rounder(self.out), product, *more)]

    @property
    def tolerances(self):
        """docs/numerics.md, as in tiled.py."""
        tolerance = {"f16": 1e-3, "bf16": 8e-3, "f32": 1e-5 * max(1.0, math.sqrt(self.k / 4096))}[self.out]
        return tolerance, tolerance * KINDS[self.kind].roundings


@dataclasses.dataclass(frozen=True)
class Kind:
    body: object
    result: str
    reference: object
    arguments: object
    inputs: object
    roundings: int = 1


def heads_body(p, y):
    """A bias per product of the batch (the first dimension of it), and a residual."""
    leading = len(p.leading)
    sizes, text = "", ""
    if "d" in p.batch:
        sizes = ", ".join(f"%d{i}" for i in range(leading + 1))
        text = "".join(f"  %c{i} = arith.constant {i} : index\n  %d{i} = tensor.dim %residual, %c{i} : {y}\n" for i in range(leading + 1))
    added = ", ".join(map(str, range(1, leading + 1)))
    bias = typed(("?" if "d" in p.batch else p.leading[0], p.n), p.out)
    return f"""{text}  %e = tensor.empty({sizes}) : {y}
  %1 = linalg.broadcast ins(%bias : {bias}) outs(%e : {y}) dimensions = [{added}]
  %2 = arith.addf %0, %1 : {y}
  %3 = arith.addf %2, %residual : {y}
"""


KINDS = {
    "plain": Kind(lambda p, y: "", "0", lambda r, y: r(y), lambda p, y: (), lambda p, rng: ()),
    "heads": Kind(
        heads_body,
        "3",
        lambda r, y, bias, residual: r(r(r(y) + bias.reshape(bias.shape[0], *(1,) * (y.ndim - 2), bias.shape[1])) + residual),
        lambda p, y: [("bias", typed(("?" if "d" in p.batch else p.leading[0], p.n), p.out)), ("residual", y)],
        lambda p, rng: [rng.standard_normal((p.leading[0], p.n)), rng.standard_normal(p.shapes[2])],
        roundings=3,
    ),
}


WIDE = ("f32", "f16", "bf16")


@dataclasses.dataclass(frozen=True)
class Conversion:
    """Of all numbers of an 8-bit float to wider types, or to them of those numbers, what lies between two of them, and what is too large."""

    direction: str
    dtype: str
    tolerances = (0.0, 0.0)
    m = 1

    @property
    def name(self):
        return f"typed_{self.direction}_{self.dtype}"

    @property
    def numbers(self):
        codes = np.arange(256, dtype=np.uint8).view(DTYPES[self.dtype])
        if self.direction == "widen":
            return codes
        values = codes.astype(np.float64)
        exact = np.unique(values[np.isfinite(values)])
        middles = (exact[1:] + exact[:-1]) / 2
        last, step = exact[-1], exact[-1] - exact[-2]
        large = np.array([last + step / 2, last + step, 4 * last, 1e30, np.inf])
        small = exact[exact > 0][0] * np.array([0.5, 0.49, 0.51, 1e-3, 1e-30])
        some = [exact, middles, middles * (1 + 2**-12), middles * (1 - 2**-12), large, -large, small, -small, [np.nan, -0.0]]
        return np.concatenate(some).astype(np.float32)

    def mlir(self):
        n = len(self.numbers)
        small, wide = typed((n,), self.dtype), [typed((n,), dtype) for dtype in WIDE]
        results, op, sources = ([small] * 3, "truncf", wide) if self.direction == "narrow" else (wide, "extf", [small] * 3)
        arguments = ", ".join(f"%x{i}: {wide[i]}" for i in range(3)) if self.direction == "narrow" else f"%x: {small}"
        names = ["%x0", "%x1", "%x2"] if self.direction == "narrow" else ["%x"] * 3
        body = "".join(f"  %{i} = arith.{op} {names[i]} : {sources[i]} to {results[i]}\n" for i in range(3))
        types = ", ".join(results)
        return f"func.func @{self.name}({arguments}) -> ({types}) {{\n{body}  return %0, %1, %2 : {types}\n}}\n"

    def inputs(self, rows):
        with np.errstate(over="ignore"):
            return [self.numbers] if self.direction == "widen" else [self.numbers.astype(DTYPES[wide]) for wide in WIDE]

    def reference(self, inputs):
        if self.direction == "widen":
            return [inputs[0].astype(np.float32).astype(DTYPES[wide]) for wide in WIDE]
        return [x.astype(np.float32).astype(DTYPES[self.dtype]) for x in inputs]

    @staticmethod
    def errors(actual, expected):
        """None, or infinity; one NaN is like another, zeros have signs."""
        actual, expected = (x.astype(np.float64) for x in (actual, expected))
        same = (actual == expected) & (np.signbit(actual) == np.signbit(expected)) | np.isnan(actual) & np.isnan(expected)
        return (0.0, 0.0) if same.all() else (np.inf, np.inf)


def by_name(name):
    _, kind, *rest = name.split("_")
    if kind in ("widen", "narrow"):
        return Conversion(kind, *rest)
    layout, batch, m, n, k, a, b, out = rest
    return Product(kind, layout, batch, int(m), int(n), int(k), a, b, out)
