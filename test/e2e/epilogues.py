"""What products take into their kernels behind them, for test_epilogues.py: the functions, their inputs, and their definition in float64
NumPy. Names are those of tiled.py with another first word: epilogue_KIND_LAYOUT_DIM_M_N_K_DTYPE_OUT_SCHEDULE.
"""

import dataclasses
import zlib

import numpy as np

import products
from cases import rounder, swiglu
from greta_runtime import DTYPES
from products import tensor
from tiled import SCHEDULES


@dataclasses.dataclass(frozen=True)
class Epilogue:
    kind: str
    layout: str
    dim: str
    m: int
    n: int
    k: int
    dtype: str
    out: str
    schedule: str = "auto"

    @property
    def name(self):
        return "_".join(map(str, ("epilogue", *dataclasses.astuple(self))))

    @property
    def rows(self):
        return "?" if self.dim == "d" else self.m

    @property
    def a(self):
        return tensor(*((self.k, self.rows) if self.layout[0] == "t" else (self.rows, self.k)), self.dtype)

    @property
    def b(self):
        return tensor(*((self.n, self.k) if self.layout[1] == "t" else (self.k, self.n)), self.dtype)

    @property
    def y(self):
        return tensor(self.rows, self.n, self.out)

    def matmul(self, target, b="%b"):
        flags = [name for name, letter in zip(("transpose_a", "transpose_b"), self.layout) if letter == "t"]
        if self.schedule != "auto":
            flags.append(SCHEDULES[self.schedule].attribute(target, self.dtype))
        return f"greta.matmul %a, {b} {{{', '.join(flags)}}} : {self.a}, {self.b} -> {self.y}"

    def function(self, arguments, result, body):
        return f"func.func @{self.name}({arguments}) -> {result} {{\n{body}}}\n"

    def mlir(self, target):
        return KINDS[self.kind].mlir(self, target)

    def inputs(self, rows):
        assert rows == self.m
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [array.astype(DTYPES[dtype]) for array, dtype in KINDS[self.kind].inputs(self, rng)]

    def weights(self, rng):
        w = rng.standard_normal((self.k, self.n)) / np.sqrt(self.k)
        return (w.T if self.layout[1] == "t" else w), self.dtype

    def activations(self, rng):
        x = rng.standard_normal((self.m, self.k))
        return (x.T if self.layout[0] == "t" else x), self.dtype

    def product(self, a, b):
        return (a.T if self.layout[0] == "t" else a) @ (b.T if self.layout[1] == "t" else b)

    def reference(self, inputs):
        wide = [x if x.dtype == np.int32 else x.astype(np.float64) for x in inputs]
        return [KINDS[self.kind].reference(self, rounder(self.out), *wide)]

    @property
    def tolerances(self):
        """docs/numerics.md, by the type that the product is rounded to; several roundings may add up in one element."""
        kind = KINDS[self.kind]
        if kind.isexact:
            return 0.0, 0.0
        tolerance = {"f16": 1e-3, "bf16": 8e-3, "f32": 1e-5 * max(1.0, np.sqrt(self.k / 4096))}[self.out] * kind.factor
        return tolerance, tolerance * kind.roundings


@dataclasses.dataclass(frozen=True)
class Kind:
    mlir: object
    inputs: object
    reference: object
    roundings: int = 2
    isexact: bool = False
    factor: int = 1  # of tolerances that hold for one product


# swiglu of two products of the same A.


def pair_mlir(p, target):
    return p.function(f"%a: {p.a}, %g: {p.b}, %u: {p.b}", p.y, f"""  %0 = {p.matmul(target, "%g")}
  %1 = {p.matmul(target, "%u")}
  %2 = greta.swiglu %0, %1 : {p.y}, {p.y} -> {p.y}
  return %2 : {p.y}
""")


def pair_inputs(p, rng):
    yield p.activations(rng)
    yield p.weights(rng)
    yield p.weights(rng)


def pair(p, rounded, a, g, u):
    return rounded(swiglu(rounded(p.product(a, g)), rounded(p.product(a, u))))


def packed_pair_mlir(p, target):
    q, scales, zeros, _, group = products.w4_types(p)
    names = [f"%{part}{i}: {kind}" for i in (0, 1) for part, kind in (("q", q), ("s", scales), ("z", zeros))]
    body = "".join(f"  %b{i} = greta.dequant %q{i}, %s{i}, %z{i} {{group = {group}}} : {q}, {scales}, {zeros} -> {p.b}\n" for i in (0, 1))
    return p.function(f"%a: {p.a}, {', '.join(names)}", p.y, f"""{body}  %0 = {p.matmul(target, "%b0")}
  %1 = {p.matmul(target, "%b1")}
  %2 = greta.swiglu %0, %1 : {p.y}, {p.y} -> {p.y}
  return %2 : {p.y}
""")


def packed_pair_inputs(p, rng):
    yield p.activations(rng)
    yield from products.packed_inputs(p, rng, int(p.kind[2:]))
    yield from products.packed_inputs(p, rng, int(p.kind[2:]))


def packed_pair(p, rounded, a, *weights):
    return pair(p, rounded, a, products.dequantised(p, *weights[:3]), products.dequantised(p, *weights[3:]))


KINDS = {
    "pair": Kind(pair_mlir, pair_inputs, pair, roundings=3),
    "w4128": Kind(packed_pair_mlir, packed_pair_inputs, packed_pair, roundings=3, factor=2),
}


def by_name(name):
    _, kind, layout, dim, m, n, k, dtype, out, schedule = name.split("_")
    return Epilogue(kind, layout, dim, int(m), int(n), int(k), dtype, out, schedule)
