"""The table of test_triton_operators.py: operators of Triton's language, what NumPy says they are, and the kernels that compute many at once.

A kernel has all operators of one kind of type (kernel_source): compiling it costs little more than compiling one, and a case is one operator's part of its output.
In expressions x and y are blocks of shape [A, B], c is a block of booleans; NumPy's side gets the same, floats in float64.
"""

import numpy as np

# name: (Triton's expression, NumPy's function of x, y). None: the same expression.
BOTH = {
    "add": ("x + y", np.add),
    "sub": ("x - y", np.subtract),
    "mul": ("x * y", np.multiply),
    "neg": ("-x", lambda x, y: -x),
    "abs": ("tl.abs(x)", lambda x, y: abs(x)),
    "maximum": ("tl.maximum(x, y)", np.maximum),
    "minimum": ("tl.minimum(x, y)", np.minimum),
    "clamp": ("tl.minimum(tl.maximum(x, y), y + y)", lambda x, y: np.minimum(np.maximum(x, y), y + y)),
    "less": ("(x < y).to(x.dtype)", np.less),
    "less_equal": ("(x <= y).to(x.dtype)", np.less_equal),
    "equal": ("(x == y).to(x.dtype)", np.equal),
    "not_equal": ("(x != y).to(x.dtype)", np.not_equal),
    "where": ("tl.where(x > y, x, y + y)", lambda x, y: np.where(x > y, x, y + y)),
    "broadcast_row": ("x + tl.broadcast_to(tl.sum(y, 0, keep_dims=True), (A, B)).to(x.dtype)", lambda x, y: x + wrap_sum(y, 0)),
    "sum_rows": ("tl.broadcast_to(tl.sum(x, 1, keep_dims=True), (A, B)).to(x.dtype)", lambda x, y: wrap_sum(x, 1) + 0 * x),
    "max_rows": ("tl.broadcast_to(tl.max(x, 1, keep_dims=True), (A, B)).to(x.dtype)", lambda x, y: x.max(1, keepdims=True) + 0 * x),
    "min_columns": ("tl.broadcast_to(tl.min(x, 0, keep_dims=True), (A, B)).to(x.dtype)", lambda x, y: x.min(0, keepdims=True) + 0 * x),
    "argmax": ("tl.broadcast_to(tl.argmax(x, 1, keep_dims=True), (A, B)).to(x.dtype)", lambda x, y: x.argmax(1)[:, None] + np.zeros_like(x)),
    "argmin": ("tl.broadcast_to(tl.argmin(x, 0, keep_dims=True), (A, B)).to(x.dtype)", lambda x, y: x.argmin(0)[None, :] + np.zeros_like(x)),
    "cumsum": ("tl.cumsum(x, 1).to(x.dtype)", lambda x, y: wrap(np.cumsum(x, 1), x)),
    "cumsum_reversed": ("tl.cumsum(x, 0, reverse=True).to(x.dtype)", lambda x, y: wrap(np.cumsum(x[::-1], 0)[::-1], x)),
    "trans": ("tl.reshape(tl.trans(x), (A, B))", lambda x, y: x.T.reshape(x.shape)),
    "reshape": ("tl.reshape(tl.reshape(x, (B, A)) + tl.reshape(y, (B, A)), (A, B))", np.add),
    "join_split": ("tl.reshape(tl.join(x, y), (2, A, B)).sum(0).to(x.dtype)", lambda x, y: wrap_sum(np.stack([x, y], -1).reshape(2, *x.shape), 0)[0]),
    "flip": ("tl.flip(x, 1)", lambda x, y: x[:, ::-1]),
    "sort": ("tl.sort(x, 1)", lambda x, y: np.sort(x, 1)),
}
FLOATS = BOTH | {
    "div": ("x / y", np.divide),
    "fma": ("tl.fma(x, y, x)", lambda x, y: x * y + x),
    "exp": ("tl.exp(x.to(W)).to(x.dtype)", lambda x, y: np.exp(x)),
    "exp2": ("tl.exp2(x.to(W)).to(x.dtype)", lambda x, y: np.exp2(x)),
    "log": ("tl.log(tl.abs(x.to(W)) + 1).to(x.dtype)", lambda x, y: np.log(abs(x) + 1)),
    "log2": ("tl.log2(tl.abs(x.to(W)) + 1).to(x.dtype)", lambda x, y: np.log2(abs(x) + 1)),
    "sqrt": ("tl.sqrt(tl.abs(x.to(W))).to(x.dtype)", lambda x, y: np.sqrt(abs(x))),
    "rsqrt": ("tl.rsqrt(tl.abs(x.to(W)) + 1).to(x.dtype)", lambda x, y: 1 / np.sqrt(abs(x) + 1)),
    "sin": ("tl.sin(x.to(W)).to(x.dtype)", lambda x, y: np.sin(x)),
    "cos": ("tl.cos(x.to(W)).to(x.dtype)", lambda x, y: np.cos(x)),
    "sigmoid": ("tl.sigmoid(x.to(W)).to(x.dtype)", lambda x, y: 1 / (1 + np.exp(-x))),
    "softmax": ("(tl.exp(x.to(W)) / tl.sum(tl.exp(x.to(W)), 1, keep_dims=True)).to(x.dtype)", lambda x, y: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "floor": ("tl.floor(x.to(W)).to(x.dtype)", lambda x, y: np.floor(x)),
    "ceil": ("tl.ceil(x.to(W)).to(x.dtype)", lambda x, y: np.ceil(x)),
    "to_int": ("x.to(tl.int32).to(x.dtype)", lambda x, y: np.trunc(x)),
    "to_half": ("x.to(tl.float16).to(x.dtype)", lambda x, y: x.astype(np.float16).astype(float)),
}
INTEGERS = BOTH | {
    "div": ("x // (y | 1)", lambda x, y: truncated(x, y | 1)[0]),
    "mod": ("x % (y | 1)", lambda x, y: truncated(x, y | 1)[1]),
    "and": ("x & y", np.bitwise_and),
    "or": ("x | y", np.bitwise_or),
    "xor": ("x ^ y", np.bitwise_xor),
    "not": ("~x", lambda x, y: ~x),
    "shift_left": ("x << (y & 7)", lambda x, y: x << (y & 7)),
    "shift_right": ("x >> (y & 7)", lambda x, y: x >> (y & 7)),
    "xor_sum": ("tl.broadcast_to(tl.xor_sum(x, 1, keep_dims=True), (A, B)).to(x.dtype)", lambda x, y: np.bitwise_xor.reduce(x, 1)[:, None] | np.zeros_like(x)),
    "to_float": ("x.to(tl.float32).to(x.dtype)", lambda x, y: x.astype(np.float32).astype(x.dtype)),
    "to_byte": ("x.to(tl.int8).to(x.dtype)", lambda x, y: x.astype(np.int8).astype(x.dtype)),
    "to_long": ("(x.to(tl.int64) * 3 + y).to(x.dtype)", lambda x, y: (x.astype(np.int64) * 3 + y.astype(np.int64)).astype(x.dtype)),
}
TABLES = {"float": FLOATS, "integer": INTEGERS}
# The terms of sums in their own type, and the axis of each sum.
SUMS = {
    "broadcast_row": (lambda x, y: (y, 0)),
    "sum_rows": (lambda x, y: (x, 1)),
    "cumsum": (lambda x, y: (x, 1)),
    "cumsum_reversed": (lambda x, y: (x, 0)),
}
# The size near which a result is computed where it may itself be near zero.
NEAR = {"log": 1, "log2": 1, "sin": 1, "cos": 1, "fma": 8, "sub": 0}


def wrap(value, like):
    """Integers wrap around as the narrow type does."""
    return value.astype(like.dtype)


def wrap_sum(value, axis):
    return wrap(value.sum(axis, keepdims=True), value)


def truncated(x, y):
    """The quotient and the remainder of division towards zero, as C has them."""
    wide = np.int64 if x.dtype.kind == "i" else np.uint64
    quotient = np.abs(x.astype(wide)) // np.abs(y.astype(wide)) * (np.sign(x.astype(wide)) * np.sign(y.astype(wide)))
    return quotient.astype(x.dtype), (x.astype(wide) - quotient * y.astype(wide)).astype(x.dtype)


def kernel_source(kind, names):
    """The module of a kernel that computes these operators, each into a block of its own in `out`."""
    lines = ["import triton", "import triton.language as tl", "", "", "@triton.jit", "def kernel(px, py, out, A: tl.constexpr, B: tl.constexpr, W: tl.constexpr):"]
    lines += ["    at = tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]", "    x = tl.load(px + at)", "    y = tl.load(py + at)"]
    for place, name in enumerate(names):
        lines.append(f"    tl.store(out + {place} * A * B + at, {TABLES[kind][name][0]})")
    return "\n".join(lines) + "\n"
