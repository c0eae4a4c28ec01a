"""Skinny GEMMs for test_skinny.py: the functions, their inputs, and their definition in float64 NumPy.

Unlike the cases of cases.py these have a static number of rows, which is what the compiler chooses its schedule for skinny GEMMs by. A name says
everything: product_KIND_LAYOUT_M_N_K_DTYPE.
"""

import dataclasses

import numpy as np

from case import EPS_TEXT, Kind, Matmul, rounded_to, tensor, varied_rows
from cases import product_of_norm, rope_gptj, rope_neox


@dataclasses.dataclass(frozen=True)
class Product(Matmul, family="product"):
    kind: str
    layout: str
    m: int
    n: int
    k: int
    dtype: str

    def mlir(self, target=None):
        return super().mlir(target).replace("$NAME", self.name)

    @property
    def precision(self):
        return "i32" if self.dtype == "i8" else self.dtype


def matmul(p, result):
    a, b = (tensor(*shape, p.dtype) for shape in p.shapes)
    return f"greta.matmul %a, %b {{{', '.join(p.flags)}}} : {a}, {b} -> {result}"


def plain_mlir(p, target):
    a, b = (tensor(*shape, p.dtype) for shape in p.shapes)
    result = tensor(p.m, p.n, "i32" if p.dtype == "i8" else p.dtype)
    return f"""func.func @$NAME(%a: {a}, %b: {b}) -> {result} {{
  %0 = {matmul(p, result)}
  return %0 : {result}
}}"""


def plain_inputs(p, rng):
    if p.dtype == "i8":
        yield rng.integers(-128, 128, p.shapes[0]), "i8"
        yield rng.integers(-128, 128, p.shapes[1]), "i8"
        return
    a = varied_rows(rng, (p.m, p.k))
    yield a.T if p.layout[0] == "t" else a, p.dtype
    yield rng.standard_normal(p.shapes[1]) / np.sqrt(p.k), p.dtype


def layer_mlir(p, target):
    """silu(a b + bias) + residual, the middle in f32."""
    a, b = (tensor(*shape, p.dtype) for shape in p.shapes)
    y, wide, bias = tensor(p.m, p.n, p.dtype), tensor(p.m, p.n, "f32"), tensor(p.n, "f32")
    return f"""func.func @$NAME(%a: {a}, %b: {b}, %bias: {bias}, %residual: {y}) -> {y} {{
  %0 = {matmul(p, y)}
  %1 = arith.extf %0 : {y} to {wide}
  %e = tensor.empty() : {wide}
  %2 = linalg.broadcast ins(%bias : {bias}) outs(%e : {wide}) dimensions = [0]
  %3 = arith.addf %1, %2 : {wide}
  %4 = arith.negf %3 : {wide}
  %5 = math.exp %4 : {wide}
  %one = arith.constant dense<1.0> : {wide}
  %6 = arith.addf %5, %one : {wide}
  %7 = arith.divf %3, %6 : {wide}
  %8 = arith.truncf %7 : {wide} to {y}
  %9 = arith.addf %8, %residual : {y}
  return %9 : {y}
}}"""


def layer_inputs(p, rng):
    yield rng.standard_normal(p.shapes[0]), p.dtype
    yield rng.standard_normal(p.shapes[1]) / np.sqrt(p.k), p.dtype
    yield rng.standard_normal(p.n), "f32"
    yield rng.standard_normal((p.m, p.n)), p.dtype


def layer(p, rounded, a, b, bias, residual):
    z = rounded(p.multiply(a, b)) + bias
    return rounded(z / (1 + np.exp(-z))) + residual


def w8_mlir(p, target):
    """Weights of 8 bits with a scale per column of the result."""
    a, b = (tensor(*shape, p.dtype) for shape in p.shapes)
    q, scale, y = tensor(*p.shapes[1], "i8"), tensor(p.n, p.dtype), tensor(p.m, p.n, p.dtype)
    return f"""func.func @$NAME(%a: {a}, %q: {q}, %scale: {scale}) -> {y} {{
  %f = arith.sitofp %q : {q} to {b}
  %e = tensor.empty() : {b}
  %s = linalg.broadcast ins(%scale : {scale}) outs(%e : {b}) dimensions = [{1 if p.layout[1] == "t" else 0}]
  %b = arith.mulf %f, %s : {b}
  %0 = {matmul(p, y)}
  return %0 : {y}
}}"""


def w8_inputs(p, rng):
    yield varied_rows(rng, (p.m, p.k)), p.dtype
    yield rng.integers(-128, 128, p.shapes[1]), "i8"
    yield rng.uniform(0.5, 1.5, p.n) / (64 * np.sqrt(p.k)), p.dtype


def w8(p, rounded, a, q, scale):
    return p.multiply(a, rounded(q * (scale[:, None] if p.layout[1] == "t" else scale)))


def normed(p):
    """What KIND norm, normw8, normw4128 .. is of the norm of A."""
    inner = dataclasses.replace(p, kind=p.kind.removeprefix("norm") or "plain")
    return inner, KINDS[inner.kind]


def norm_mlir(p, target):
    inner, kind = normed(p)
    a, w = tensor(p.m, p.k, p.dtype), tensor(p.k, p.dtype)
    head, body = kind.mlir(inner, target).split("{\n", 1)
    norm = f"  %a = greta.rms_norm %x, %w {{eps = {EPS_TEXT} : f32}} : {a}, {w} -> {a}\n"
    return f"{head.replace('%a: ', f'%w: {w}, %x: ')}{{\n{norm}{body}"


def norm_inputs(p, rng):
    inner, kind = normed(p)
    yield rng.uniform(0.5, 1.5, p.k), p.dtype
    yield from kind.inputs(inner, rng)


def norm(p, rounded, w, x, *others):
    inner, kind = normed(p)
    return product_of_norm(rounded, x, w, lambda a: kind.reference(inner, rounded, a, *others))


HEAD = 64


def rope_mlir(p, target):
    """The columns as heads: KIND ropeneox, and ropegptjw4128 or ropeneoxnorm of what follows."""
    inner, kind = roped(p)
    y, heads, table = tensor(p.m, p.n, p.dtype), tensor(p.m, p.n // HEAD, HEAD, p.dtype), tensor(p.m, HEAD // 2, "f32")
    head, body = kind.mlir(inner, target).rsplit(f"  return %0 : {y}", 1)
    head = head.replace(f") -> {y} {{", f", %cos: {table}, %sin: {table}) -> {heads} {{")
    return f"""{head}  %r = tensor.expand_shape %0 [[0], [1, 2]] output_shape [{p.m}, {p.n // HEAD}, {HEAD}] : {y} into {heads}
  %t = greta.rope %r, %cos, %sin {{style = "{p.kind[4:8]}"}} : {heads}, {table}, {table} -> {heads}
  return %t : {heads}
}}"""


def roped(p):
    inner = dataclasses.replace(p, kind=p.kind[8:] or "plain")
    return inner, KINDS[inner.kind]


def rope_inputs(p, rng):
    inner, kind = roped(p)
    yield from kind.inputs(inner, rng)
    angle = rng.uniform(-np.pi, np.pi, (p.m, HEAD // 2))
    yield np.cos(angle), "f32"
    yield np.sin(angle), "f32"


def rope(p, rounded, *inputs):
    inner, kind = roped(p)
    heads = rounded(kind.reference(inner, rounded, *inputs[:-2])).reshape(p.m, -1, HEAD)
    return (rope_neox if p.kind[4:8] == "neox" else rope_gptj)(heads, *inputs[-2:])


BATCH = 3


def batch_types(p):
    """Of A and B: KIND batch, and batchone of one B for all, which is one GEMM with more rows."""
    a, b = p.shapes
    return (BATCH, *a), b if p.kind == "batchone" else (BATCH, *b)


def batch_mlir(p, target):
    (a, b), y = (tensor(*shape, p.dtype) for shape in batch_types(p)), tensor(BATCH, p.m, p.n, p.dtype)
    return f"""func.func @$NAME(%a: {a}, %b: {b}, %r: {y}) -> {y} {{
  %0 = greta.matmul %a, %b {{{", ".join(p.flags)}}} : {a}, {b} -> {y}
  %1 = arith.addf %0, %r : {y}
  return %1 : {y}
}}"""


def batch_inputs(p, rng):
    a, b = batch_types(p)
    yield rng.standard_normal(a), p.dtype
    yield rng.standard_normal(b) / np.sqrt(p.k), p.dtype
    yield rng.standard_normal((BATCH, p.m, p.n)), p.dtype


def batch(p, rounded, a, b, r):
    return rounded(p.multiply(a, b)) + r


def group_of(p):
    """The group's size in "w432", "w4s32" (all zeros are 8) or "w4m32" (with minima)."""
    return next(group for group in (128, 64, 32) if p.kind.endswith(str(group)))


def has_zeros(p):
    return not p.kind.startswith(("w4s", "dequants")) and not has_minima(p)


def has_minima(p):
    return "w4m" in p.kind or p.kind.startswith("dequantm")


def dequant_text(p):
    """The arguments of packed weights, and the line that unpacks them."""
    q, scales, zeros, b, group = w4_types(p)
    arguments = {"%q": q, "%scales": scales} | ({"%zeros": zeros} if has_zeros(p) else {"%minima": scales} if has_minima(p) else {})
    line = f"  %b = greta.dequant {', '.join(arguments)} {{group = {group}}} : {', '.join(arguments.values())} -> {b}\n"
    return ", ".join(f"{name}: {type}" for name, type in arguments.items()), line


def w4_types(p):
    group = group_of(p)
    return tensor(p.n, p.k // 8, "i32"), tensor(p.n, p.k // group, "f16"), tensor(p.n, -(-p.k // group // 8), "i32"), tensor(p.n, p.k, "f16"), group


def w4_mlir(p, target):
    a, y = tensor(p.m, p.k, "f16"), tensor(p.m, p.n, "f16")
    weights, dequant = dequant_text(p)
    return f"""func.func @$NAME(%a: {a}, {weights}) -> {y} {{
{dequant}  %0 = {matmul(p, y)}
  return %0 : {y}
}}"""


def w4_inputs(p, rng):
    yield varied_rows(rng, (p.m, p.k)), "f16"
    yield from packed_inputs(p, rng, group_of(p))


def large_inputs(p, rng):
    """A's sums are beyond f16, the result is not: KIND w4mlarge32."""
    yield rng.uniform(0.9, 1, (p.m, p.k)) * 65000, "f16"
    for array, dtype in packed_inputs(p, rng, group_of(p)):
        yield array if dtype == "i32" else array / 64, dtype


def packed_inputs(p, rng, group):
    words = lambda *shape: rng.integers(-(2**31), 2**31, shape)
    yield words(p.n, p.k // 8), "i32"
    yield rng.uniform(0.5, 1.5, (p.n, p.k // group)) / (4 * np.sqrt(p.k)), "f16"
    if has_zeros(p):
        yield words(p.n, -(-p.k // group // 8)), "i32"
    if has_minima(p):  # a weight of zero is near, below or above all of a group
        yield rng.uniform(-18, 3, (p.n, p.k // group)) / (4 * np.sqrt(p.k)), "f16"


def nibbles(words, count):
    return ((words[:, :, None] >> np.arange(0, 32, 4)) & 15).reshape(len(words), -1)[:, :count].astype(np.float64)


def dequantised(p, rounded, q, scales, zeros=None):
    """`zeros` may be minima: has_minima."""
    group = p.k // scales.shape[1]
    scale = scales.repeat(group, axis=1)
    if has_minima(p):
        product = nibbles(q, p.k) * scale
        weights = (rounded_to("f16", product) if rounded.apart else product) + zeros.repeat(group, axis=1)
    else:
        zero = 8 if zeros is None else nibbles(zeros, p.k // group).repeat(group, axis=1)
        weights = (nibbles(q, p.k) - zero) * scale
    return weights if rounded.packed else rounded_to("f16", weights)


def w4(p, rounded, a, *weights):
    return p.multiply(a, dequantised(p, rounded, *weights))


def alone_mlir(p, target):
    """dequant in a kernel of its own."""
    p = dataclasses.replace(p, kind=p.kind.replace("dequant", "w4"))
    (weights, dequant), b = dequant_text(p), w4_types(p)[3]
    return f"""func.func @$NAME({weights}) -> {b} {{
{dequant}  return %b : {b}
}}"""


PACKED = "packed weights", "packed sums"
PACKED_PAIR = "packed weights", "packed sums of two"
KINDS = {
    "w4mlarge32": Kind(w4_mlir, large_inputs, w4, "gemm chain", PACKED),
    "plain": Kind(plain_mlir, plain_inputs, lambda p, rounded, a, b: p.multiply(a, b)),
    "layer": Kind(layer_mlir, layer_inputs, layer, "gemm chain"),
    "w8": Kind(w8_mlir, w8_inputs, w8, "gemm chain"),
}
for group in (32, 64, 128):
    KINDS[f"w4s{group}"] = Kind(w4_mlir, w4_inputs, w4, "gemm chain", PACKED)
    KINDS[f"dequants{group}"] = Kind(alone_mlir, lambda p, rng, group=group: packed_inputs(p, rng, group), dequantised, "exact")
    KINDS[f"w4m{group}"] = Kind(w4_mlir, w4_inputs, w4, "gemm chain", PACKED)
    KINDS[f"dequantm{group}"] = Kind(alone_mlir, lambda p, rng, group=group: packed_inputs(p, rng, group), dequantised, "exact")
    KINDS[f"w4{group}"] = Kind(w4_mlir, w4_inputs, w4, "gemm chain", PACKED)
    KINDS[f"dequant{group}"] = Kind(alone_mlir, lambda p, rng, group=group: packed_inputs(p, rng, group), dequantised, "exact")

for kind in ("", "w8", "w432", "w4m32", "w4128"):
    KINDS[f"norm{kind}"] = Kind(norm_mlir, norm_inputs, norm, "gemm chain", ("fused norm", *(PACKED if "w4" in kind else ())))
for kind in ("", "norm", "w4128"):
    for style in ("neox", "gptj"):
        KINDS[f"rope{style}{kind}"] = Kind(rope_mlir, rope_inputs, rope, "gemm, row op", KINDS[kind or "plain"].forms)
for kind in ("batch", "batchone"):
    KINDS[kind] = Kind(batch_mlir, batch_inputs, batch, "gemm chain")


FLOATS = ("f16", "bf16", "f32")
# Depths that runs of 16 bytes divide, and that nothing divides; widths below and above a workgroup's.


def in_turn(number, *shapes):
    """All of the shapes but one, another for each number: every type, group and number of rows meets each of them."""
    return [shape for i, shape in enumerate(shapes) if i != number % len(shapes)]


WIDE = (
    [Product("plain", "nt", m, *shape, t) for i, t in enumerate(FLOATS) for j, m in enumerate((1, 2, 3, 16)) for shape in in_turn(i + j, (33, 1000), (7, 129), (130, 4096))]
    + [Product("plain", layout, m, n, k, t) for t in FLOATS for layout, m, n, k in (("nn", 1, 200, 1000), ("nn", 3, 33, 129), ("tn", 2, 200, 129), ("tt", 2, 33, 1000), ("tt", 16, 7, 129))]
    + [Product("plain", "nt", m, n, k, "i8") for m in (1, 16) for n, k in ((33, 1000), (7, 129))]
    + [Product("layer", "nt", m, 33, 1000, t) for t in ("f16", "bf16") for m in (1, 3)]
    + [Product("w8", layout, m, 33, k, t) for t in ("f16", "bf16", "f32") for layout, m in (("nt", 1), ("nt", 16), ("nn", 2)) for k in (129, 1008)]
    + [Product(f"w4{g}", "nt", m, *shape, "f16") for i, g in enumerate((32, 64, 128)) for j, m in enumerate((1, 2, 3, 16)) for shape in in_turn(i + j, (33, 1152), (130, 4096))]
    + [Product(f"w4s{g}", "nt", m, 130, 4096, "f16") for g, m in ((32, 1), (32, 8), (64, 3), (128, 16))]
    + [Product(f"w4m{g}", "nt", m, 130, 4096, "f16") for g, m in ((32, 1), (32, 8), (64, 3), (128, 16), (32, 64), (128, 64))]
    + [Product("dequantm32", "nt", 1, 33, 1152, "f16"), Product("dequantm128", "nt", 1, 7, 8192, "f16"), Product("normw4m32", "nt", 3, 33, 1152, "f16"), Product("w4mlarge32", "nt", 1, 33, 1152, "f16")]
    + [Product("dequants32", "nt", 1, 33, 1152, "f16"), *(Product("ropeneoxw4128", "nt", m, 192, 4096, "f16") for m in (8, 16))]
    + [Product(f"dequant{g}", "nt", 1, n, k, "f16") for g in (32, 64, 128) for n, k in ((33, 1152), (7, 8192), (3, 128))]
    + [Product("norm", layout, m, 130, k, t) for t in FLOATS for layout, m, k in (("nt", 1, 17), ("nt", 16, 1000), ("nn", 3, 129))]
    + [Product(kind, "nt", 3, 33, 1152, "f16") for kind in ("normw8", "normw432", "normw4128")]
    + [Product(f"rope{style}", layout, m, n, 1000, t) for style in ("neox", "gptj") for t, layout, m, n in (("f16", "nt", 1, 192), ("f32", "nt", 16, 64), ("bf16", "nn", 3, 320))]
    + [Product(f"ropeneox{kind}", "nt", m, 192, 1152, "f16") for kind in ("norm", "w4128") for m in (1, 3)]
    + [Product("batch", layout, m, 33, k, t) for t, layout, m in (("f16", "nt", 1), ("bf16", "nt", 16), ("f32", "nn", 2), ("f16", "tt", 3)) for k in (17, 1000)]
    + [Product("batchone", layout, 2, 33, 129, "f16") for layout in ("nt", "tt")]
)
NARROW = (
    [Product("plain", "nt", m, 33, k, t) for t in FLOATS for m in (1, 3) for k in (129, 1000)]
    + [Product("plain", "nt", 16, 130, 4096, "f16"), Product("plain", "nn", 1, 200, 1000, "f16"), Product("plain", "tt", 2, 33, 1000, "f16"), Product("plain", "nt", 2, 33, 1000, "i8"), Product("plain", "nn", 4, 8, 4, "i8")]
    + [Product("layer", "nt", 3, 33, 1000, "f16"), Product("w8", "nt", 2, 33, 1008, "f16"), Product("w8", "nt", 1, 33, 129, "bf16"), Product("w8", "nn", 2, 33, 1008, "bf16")]
    + [Product(f"w4{g}", "nt", m, 33, 1152, "f16") for g in (32, 128) for m in (1, 3)]
    + [Product("w4s32", "nt", 8, 33, 1152, "f16"), Product("dequants64", "nt", 1, 33, 1152, "f16"), Product("ropeneoxw4128", "nt", 8, 192, 1152, "f16")]
    + [Product(f"w4m{g}", "nt", m, 33, 1152, "f16") for g, m in ((32, 1), (128, 1), (64, 3), (32, 8), (32, 64), (128, 64))]
    + [Product("dequantm32", "nt", 1, 33, 1152, "f16"), Product("dequantm128", "nt", 1, 3, 1152, "f16"), Product("normw4m32", "nt", 2, 33, 1152, "f16"), Product("w4mlarge32", "nt", 1, 33, 1152, "f16")]
    + [Product("w464", "nt", 16, 33, 1152, "f16"), Product("w432", "nt", 1, 130, 4096, "f16"), Product("dequant128", "nt", 1, 33, 1152, "f16")]
    + [Product("norm", "nt", 1, 130, 1000, "f16"), Product("norm", "nn", 3, 33, 129, "bf16"), Product("norm", "nt", 2, 33, 17, "f32")]
    + [Product("normw4128", "nt", 3, 33, 1152, "f16")]
    + [Product("ropeneox", "nt", 1, 192, 1000, "f16"), Product("ropegptj", "nn", 3, 64, 129, "bf16"), Product("ropeneoxw4128", "nt", 3, 192, 1152, "f16")]
    + [Product("ropegptjnorm", "nt", 1, 192, 1000, "f16"), Product("batch", "nt", 1, 33, 1000, "f16"), Product("batch", "nn", 3, 33, 129, "f32")]
    + [Product("batchone", "nt", 3, 33, 129, "bf16")]
)
