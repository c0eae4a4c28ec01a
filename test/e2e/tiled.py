"""Products in tiles for test_matmul.py: the functions, their inputs, and their definition in float64 NumPy.

A name says everything, so that worker.py finds the case by it: tiled_KIND_LAYOUT_DIM_M_N_K_DTYPE_OUT_SCHEDULE, with LAYOUT "nt" for A as
it is and B transposed, DIM "d" for a dynamic M, SCHEDULE a name in SCHEDULES ("auto": what greta-configure chooses).
"""

import dataclasses
import zlib

import numpy as np

from cases import rounder, swiglu
from greta_runtime import DTYPES
from products import tensor

# M, N and K of the instructions that schedules use: the narrow and the wide one of CDNA, elsewhere the only one.
HALF = {"narrow": (16, 16, 16), "wide": (32, 32, 8)}
F32 = {"narrow": (16, 16, 4), "wide": (32, 32, 2)}
WMMA = {"f16": {"narrow": (16, 16, 16)}, "bf16": {"narrow": (16, 16, 16)}, "i8": {"narrow": (16, 16, 16)}}
INSTRUCTIONS = {
    "gfx90a": {"f16": HALF, "bf16": HALF, "f32": F32, "i8": {"narrow": (16, 16, 16), "wide": (32, 32, 8)}},
    "gfx942": {"f16": HALF, "bf16": HALF, "f32": F32, "i8": {"narrow": (16, 16, 32), "wide": (32, 32, 16)}},
    "gfx950": {"f16": {"narrow": (16, 16, 32), "wide": (32, 32, 16)}, "bf16": HALF, "f32": F32, "i8": {"narrow": (16, 16, 64), "wide": (32, 32, 32)}},
    "gfx1100": WMMA,
    "gfx1201": WMMA,
    "vulkan:lavapipe": {"f16": {"narrow": (8, 8, 8)}, "i8": {"narrow": (8, 8, 8)}},
}


@dataclasses.dataclass(frozen=True)
class Schedule:
    """greta.config in units of the instruction: the tile's repetitions along M, N and K, and how many of them along K are a slice."""

    tile: tuple
    waves: int
    stages: int
    slice: int
    group: int = 1
    instruction: str = "narrow"
    opaque: bool = False
    split: int = 1
    direct: bool = False

    def attribute(self, target, dtype):
        if not self.tile:
            return f"greta.config = {{split = {self.split}}}"
        shape = INSTRUCTIONS[target][dtype][self.instruction]
        m, n, k = (repetitions * extent for repetitions, extent in zip(self.tile, shape))
        flags = "".join(f", {name}" for name in ("opaque", "direct") if getattr(self, name))
        return (
            f"greta.config = {{instruction = {list(shape)}, tile = [{m}, {n}, {k}], waves = {self.waves}, stages = {self.stages}, "
            f"slice = {self.slice * shape[2]}, group = {self.group}{flags}, split = {self.split}}}"
        )


SCHEDULES = {
    "halves": Schedule((2, 2, 4), 4, 2, 2),
    "quarters": Schedule((1, 1, 4), 1, 2, 1, group=3),
    "whole": Schedule((2, 4, 2), 2, 2, 2, group=8),
    "odd": Schedule((3, 1, 2), 1, 2, 1),
    "oddwhole": Schedule((5, 1, 1), 1, 2, 1),
    "oddwaves": Schedule((10, 6, 2), 4, 2, 1, group=2),
    "single": Schedule((2, 3, 2), 2, 1, 1, group=2),
    "singlewhole": Schedule((1, 2, 2), 2, 1, 2),
    "wide": Schedule((1, 2, 4), 2, 2, 2, instruction="wide"),
    "opaque": Schedule((1, 2, 2), 1, 1, 1, opaque=True),
    "opaquewaves": Schedule((2, 2, 2), 4, 2, 1, opaque=True),
    "wideodd": Schedule((3, 1, 4), 1, 2, 4, instruction="wide"),
    "three": Schedule((2, 4, 4), 4, 3, 2),
    "threewhole": Schedule((3, 2, 2), 2, 3, 2, group=2),
    "direct": Schedule((4, 4, 2), 4, 2, 1, direct=True),
    "directwhole": Schedule((8, 4, 2), 4, 2, 2, group=2, direct=True),
    "directthree": Schedule((8, 8, 2), 4, 3, 1, direct=True),
    "directsplit": Schedule((4, 4, 2), 4, 3, 2, split=3, direct=True),
    "splithalves": Schedule((2, 2, 4), 4, 2, 2, group=2, split=4),
    "splitsingle": Schedule((2, 1, 2), 1, 1, 1, split=3),
    "split": Schedule((), 0, 0, 0, split=3),  # of what was chosen
    "splitmany": Schedule((), 0, 0, 0, split=11),  # more than are added up at once
}


@dataclasses.dataclass(frozen=True)
class Product:
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
        return "_".join(map(str, ("tiled", *dataclasses.astuple(self))))

    @property
    def shapes(self):
        """Of A and B as they are stored."""
        a, b = (self.m, self.k), (self.k, self.n)
        return a[::-1] if self.layout[0] == "t" else a, b[::-1] if self.layout[1] == "t" else b

    def mlir(self, target):
        m = "?" if self.dim == "d" else self.m
        a = tensor(*((self.k, m) if self.layout[0] == "t" else (m, self.k)), self.dtype)
        b = tensor(*self.shapes[1], self.dtype)
        y, wide = tensor(m, self.n, self.out), tensor(m, self.n, "f32")
        flags = [name for name, letter in zip(("transpose_a", "transpose_b"), self.layout) if letter == "t"]
        if self.schedule != "auto":
            flags.append(SCHEDULES[self.schedule].attribute(target, self.dtype))
        kind = KINDS[self.kind]
        arguments = "".join(f", %{name}: {types}" for name, types in kind.arguments(self, m, y))
        result = wide if self.kind == "cast" else y
        size = "%m" if self.dim == "d" else ""
        dim = f"""  %rows = arith.constant {int(self.layout[0] == "t")} : index
  %m = tensor.dim %a, %rows : {a}
""" if self.dim == "d" and "EMPTY" in kind.body else ""
        body = kind.body.replace("EMPTY", f"tensor.empty({size})")
        for letter, text in (("$Y", y), ("$W", wide), ("$V", tensor(self.n, self.out))):
            body = body.replace(letter, text)
        return f"""func.func @{self.name}(%a: {a}, %b: {b}{arguments}) -> {result} {{
{dim}  %0 = greta.matmul %a, %b {{{", ".join(flags)}}} : {a}, {b} -> {y}
{body}  return %{kind.result} : {result}
}}
"""

    def inputs(self, rows):
        assert rows == self.m
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        if self.dtype == "i8":
            return [rng.integers(-128, 128, shape).astype(np.int8) for shape in self.shapes]
        a, b = rng.standard_normal(self.shapes[0]), rng.standard_normal(self.shapes[1]) / np.sqrt(self.k)
        more = KINDS[self.kind].inputs(self, rng)
        return [a.astype(DTYPES[self.dtype]), b.astype(DTYPES[self.dtype]), *(x.astype(DTYPES[self.out]) for x in more)]

    def reference(self, inputs):
        a, b, *more = (x.astype(np.float64) for x in inputs)
        product = (a.T if self.layout[0] == "t" else a) @ (b.T if self.layout[1] == "t" else b)
        rounded = (lambda x: x) if self.out == "i32" else rounder(self.out)
        return [KINDS[self.kind].reference(rounded, product, *more)]

    @property
    def is_one_row(self):
        """docs/numerics.md: of few elements, or one term each, a row may be next to nothing."""
        return self.n < 32 or self.k == 1

    @property
    def tolerances(self):
        """docs/numerics.md, by the type of the result, which is where it is rounded; several roundings may add up in one element."""
        tolerance = {"i32": 0.0, "f16": 1e-3, "bf16": 8e-3, "f32": 1e-5 * max(1.0, np.sqrt(self.k / 4096))}[self.out]
        return tolerance, tolerance * KINDS[self.kind].roundings


@dataclasses.dataclass(frozen=True)
class Kind:
    """What follows the product %0. `$Y` is its type, `$W` that in f32, `$V` a row of it."""

    body: str
    result: str
    reference: object
    arguments: object = lambda p, m, y: ()
    inputs: object = lambda p, rng: ()
    roundings: int = 1


def silu(x):
    return x / (1 + np.exp(-x))


KINDS = {
    "plain": Kind("", "0", lambda r, y: y),
    "cast": Kind("  %1 = arith.extf %0 : $Y to $W\n", "1", lambda r, y: r(y)),
    "bias": Kind(
        """  %e = EMPTY : $Y
  %1 = linalg.broadcast ins(%bias : $V) outs(%e : $Y) dimensions = [0]
  %2 = arith.addf %0, %1 : $Y
""",
        "2",
        lambda r, y, bias: r(r(y) + bias),
        lambda p, m, y: [("bias", tensor(p.n, p.out))],
        lambda p, rng: [rng.standard_normal(p.n)],
        roundings=2,
    ),
    "layer": Kind(  # silu(a b) + residual
        """  %1 = arith.negf %0 : $Y
  %2 = math.exp %1 : $Y
  %one = arith.constant dense<1.0> : $Y
  %3 = arith.addf %2, %one : $Y
  %4 = arith.divf %0, %3 : $Y
  %5 = arith.addf %4, %residual : $Y
""",
        "5",
        lambda r, y, residual: r(r(r(y) / r(r(np.exp(-r(y))) + 1)) + residual),
        lambda p, m, y: [("residual", y)],
        lambda p, rng: [rng.standard_normal((p.m, p.n))],
        roundings=4,
    ),
    "swiglu": Kind(
        "  %1 = greta.swiglu %0, %up : $Y, $Y -> $Y\n",
        "1",
        lambda r, y, up: r(swiglu(r(y), up)),
        lambda p, m, y: [("up", y)],
        lambda p, rng: [rng.standard_normal((p.m, p.n))],
        roundings=2,
    ),
}


def by_name(name):
    _, kind, layout, dim, m, n, k, dtype, out, schedule = name.split("_")
    return Product(kind, layout, dim, int(m), int(n), int(k), dtype, out, schedule)
