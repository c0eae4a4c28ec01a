"""What GEMMs take into their kernels behind them, for test_epilogues.py: the functions, their inputs, and their definition in float64
NumPy. Names are those of tiled.py with another first word: epilogue_KIND_LAYOUT_DIM_M_N_K_DTYPE_OUT_SCHEDULE.
"""

import dataclasses

import numpy as np

import gemms
from case import Kind, Matmul, tensor
from cases import rope_gptj, rope_neox, swiglu
from tiled import SCHEDULES


@dataclasses.dataclass(frozen=True)
class Epilogue(Matmul, family="epilogue"):
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
        return self.out

    @property
    def a(self):
        return tensor(*self.stored(self.rows, self.k, "a"), self.dtype)

    @property
    def b(self):
        return tensor(*self.shapes[1], self.dtype)

    @property
    def y(self):
        return tensor(self.rows, self.n, self.out)

    def matmul(self, target, b="%b"):
        # Parts along K are cases of their own (test_tune.py).
        config = "greta.config = {split = 1}" if self.schedule == "auto" else SCHEDULES[self.schedule].attribute(target, self.dtype)
        return f"greta.matmul %a, {b} {{{', '.join([*self.flags, config])}}} : {self.a}, {self.b} -> {self.y}"

    def text(self, arguments, result, body):
        return f"func.func @{self.name}({arguments}) -> {result} {{\n{body}}}\n"


# swiglu of two GEMMs of the same A.


def pair_mlir(p, target):
    return p.text(f"%a: {p.a}, %g: {p.b}, %u: {p.b}", p.y, f"""  %0 = {p.matmul(target, "%g")}
  %1 = {p.matmul(target, "%u")}
  %2 = greta.swiglu %0, %1 : {p.y}, {p.y} -> {p.y}
  return %2 : {p.y}
""")


def pair_inputs(p, rng):
    yield p.activations(rng)
    yield p.weights(rng)
    yield p.weights(rng)


def pair(p, rounded, a, g, u):
    return swiglu(rounded(p.multiply(a, g)), rounded(p.multiply(a, u)))


def packed_pair_mlir(p, target):
    q, scales, zeros, _, group = gemms.w4_types(p)
    names = [f"%{part}{i}: {kind}" for i in (0, 1) for part, kind in (("q", q), ("s", scales), ("z", zeros))]
    body = "".join(f"  %b{i} = greta.dequant %q{i}, %s{i}, %z{i} {{group = {group}}} : {q}, {scales}, {zeros} -> {p.b}\n" for i in (0, 1))
    return p.text(f"%a: {p.a}, {', '.join(names)}", p.y, f"""{body}  %0 = {p.matmul(target, "%b0")}
  %1 = {p.matmul(target, "%b1")}
  %2 = greta.swiglu %0, %1 : {p.y}, {p.y} -> {p.y}
  return %2 : {p.y}
""")


def packed_pair_inputs(p, rng):
    yield p.activations(rng)
    yield from gemms.packed_inputs(p, rng, int(p.kind[2:]))
    yield from gemms.packed_inputs(p, rng, int(p.kind[2:]))


def packed_pair(p, rounded, a, *weights):
    return pair(p, rounded, a, gemms.dequantised(p, rounded, *weights[:3]), gemms.dequantised(p, rounded, *weights[3:]))


# Rope of heads: ropeneox64 has heads of 64 columns, biasneox64 a bias before.


def head_size(p):
    return int(p.kind[8:])


def rope_mlir(p, target):
    d = head_size(p)
    heads, table, row, size = tensor(p.rows, p.n // d, d, p.out), tensor(p.rows, d // 2, "f32"), tensor(p.n, p.out), "%m" if p.dim == "d" else ""
    arguments, body, x = "", "", "%0"
    if p.dim == "d":
        body += f"  %rows = arith.constant {int(p.layout[0] == 't')} : index\n  %m = tensor.dim %a, %rows : {p.a}\n"
    body += f"  %0 = {p.matmul(target)}\n"
    if p.kind.startswith("bias"):
        arguments, x = f", %bias: {row}", "%1"
        body += f"""  %e = tensor.empty({size}) : {p.y}
  %r = linalg.broadcast ins(%bias : {row}) outs(%e : {p.y}) dimensions = [0]
  %1 = arith.addf %0, %r : {p.y}
"""
    return p.text(f"%a: {p.a}, %b: {p.b}{arguments}, %cos: {table}, %sin: {table}", heads, f"""{body}  %2 = tensor.expand_shape {x} [[0], [1, 2]] output_shape [{size or p.m}, {p.n // d}, {d}] : {p.y} into {heads}
  %3 = greta.rope %2, %cos, %sin {{style = "{p.kind[4:8]}"}} : {heads}, {table}, {table} -> {heads}
  return %3 : {heads}
""")


def rope_inputs(p, rng):
    yield p.activations(rng)
    yield p.weights(rng)
    if p.kind.startswith("bias"):
        yield rng.standard_normal(p.n), p.out
    angle = rng.uniform(0, 2 * np.pi, (p.m, head_size(p) // 2))
    yield np.cos(angle), "f32"
    yield np.sin(angle), "f32"


def rope(p, rounded, a, b, *rest):
    *bias, cos, sin = rest
    x = rounded(p.multiply(a, b))
    if bias:
        x = rounded(x + bias[0])
    return {"neox": rope_neox, "gptj": rope_gptj}[p.kind[4:8]](x.reshape(p.m, -1, head_size(p)), cos, sin)


# Quantised results: clamp(round(x / scale)), with a scale per column or (quantone) one for all. Operands are small integers and scales powers
# of two, so the definition is met exactly, also half way between two integers.


def quant_mlir(p, target):
    wide, result, scale, size = tensor(p.rows, p.n, "f32"), tensor(p.rows, p.n, "i8"), "tensor<f32>" if p.kind == "quantone" else tensor(p.n, "f32"), "%m" if p.dim == "d" else ""
    body = f"  %rows = arith.constant {int(p.layout[0] == 't')} : index\n  %m = tensor.dim %a, %rows : {p.a}\n" if size else ""
    cast = {"i32": "arith.sitofp", "f16": "arith.extf", "f32": None}[p.out]
    return p.text(f"%a: {p.a}, %b: {p.b}, %scale: {scale}", result, f"""{body}  %0 = {p.matmul(target)}
{f"  %1 = {cast} %0 : {p.y} to {wide}" if cast else ""}
  %e = tensor.empty({size}) : {wide}
  %s = linalg.broadcast ins(%scale : {scale}) outs(%e : {wide}) dimensions = [{"0, 1" if p.kind == "quantone" else "0"}]
  %2 = arith.divf {"%1" if cast else "%0"}, %s : {wide}
  %3 = math.roundeven %2 : {wide}
  %least = arith.constant -128.0 : f32
  %most = arith.constant 127.0 : f32
  %lo = linalg.fill ins(%least : f32) outs(%e : {wide}) -> {wide}
  %hi = linalg.fill ins(%most : f32) outs(%e : {wide}) -> {wide}
  %4 = arith.maximumf %3, %lo : {wide}
  %5 = arith.minimumf %4, %hi : {wide}
  %6 = arith.fptosi %5 : {wide} to {result}
  return %6 : {result}
""")


def quant_inputs(p, rng):
    yield rng.integers(-3, 4, p.shapes[0]), p.dtype
    yield rng.integers(-3, 4, p.shapes[1]), p.dtype
    yield 2.0 ** (rng.integers(-2, 3, () if p.kind == "quantone" else (p.n,))), "f32"


def quant(p, rounded, a, b, scale):
    return np.clip(np.rint(rounded(p.multiply(a, b)) / scale), -128, 127)


KINDS = {
    **{f"{before}{style}{d}": Kind(rope_mlir, rope_inputs, rope, "gemm, row op") for before in ("rope", "bias") for style in ("neox", "gptj") for d in (10, 16, 32, 40, 64, 80, 96, 128, 256)},
    "quant": Kind(quant_mlir, quant_inputs, quant, "exact"),
    "quantone": Kind(quant_mlir, quant_inputs, quant, "exact"),
    "pair": Kind(pair_mlir, pair_inputs, pair, "gemm, row op"),
    "w4128": Kind(packed_pair_mlir, packed_pair_inputs, packed_pair, "gemm chain", gemms.PACKED_PAIR),
}
