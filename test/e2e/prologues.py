"""Products whose operands are computed, for test_prologues.py: the functions, their inputs, and their definition in float64 NumPy.

A name says everything: prologue_A_B_LAYOUT_DIM_M_N_K_DTYPE, with A and B of SOURCES, LAYOUT "nt" for A as it is and B transposed, DIM "d" for
a dynamic M.
"""

import dataclasses

import numpy as np

from case import EPS_TEXT, Kind, Matmul, tensor, varied_rows
from cases import product_of_norm
from gemms import PACKED, dequantised, packed_inputs


@dataclasses.dataclass(frozen=True)
class Product(Matmul, family="prologue"):
    a: str
    b: str
    layout: str
    dim: str
    m: int
    n: int
    k: int
    dtype: str

    @property
    def kind(self):
        return f"{self.a} x {self.b}"

    @property
    def spec(self):
        # Few rows of a dynamic M are a skinny GEMM.
        packed = PACKED if self.dim == "d" and self.m <= 16 and self.dtype == "f16" and self.b.startswith("w4") else ()
        return Kind(product_mlir, product_inputs, product, "gemm chain", (*(["fused norm"] if self.a == "norm" else []), *packed, *(["minimum added apart"] if "w4m" in self.b else [])))

    @property
    def operands(self):
        return Operand(self, "a", self.a), Operand(self, "b", self.b)


def product_mlir(p, target):
    a, b = p.operands
    y = tensor(p.rows, p.n, p.dtype)
    arguments = ", ".join(f"%{o.x}{i}: {t}" for o in (a, b) for i, (t, _, _) in enumerate(o.arguments))
    return f"""func.func @{p.name}({arguments}) -> {y} {{
{a.body}{b.body}  %y = greta.matmul {a.result}, {b.result} {{{", ".join(p.flags)}}} : {a.type}, {b.type} -> {y}
  return %y : {y}
}}
"""


def product_inputs(p, rng):
    for operand in p.operands:
        for _, dtype, make in operand.arguments:
            yield make(rng), dtype


def product(p, rounded, *inputs):
    a, b = p.operands
    count = len(a.arguments)
    weights = b.reference(rounded, *inputs[count:])
    if p.a == "norm":
        return product_of_norm(rounded, *inputs[:count], lambda x: p.multiply(x, weights))
    return p.multiply(a.reference(rounded, *inputs[:count]), weights)


@dataclasses.dataclass(frozen=True)
class Operand:
    """%a or %b, of the arguments %a0, %a1, ..: (type, element type, values by a random number generator)."""

    product: Product
    x: str
    kind: str

    @property
    def shape(self):
        return self.product.shapes["ab".index(self.x)]

    @property
    def k_dim(self):
        is_transposed = self.product.layout["ab".index(self.x)] == "t"
        return int((self.x == "a") != is_transposed)

    def types(self, dtype, dims=(0, 1)):
        """The operand's type with another element type, or a vector along some of its dimensions."""
        p = self.product
        return tensor(*("?" if self.x == "a" and p.dim == "d" and i != self.k_dim else self.shape[i] for i in dims), dtype)

    @property
    def type(self):
        return self.types(self.product.dtype)

    def values(self, rng):
        return rng.standard_normal(self.shape) / (np.sqrt(self.product.k) if self.x == "b" else 1)

    @property
    def arguments(self):
        return [*SOURCES[self.kind].arguments(self)]

    @property
    def body(self):
        return SOURCES[self.kind].body(self).replace("%x", f"%{self.x}")

    @property
    def result(self):
        return f"%{self.x}" if self.body else f"%{self.x}0"

    def reference(self, rounded, *inputs):
        return SOURCES[self.kind].reference(self, rounded, *inputs)

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
class Source:
    """Where an operand comes from."""

    arguments: object
    body: object
    reference: object = None  # of the operand, the rounding function and the arguments


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


def packed(group, to_bf16=False, minima=False):
    def arguments(o):
        p = o.product
        shapes = (p.n, p.k // 8, "i32"), (p.n, p.k // group, "f16"), (p.n, p.k // group, "f16") if minima else (p.n, -(-p.k // group // 8), "i32")
        for i, shape in enumerate(shapes):
            yield tensor(*shape), shape[-1], lambda rng, i=i: [a for a, _ in packed_inputs(p, np.random.default_rng(rng.integers(2**31)), group)][i]

    def body(o):
        types = ", ".join(t for t, _, _ in arguments(o))
        half, wide = o.types("f16"), o.types("f32")
        text = f"  {'%x_half' if to_bf16 else '%x'} = greta.dequant %x0, %x1, %x2 {{group = {group}}} : {types} -> {half}\n"
        return text + (f"  %x_wide = arith.extf %x_half : {half} to {wide}\n  %x = arith.truncf %x_wide : {wide} to {o.type}\n" if to_bf16 else "")

    def reference(o, r, *inputs):
        weights = dequantised(o.product, r, *inputs)
        return r(weights) if to_bf16 else weights

    return Source(arguments, body, reference)


SOURCES = {
    "plain": Source(*one(None, lambda o: ""), lambda o, r, x: x),
    "cast": Source(*one("f32", lambda o: f"  %x = arith.truncf %x0 : {o.types('f32')} to {o.type}\n"), lambda o, r, x: r(x)),
    "i8": Source(*one("i8", lambda o: f"  %x = arith.sitofp %x0 : {o.types('i8')} to {o.type}\n", lambda rng, shape: rng.integers(-16, 17, shape)), lambda o, r, x: x),
    # Nothing that is zero beyond K.
    "scaled": Source(
        scaled_arguments,
        lambda o: o.broadcast("%x1", "%xu", o.k_dim) + o.broadcast("%x2", "%xv", 1 - o.k_dim) + f"  %xs = arith.mulf %x0, %xu : {o.type}\n  %x = arith.addf %xs, %xv : {o.type}\n",
        lambda o, r, x, u, v: r(r(x * along(u, o.k_dim)) + along(v, 1 - o.k_dim)),
    ),
    "w8": Source(
        w8_arguments,
        lambda o: f"  %xf = arith.sitofp %x0 : {o.types('i8')} to {o.type}\n" + o.broadcast("%x1", "%xs", 1 - o.k_dim) + f"  %x = arith.mulf %xf, %xs : {o.type}\n",
        lambda o, r, q, scale: r(q * along(scale, 1 - o.k_dim)),
    ),
    "norm": Source(
        lambda o: [(o.type, o.product.dtype, lambda rng: varied_rows(rng, o.shape)), (o.types(o.product.dtype, (1,)), o.product.dtype, lambda rng: rng.uniform(0.5, 1.5, o.product.k))],
        lambda o: f"  %x = greta.rms_norm %x0, %x1 {{eps = {EPS_TEXT} : f32}} : {o.type}, {o.types(o.product.dtype, (1,))} -> {o.type}\n",
    ),
    "w432": packed(32),
    "w464": packed(64),
    "w4128": packed(128),
    "w464bf": packed(64, to_bf16=True),
    "w4m32": packed(32, minima=True),
    "w4m64": packed(64, minima=True),
}
