"""Parts of tensors as kernels read and compute them, for test_slices.py: the functions, their inputs, and their definition in float64 NumPy.
Names say everything: slice_KIND_LAYOUT_M_N_K_DTYPE, with LAYOUT "nt" for A as it is and B transposed.
"""

import dataclasses

import numpy as np

import gemms
from case import EPS_TEXT, Kind, Matmul, tensor
from cases import rms_norm, rope_gptj, rope_neox, softmax, swiglu


@dataclasses.dataclass(frozen=True)
class Slice(Matmul, family="slice"):
    kind: str
    layout: str
    m: int
    n: int
    k: int
    dtype: str

    @property
    def has_matrix_product(self):
        return super().has_matrix_product and self.spec.limit.startswith("gemm")

    # Types and ops of the functions.

    def type(self, *shape):
        return tensor(*shape, self.dtype)

    def matmul(self, name, a, b, m, n, rest=()):
        """A product of values that lie as the layout says."""
        types = [self.type(*rest, *self.stored(m, self.k, "a")), self.type(*self.stored(self.k, n, "b"))]
        return f"  {name} = greta.matmul {a}, {b} {{{', '.join(self.flags)}}} : {', '.join(types)} -> {self.type(*rest, m, n)}\n"


def part(name, source, offsets, sizes, of, to):
    ones = ", ".join("1" for _ in sizes)
    return f"  {name} = tensor.extract_slice {source}[{', '.join(map(str, offsets))}] [{', '.join(map(str, sizes))}] [{ones}] : {of} to {to}\n"


def function(p, arguments, body, **results):
    names, types = ", ".join(f"%{name}" for name in results), ", ".join(results.values())
    return f"func.func @{p.name}({arguments}) -> ({types}) {{\n{body}  return {names} : {types}\n}}\n"


ROWS = "  %zero = arith.constant 0 : index\n  %m = tensor.dim {0}, %zero : {1}\n"


# Operands of ops on rows: halves of rows, with rows of any number.


def halves_mlir(p, target):
    x, y = p.type("?", 2 * p.n), p.type("?", p.n)
    body = ROWS.format("%x", x) + "".join(part(f"%{i}", "%x", (0, i * p.n), ("%m", p.n), x, y) for i in (0, 1))
    return function(p, f"%x: {x}", body + f"  %y = greta.swiglu %0, %1 : {y}, {y} -> {y}\n", y=y)


def halves_inputs(p, rng):
    yield rng.standard_normal((p.m, 2 * p.n)), p.dtype


def halves(p, rounded, x):
    return swiglu(x[:, : p.n], x[:, p.n :])


# Rows and columns from the middle; the weight, too.


def norm_mlir(p, target):
    x, w, y, v = p.type(p.m + 5, p.n + 4), p.type(p.n + 9), p.type(p.m, p.n), p.type(p.n)
    body = part("%0", "%x", (3, 1), (p.m, p.n), x, y) + part("%1", "%w", (7,), (p.n,), w, v)
    return function(p, f"%x: {x}, %w: {w}", body + f"  %y = greta.rms_norm %0, %1 {{eps = {EPS_TEXT} : f32}} : {y}, {v} -> {y}\n", y=y)


def norm_inputs(p, rng):
    yield rng.standard_normal((p.m + 5, p.n + 4)), p.dtype
    yield 1 + 0.2 * rng.standard_normal(p.n + 9), p.dtype


def norm(p, rounded, x, w):
    return rms_norm(x[3:-2, 1:-3], w[7:-2])


# One matrix of several, whose rows are then looked at; and a result that a slice is copied to.


def picked_mlir(p, target):
    x, z, y = p.type(3, p.m, p.n + 1), p.type(p.m, p.n + 1), p.type(p.m, p.n)
    body = part("%0", "%x", (2, 0, 0), (1, p.m, p.n + 1), x, z) + part("%1", "%0", (0, 1), (p.m, p.n), z, y)
    body += f"  %y = greta.softmax %1 : {y} -> {y}\n" + part("%c", "%x", (1, 0, p.n), (1, p.m, 1), x, p.type(p.m))
    return function(p, f"%x: {x}", body, y=y, c=p.type(p.m))


def picked_inputs(p, rng):
    yield rng.standard_normal((3, p.m, p.n + 1)), p.dtype


def picked(p, rounded, x):
    return [softmax(x[2, :, 1:]), x[1, :, p.n]]


# Queries and keys among their values, in rows, with heads of K; rope reads them where they are.


def heads_type(p, m, count=1):
    return p.type(m, count * p.n // p.k, p.k)


def rope_mlir(p, target):
    x, y, table = p.type("?", 3 * p.n), p.type("?", p.n), tensor("?", p.k // 2, "f32")
    heads = heads_type(p, "?")
    body = ROWS.format("%x", x)
    for i, name in enumerate("qk"):
        body += part(f"%{i}", "%x", (0, i * p.n), ("%m", p.n), x, y)
        body += f"  %h{i} = tensor.expand_shape %{i} [[0], [1, 2]] output_shape [%m, {p.n // p.k}, {p.k}] : {y} into {heads}\n"
        body += f'  %{name} = greta.rope %h{i}, %cos, %sin {{style = "{p.layout}"}} : {heads}, {table}, {table} -> {heads}\n'
    return function(p, f"%x: {x}, %cos: {table}, %sin: {table}", body, q=heads, k=heads)


def tables(p, rng):
    angle = rng.uniform(0, 2 * np.pi, (p.m, p.k // 2))
    yield np.cos(angle), "f32"
    yield np.sin(angle), "f32"


def rope_inputs(p, rng):
    yield rng.standard_normal((p.m, 3 * p.n)), p.dtype
    yield from tables(p, rng)


def turned(p, x, cos, sin):
    return {"neox": rope_neox, "gptj": rope_gptj}[p.layout](x.reshape(p.m, -1, p.k), cos, sin)


def rope(p, rounded, x, cos, sin):
    return [turned(p, x[:, i * p.n : (i + 1) * p.n], cos, sin) for i in (0, 1)]


# Slices of what a kernel before computes.


def computed_mlir(p, target):
    x, w, y = p.type("?", 2 * p.n), p.type(2 * p.n), p.type("?", p.n)
    body = ROWS.format("%x", x) + f"  %z = greta.rms_norm %x, %w {{eps = {EPS_TEXT} : f32}} : {x}, {w} -> {x}\n"
    body += "".join(part(f"%{i}", "%z", (0, i * p.n), ("%m", p.n), x, y) for i in (0, 1))
    return function(p, f"%x: {x}, %w: {w}", body + f"  %y = arith.subf %0, %1 : {y}\n", y=y)


def computed_inputs(p, rng):
    yield rng.standard_normal((p.m, 2 * p.n)), p.dtype
    yield 1 + 0.2 * rng.standard_normal(2 * p.n), p.dtype


def computed(p, rounded, x, w):
    z = rounded(rms_norm(x, w))
    return z[:, : p.n] - z[:, p.n :]


# Both operands of a GEMM; rows of several matrices, which then follow one another with gaps; such rows as one matrix, a copy.


def around(shape, before, after):
    return [n + x + y for n, x, y in zip(shape, before, after)]


def operands_mlir(p, target):
    shapes = p.shapes
    a, b = p.type(*around(shapes[0], (1, 5), (2, 3))), p.type(*around(shapes[1], (2, 8), (1, 8)))
    body = part("%0", "%a", (1, 5), shapes[0], a, p.type(*shapes[0])) + part("%1", "%b", (2, 8), shapes[1], b, p.type(*shapes[1]))
    return function(p, f"%a: {a}, %b: {b}", body + p.matmul("%y", "%0", "%1", p.m, p.n), y=p.type(p.m, p.n))


def operands_inputs(p, rng):
    yield rng.standard_normal(around(p.shapes[0], (1, 5), (2, 3))), p.dtype
    yield rng.standard_normal(around(p.shapes[1], (2, 8), (1, 8))) / np.sqrt(p.k), p.dtype


def operands(p, rounded, a, b):
    return p.multiply(a[1:-2, 5:-3], b[2:-1, 8:-8])


def batch_mlir(p, target):
    a, b = p.type(3, p.m + 1, p.k), p.type(*p.shapes[1])
    inner, rows, y = p.type(2, p.m, p.k), p.type(2 * p.m, p.k), p.type(2 * p.m, p.n)
    body = part("%0", "%a", (1, 0, 0), (2, p.m, p.k), a, inner) + p.matmul("%y", "%0", "%b", p.m, p.n, (2,))
    body += f"  %1 = tensor.collapse_shape %0 [[0, 1], [2]] : {inner} into {rows}\n" + p.matmul("%z", "%1", "%b", 2 * p.m, p.n)
    return function(p, f"%a: {a}, %b: {b}", body, y=p.type(2, p.m, p.n), z=y)


def batch_inputs(p, rng):
    yield rng.standard_normal((3, p.m + 1, p.k)), p.dtype
    yield p.weights(rng, p.n)


def batch(p, rounded, a, b):
    y = p.multiply(a[1:, : p.m], b)
    return [y, y.reshape(-1, p.n)]


# Halves of a product's columns are two GEMMs of one A: in one kernel with what they meet in.


def pair_mlir(p, target):
    a, b, wide, y = p.type(*p.shapes[0]), p.type(*p.stored(p.k, 2 * p.n, "b")), p.type(p.m, 2 * p.n), p.type(p.m, p.n)
    body = p.matmul("%0", "%a", "%b", p.m, 2 * p.n) + f"""  %e = tensor.empty() : {wide}
  %r = linalg.broadcast ins(%bias : {p.type(2 * p.n)}) outs(%e : {wide}) dimensions = [0]
  %1 = arith.addf %0, %r : {wide}
""" + "".join(part(f"%p{i}", "%1", (0, i * p.n), (p.m, p.n), wide, y) for i in (0, 1))
    return function(p, f"%a: {a}, %b: {b}, %bias: {p.type(2 * p.n)}", body + f"  %y = greta.swiglu %p0, %p1 : {y}, {y} -> {y}\n", y=y)


def pair_inputs(p, rng):
    yield p.activations(rng)
    yield p.weights(rng, 2 * p.n)
    yield rng.standard_normal(2 * p.n), p.dtype


def pair(p, rounded, a, b, bias):
    y = rounded(rounded(p.multiply(a, b)) + bias)
    return swiglu(y[:, : p.n], y[:, p.n :])


def packed_types(p, n):
    return gemms.w4_types(dataclasses.replace(p, kind="w4128", n=n))


def packed_mlir(p, target):
    q, scales, zeros, b, group = packed_types(p, 2 * p.n)
    a, wide, y = p.type(p.m, p.k), p.type(p.m, 2 * p.n), p.type(p.m, p.n)
    body = f"  %b = greta.dequant %q, %s, %z {{group = {group}}} : {q}, {scales}, {zeros} -> {b}\n" + p.matmul("%0", "%a", "%b", p.m, 2 * p.n)
    body += "".join(part(f"%p{i}", "%0", (0, i * p.n), (p.m, p.n), wide, y) for i in (0, 1))
    return function(p, f"%a: {a}, %q: {q}, %s: {scales}, %z: {zeros}", body + f"  %y = greta.swiglu %p0, %p1 : {y}, {y} -> {y}\n", y=y)


def packed_inputs(p, rng):
    yield rng.standard_normal((p.m, p.k)), p.dtype
    yield from gemms.packed_inputs(dataclasses.replace(p, n=2 * p.n), rng, 128)


def packed(p, rounded, a, *weights):
    y = rounded(p.multiply(a, gemms.dequantised(p, rounded, *weights)))
    return swiglu(y[:, : p.n], y[:, p.n :])


# Queries, keys and values: columns of one GEMM (qkvneox64: heads of 64, one of them for keys and values each), or three GEMMs (threeneox64).
# Queries and keys are roped in the kernel that computes them, all three side by side.


def head_of(p):
    return p.kind[-6:-2], int(p.kind[-2:])


def qkv_mlir(p, target):
    style, d = head_of(p)
    widths = p.n, d, d
    a, y, table = p.type(p.m, p.k), p.type(p.m, p.n + 2 * d), tensor(p.m, d // 2, "f32")
    weight = lambda n: p.type(*p.stored(p.k, n, "b"))
    if p.kind.startswith("qkv"):
        arguments = f"%b: {weight(p.n + 2 * d)}"
        body = p.matmul("%y", "%a", "%b", p.m, p.n + 2 * d)
        for i, width in enumerate(widths):
            body += part(f"%{i}", "%y", (0, sum(widths[:i])), (p.m, width), y, p.type(p.m, width))
    else:
        arguments = ", ".join(f"%b{i}: {weight(width)}" for i, width in enumerate(widths))
        body = "".join(p.matmul(f"%{i}", "%a", f"%b{i}", p.m, width) for i, width in enumerate(widths))
    for i, width in enumerate(widths[:2]):
        heads = p.type(p.m, width // d, d)
        body += f"  %h{i} = tensor.expand_shape %{i} [[0], [1, 2]] output_shape [{p.m}, {width // d}, {d}] : {p.type(p.m, width)} into {heads}\n"
        body += f'  %{"qk"[i]} = greta.rope %h{i}, %cos, %sin {{style = "{style}"}} : {heads}, {table}, {table} -> {heads}\n'
    body = body.replace("%2 =", "%v =")
    return function(p, f"%a: {a}, {arguments}, %cos: {table}, %sin: {table}", body, q=p.type(p.m, p.n // d, d), k=p.type(p.m, 1, d), v=p.type(p.m, d))


def qkv_inputs(p, rng):
    d = head_of(p)[1]
    yield rng.standard_normal((p.m, p.k)), p.dtype
    for n in (p.n + 2 * d,) if p.kind.startswith("qkv") else (p.n, d, d):
        yield p.weights(rng, n)
    angle = rng.uniform(0, 2 * np.pi, (p.m, d // 2))
    yield np.cos(angle), "f32"
    yield np.sin(angle), "f32"


def qkv(p, rounded, a, *rest):
    *weights, cos, sin = rest
    style, d = head_of(p)
    y = rounded(np.concatenate([p.multiply(a, b) for b in weights], axis=1))
    turn = {"neox": rope_neox, "gptj": rope_gptj}[style]
    q, k, v = np.split(y, (p.n, p.n + d), axis=1)
    return [turn(q.reshape(p.m, -1, d), cos, sin), turn(k.reshape(p.m, 1, d), cos, sin), v]


KINDS = {
    "halves": Kind(halves_mlir, halves_inputs, halves, "row op"),
    "norm": Kind(norm_mlir, norm_inputs, norm, "row op"),
    "picked": Kind(picked_mlir, picked_inputs, picked, "row op"),
    "rope": Kind(rope_mlir, rope_inputs, rope, "row op"),
    "computed": Kind(computed_mlir, computed_inputs, computed, "chain", kernels=2),
    "operands": Kind(operands_mlir, operands_inputs, operands),
    "batch": Kind(batch_mlir, batch_inputs, batch, kernels=3),
    **{f"{kind}{style}{d}": Kind(qkv_mlir, qkv_inputs, qkv, "gemm, row op") for kind in ("qkv", "three") for style in ("neox", "gptj") for d in (16, 32, 64)},
    "pair": Kind(pair_mlir, pair_inputs, pair, "gemm, row op"),
    "packed": Kind(packed_mlir, packed_inputs, packed, "gemm chain", gemms.PACKED_PAIR),
}
