"""Convolutions, for test_convolution.py: the functions, their inputs, and their definition in float64 NumPy.

A name says everything: conv_KIND_DIM_IMAGE_TAPS_WINDOW_DTYPE_OUT, with DIM "s" where all is static, "b" for a dynamic number of images and "d" for dynamic
rows and columns, too; IMAGE the extents of x, TAPS those of w, WINDOW two strides, four numbers of padding, two dilations and the groups. With channels first
in memory it is convfirst_.., whose IMAGE and TAPS have the channels last all the same.
"""

import dataclasses

import numpy as np

from case import Case, Kind, tensor
import limits


def numbers_of(text):
    return tuple(int(one) for one in text.split("x"))


@dataclasses.dataclass(frozen=True)
class Convolution(Case, family="conv"):
    kind: str
    dim: str
    image: str
    taps: str
    window: str
    dtype: str
    out: str

    is_gemm = True
    has_matrix_product = True
    layout = "nhwc"
    order = (0, 1, 2, 3)  # of the dimensions in memory

    @property
    def precision(self):
        return self.out

    @property
    def strides(self):
        return numbers_of(self.window)[:2]

    @property
    def padding(self):
        return numbers_of(self.window)[2:6]

    @property
    def dilations(self):
        return numbers_of(self.window)[6:8]

    @property
    def groups(self):
        return numbers_of(self.window)[8]

    @property
    def depth(self):
        return int(np.prod(numbers_of(self.taps)[1:]))

    @property
    def result_shape(self):
        (b, *image, _), (outputs, *taps, _) = numbers_of(self.image), numbers_of(self.taps)
        before, behind = self.padding[:2], self.padding[2:]
        extents = ((n + p + q - d * (t - 1) - 1) // s + 1 for n, t, s, p, q, d in zip(image, taps, self.strides, before, behind, self.dilations, strict=True))
        return (b, *extents, outputs)

    @property
    def one_row(self):
        return limits.counts_as_one_row(self.stored(self.result_shape)[3], self.depth)

    def stored(self, shape):
        return tuple(shape[dim] for dim in self.order) if len(shape) == 4 else shape

    def said(self, shape, dtype):
        dynamic = {"s": 0, "b": 1, "d": 3}[self.dim]
        return tensor(*self.stored((*(["?"] * dynamic), *shape[dynamic:])), dtype)


@dataclasses.dataclass(frozen=True)
class ChannelsFirst(Convolution, family="convfirst"):
    layout = "nchw"
    order = (0, 3, 1, 2)


def text(p, more, body, result):
    x, w, y = p.said(numbers_of(p.image), p.dtype), tensor(*p.stored(numbers_of(p.taps)), p.dtype), p.said(p.result_shape, p.out)
    bias = tensor(p.result_shape[3], "i32" if p.dtype == "i8" else "f32")
    flags = f"strides = {list(p.strides)}, padding = {list(p.padding)}, dilations = {list(p.dilations)}, groups = {p.groups}, layout = \"{p.layout}\""
    made = f"func.func @{p.name}(%x: {x}, %w: {w}{more}) -> $Y {{\n{body}  return %{result} : $Y\n}}\n"
    made = made.replace("BIASED", f"greta.conv2d %x, %w, %bias {{{flags}}} : {x}, {w}, $V -> $Y")
    made = made.replace("PLAIN", f"greta.conv2d %x, %w {{{flags}}} : {x}, {w} -> $Y")
    made = made.replace("SUMS", f"greta.conv2d %x, %w {{{flags}}} : {x}, {w} -> $S")
    made = made.replace("$S", p.said(p.result_shape, "i32" if p.dtype == "i8" else "f32")).replace("$F", p.said(p.result_shape, "f32"))
    made = made.replace("$N", tensor(p.result_shape[3], "f32"))
    made = made.replace("$P", str([p.order.index(dim) for dim in (0, 1, 2)]))
    return made.replace("$Y", y).replace("$V", bias).replace("$X", x).replace("ELEMENT", p.out)


def convolved(p, x, w):
    """[B, Ho, Wo, KO] of float64."""
    top, left, bottom, right = p.padding
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    b, rows, columns, outputs = p.result_shape
    y = np.zeros((b, rows, columns, outputs))
    channels, each = w.shape[3], outputs // p.groups
    for group in range(p.groups):
        mine = slice(group * each, (group + 1) * each)
        for r in range(w.shape[1]):
            for s in range(w.shape[2]):
                i, j = r * p.dilations[0], s * p.dilations[1]
                seen = x[:, i : i + rows * p.strides[0] : p.strides[0], j : j + columns * p.strides[1] : p.strides[1]][:, :rows, :columns]
                y[..., mine] += seen[..., group * channels : (group + 1) * channels] @ w[mine, r, s].T
    return y


def numbers(p, rng, shape, dtype, scale=1.0):
    return rng.integers(-2, 3, shape) if p.kind == "exact" or dtype == "i8" else rng.standard_normal(shape) * scale


def follows(body, more="", others=lambda p: (), reference=lambda p, r, y: y, limit="gemm"):
    def inputs(p, rng):
        yield numbers(p, rng, p.stored(numbers_of(p.image)), p.dtype), p.dtype
        yield numbers(p, rng, p.stored(numbers_of(p.taps)), p.dtype, 1 / np.sqrt(p.depth)), p.dtype
        for shape, dtype in others(p):
            yield numbers(p, rng, p.stored(shape), dtype), dtype

    def result(p, rounded, *arrays):
        x, w, *rest = (array.transpose(np.argsort(p.order)) if array.ndim == 4 else array for array in arrays)
        return reference(p, rounded, convolved(p, x, w), *rest).transpose(p.order)

    return Kind(lambda p, target: text(p, more, body, "0"), inputs, result, limit)


def norm(sums):
    """A batch norm (a scale and a shift of each channel), a residual and ReLU on sums in f32, `%1`, that are rounded once, at the end."""
    constants = "  %i = arith.constant 0 : index\n  %n = tensor.dim %x, %i : $X\n  %e = tensor.empty(%n) : $F\n  %none = arith.constant 0.0 : f32\n  %z = tensor.splat %none[%n] : $F\n"
    channels = "".join(f"  %{to} = linalg.broadcast ins(%{name} : $N) outs(%e : $F) dimensions = $P\n" for to, name in (("s", "scale"), ("b", "shift")))
    work = "  %2 = arith.mulf %1, %s : $F\n  %3 = arith.addf %2, %b : $F\n  %4 = arith.extf %skip : $Y to $F\n  %5 = arith.addf %3, %4 : $F\n  %6 = arith.maximumf %5, %z : $F\n  %0 = arith.truncf %6 : $F to $Y\n"
    return follows(
        constants + channels + sums + work,
        ", %scale: $N, %shift: $N, %skip: $Y",
        lambda p: [((p.result_shape[3],), "f32")] * 2 + [(p.result_shape, p.out)],
        lambda p, r, y, scale, shift, skip: np.maximum(y * scale + shift + skip, 0),
    )


KINDS = {
    "plain": follows("  %0 = PLAIN\n"),
    "exact": follows("  %0 = BIASED\n", ", %bias: $V", lambda p: [((p.result_shape[3],), "i32" if p.dtype == "i8" else "f32")], lambda p, r, y, bias: y + bias, "exact"),
    "bias": follows("  %0 = BIASED\n", ", %bias: $V", lambda p: [((p.result_shape[3],), "f32")], lambda p, r, y, bias: y + bias),
    # A residual and ReLU behind the bias, whose sums are rounded in between.
    "block": follows(
        "  %1 = BIASED\n  %2 = arith.addf %1, %skip : $Y\n  %i = arith.constant 0 : index\n  %n = tensor.dim %x, %i : $X\n  %none = arith.constant 0.0 : ELEMENT\n  %z = tensor.splat %none[%n] : $Y\n  %0 = arith.maximumf %2, %z : $Y\n",
        ", %bias: $V, %skip: $Y",
        lambda p: [((p.result_shape[3],), "f32"), (p.result_shape, p.out)],
        lambda p, r, y, bias, skip: np.maximum(r(y + bias) + skip, 0),
        "gemm chain",
    ),
    "norm": norm("  %1 = SUMS\n"),
    "integers": norm("  %sums = SUMS\n  %1 = arith.sitofp %sums : $S to $F\n"),
}
