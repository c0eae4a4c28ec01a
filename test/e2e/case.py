"""What every case of the end-to-end tests is: one function of the `greta` dialect, its inputs, and its definition in float64 NumPy.

A case is a frozen dataclass whose name (FAMILY_FIELD_FIELD_..) says everything, so that a process that gets names finds the cases by them
(registry.py). limits.py says what a right result is.
"""

import dataclasses
import sys
import zlib

import numpy as np

import limits
from greta_runtime import DTYPES

EPS = 1e-5
EPS_TEXT = "1.0e-5"  # MLIR wants the point


def tensor(*shape):
    return f"tensor<{'x'.join(map(str, shape))}>"


class Rounding:
    """Rounds float64 to an element type where a definition says so. What it does not round, of all that a definition names, is its form
    (limits.LIMITS): the norm in front of a product (`fused_norm`), the weights of 4 bits (`packed`); or what it
    rounds beside: weights of 4 bits before a minimum is added (`apart`)."""

    def __init__(self, dtype, limit):
        self.dtype = dtype
        form = limits.LIMITS[limit]
        self.fused_norm, self.packed, self.apart = form.fused_norm, form.packed, form.apart

    def __call__(self, x):
        return x if self.dtype == "i32" else rounded_to(self.dtype, x)


def rounded_to(dtype, x):
    return x.astype(DTYPES[dtype]).astype(np.float64)


def varied_rows(rng, shape):
    """Normal rows: the first as it is, then scaled by 100, then by 0.01, then moved away from zero: in f32, a variance that is the difference
    of two sums loses eight of its bits."""
    x = rng.standard_normal(shape)
    row = np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1))
    return x * np.choose(row % 4, [1.0, 100.0, 0.01, 1.0]) + np.where(row % 4 == 3, 16.0, 0.0)


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a kind of case is; its functions get the case first."""

    mlir: object  # (case, target) -> text
    inputs: object  # (case, rng) -> (array, element type) ..
    reference: object  # (case, rounded, *inputs in float64) -> the result or a list of them, not rounded at the end
    limit: str = "gemm"  # of limits.LIMITS
    forms: tuple = ()  # limits too: what else docs/internals/numerics.md lets a kernel compute
    kernels: int = 1  # what it must compile to on a GPU


def without_denormals(array):
    """gfx90a's matrix unit takes f16's denormals for zero (docs/internals/numerics.md); cases of special values have them."""
    return np.where(np.abs(array.astype(np.float64)) < 2.0**-14, 0, array).astype(array.dtype)


class Case:
    """Subclasses have a field `kind` that is a name in KINDS of their module, or override `spec`."""

    one_row = False  # a result's rows are too short to be looked at one by one
    depth = 0  # how many products a result's element adds up
    is_gemm = False
    has_matrix_product = False  # that the matrix unit should compute

    def __init_subclass__(cls, family=""):
        cls.family = family

    @classmethod
    def parse(cls, *texts):
        return cls(*(field.type(text) for field, text in zip(dataclasses.fields(cls), texts, strict=True)))

    @property
    def name(self):
        return "_".join(map(str, (self.family, *dataclasses.astuple(self))))

    @property
    def function(self):
        """The function's name in MLIR. Cases that differ in their inputs alone share one."""
        return self.name

    @property
    def title(self):
        """What a table calls it."""
        return self.kind

    @property
    def precision(self):
        """The type that results are rounded to."""
        return self.dtype

    @property
    def spec(self):
        return sys.modules[type(self).__module__].KINDS[self.kind]

    def mlir(self, target=None):
        return self.spec.mlir(self, target)

    def inputs(self):
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        with np.errstate(over="ignore"):  # of conversions
            arrays = [array.astype(DTYPES[dtype]) for array, dtype in self.spec.inputs(self, rng)]
        return [without_denormals(a) for a in arrays] if self.is_gemm else arrays

    def references(self, inputs):
        """(limit, results) pairs: the definition first, then its other forms."""
        doubles = [x if x.dtype == np.int32 else x.astype(np.float64) for x in inputs]
        for limit in ("exact",) if self.precision == "i32" else (self.spec.limit, *self.spec.forms):
            result = self.spec.reference(self, Rounding(self.precision, limit), *doubles)
            yield limit, result if isinstance(result, list) else [result]

    def reference(self, inputs):
        """The definition's results."""
        return next(self.references(inputs))[1]


class Matmul(Case):
    """A case with a product of A (m x k) and B (k x n); `layout` is "nt" for A as it is and B stored transposed."""

    is_gemm = True

    @property
    def rows(self):
        """M in MLIR: where there is a field `dim` it says whether M is dynamic."""
        return "?" if getattr(self, "dim", "s") == "d" else self.m

    @property
    def depth(self):
        return self.k

    @property
    def one_row(self):
        return limits.counts_as_one_row(self.n, self.k)

    @property
    def has_matrix_product(self):
        """Few rows, a static number, take a schedule of their own."""
        return self.rows == "?" or self.m > 4

    @property
    def operand_types(self):
        return {self.dtype}

    @property
    def flags(self):
        return [name for name, letter in zip(("transpose_a", "transpose_b"), self.layout) if letter == "t"]

    def stored(self, rows, columns, operand):
        """The shape in memory of operand "a" or "b"."""
        return (columns, rows) if self.layout["ab".index(operand)] == "t" else (rows, columns)

    @property
    def shapes(self):
        """Of A and B as they are stored."""
        return self.stored(self.m, self.k, "a"), self.stored(self.k, self.n, "b")

    def multiply(self, a, b):
        a, b = (x.swapaxes(-1, -2) if letter == "t" else x for x, letter in zip((a, b), self.layout))
        return a @ b

    def activations(self, rng):
        return rng.standard_normal(self.shapes[0]), self.dtype

    def weights(self, rng, n=None):
        return rng.standard_normal(self.stored(self.k, n or self.n, "b")) / np.sqrt(self.k), self.dtype
