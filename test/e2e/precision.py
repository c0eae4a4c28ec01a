"""GEMMs of f32 by three products of bf16, for test_precision.py. A name says everything: precision_KIND_LAYOUT_DIM_M_N_K."""

import dataclasses

from case import Kind, Matmul, tensor
from cases import swiglu


@dataclasses.dataclass(frozen=True)
class Split(Matmul, family="precision"):
    kind: str
    layout: str
    dim: str
    m: int
    n: int
    k: int

    @property
    def dtype(self):
        return "f32"

    @property
    def operand_types(self):
        """What the matrix unit multiplies."""
        return {"bf16"}


def text(p, pair):
    a, b, y = tensor(*p.stored(p.rows, p.k, "a"), "f32"), tensor(*p.shapes[1], "f32"), tensor(p.rows, p.n, "f32")
    flags = ", ".join([*p.flags, 'precision = "bf16x3"'])
    gemm = lambda name, w: f"  %{name} = greta.matmul %a, %{w} {{{flags}}} : {a}, {b} -> {y}\n"
    body = gemm("0", "b") + (gemm("1", "c") + f"  %2 = greta.swiglu %0, %1 : {y}, {y} -> {y}\n" if pair else "")
    return f"func.func @{p.name}(%a: {a}, %b: {b}{f', %c: {b}' if pair else ''}) -> {y} {{\n{body}  return %{2 if pair else 0} : {y}\n}}\n"


def inputs(p, rng, pair):
    yield p.activations(rng)
    for _ in range(1 + pair):
        yield p.weights(rng)


KINDS = {
    "plain": Kind(lambda p, target: text(p, False), lambda p, rng: inputs(p, rng, False), lambda p, r, a, b: p.multiply(a, b), "bf16x3"),
    "swiglu": Kind(lambda p, target: text(p, True), lambda p, rng: inputs(p, rng, True), lambda p, r, a, b, c: swiglu(p.multiply(a, b), p.multiply(a, c)), "bf16x3, row op"),
}
