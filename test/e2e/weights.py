"""Formats of packed weights for test_weights.py: the functions, their inputs, and their definition in float64 NumPy, which knows the formats from their
sources: ggml's blocks (the gguf package's quants.py), OCP's MX specification, QLoRA's appendix E, and
OCP's specification of 8-bit floats.

A name says everything: weights_FORMAT_USE_GROUP_M_N_K_RESULT, where USE is "product", "wide", a product of bf16 with a result of f32, or "alone", a kernel
that unpacks. Weights are of bf16 where the result is or the product is wide, else of f16. Words are random, so that all bits of all weights count.
"""

import dataclasses

import numpy as np

from case import Kind, Matmul, rounded_to, tensor, varied_rows

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0]
NF4 += [0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]

IQ4_NL = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])
E4M3 = np.array([(-1) ** (w >> 7) * (w % 8 / 8 + ((w >> 3) % 16 > 0)) * 2.0 ** (max(1, (w >> 3) % 16) - 7) for w in range(256)])
# Without NaN, and without a zero's sign, which is left to the compiler.
FLOATS = [w for w in range(256) if w not in (127, 128, 255)]


@dataclasses.dataclass(frozen=True)
class Format:
    bits: int
    high: int = 0  # bits of a weight in words of their own
    number: object = lambda w: w  # of a weight's bits
    minima: bool = False
    powers: bool = False  # scales are exponents of two plus 127
    wide: bool = False  # scales are of f32
    rows: int = 1  # that share a scale
    bytes: object = None  # that a weight may be, of all 256
    size: float = 1  # about how large numbers are
    interleaved: bool = False  # rows in twos, and weights in pairs


FORMATS = {
    "q4_0": Format(4, number=lambda w: w - 8, size=4),
    "q4_1": Format(4, minima=True, size=4),
    "q4_k": Format(4, minima=True, size=4),
    "q4_0_interleaved": Format(4, number=lambda w: w - 8, size=4, interleaved=True),
    "q4_k_interleaved": Format(4, minima=True, size=4, interleaved=True),
    "q5_0": Format(4, 1, number=lambda w: w - 16, size=8),
    "q5_1": Format(4, 1, minima=True, size=8),
    "q5_k": Format(4, 1, minima=True, size=8),
    "q6_k": Format(4, 2, number=lambda w: w - 32, size=16),
    "q2_k": Format(4, minima=True, size=4),
    "q3_k": Format(4, number=lambda w: w - 4, size=4),
    "iq4_nl": Format(4, number=lambda w: IQ4_NL[w], size=64),
    "q8_0": Format(8, number=lambda w: w - 256 * (w > 127), size=64),
    "mxfp4": Format(4, number=lambda w: np.where(w < 8, 1, -1) * E2M1[w % 8] + 0.0, powers=True, size=2),
    "nf4": Format(4, number=lambda w: rounded_to("f16", np.array(NF4))[w], size=0.5),
    "e4m3": Format(8, number=lambda w: E4M3[w], wide=True, bytes=FLOATS, size=128),
    "e4m3_block": Format(8, number=lambda w: E4M3[w], wide=True, rows=128, bytes=FLOATS, size=128),
}


def in_pairs(words, bits):
    """Weight e of a word begins at bit bits * (e // 2) + 16 * (e % 2)."""
    e = np.arange(32 // bits)
    return ((words[:, :, None] >> (bits * (e // 2) + 16 * (e % 2))) & ((1 << bits) - 1)).reshape(len(words), -1)


def in_order(words, bits):
    return ((words[:, :, None] >> np.arange(0, 32, bits)) & ((1 << bits) - 1)).reshape(len(words), -1)


def apart(interleaved, columns, k):
    """The rows of an operand that has two of them together: what 32 weights of one have, or a group of more, then of the other."""
    unit = max(1, columns * 32 // k)
    return interleaved.reshape(-1, columns // unit, 2, unit).swapaxes(1, 2).reshape(-1, columns)


@dataclasses.dataclass(frozen=True)
class Weights(Matmul, family="weights"):
    format: str  # without the underscore, which parts a name
    use: str
    group: int
    m: int
    n: int
    k: int
    dtype: str  # of the result
    layout = "nt"

    @property
    def row(self):
        return next(row for name, row in FORMATS.items() if name.replace("_", "") == self.format)

    @property
    def mlir_format(self):
        return next(name for name in FORMATS if name.replace("_", "") == self.format)

    @property
    def spec(self):
        return KINDS[self.use]

    @property
    def title(self):
        return f"{self.use} {self.format}"

    @property
    def has_matrix_product(self):
        return self.use != "alone" and self.m > 16  # fewer rows take what the model says

    @property
    def element(self):
        return "bf16" if self.dtype == "bf16" or self.use == "wide" else "f16"

    @property
    def operand_types(self):
        return {self.element}


def dequant(p):
    """The arguments of packed weights, and the line that unpacks them."""
    row, b = p.row, tensor(p.n, p.k, p.element)
    arguments = {"%q": tensor(p.n, p.k * row.bits // 32, "i32")}
    if row.high:
        arguments["%high"] = tensor(p.n, p.k * row.high // 32, "i32")
    arguments["%scales"] = tensor(-(-p.n // row.rows), p.k // p.group, "i8" if row.powers else "f32" if row.wide else "f16")
    if row.minima:
        arguments["%minima"] = tensor(p.n, p.k // p.group, "f16")
    line = f'  %b = greta.dequant {", ".join(arguments)} {{format = "{p.mlir_format}", group = {p.group}}} : {", ".join(arguments.values())} -> {b}\n'
    return ", ".join(f"{name}: {type}" for name, type in arguments.items()), line, b


def product_mlir(p, target):
    a, y = tensor(p.m, p.k, p.element), tensor(p.m, p.n, p.dtype)
    arguments, line, b = dequant(p)
    return f"""func.func @{p.name}(%a: {a}, {arguments}) -> {y} {{
{line}  %0 = greta.matmul %a, %b {{transpose_b}} : {a}, {b} -> {y}
  return %0 : {y}
}}"""


def alone_mlir(p, target):
    arguments, line, b = dequant(p)
    return f"func.func @{p.name}({arguments}) -> {b} {{\n{line}  return %b : {b}\n}}"


def packed_inputs(p, rng):
    row = p.row
    groups = -(-p.n // row.rows), p.k // p.group
    words = lambda bits: rng.integers(-(2**31), 2**31, (p.n, p.k * bits // 32))
    if row.bytes:  # products without weights that are denormal, which gfx90a takes for zero
        of = [w for w in row.bytes if p.use == "alone" or abs(row.number(w)) >= 2.0**-8]
        words = lambda bits: rng.choice(np.array(of, np.uint8), (p.n, p.k)).view(np.int32)
    yield words(row.bits), "i32"
    if row.high:
        yield words(row.high), "i32"
    unit = 1 / 32 if row.bytes and p.use != "alone" else 1 / (row.size * np.sqrt(p.k))
    if row.powers:
        # A scale of zero leaves a zero's sign to the compiler, so it is among products.
        exponents = rng.choice([0, *range(116, 122)], groups) if p.use != "alone" else rng.integers(103, 142, groups)
        yield (exponents + 128) % 256 - 128, "i8"
    else:
        yield (scales := rng.uniform(0.5, 1.5, groups) * unit), "f32" if row.wide else "f16"
    if row.minima:  # a weight of zero bits is near, below or above all of a group; none is so small that it is denormal, which gfx90a takes for zero
        yield (rng.integers(-4.5 * row.size, 0.5 * row.size, groups) + rng.uniform(0.25, 0.75, groups)) * scales, "f16"


def product_inputs(p, rng):
    yield varied_rows(rng, (p.m, p.k)), p.element
    yield from packed_inputs(p, rng)


def dequantised(p, rounded, q, *others):
    row, others = p.row, list(others)
    if row.interleaved:
        q, *others = (apart(operand, operand.shape[1], p.k) for operand in (q, *others))
    if row.high:
        number = in_pairs(q, row.bits) | in_pairs(others.pop(0), row.high) << row.bits
    else:
        number = (in_pairs if row.interleaved else in_order)(q, row.bits)
    number, scales = row.number(number).astype(np.float64), others.pop(0)
    if row.powers:
        scales = np.where(scales % 256 == 0, 0, 2.0 ** (scales % 256 - 127))
    weights = number * scales.repeat(row.rows, axis=0)[: p.n].repeat(p.group, axis=1)
    if row.minima:
        weights = (rounded_to("f16", weights) if rounded.apart and p.element == "f16" else weights) + others.pop(0).repeat(p.group, axis=1)
    if rounded.packed:
        return weights
    return rounded_to(p.element, rounded_to("f32", weights) if row.wide else weights)


def product(p, rounded, a, *weights):
    return p.multiply(a, dequantised(p, rounded, *weights))


KINDS = {
    "product": Kind(product_mlir, product_inputs, product, "gemm chain", ("packed weights", "packed sums", "minimum added apart")),
    "wide": Kind(product_mlir, product_inputs, product, "gemm", ("packed weights",)),
    "alone": Kind(alone_mlir, packed_inputs, dequantised, "exact"),
}
GROUPS = {"q4_0": (32, 128), "q4_1": (64,), "q4_k": (32,), "q5_0": (32, 64), "q5_1": (128,), "q5_k": (32,), "q6_k": (16, 128), "q8_0": (32, 128), "mxfp4": (32,), "nf4": (64,), "e4m3": (32, 128), "e4m3_block": (128,)}
PAIRS = [(name.replace("_", ""), group) for name, groups in GROUPS.items() for group in groups]
CASES = [Weights(f, "product", g, m, n, k, "f16") for f, g in PAIRS for m, n, k in ((1, 33, 1152), (3, 33, 1152), (8, 33, 1152), (33, 33, 1152), (130, 33, 1152), (1, 130, 4096), (16, 129, 384))]
CASES += [Weights(f, "product", g, m, 33, 1152, "f32") for f, g in PAIRS for m in (2, 33)]
# More than a tile of columns, of which tiles at the edge are no whole rows of scales.
CASES += [Weights("e4m3block", "product", 128, m, 192, 384, "f16") for m in (33, 130)]
CASES += [Weights(f, "alone", g, 1, 33, k, "f16") for f, g in PAIRS for k in (128, 1152)]
# Rows above cover these formats but for minima of 16 weights and for codes.
CASES += [Weights(f, use, g, m, 33, 384, "f16") for f, g in (("q2k", 16), ("q3k", 16), ("iq4nl", 32)) for use, m in (("alone", 1), ("product", 1), ("product", 33))]
# Rows in twos; heads, experts and slices of them are in test/llm.
INTERLEAVED = ("q40interleaved", 32), ("q4kinterleaved", 64)
CASES += [Weights(f, "product", g, m, n, k, "f16") for f, g in INTERLEAVED for m, n, k in ((1, 34, 1152), (3, 34, 1152), (8, 34, 1152), (33, 34, 1152), (130, 34, 1152), (1, 130, 4096), (16, 130, 384))]
CASES += [Weights(f, "product", g, m, 34, 384, "bf16") for f, g in INTERLEAVED for m in (1, 33)] + [Weights(f, "alone", g, 1, 34, 1152, "f16") for f, g in INTERLEAVED]
OF_BF16 = {name.replace("_", ""): groups for name, groups in {**GROUPS, "q2_k": (16,), "q3_k": (16,), "iq4_nl": (32,)}.items()}
CASES += [Weights(f, "product", g[-1], m, 33, 384, "bf16") for f, g in OF_BF16.items() for m in (1, 33)]
CASES += [Weights(f, "wide", OF_BF16[f][0], m, 33, 384, "f32") for f in ("q40", "q5k", "e4m3") for m in (2, 33)]
CASES += [Weights(f, "alone", OF_BF16[f][0], 1, 33, 384, "bf16") for f in ("q40", "q5k", "q80", "mxfp4", "nf4", "e4m3")]
