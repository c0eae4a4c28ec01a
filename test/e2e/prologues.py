"""Products whose operands are computed, for test_prologues.py: the functions, their inputs, and their definition in float64 NumPy.

A name says everything: prologue_A_B_LAYOUT_DIM_M_N_K_DTYPE, with A and B of KINDS, LAYOUT "nt" for A as it is and B transposed, DIM "d" for
a dynamic M.
"""

import dataclasses
import zlib

import numpy as np

from cases import EPS, EPS_TEXT, rounder, varied_rows
from greta_runtime import DTYPES
from products import dequantised, packed_inputs, tensor


@dataclasses.dataclass(frozen=True)
class Product:
    a: str
    b: str
    layout: str
    dim: str
    m: int
    n: int
    k: int
    dtype: str

    @property
    def name(self):
        return "_".join(map(str, ("prologue", *dataclasses.astuple(self))))

    @property
    def operands(self):
        return Operand(self, "a", self.a), Operand(self, "b", self.b)

    def mlir(self):
        a, b = self.operands
        y = tensor("?" if self.dim == "d" else self.m, self.n, self.dtype)
        flags = ", ".join(name for name, letter in zip(("transpose_a", "transpose_b"), self.layout) if letter == "t")
        arguments = ", ".join(f"%{o.x}{i}: {t}" for o in (a, b) for i, (t, _, _) in enumerate(o.arguments))
        return f"""func.func @{self.name}({arguments}) -> {y} {{
{a.body}{b.body}  %y = greta.matmul {a.result}, {b.result} {{{flags}}} : {a.type}, {b.type} -> {y}
  return %y : {y}
}}
"""

    def inputs(self, rows):
        assert rows == self.m
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [make(rng).astype(DTYPES[dtype]) for o in self.operands for _, dtype, make in o.arguments]

    def reference(self, inputs):
        inputs = [x if x.dtype == np.int32 else x.astype(np.float64) for x in inputs]
        a, b = self.operands
        count = len(a.arguments)
        return [a.as_matrix(a.reference(*inputs[:count])) @ b.as_matrix(b.reference(*inputs[count:]))]

    @property
    def is_one_row(self):
        """docs/numerics.md: of few elements, or one term each, a row may be next to nothing."""
        return self.n < 16 or self.k == 1

    @property
    def tolerances(self):
        """docs/numerics.md: the result is rounded, and an operand that is one rounding off moves it by as much again."""
        tolerance = {"f16": 1e-3, "bf16": 8e-3, "f32": 1e-5}[self.dtype]
        return tolerance, 2 * tolerance


@dataclasses.dataclass(frozen=True)
class Operand:
    """%a or %b, of the arguments %a0, %a1, ..: (type, element type, values by a random number generator)."""

    product: Product
    x: str
    kind: str

    @property
    def is_transposed(self):
        return self.product.layout["ab".index(self.x)] == "t"

    @property
    def shape(self):
        p = self.product
        shape = (p.m, p.k) if self.x == "a" else (p.k, p.n)
        return shape[::-1] if self.is_transposed else shape

    @property
    def k_dim(self):
        return int((self.x == "a") != self.is_transposed)

    def types(self, dtype, dims=(0, 1)):
        """The operand's type with another element type, or a vector along some of its dimensions."""
        p = self.product
        return tensor(*("?" if self.x == "a" and p.dim == "d" and i != self.k_dim else self.shape[i] for i in dims), dtype)

    @property
    def type(self):
        return self.types(self.product.dtype)

    def as_matrix(self, values):
        return values.T if self.is_transposed else values

    def values(self, rng):
        return rng.standard_normal(self.shape) / (np.sqrt(self.product.k) if self.x == "b" else 1)

    @property
    def arguments(self):
        return [*KINDS[self.kind].arguments(self)]

    @property
    def body(self):
        return KINDS[self.kind].body(self).replace("%x", f"%{self.x}")

    @property
    def result(self):
        return f"%{self.x}" if self.body else f"%{self.x}0"

    def reference(self, *inputs):
        return KINDS[self.kind].reference(self, rounder(self.product.dtype), *inputs)

    def broadcast(self, vector, result, dim):
        """A vector along dimension `dim` to all of the operand."""
        size = ""
        lines = []
        if "?" in self.type:
            lines = [f"{result}_dim = arith.constant {1 - self.k_dim} : index", f"{result}_size = tensor.dim %x0, {result}_dim : {self.arguments[0][0]}"]
            size = f"{result}_size"
        lines.append(f"{result}_empty = tensor.empty({size}) : {self.type}")
        ins = f"{vector} : {self.types(self.product.dtype, (dim,))}"
        lines.append(f"{result} = linalg.broadcast ins({ins}) outs({result}_empty : {self.type}) dimensions = [{1 - dim}]")
        return "".join(f"  {line}\n" for line in lines)


@dataclasses.dataclass(frozen=True)
class Kind:
    arguments: object
    body: object
    reference: object


def scaled_arguments(o):
    p, other = o.product, 1 - o.k_dim
    yield o.type, p.dtype, o.values
    yield o.types(p.dtype, (o.k_dim,)), p.dtype, lambda rng: rng.uniform(0.5, 1.5, p.k)
    yield o.types(p.dtype, (other,)), p.dtype, lambda rng: rng.standard_normal(o.shape[other]) / np.sqrt(p.k)


def along(vector, dim):
    return vector[:, None] if dim == 0 else vector[None, :]


def one(dtype, body, values=None):
    return (
        lambda o: [(o.types(dtype or o.product.dtype), dtype or o.product.dtype, values and (lambda rng: values(rng, o.shape)) or o.values)],
        body,
    )


def w8_arguments(o):
    p, other = o.product, 1 - o.k_dim
    yield o.types("i8"), "i8", lambda rng: rng.integers(-128, 128, o.shape)
    yield o.types(p.dtype, (other,)), p.dtype, lambda rng: rng.uniform(0.5, 1.5, o.shape[other]) / (64 * np.sqrt(p.k))


def norm(o, r, x, w):
    """Not rounded: docs/numerics.md."""
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPS) * w


def packed(group, to_bf16=False):
    def arguments(o):
        p = o.product
        shapes = (p.n, p.k // 8, "i32"), (p.n, p.k // group, "f16"), (p.n, -(-p.k // group // 8), "i32")
        for i, shape in enumerate(shapes):
            yield tensor(*shape), shape[-1], lambda rng, i=i: [a for a, _ in packed_inputs(p, np.random.default_rng(rng.integers(2**31)), group)][i]

    def body(o):
        types = ", ".join(t for t, _, _ in arguments(o))
        half, wide = o.types("f16"), o.types("f32")
        text = f"  {'%x_half' if to_bf16 else '%x'} = greta.dequant %x0, %x1, %x2 {{group = {group}}} : {types} -> {half}\n"
        return text + (f"  %x_wide = arith.extf %x_half : {half} to {wide}\n  %x = arith.truncf %x_wide : {wide} to {o.type}\n" if to_bf16 else "")

    return Kind(arguments, body, lambda o, r, *inputs: r(dequantised(o.product, *inputs)))


KINDS = {
    "plain": Kind(*one(None, lambda o: ""), lambda o, r, x: x),
    "cast": Kind(*one("f32", lambda o: f"  %x = arith.truncf %x0 : {o.types('f32')} to {o.type}\n"), lambda o, r, x: r(x)),
    "i8": Kind(*one("i8", lambda o: f"  %x = arith.sitofp %x0 : {o.types('i8')} to {o.type}\n", lambda rng, shape: rng.integers(-16, 17, shape)), lambda o, r, x: x),
    # Nothing that is zero beyond K.
    "scaled": Kind(
        scaled_arguments,
        lambda o: o.broadcast("%x1", "%xu", o.k_dim) + o.broadcast("%x2", "%xv", 1 - o.k_dim) + f"  %xs = arith.mulf %x0, %xu : {o.type}\n  %x = arith.addf %xs, %xv : {o.type}\n",
        lambda o, r, x, u, v: r(r(x * along(u, o.k_dim)) + along(v, 1 - o.k_dim)),
    ),
    "w8": Kind(
        w8_arguments,
        lambda o: f"  %xf = arith.sitofp %x0 : {o.types('i8')} to {o.type}\n" + o.broadcast("%x1", "%xs", 1 - o.k_dim) + f"  %x = arith.mulf %xf, %xs : {o.type}\n",
        lambda o, r, q, scale: r(q * along(scale, 1 - o.k_dim)),
    ),
    "norm": Kind(
        lambda o: [(o.type, o.product.dtype, lambda rng: varied_rows(rng, o.shape)), (o.types(o.product.dtype, (1,)), o.product.dtype, lambda rng: rng.uniform(0.5, 1.5, o.product.k))],
        lambda o: f"  %x = greta.rms_norm %x0, %x1 {{eps = {EPS_TEXT} : f32}} : {o.type}, {o.types(o.product.dtype, (1,))} -> {o.type}\n",
        norm,
    ),
    "w432": packed(32),
    "w464": packed(64),
    "w4128": packed(128),
    "w464bf": packed(64, to_bf16=True),
}


def by_name(name):
    _, a, b, layout, dim, m, n, k, dtype = name.split("_")
    return Product(a, b, layout, dim, int(m), int(n), int(k), dtype)
