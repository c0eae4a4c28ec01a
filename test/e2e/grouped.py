"""Grouped GEMMs, for test_grouped.py: the functions, their inputs, and their definition in float64 NumPy.

A name says everything: grouped_KIND_LAYOUT_DIM_E_M_N_K_DTYPE_OUT_ROUTING, with M the rows of all groups, LAYOUT "nt" for matrices stored [E, N, K],
DIM "d" for a dynamic M and ROUTING of ROUTINGS.
"""

import dataclasses

import numpy as np

from case import Kind, Matmul, tensor
from cases import swiglu
from gemms import dequantised


@dataclasses.dataclass(frozen=True)
class Grouped(Matmul, family="grouped"):
    kind: str
    layout: str
    dim: str
    e: int
    m: int
    n: int
    k: int
    dtype: str
    out: str
    routing: str

    @property
    def precision(self):
        return self.out

    @property
    def has_matrix_product(self):
        return self.rows == "?" or 2 * self.m > 16 * self.e

    @property
    def b_shape(self):
        return (self.e, *self.shapes[1])


def routed(p, rng):
    return ROUTINGS[p.routing](p, rng).astype(np.int32)


def offsets_of(counts):
    return np.concatenate([[0], np.cumsum(counts)])


def some(p, rng):
    """Eight groups have all rows, more or less alike."""
    counts = np.zeros(p.e, int)
    counts[rng.choice(p.e, min(p.e, 8), replace=False)] = rng.multinomial(p.m, [1 / min(p.e, 8)] * min(p.e, 8))
    return offsets_of(counts)


def short(p, rng):
    """The last rows are in no group, and one group has half of the others."""
    counts = rng.multinomial(p.m * 3 // 8, [1 / p.e] * p.e)
    counts[p.e // 2] += p.m * 3 // 8
    return offsets_of(counts)


def wild(p, rng):
    """Ascending, but from below zero to beyond the rows."""
    offsets = np.sort(rng.integers(-p.m, 2 * p.m, p.e + 1))
    offsets[0], offsets[-1] = -(2**31), 2**31 - 1
    return offsets


ROUTINGS = {"even": lambda p, rng: offsets_of(rng.multinomial(p.m, [1 / p.e] * p.e)), "some": some, "short": short, "wild": wild}


def multiplied(p, a, b, offsets):
    """[M, N] of float64; matrices that no row has are not looked at."""
    y = np.zeros((p.m, p.n))
    bounds = np.clip(offsets, 0, p.m)
    bounds[0] = 0
    for e in range(p.e):
        rows = slice(int(bounds[e]), int(bounds[e + 1]))
        if rows.start < rows.stop:
            matrix = b(e)
            y[rows] = a[rows] @ (matrix.T if p.layout[1] == "t" else matrix)
    return y


def text(p, more, body, result):
    a, b = tensor(p.rows, p.k, p.dtype), tensor(*p.b_shape, p.dtype)
    y, o = tensor(p.rows, p.n, p.out), tensor(p.e + 1, "i32")
    flags = "{transpose_b} " if p.layout[1] == "t" else ""
    weights = more if more.startswith("%") else f"%b: {b}{more}"
    made = f"""func.func @{p.name}(%a: {a}, {weights}, %o: {o}) -> $Y {{
{body}  return %{result} : $Y
}}
"""
    made = made.replace("GROUPED", f"greta.grouped_matmul %a, %b, %o {flags}: {a}, {b}, {o} -> $Y")
    made = made.replace("SECOND", f"greta.grouped_matmul %a, %c, %o {flags}: {a}, {b}, {o} -> $Y")
    empty = f"  %zero = arith.constant 0 : index\n  %m = tensor.dim %a, %zero : {a}\n  %e = tensor.empty(%m) : $Y\n" if p.rows == "?" else "  %e = tensor.empty() : $Y\n"
    return made.replace("EMPTY\n", empty).replace("$Y", y).replace("$V", tensor(p.n, p.out)).replace("$B", b)


def numbers(p, rng, shape, scale=1.0):
    if p.kind == "exact" or p.dtype == "i8":
        return rng.integers(-2, 3, shape)
    return rng.standard_normal(shape) * scale


def follows(body="  %0 = GROUPED\n", result="0", more="", others=lambda p: (), reference=lambda p, r, y: y, second=False, limit="gemm chain"):
    def inputs(p, rng):
        yield numbers(p, rng, (p.m, p.k)), p.dtype
        for _ in range(1 + second):
            yield numbers(p, rng, p.b_shape, 1 / np.sqrt(p.k)), p.dtype
        for shape in others(p):
            yield rng.standard_normal(shape), p.out
        yield routed(p, rng), "i32"

    def result_of(p, r, a, b, *rest):
        *rest, offsets = rest
        products = [multiplied(p, a, lambda e: matrices[e], offsets) for matrices in (b, *rest[:second])]
        return reference(p, r, *products, *rest[second:])

    return Kind(lambda p, target: text(p, more, body, result), inputs, result_of, limit)


def halves_mlir(p, target):
    """Gate and up are the halves of one GEMM's columns."""
    both = dataclasses.replace(p, n=2 * p.n)
    rows = "%m" if p.rows == "?" else p.m
    halves = "".join(f"  %{i} = tensor.extract_slice %y[0, {i * p.n}] [{rows}, {p.n}] [1, 1] : $B to $Y\n" for i in (0, 1))
    body = f"EMPTY\n  %y = GEMM\n{halves}  %2 = greta.swiglu %0, %1 : $Y, $Y -> $Y\n"
    a, o, y = tensor(p.rows, p.k, p.dtype), tensor(p.e + 1, "i32"), tensor(p.rows, 2 * p.n, p.out)
    b = tensor(*both.b_shape, p.dtype)
    made = text(p, f"%b: {b}", body.replace("$B", y), "2")
    return made.replace("GEMM", f"greta.grouped_matmul %a, %b, %o {{transpose_b}} : {a}, {b}, {o} -> {y}")


def halves_inputs(p, rng):
    yield rng.standard_normal((p.m, p.k)), p.dtype
    yield rng.standard_normal(dataclasses.replace(p, n=2 * p.n).b_shape) / np.sqrt(p.k), p.dtype
    yield routed(p, rng), "i32"


def halves(p, rounded, a, b, offsets):
    gate, up = (multiplied(p, a, lambda e: b[e][part], offsets) for part in (slice(0, p.n), slice(p.n, None)))
    return swiglu(rounded(gate), rounded(up))


def packed_operands(p):
    """(name, columns, element type) of what greta.dequant has, by the kind: w4[s or m]GROUP, symmetric, with minima or, without a letter, with zeros."""
    group = int(p.kind[2:].strip("sm"))
    yield "%q", p.k // 8, "i32"
    yield "%scales", p.k // group, "f16"
    if p.kind[2] == "m":
        yield "%minima", p.k // group, "f16"
    elif p.kind[2] != "s":
        yield "%zeros", -(-p.k // group // 8), "i32"


def packed_mlir(p, target):
    rows, group = p.e * p.n, int(p.kind[2:].strip("sm"))
    operands = [(name, tensor(rows, columns, dtype)) for name, columns, dtype in packed_operands(p)]
    names, types = (", ".join(part) for part in zip(*operands))
    w = tensor(rows, p.k, "f16")
    body = f"""  %w = greta.dequant {names} {{group = {group}}} : {types} -> {w}
  %b = tensor.expand_shape %w [[0, 1], [2]] output_shape [{p.e}, {p.n}, {p.k}] : {w} into $B
  %0 = GROUPED
"""
    return text(p, ", ".join(f"{name}: {kind}" for name, kind in operands), body, "0")


def packed_inputs(p, rng):
    rows = p.e * p.n
    yield rng.standard_normal((p.m, p.k)), p.dtype
    for name, columns, dtype in packed_operands(p):
        if dtype == "i32":
            yield rng.integers(-(2**31), 2**31, (rows, columns)), "i32"
        else:
            yield rng.uniform(*((0.5, 1.5) if name == "%scales" else (-18, 3)), (rows, columns)) / (4 * np.sqrt(p.k)), "f16"
    yield routed(p, rng), "i32"


def packed(p, rounded, a, *operands):
    *operands, offsets = operands
    rows = lambda e: slice(e * p.n, (e + 1) * p.n)
    return multiplied(p, a, lambda e: dequantised(p, rounded, *(operand[rows(e)] for operand in operands)), offsets)


KINDS = {
    "plain": follows(limit="gemm"),
    "exact": follows(limit="exact"),
    "bias": follows(
        """EMPTY
  %0 = GROUPED
  %1 = linalg.broadcast ins(%bias : $V) outs(%e : $Y) dimensions = [0]
  %2 = arith.addf %0, %1 : $Y
""",
        "2",
        ", %bias: $V",
        lambda p: [(p.n,)],
        lambda p, r, y, bias: r(y) + bias,
    ),
    "residual": follows("  %0 = GROUPED\n  %1 = arith.addf %0, %x : $Y\n", "1", ", %x: $Y", lambda p: [(p.m, p.n)], lambda p, r, y, x: r(y) + x),
    "swiglu": follows(  # gate and up in one loop
        "  %0 = GROUPED\n  %1 = SECOND\n  %2 = greta.swiglu %0, %1 : $Y, $Y -> $Y\n",
        "2",
        ", %c: $B",
        reference=lambda p, r, gate, up: swiglu(r(gate), r(up)),
        second=True,
        limit="gemm, row op",
    ),
    "halves": Kind(halves_mlir, halves_inputs, halves, "gemm, row op"),
    **{kind: Kind(packed_mlir, packed_inputs, packed, "gemm chain", ("packed weights", "packed sums", "minimum added apart")[: 2 + (kind[2] == "m")]) for kind in ("w4s32", "w464", "w4m32")},
}
