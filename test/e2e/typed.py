"""Batched GEMMs, GEMMs of 8-bit floats and conversions of those for test_types.py: the functions, their inputs, and their definition in
float64 NumPy.

A name says everything: typed_KIND_LAYOUT_BATCH_M_N_K_A_B_OUT. LAYOUT is "nt" for A as it is and B
transposed. BATCH is "1" for none, "3" or "2x3" for a batch in A and B, with "s" behind it for one B that serves the batch, with "a" for an A that serves the
first dimension of it, with "d" for a dynamic batch and M, with "k" for a dynamic K; A, B and OUT are element types.
"""

import dataclasses
import re

import numpy as np

from case import Case, Kind, Matmul, tensor
from greta_runtime import DTYPES

# Names in MLIR of the types whose names in the manifest are others.
MLIR = {"f8e4m3fn": "f8E4M3FN", "f8e5m2": "f8E5M2", "f8e4m3fnuz": "f8E4M3FNUZ", "f8e5m2fnuz": "f8E5M2FNUZ"}


def typed(shape, dtype):
    return tensor(*shape, MLIR.get(dtype, dtype)) if shape else f"tensor<{MLIR.get(dtype, dtype)}>"


@dataclasses.dataclass(frozen=True)
class Product(Matmul, family="typed"):
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
    def title(self):
        return f"{self.kind} {self.a} {self.b}"

    @property
    def precision(self):
        return self.out

    @property
    def operand_types(self):
        return {self.a, self.b}

    @property
    def rows(self):
        return "?" if "d" in self.batch else self.m

    @property
    def leading(self):
        return () if self.batch[0] == "1" else tuple(map(int, re.match("[0-9x]*", self.batch)[0].split("x")))

    @property
    def leading_of_a(self):
        return self.leading["a" in self.batch :]

    @property
    def shapes(self):
        """Of A, B and the result as they are stored."""
        a, b = super().shapes
        return (*self.leading_of_a, *a), b if "s" in self.batch else (*self.leading, *b), (*self.leading, self.m, self.n)

    @property
    def dynamic_shapes(self):
        """Of A, B and the result in MLIR."""
        batch = ("?",) * len(self.leading) if "d" in self.batch else self.leading
        k = "?" if "k" in self.batch else self.k
        b = self.stored(k, self.n, "b")
        return (*batch["a" in self.batch :], *self.stored(self.rows, k, "a")), b if "s" in self.batch else (*batch, *b), (*batch, self.rows, self.n)


def follows(body, result, reference, arguments=(), limit="gemm chain"):
    """What follows the GEMM %0; `arguments` has (name, type in MLIR, shape) of other operands."""

    def mlir(p, target):
        a, b, y = (typed(shape, dtype) for shape, dtype in zip(p.dynamic_shapes, (p.a, p.b, p.out)))
        more = "".join(f", %{name}: {kind(p)}" for name, kind, _ in arguments)
        return f"""func.func @{p.name}(%a: {a}, %b: {b}{more}) -> {y} {{
  %0 = greta.matmul %a, %b {{{", ".join(p.flags)}}} : {a}, {b} -> {y}
{body(p, y)}  return %{result} : {y}
}}
"""

    def inputs(p, rng):
        a, b, _ = p.shapes
        yield rng.standard_normal(a), p.a
        yield rng.standard_normal(b), p.b
        for _, _, shape in arguments:
            yield rng.standard_normal(shape(p)), p.out

    return Kind(mlir, inputs, lambda p, r, a, b, *more: reference(r, p.multiply(a, b), *more), limit)


def bias_type(p):
    return typed(("?" if "d" in p.batch else p.leading[0], p.n), p.out)


def heads_body(p, y):
    """A bias per GEMM of the batch (the first dimension of it), and a residual."""
    leading = len(p.leading)
    sizes, text = "", ""
    if "d" in p.batch:
        sizes = ", ".join(f"%d{i}" for i in range(leading + 1))
        text = "".join(f"  %c{i} = arith.constant {i} : index\n  %d{i} = tensor.dim %residual, %c{i} : {y}\n" for i in range(leading + 1))
    added = ", ".join(map(str, range(1, leading + 1)))
    return f"""{text}  %e = tensor.empty({sizes}) : {y}
  %1 = linalg.broadcast ins(%bias : {bias_type(p)}) outs(%e : {y}) dimensions = [{added}]
  %2 = arith.addf %0, %1 : {y}
  %3 = arith.addf %2, %residual : {y}
"""


KINDS = {
    "plain": follows(lambda p, y: "", "0", lambda r, y: y, limit="gemm"),
    "heads": follows(
        heads_body,
        "3",
        lambda r, y, bias, residual: r(r(y) + bias.reshape(bias.shape[0], *(1,) * (y.ndim - 2), bias.shape[1])) + residual,
        [("bias", bias_type, lambda p: (p.leading[0], p.n)), ("residual", lambda p: typed(p.dynamic_shapes[2], p.out), lambda p: p.shapes[2])],
    ),
}


WIDE = ("f32", "f16", "bf16")


@dataclasses.dataclass(frozen=True)
class Conversion(Case, family="conversion"):
    """Of all numbers of an 8-bit float to wider types, or to them of those numbers, what lies between two of them, and what is too large."""

    direction: str
    dtype: str

    @property
    def kind(self):
        return self.direction

    @property
    def spec(self):
        return Kind(conversion_mlir, conversion_inputs, conversion, "exact")

    @property
    def is_widening(self):
        return self.direction == "widen"

    @property
    def numbers(self):
        codes = np.arange(256, dtype=np.uint8).view(DTYPES[self.dtype])
        if self.is_widening:
            return codes
        values = codes.astype(np.float64)
        exact = np.unique(values[np.isfinite(values)])
        middles = (exact[1:] + exact[:-1]) / 2
        last, step = exact[-1], exact[-1] - exact[-2]
        large = np.array([last + step / 2, last + step, 4 * last, 1e30, np.inf])
        small = exact[exact > 0][0] * np.array([0.5, 0.49, 0.51, 1e-3, 1e-30])
        some = [exact, middles, middles * (1 + 2**-12), middles * (1 - 2**-12), large, -large, small, -small, [np.nan, -0.0]]
        return np.concatenate(some).astype(np.float32)


def conversion_mlir(c, target):
    n = len(c.numbers)
    small, wide = typed((n,), c.dtype), [typed((n,), dtype) for dtype in WIDE]
    results, op, sources = (wide, "extf", [small] * 3) if c.is_widening else ([small] * 3, "truncf", wide)
    arguments = f"%x: {small}" if c.is_widening else ", ".join(f"%x{i}: {wide[i]}" for i in range(3))
    body = "".join(f"  %{i} = arith.{op} %x{'' if c.is_widening else i} : {sources[i]} to {results[i]}\n" for i in range(3))
    types = ", ".join(results)
    return f"func.func @{c.name}({arguments}) -> ({types}) {{\n{body}  return %0, %1, %2 : {types}\n}}\n"


def conversion_inputs(c, rng):
    return [(c.numbers, c.dtype)] if c.is_widening else [(c.numbers, wide) for wide in WIDE]


def conversion(c, rounded, *inputs):
    """In the types of the results: which of all NaNs, and of both zeros, is the question."""
    if c.is_widening:
        return [inputs[0].astype(np.float32).astype(DTYPES[wide]) for wide in WIDE]
    return [x.astype(np.float32).astype(DTYPES[c.dtype]) for x in inputs]
