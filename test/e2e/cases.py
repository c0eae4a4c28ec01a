"""The functions the numerics tests compile, their inputs, and their definition in float64 NumPy.

A Case is one function of the `greta` dialect with a dynamic number of rows. Inputs are random with what breaks careless kernels mixed in:
rows of very different size (a sum of squares that f16 cannot hold), rows far from zero (a variance computed as E[x²] - E[x]² dies),
and for softmax rows whose exponentials overflow unless the maximum is taken off.
"""

import dataclasses
import zlib

import numpy as np

from greta_runtime import DTYPES

EPS = 1e-5
EPS_TEXT = "1.0e-5"  # MLIR wants the point
COLUMNS = (1, 7, 64, 1000, 4096, 32768)
ROWS = (1, 3, 128)
ELEMENT_TYPES = ("f32", "f16", "bf16")
ROPE_HEADS = 2


@dataclasses.dataclass(frozen=True)
class Case:
    op: str
    dtype: str
    columns: int

    @property
    def name(self):
        return f"{self.op}_{self.dtype}_{self.columns}"

    def mlir(self):
        return OPS[self.op].mlir(self).replace("$NAME", self.name)

    def inputs(self, rows):
        rng = np.random.default_rng([zlib.crc32(self.name.encode()), rows])
        return [array.astype(DTYPES[kind]) for array, kind in OPS[self.op].inputs(self, rows, rng)]

    def reference(self, inputs):
        """The results in float64, as a list."""
        op = OPS[self.op]
        doubles = [a.astype(np.float64) for a in inputs]
        result = op.reference(*doubles, rounder(self.dtype)) if op.roundings > 1 else op.reference(*doubles)
        return result if isinstance(result, list) else [result]

    @property
    def tolerances(self):
        """docs/numerics.md: the limits of the two norms of row_errors."""
        tolerance = OPS[self.op].f32_tolerance if self.dtype == "f32" else {"f16": 1e-3, "bf16": 8e-3}[self.dtype]
        if self.dtype == "f32" and OPS[self.op].sums_products:
            tolerance *= max(1.0, np.sqrt(self.columns / 4096))
        return tolerance, tolerance * OPS[self.op].roundings


def rounder(dtype):
    return lambda x: x.astype(DTYPES[dtype]).astype(np.float64)


def row_errors(actual, expected):
    """The largest over all rows of |a - e| / |e|, in the Euclidean and in the maximum norm."""
    actual, expected = (np.atleast_2d(x.astype(np.float64)).reshape(-1, x.shape[-1]) for x in (actual, expected))
    if not np.isfinite(actual).all():
        return np.inf, np.inf
    tiny = np.finfo(np.float64).tiny
    difference = actual - expected
    euclidean = np.linalg.norm(difference, axis=1) / np.maximum(np.linalg.norm(expected, axis=1), tiny)
    maximum = np.abs(difference).max(axis=1) / np.maximum(np.abs(expected).max(axis=1), tiny)
    return euclidean.max(initial=0), maximum.max(initial=0)


def varied_rows(rng, shape):
    """Normal rows: the first as it is, then scaled by 100, then by 0.01, then moved away from zero."""
    x = rng.standard_normal(shape)
    row = np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1))
    return x * np.choose(row % 4, [1.0, 100.0, 0.01, 1.0]) + np.where(row % 4 == 3, 4.0, 0.0)


@dataclasses.dataclass(frozen=True)
class Op:
    mlir: object
    inputs: object
    reference: object
    f32_tolerance: float = 1e-5
    roundings: int = 1  # values rounded to the element type one after another; with more than one the reference gets a rounding function
    sums_products: bool = False  # one f32 accumulator per result takes `columns` products: rounding errors add up like a random walk
    kernels: int = 1  # what the function must compile to on a GPU


def elementwise_type(case):
    return f"tensor<?x{case.columns}x{case.dtype}>"


def vector_type(case):
    return f"tensor<{case.columns}x{case.dtype}>"


def rms_norm_mlir(case):
    t, v = elementwise_type(case), vector_type(case)
    return f"""func.func @$NAME(%x: {t}, %w: {v}) -> {t} {{
  %0 = greta.rms_norm %x, %w {{eps = {EPS_TEXT} : f32}} : {t}, {v} -> {t}
  return %0 : {t}
}}"""


def rms_norm_inputs(case, rows, rng):
    yield varied_rows(rng, (rows, case.columns)), case.dtype
    yield 1 + 0.2 * rng.standard_normal(case.columns), case.dtype


def rms_norm(x, w):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(EPS)) * w


def layer_norm_mlir(case):
    t, v = elementwise_type(case), vector_type(case)
    return f"""func.func @$NAME(%x: {t}, %w: {v}, %b: {v}) -> {t} {{
  %0 = greta.layer_norm %x, %w, %b {{eps = {EPS_TEXT} : f32}} : {t}, {v}, {v} -> {t}
  return %0 : {t}
}}"""


def layer_norm_inputs(case, rows, rng):
    yield from rms_norm_inputs(case, rows, rng)
    yield 1 + 0.5 * rng.random(case.columns), case.dtype


def layer_norm(x, w, b):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + np.float32(EPS)) * w + b


def softmax_mlir(case):
    t = elementwise_type(case)
    return f"""func.func @$NAME(%x: {t}) -> {t} {{
  %0 = greta.softmax %x : {t} -> {t}
  return %0 : {t}
}}"""


def softmax_inputs(case, rows, rng):
    x = rng.standard_normal((rows, case.columns))
    row = np.arange(rows)[:, None]
    yield x * np.where(row % 2, 4.0, 1.0) + np.choose(row % 3, [100.0, -100.0, 0.0]), case.dtype


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def swiglu_mlir(case):
    t = elementwise_type(case)
    return f"""func.func @$NAME(%gate: {t}, %up: {t}) -> {t} {{
  %0 = greta.swiglu %gate, %up : {t}, {t} -> {t}
  return %0 : {t}
}}"""


def swiglu_inputs(case, rows, rng):
    yield 4 * rng.standard_normal((rows, case.columns)), case.dtype
    yield rng.standard_normal((rows, case.columns)), case.dtype


def swiglu(gate, up):
    return gate / (1 + np.exp(-gate)) * up


def rope_columns(case):
    """A head's width is even: 1 and 7 columns become 2 and 14."""
    return case.columns if case.columns % 2 == 0 else 2 * case.columns


def rope_mlir(case):
    d = rope_columns(case)
    t, table = f"tensor<?x{ROPE_HEADS}x{d}x{case.dtype}>", f"tensor<?x{d // 2}xf32>"
    return f"""func.func @$NAME(%x: {t}, %cos: {table}, %sin: {table}) -> {t} {{
  %0 = greta.rope %x, %cos, %sin {{style = "{case.op.removeprefix('rope_')}"}} : {t}, {table}, {table} -> {t}
  return %0 : {t}
}}"""


def rope_inputs(case, rows, rng):
    d = rope_columns(case)
    yield varied_rows(rng, (rows, ROPE_HEADS, d)), case.dtype
    angle = np.arange(rows)[:, None] * 10000.0 ** (-np.arange(d // 2) * 2 / d) + rng.random((rows, 1))
    yield np.cos(angle), "f32"
    yield np.sin(angle), "f32"


def rope_neox(x, cos, sin):
    a, b = np.split(x, 2, axis=-1)
    cos, sin = cos[:, None], sin[:, None]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def rope_gptj(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = cos[:, None], sin[:, None]
    return np.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(x.shape)


# Two matmuls per column count, so that it is both the depth (short and long K loops, cut off in the middle) and the width of the result.
MATMUL_OTHER = 33


def matmul_mlir(k, n, transposed):
    def build(case):
        kk, nn = k(case.columns), n(case.columns)
        a, b = f"tensor<?x{kk}x{case.dtype}>", f"tensor<{nn}x{kk}x{case.dtype}>" if transposed else f"tensor<{kk}x{nn}x{case.dtype}>"
        result, attribute = f"tensor<?x{nn}x{case.dtype}>", "{transpose_b} " if transposed else ""
        return f"""func.func @$NAME(%a: {a}, %b: {b}) -> {result} {{
  %0 = greta.matmul %a, %b {attribute}: {a}, {b} -> {result}
  return %0 : {result}
}}"""

    return build


def matmul_inputs(k, n, transposed):
    def build(case, rows, rng):
        kk, nn = k(case.columns), n(case.columns)
        yield rng.standard_normal((rows, kk)), case.dtype
        yield rng.standard_normal((nn, kk) if transposed else (kk, nn)) / np.sqrt(kk), case.dtype

    return build


def matmul_op(k, n, transposed):
    reference = (lambda a, b: a @ b.T) if transposed else (lambda a, b: a @ b)
    return Op(matmul_mlir(k, n, transposed), matmul_inputs(k, n, transposed), reference, sums_products=k is columns_of)


def columns_of(case_columns):
    return case_columns


def other(case_columns):
    return MATMUL_OTHER


OPS = {
    "rms_norm": Op(rms_norm_mlir, rms_norm_inputs, rms_norm),
    "layer_norm": Op(layer_norm_mlir, layer_norm_inputs, layer_norm),
    "softmax": Op(softmax_mlir, softmax_inputs, softmax, 1e-6),
    "rope_neox": Op(rope_mlir, rope_inputs, rope_neox),
    "rope_gptj": Op(rope_mlir, rope_inputs, rope_gptj),
    "swiglu": Op(swiglu_mlir, swiglu_inputs, swiglu),
    "matmul_deep": matmul_op(columns_of, other, False),
    "matmul_deep_nt": matmul_op(columns_of, other, True),
    "matmul_wide": matmul_op(other, columns_of, False),
    "matmul_wide_nt": matmul_op(other, columns_of, True),
}


# Chains that must become one kernel, and one that cannot.


def residual_norm_mlir(case):
    t, v, result, cast = elementwise_type(case), vector_type(case), f"tensor<?x{case.columns}xf32>", ""
    if case.dtype != "f32":
        cast = f"%4 = arith.extf %3 : {t} to {result}"
    return f"""func.func @$NAME(%x: {t}, %r: {t}, %w: {v}, %s: {t}) -> ({t}, {result}) {{
  %1 = arith.addf %x, %r : {t}
  %2 = greta.rms_norm %1, %w {{eps = {EPS_TEXT} : f32}} : {t}, {v} -> {t}
  %3 = arith.mulf %2, %s : {t}
  {cast}
  return %1, {"%4" if cast else "%3"} : {t}, {result}
}}"""


def residual_norm_inputs(case, rows, rng):
    yield varied_rows(rng, (rows, case.columns)), case.dtype
    yield rng.standard_normal((rows, case.columns)), case.dtype
    yield 1 + 0.2 * rng.standard_normal(case.columns), case.dtype
    yield 1 + rng.random((rows, case.columns)), case.dtype


def residual_norm(x, r, w, s, rounded):
    total = rounded(x + r)
    return [total, rounded(rounded(rms_norm(total, w)) * s)]


def rope_pair_mlir(case):
    d = rope_columns(case)
    q, k, table = f"tensor<?x{ROPE_HEADS}x{d}x{case.dtype}>", f"tensor<?x1x{d}x{case.dtype}>", f"tensor<?x{d // 2}xf32>"
    return f"""func.func @$NAME(%q: {q}, %k: {k}, %cos: {table}, %sin: {table}) -> ({q}, {k}) {{
  %0 = greta.rope %q, %cos, %sin {{style = "neox"}} : {q}, {table}, {table} -> {q}
  %1 = greta.rope %k, %cos, %sin {{style = "neox"}} : {k}, {table}, {table} -> {k}
  return %0, %1 : {q}, {k}
}}"""


def rope_pair_inputs(case, rows, rng):
    q, cos, sin = rope_inputs(case, rows, rng)
    yield q
    yield rng.standard_normal((rows, 1, rope_columns(case))), case.dtype
    yield cos
    yield sin


def rope_pair(q, k, cos, sin):
    return [rope_neox(q, cos, sin), rope_neox(k, cos, sin)]


def swiglu_chain_mlir(case):
    t = elementwise_type(case)
    return f"""func.func @$NAME(%gate: {t}, %up: {t}, %residual: {t}) -> {t} {{
  %0 = arith.addf %gate, %residual : {t}
  %1 = greta.swiglu %0, %up : {t}, {t} -> {t}
  %2 = arith.addf %1, %residual : {t}
  return %2 : {t}
}}"""


def swiglu_chain_inputs(case, rows, rng):
    yield from swiglu_inputs(case, rows, rng)
    yield rng.standard_normal((rows, case.columns)), case.dtype


def swiglu_chain(gate, up, residual, rounded):
    return rounded(rounded(swiglu(rounded(gate + residual), up)) + residual)


def norm_matmul_mlir(case):
    t, v, b, result = elementwise_type(case), vector_type(case), f"tensor<{case.columns}x{MATMUL_OTHER}x{case.dtype}>", f"tensor<?x{MATMUL_OTHER}x{case.dtype}>"
    return f"""func.func @$NAME(%x: {t}, %w: {v}, %b: {b}) -> {result} {{
  %0 = greta.rms_norm %x, %w {{eps = {EPS_TEXT} : f32}} : {t}, {v} -> {t}
  %1 = greta.matmul %0, %b : {t}, {b} -> {result}
  return %1 : {result}
}}"""


def norm_matmul_inputs(case, rows, rng):
    yield from rms_norm_inputs(case, rows, rng)
    yield rng.standard_normal((case.columns, MATMUL_OTHER)) / np.sqrt(case.columns), case.dtype


def norm_matmul(x, w, b, rounded):
    return rounded(rounded(rms_norm(x, w)) @ b)


SINGLE_OPS = tuple(OPS)
OPS |= {
    "residual_norm": Op(residual_norm_mlir, residual_norm_inputs, residual_norm, roundings=3),
    "rope_pair": Op(rope_pair_mlir, rope_pair_inputs, rope_pair),
    "swiglu_chain": Op(swiglu_chain_mlir, swiglu_chain_inputs, swiglu_chain, roundings=3),
    "norm_matmul": Op(norm_matmul_mlir, norm_matmul_inputs, norm_matmul, roundings=2),
}
CHAINS = tuple(op for op in OPS if op not in SINGLE_OPS)


def cases(dtype, columns=COLUMNS, ops=SINGLE_OPS):
    return [Case(op, dtype, c) for op in ops for c in columns]


def by_name(name):
    op, dtype, columns = name.rsplit("_", 2)
    return Case(op, dtype, int(columns))
