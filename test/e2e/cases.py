"""Row ops, matmul and chains of them with a dynamic number of rows, for test_numerics.py and test_fusion.py: the functions, their inputs, and
their definition in float64 NumPy.

Inputs are random with what breaks careless kernels mixed in: rows of very different size (a sum of squares that f16 cannot hold), rows far
from zero (a variance computed as E[x²] - E[x]² dies), and for softmax rows whose exponentials overflow unless the maximum is taken off.
"""

import dataclasses

import numpy as np

import limits
from case import EPS, EPS_TEXT, Case, Kind, varied_rows

COLUMNS = (1, 7, 64, 1000, 4096, 32768)
ROWS = (1, 3, 128)
ELEMENT_TYPES = ("f32", "f16", "bf16")
ROPE_HEADS = 2
# Two matmuls per column count, so that it is both the depth (short and long K loops, cut off in the middle) and the width of the result.
MATMUL_OTHER = 33


@dataclasses.dataclass(frozen=True)
class RowOp(Case, family="row"):
    op: str
    dtype: str
    columns: int
    rows: int

    @classmethod
    def parse(cls, *texts):
        *op, dtype, columns, rows = texts
        return cls("_".join(op), dtype, int(columns), int(rows))

    @property
    def function(self):
        return f"{self.op}_{self.dtype}_{self.columns}"

    @property
    def title(self):
        return self.op

    @property
    def depth(self):
        return MATMUL_OTHER if "wide" in self.op else self.columns

    @property
    def one_row(self):
        return self.is_gemm and limits.counts_as_one_row(self.columns if "wide" in self.op else MATMUL_OTHER, self.depth)

    @property
    def spec(self):
        return OPS[self.op]

    @property
    def is_gemm(self):
        return "matmul" in self.op

    def mlir(self, target=None):
        return super().mlir(target).replace("$NAME", self.function)


def once(function):
    """A definition that rounds nothing but its result."""
    return lambda case, rounded, *inputs: function(*inputs)


def elementwise_type(case):
    return f"tensor<?x{case.columns}x{case.dtype}>"


def vector_type(case):
    return f"tensor<{case.columns}x{case.dtype}>"


def rms_norm_mlir(case, target):
    t, v = elementwise_type(case), vector_type(case)
    return f"""func.func @$NAME(%x: {t}, %w: {v}) -> {t} {{
  %0 = greta.rms_norm %x, %w {{eps = {EPS_TEXT} : f32}} : {t}, {v} -> {t}
  return %0 : {t}
}}"""


def rms_norm_inputs(case, rng):
    yield varied_rows(rng, (case.rows, case.columns)), case.dtype
    yield 1 + 0.2 * rng.standard_normal(case.columns), case.dtype


def row_scale(x):
    return 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(EPS))


def rms_norm(x, w):
    return x * row_scale(x) * w


def product_of_norm(rounded, x, w, product):
    """Alone, or in one kernel, which scales the rows of the result."""
    return product(rounded(x * w)) * row_scale(x) if rounded.fused_norm else product(rounded(rms_norm(x, w)))


def layer_norm_mlir(case, target):
    t, v = elementwise_type(case), vector_type(case)
    return f"""func.func @$NAME(%x: {t}, %w: {v}, %b: {v}) -> {t} {{
  %0 = greta.layer_norm %x, %w, %b {{eps = {EPS_TEXT} : f32}} : {t}, {v}, {v} -> {t}
  return %0 : {t}
}}"""


def layer_norm_inputs(case, rng):
    yield from rms_norm_inputs(case, rng)
    yield 1 + 0.5 * rng.random(case.columns), case.dtype


def layer_norm(x, w, b):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + np.float32(EPS)) * w + b


def softmax_mlir(case, target):
    t = elementwise_type(case)
    return f"""func.func @$NAME(%x: {t}) -> {t} {{
  %0 = greta.softmax %x : {t} -> {t}
  return %0 : {t}
}}"""


def softmax_inputs(case, rng):
    x = rng.standard_normal((case.rows, case.columns))
    row = np.arange(case.rows)[:, None]
    yield x * np.where(row % 2, 4.0, 1.0) + np.choose(row % 3, [100.0, -100.0, 0.0]), case.dtype


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def swiglu_mlir(case, target):
    t = elementwise_type(case)
    return f"""func.func @$NAME(%gate: {t}, %up: {t}) -> {t} {{
  %0 = greta.swiglu %gate, %up : {t}, {t} -> {t}
  return %0 : {t}
}}"""


def swiglu_inputs(case, rng):
    yield 4 * rng.standard_normal((case.rows, case.columns)), case.dtype
    yield rng.standard_normal((case.rows, case.columns)), case.dtype


def swiglu(gate, up):
    return gate / (1 + np.exp(-gate)) * up


def rope_columns(case):
    """A head's width is even: 1 and 7 columns become 2 and 14."""
    return case.columns if case.columns % 2 == 0 else 2 * case.columns


def rope_mlir(case, target):
    d = rope_columns(case)
    t, table = f"tensor<?x{ROPE_HEADS}x{d}x{case.dtype}>", f"tensor<?x{d // 2}xf32>"
    return f"""func.func @$NAME(%x: {t}, %cos: {table}, %sin: {table}) -> {t} {{
  %0 = greta.rope %x, %cos, %sin {{style = "{case.op.removeprefix('rope_')}"}} : {t}, {table}, {table} -> {t}
  return %0 : {t}
}}"""


def rope_inputs(case, rng):
    d = rope_columns(case)
    yield varied_rows(rng, (case.rows, ROPE_HEADS, d)), case.dtype
    angle = np.arange(case.rows)[:, None] * 10000.0 ** (-np.arange(d // 2) * 2 / d) + rng.random((case.rows, 1))
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


def matmul_mlir(k, n, transposed):
    def build(case, target):
        kk, nn = k(case.columns), n(case.columns)
        a, b = f"tensor<?x{kk}x{case.dtype}>", f"tensor<{nn}x{kk}x{case.dtype}>" if transposed else f"tensor<{kk}x{nn}x{case.dtype}>"
        result, attribute = f"tensor<?x{nn}x{case.dtype}>", "{transpose_b} " if transposed else ""
        return f"""func.func @$NAME(%a: {a}, %b: {b}) -> {result} {{
  %0 = greta.matmul %a, %b {attribute}: {a}, {b} -> {result}
  return %0 : {result}
}}"""

    return build


def matmul_inputs(k, n, transposed):
    def build(case, rng):
        kk, nn = k(case.columns), n(case.columns)
        yield rng.standard_normal((case.rows, kk)), case.dtype
        yield rng.standard_normal((nn, kk) if transposed else (kk, nn)) / np.sqrt(kk), case.dtype

    return build


def matmul_op(k, n, transposed):
    reference = (lambda a, b: a @ b.T) if transposed else (lambda a, b: a @ b)
    return Kind(matmul_mlir(k, n, transposed), matmul_inputs(k, n, transposed), once(reference), "gemm")


def columns_of(case_columns):
    return case_columns


def other(case_columns):
    return MATMUL_OTHER


OPS = {
    "rms_norm": Kind(rms_norm_mlir, rms_norm_inputs, once(rms_norm), "row op"),
    "layer_norm": Kind(layer_norm_mlir, layer_norm_inputs, once(layer_norm), "layer norm"),
    "softmax": Kind(softmax_mlir, softmax_inputs, once(softmax), "row op"),
    "rope_neox": Kind(rope_mlir, rope_inputs, once(rope_neox), "row op"),
    "rope_gptj": Kind(rope_mlir, rope_inputs, once(rope_gptj), "row op"),
    "swiglu": Kind(swiglu_mlir, swiglu_inputs, once(swiglu), "row op"),
    "matmul_deep": matmul_op(columns_of, other, False),
    "matmul_deep_nt": matmul_op(columns_of, other, True),
    "matmul_wide": matmul_op(other, columns_of, False),
    "matmul_wide_nt": matmul_op(other, columns_of, True),
}


# Chains that must become one kernel, and one that cannot.


def residual_norm_mlir(case, target):
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


def residual_norm_inputs(case, rng):
    yield varied_rows(rng, (case.rows, case.columns)), case.dtype
    yield rng.standard_normal((case.rows, case.columns)), case.dtype
    yield 1 + 0.2 * rng.standard_normal(case.columns), case.dtype
    yield 1 + rng.random((case.rows, case.columns)), case.dtype


def residual_norm(case, rounded, x, r, w, s):
    total = rounded(x + r)
    return [total, rounded(rms_norm(total, w)) * s]


def rope_pair_mlir(case, target):
    d = rope_columns(case)
    q, k, table = f"tensor<?x{ROPE_HEADS}x{d}x{case.dtype}>", f"tensor<?x1x{d}x{case.dtype}>", f"tensor<?x{d // 2}xf32>"
    return f"""func.func @$NAME(%q: {q}, %k: {k}, %cos: {table}, %sin: {table}) -> ({q}, {k}) {{
  %0 = greta.rope %q, %cos, %sin {{style = "neox"}} : {q}, {table}, {table} -> {q}
  %1 = greta.rope %k, %cos, %sin {{style = "neox"}} : {k}, {table}, {table} -> {k}
  return %0, %1 : {q}, {k}
}}"""


def rope_pair_inputs(case, rng):
    q, cos, sin = rope_inputs(case, rng)
    yield q
    yield rng.standard_normal((case.rows, 1, rope_columns(case))), case.dtype
    yield cos
    yield sin


def rope_pair(q, k, cos, sin):
    return [rope_neox(q, cos, sin), rope_neox(k, cos, sin)]


def swiglu_chain_mlir(case, target):
    t = elementwise_type(case)
    return f"""func.func @$NAME(%gate: {t}, %up: {t}, %residual: {t}) -> {t} {{
  %0 = arith.addf %gate, %residual : {t}
  %1 = greta.swiglu %0, %up : {t}, {t} -> {t}
  %2 = arith.addf %1, %residual : {t}
  return %2 : {t}
}}"""


def swiglu_chain_inputs(case, rng):
    yield from swiglu_inputs(case, rng)
    yield rng.standard_normal((case.rows, case.columns)), case.dtype


def swiglu_chain(case, rounded, gate, up, residual):
    return rounded(swiglu(rounded(gate + residual), up)) + residual


def norm_matmul_mlir(case, target):
    t, v, b, result = elementwise_type(case), vector_type(case), f"tensor<{case.columns}x{MATMUL_OTHER}x{case.dtype}>", f"tensor<?x{MATMUL_OTHER}x{case.dtype}>"
    return f"""func.func @$NAME(%x: {t}, %w: {v}, %b: {b}) -> {result} {{
  %0 = greta.rms_norm %x, %w {{eps = {EPS_TEXT} : f32}} : {t}, {v} -> {t}
  %1 = greta.matmul %0, %b : {t}, {b} -> {result}
  return %1 : {result}
}}"""


def norm_matmul_inputs(case, rng):
    yield from rms_norm_inputs(case, rng)
    yield rng.standard_normal((case.columns, MATMUL_OTHER)) / np.sqrt(case.columns), case.dtype


def norm_matmul(case, rounded, x, w, b):
    return product_of_norm(rounded, x, w, lambda a: a @ b)


SINGLE_OPS = tuple(OPS)
OPS |= {
    "residual_norm": Kind(residual_norm_mlir, residual_norm_inputs, residual_norm, "chain"),
    "rope_pair": Kind(rope_pair_mlir, rope_pair_inputs, once(rope_pair), "row op"),
    "swiglu_chain": Kind(swiglu_chain_mlir, swiglu_chain_inputs, swiglu_chain, "chain"),
    "norm_matmul": Kind(norm_matmul_mlir, norm_matmul_inputs, norm_matmul, "gemm chain", ("fused norm",)),
}
CHAINS = tuple(op for op in OPS if op not in SINGLE_OPS)


def cases(dtype, columns=COLUMNS, ops=SINGLE_OPS, rows=(1,)):
    return [RowOp(op, dtype, c, r) for op in ops for c in columns for r in rows]
