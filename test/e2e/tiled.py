"""Products in tiles for test_matmul.py: the functions, their inputs, and their definition in float64 NumPy.

A name says everything: tiled_KIND_LAYOUT_DIM_M_N_K_DTYPE_OUT_SCHEDULE, with LAYOUT "nt" for A as
it is and B transposed, DIM "d" for a dynamic M, SCHEDULE a name in SCHEDULES ("auto": what greta-configure chooses).
"""

import dataclasses

import numpy as np

from case import Kind, Matmul, tensor
from cases import swiglu

# M, N and K of the instructions that schedules use: the narrow and the wide one of CDNA, elsewhere the only one.
HALF = {"narrow": (16, 16, 16), "wide": (32, 32, 8)}
F32 = {"narrow": (16, 16, 4), "wide": (32, 32, 2)}
WMMA = {"f16": {"narrow": (16, 16, 16)}, "bf16": {"narrow": (16, 16, 16)}, "i8": {"narrow": (16, 16, 16)}}
INSTRUCTIONS = {
    "gfx90a": {"f16": HALF, "bf16": HALF, "f32": F32, "i8": {"narrow": (16, 16, 16), "wide": (32, 32, 8)}},
    "gfx942": {"f16": HALF, "bf16": HALF, "f32": F32, "i8": {"narrow": (16, 16, 32), "wide": (32, 32, 16)}},
    "gfx950": {"f16": {"narrow": (16, 16, 32), "wide": (32, 32, 16)}, "bf16": HALF, "f32": F32, "i8": {"narrow": (16, 16, 64), "wide": (32, 32, 32)}},
    **{f"gfx{number}": WMMA for number in (1100, 1101, 1102, 1103, 1150, 1151, 1200, 1201)},
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
    "registers": Schedule((1, 4, 4), 4, 0, 4),
    "registersodd": Schedule((3, 2, 2), 2, 0, 2, group=2),
    "registersslices": Schedule((2, 2, 8), 4, 0, 4, split=2),
    "registersheads": Schedule((1, 4, 8), 4, 0, 4),
    "registersparts": Schedule((1, 1, 8), 2, 0, 4),
    "registerspairs": Schedule((1, 2, 4), 1, 0, 4),
    "splithalves": Schedule((2, 2, 4), 4, 2, 2, group=2, split=4),
    "splitslices": Schedule((8, 8, 2), 8, 2, 1, split=4),  # a sum of several workgroups
    "splitsingle": Schedule((2, 1, 2), 1, 1, 1, split=3),
    "split": Schedule((), 0, 0, 0, split=3),  # of what was chosen
    "splitmany": Schedule((), 0, 0, 0, split=11),  # more than are added up at once
}


@dataclasses.dataclass(frozen=True)
class Product(Matmul, family="tiled"):
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
    def precision(self):
        """The type that the product is rounded to."""
        return self.out


def follows(body="", result="0", reference=lambda p, r, y: y, more=(), limit="gemm chain"):
    """What follows the GEMM %0. `$Y` is its type, `$W` that in f32, `$V` a row of it; `more` has (name, type, shape) of other operands."""

    def mlir(p, target):
        a, b = tensor(*p.stored(p.rows, p.k, "a"), p.dtype), tensor(*p.shapes[1], p.dtype)
        types = {"$Y": tensor(p.rows, p.n, p.out), "$W": tensor(p.rows, p.n, "f32"), "$V": tensor(p.n, p.out)}
        flags = p.flags + ([SCHEDULES[p.schedule].attribute(target, p.dtype)] if p.schedule != "auto" else [])
        dim, size = "", ""
        if p.rows == "?" and "EMPTY" in body:
            dim, size = f"  %rows = arith.constant {int(p.layout[0] == 't')} : index\n  %m = tensor.dim %a, %rows : {a}\n", "%m"
        arguments = "".join(f", %{name}: {kind}" for name, kind, _ in more)
        text = f"""func.func @{p.name}(%a: {a}, %b: {b}{arguments}) -> {"$W" if p.kind == "cast" else "$Y"} {{
{dim}  %0 = greta.matmul %a, %b {{{", ".join(flags)}}} : {a}, {b} -> $Y
{body.replace("EMPTY", f"tensor.empty({size})")}  return %{result} : {"$W" if p.kind == "cast" else "$Y"}
}}
"""
        for letter, kind in types.items():
            text = text.replace(letter, kind)
        return text

    def inputs(p, rng):
        if p.dtype == "i8":
            yield from ((rng.integers(-128, 128, shape), "i8") for shape in p.shapes)
            return
        yield p.activations(rng)
        yield p.weights(rng)
        for _, _, shape in more:
            yield rng.standard_normal(shape(p)), p.out

    return Kind(mlir, inputs, lambda p, r, a, b, *others: reference(p, r, p.multiply(a, b), *others), limit)


KINDS = {
    "plain": follows(limit="gemm"),
    "cast": follows("  %1 = arith.extf %0 : $Y to $W\n", "1"),
    "bias": follows(
        """  %e = EMPTY : $Y
  %1 = linalg.broadcast ins(%bias : $V) outs(%e : $Y) dimensions = [0]
  %2 = arith.addf %0, %1 : $Y
""",
        "2",
        lambda p, r, y, bias: r(y) + bias,
        [("bias", "$V", lambda p: p.n)],
    ),
    "layer": follows(  # silu(a b) + residual
        """  %1 = arith.negf %0 : $Y
  %2 = math.exp %1 : $Y
  %one = arith.constant dense<1.0> : $Y
  %3 = arith.addf %2, %one : $Y
  %4 = arith.divf %0, %3 : $Y
  %5 = arith.addf %4, %residual : $Y
""",
        "5",
        lambda p, r, y, residual: r(r(y) / r(r(np.exp(-r(y))) + 1)) + residual,
        [("residual", "$Y", lambda p: (p.m, p.n))],
    ),
    "swiglu": follows(
        "  %1 = greta.swiglu %0, %up : $Y, $Y -> $Y\n",
        "1",
        lambda p, r, y, up: swiglu(r(y), up),
        [("up", "$Y", lambda p: (p.m, p.n))],
        limit="gemm, row op",
    ),
}
