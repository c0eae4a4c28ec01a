"""Block programs: functions of test/tile/*.mlir, their inputs, and their definition in float64 NumPy.

A name says everything: program_KIND_SIZES, KIND the file and the function in it, SIZES what it is run on, as 33x40x129. One function serves all sizes.
"""

import dataclasses
import pathlib

import numpy as np

from case import Case, Kind, varied_rows

TEXTS = pathlib.Path(__file__).parent.parent / "tile"


@dataclasses.dataclass(frozen=True)
class Program(Case, family="program"):
    kind: str
    sizes: str

    @property
    def shape(self):
        return tuple(map(int, self.sizes.split("x")))

    @property
    def function(self):
        return self.kind.replace("-", "_")

    @property
    def precision(self):
        return self.spec.precision

    @property
    def depth(self):
        return self.shape[-1] if self.is_gemm else 0

    @property
    def is_gemm(self):
        return self.spec.limit == "gemm"

    has_matrix_product = is_gemm

    @property
    def operand_types(self):
        return {self.precision}

    def mlir(self, target=None):
        return (TEXTS / f"{self.function}.mlir").read_text()


@dataclasses.dataclass(frozen=True)
class Text(Kind):
    """A program whose text is a file."""

    precision: str = "f32"  # of the results


def text(inputs, reference, **options):
    return Text(None, inputs, reference, **options)


def softmax(p, rounded, x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def layer_norm(p, rounded, x, weight, bias):
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * weight + bias


def operands(p, rng):
    m, n, k = p.shape
    return [(rng.standard_normal((m, k)), "f16"), (rng.standard_normal((k, n)) / np.sqrt(k), "f16")]


KINDS = {
    "vector-add": text(lambda p, rng: [(rng.standard_normal(p.shape), "f32")] * 2, lambda p, rounded, x, y: x + y, limit="row op"),
    "softmax": text(lambda p, rng: [(rng.standard_normal((*p.shape, 1000)) * 4, "f32")], softmax, limit="row op"),
    "layer-norm": text(
        lambda p, rng: [(varied_rows(rng, (*p.shape, 384)), "f16"), (rng.standard_normal(384), "f16"), (rng.standard_normal(384), "f16")],
        layer_norm,
        limit="layer norm",
        precision="f16",
    ),
    "matmul": text(operands, lambda p, rounded, a, b: a @ b, limit="gemm", precision="f16"),
    "transpose": text(lambda p, rng: [(rng.integers(-(2**31), 2**31, p.shape), "i32")], lambda p, rounded, x: x.T, limit="exact", precision="i32"),
}
PROGRAMS = [
    *(Program("vector-add", n) for n in ("1", "255", "1003")),
    *(Program("softmax", rows) for rows in ("1", "5")),
    *(Program("layer-norm", rows) for rows in ("3", "8")),
    *(Program("matmul", shape) for shape in ("64x64x64", "33x100x129", "70x65x1")),
    *(Program("transpose", shape) for shape in ("32x32", "33x70")),
]
