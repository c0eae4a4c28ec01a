"""Fused operators on arrays, compiled for the device in use when they are first called with a kind of arguments.

Arrays come as for functions of packages; results are arrays on the device. In a function decorated with @greta.function the same operators
become one function of the greta dialect, whose kernels are fused.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ._arrays import Array, asarray, package_type
from ._communicator import Communicator
from ._compile import CompileError, compile_cached
from ._devices import device as find_device
from ._devices import targets
from ._package import Function, Package
from ._runtime import Error
from ._trace import Shape, Trace, Value, argument_of


@functools.lru_cache(4096)
def _compiled(text: str, target: str) -> Function:
    (function,) = Package(compile_cached(text, target)).functions.values()
    return function


def _compiled_from(trace: Trace, text: str) -> Function:
    """The function that was traced, for the device in use, or its communicator's. The compiler's refusals are said of the line of Python."""
    try:
        return _compiled(text, targets(find_device() if trace.comm is None else trace.comm.device))
    except CompileError as error:
        raise CompileError(trace.located(str(error))) from None


def _call(name: str, write: Callable[[Trace, list[Value]], Value | list[Value]], shapes: Sequence[Shape], arrays: Sequence[Array]) -> Any:
    """One operator on arrays: `write` writes it for arguments of these shapes. Several results are a tuple."""
    trace = Trace()
    operands = [trace.argument(shape, array.type) for shape, array in zip(shapes, arrays)]
    results = write(trace, operands)
    text = trace.text(name, results if isinstance(results, list) else [results])
    return _compiled_from(trace, text)(*(array.reshape(_fixed(shape, array)) for shape, array in zip(shapes, arrays)))


def _fixed(shape: Shape, array: Array) -> tuple[int, ...]:
    """The shape with its free lengths as the array has them; where it has fewer dimensions, the first is all that comes before the others."""
    if len(shape) == array.ndim:
        return array.shape
    known = 1
    for extent in shape:
        known *= extent if extent is not None else 1
    return tuple(extent if extent is not None else array.size // max(known, 1) for extent in shape)


def _rows(name: str, rows: Sequence[Any], vectors: Sequence[Any] = (), attributes: str = "") -> Any:
    """An operator on rows, any number of them, with vectors that all rows share. The result is like the first."""
    if isinstance(rows[0], Value):
        x = rows[0]
        return x.trace.op(name, [*rows, *vectors], attributes, x.shape, x.type)
    arrays = [asarray(one) for one in (*rows, *vectors)]
    x = arrays[0]
    if x.ndim < 1:
        raise Error(f"{name} takes an array with at least 1 dimension, not one of shape {x.shape}")
    shapes: list[Shape] = [(None, *one.shape[-1:]) for one in arrays[: len(rows)]] + [one.shape for one in arrays[len(rows) :]]
    return _call(name, lambda trace, operands: trace.op(name, operands, attributes, operands[0].shape, operands[0].type), shapes, arrays).reshape(x.shape)


def rms_norm(x: Any, w: Any, eps: float = 1e-5) -> Any:
    """x / sqrt(mean(x^2) + eps) * w over the last dimension."""
    return _rows("rms_norm", [x], [w], f"eps = {eps:.9e} : f32")


def layer_norm(x: Any, w: Any, b: Any, eps: float = 1e-5) -> Any:
    """(x - mean(x)) / sqrt(var(x) + eps) * w + b over the last dimension."""
    return _rows("layer_norm", [x], [w, b], f"eps = {eps:.9e} : f32")


def softmax(x: Any) -> Any:
    """exp(x) / sum(exp(x)) over the last dimension."""
    return _rows("softmax", [x])


def swiglu(gate: Any, up: Any) -> Any:
    """silu(gate) * up."""
    return _rows("swiglu", [gate, up])


def rope(x: Any, cos: Any, sin: Any, style: str = "neox") -> Any:
    """Rotary embedding of x [tokens, heads, size] by cos and sin [tokens, size / 2] in f32; pairs are halves ("neox") or neighbours ("gptj")."""
    attributes = f'style = "{style}"'
    if isinstance(x, Value):
        return x.trace.op("rope", [x, cos, sin], attributes, x.shape, x.type)
    arrays = [asarray(one) for one in (x, cos, sin)]
    shapes: list[Shape] = [(None, *one.shape[1:]) for one in arrays]
    return _call("rope", lambda trace, operands: trace.op("rope", operands, attributes, operands[0].shape, operands[0].type), shapes, arrays)


def _product_type(a: str, out_dtype: Any) -> str:
    if out_dtype is not None:
        return package_type(out_dtype)
    return "i32" if a == "i8" else "f32" if a.startswith("f8") else a


def matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, out_dtype: Any = None) -> Any:
    """a @ b; transpose_b takes b as [N, K], transpose_a a as [K, M]. Leading dimensions are a batch, b's may be missing.

    Accumulates in f32, or i32 for i8; the result is of a's type (f32 for 8-bit floats, i32 for i8) unless out_dtype says f32, f16 or bf16.
    """
    attributes = ", ".join(name for name, is_set in (("transpose_a", transpose_a), ("transpose_b", transpose_b)) if is_set)

    def write(trace: Trace, operands: list[Value]) -> Value:
        a, b = operands
        rows = a.shape[-1 if transpose_a else -2]
        shape = (*a.shape[:-2], rows, b.shape[-2 if transpose_b else -1])
        return trace.op("matmul", operands, attributes, shape, _product_type(a.type, out_dtype))

    if isinstance(a, Value):
        return write(a.trace, [a, a.trace.value(b)])
    arrays = [asarray(a), asarray(b)]
    a = arrays[0]
    if a.ndim < 2 or arrays[1].ndim < 2:
        raise Error(f"matmul takes matrices, not arrays of shapes {a.shape} and {arrays[1].shape}")
    shapes: list[Shape] = [a.shape, arrays[1].shape]
    # Few rows have kernels of their own, for their number.
    few = 64
    if a.ndim == 2 and not transpose_a and a.shape[0] > few:
        shapes[0] = (None, a.shape[1])
    return _call("matmul", write, shapes, arrays)


def grouped_matmul(a: Any, b: Any, offsets: Any, transpose_b: bool = False, out_dtype: Any = None) -> Any:
    """a [T, K] times b[e] of [E, K, N] for the rows offsets[e] to offsets[e + 1] - 1 of each group e; transpose_b takes b as [E, N, K]. Rows of no group are zero.

    offsets [E + 1] in i32 ascend from 0. Types are matmul's.
    """

    def write(trace: Trace, operands: list[Value]) -> Value:
        a, b = operands[:2]
        shape = (a.shape[0], b.shape[-2 if transpose_b else -1])
        return trace.op("grouped_matmul", operands, "transpose_b" if transpose_b else "", shape, _product_type(a.type, out_dtype))

    if isinstance(a, Value):
        return write(a.trace, [a, a.trace.value(b), a.trace.value(offsets)])
    arrays = [asarray(one) for one in (a, b, offsets)]
    a, b = arrays[:2]
    if a.ndim != 2 or b.ndim != 3:
        raise Error(f"grouped_matmul takes a matrix and one for each group, not arrays of shapes {a.shape} and {b.shape}")
    # Few rows of a group have kernels of their own, for their number.
    few = 8
    rows = a.shape[0] if a.shape[0] <= few * b.shape[0] else None
    return _call("grouped_matmul", write, [(rows, a.shape[1]), b.shape, arrays[2].shape], arrays)


def _numbers(name: str, value: int | Sequence[int], count: int) -> list[int]:
    """One number for all, one for rows and one for columns, or each."""
    try:
        numbers = [operator.index(one) for one in (value if isinstance(value, Iterable) else [value])]
    except TypeError:
        numbers = []
    if count % len(numbers or (0,) * (count + 1)):
        raise Error(f"{name} of conv2d is {value!r}; it takes one number, two for rows and columns, or {count}")
    least = 0 if name == "padding" else 1
    if min(numbers) < least:
        raise Error(f"{name} of conv2d is {value!r}; its numbers are at least {least}")
    return numbers * (count // len(numbers))


def conv2d(x: Any, w: Any, bias: Any = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1, out_dtype: Any = None, layout: str = "nhwc") -> Any:
    """Convolution of images x [B, H, W, C] with w [KO, R, S, C / groups], plus bias [KO] of f32 or x's type where there is one, as [B, Ho, Wo, KO]; with layout
    "nchw" x [B, C, H, W] with w [KO, C / groups, R, S] as [B, KO, Ho, Wo].

    stride, padding and dilation are one number or one for rows and one for columns; padding may be four: above, left, below, right. Types are matmul's.
    """
    strides, borders, dilations = _numbers("stride", stride, 2), _numbers("padding", padding, 4), _numbers("dilation", dilation, 2)
    if layout not in ("nhwc", "nchw"):
        raise Error(f"layout of conv2d is {layout!r}; it is 'nhwc' or 'nchw'")
    first = layout == "nchw"
    attributes = f"strides = {strides}, padding = {borders}, dilations = {dilations}, groups = {groups}" + ', layout = "nchw"' * first

    def write(trace: Trace, operands: list[Value]) -> Value:
        x, w = operands[:2]
        image = slice(2, 4) if first else slice(1, 3)
        spans = zip(x.shape[image], w.shape[image], strides, borders[:2], borders[2:], dilations)
        extents = [None if size is None else (size + before + behind - step * (taps - 1) - 1) // by + 1 for size, taps, by, before, behind, step in spans]
        if any(extent is not None and extent < 1 for extent in extents):
            raise Error(f"conv2d has no place for taps of w {w.shape} on images x {x.shape} with padding {borders} and dilation {dilations}")
        shape = (x.shape[0], w.shape[0], *extents) if first else (x.shape[0], *extents, w.shape[0])
        return trace.op("conv2d", operands, attributes, shape, _product_type(x.type, out_dtype))

    given = [x, w] if bias is None else [x, w, bias]
    if isinstance(x, Value):
        return write(x.trace, [x.trace.value(one) for one in given])
    arrays = [asarray(one) for one in given]
    x, w = arrays[:2]
    if x.ndim != 4 or w.ndim != 4:
        raise Error(f"conv2d takes images and weights of 4 dimensions, not arrays of shapes {x.shape} and {w.shape}")
    return _call("conv2d", write, [(None, *x.shape[1:]), *(one.shape for one in arrays[1:])], arrays)


def quantize_rows(x: Any, dtype: Any = "i8") -> Any:
    """(y, scale) of x [T, K]: y in 8 bits, i8 or f8e4m3fn, and scale [T, 1] in f32, the largest magnitude of each row over the largest number of y's type."""

    def write(trace: Trace, operands: list[Value]) -> list[Value]:
        (x,) = operands
        return trace.ops("quantize_rows", operands, "", [(x.shape, package_type(dtype)), ((x.shape[0], 1), "f32")])

    if isinstance(x, Value):
        return tuple(write(x.trace, [x]))
    x = asarray(x)
    if x.ndim != 2:
        raise Error(f"quantize_rows takes a matrix, not an array of shape {x.shape}")
    return _call("quantize_rows", write, [(None, x.shape[1])], [x])


def dequant(q: Any, scales: Any, zeros: Any, group: int, format: str = "gptq4", high: Any = None, dtype: Any = "f16") -> Any:
    """Weights [N, K] in f16 or bf16 from words of i32, q: (number - zero) * scale, per group of K; docs/reference/Greta.md has the formats. "gptq4" has eight of 4 bits in each word of q [N, K / 8]; its zeros (packed likewise) may be None, and each is 8. Zeros of f16 [N, K / group] are minima: number * scale + minimum. Scales of "e4m3" are of f32, and those of "e4m3_block" are [N / 128, K / group]. `high` are words of the upper bits of formats of 5 and 6 bits."""

    def write(trace: Trace, operands: list[Value]) -> Value:
        rows, words = operands[0].shape
        per_word = 4 if format in ("q8_0", "e4m3", "e4m3_block") else 8
        return trace.op("dequant", operands, f'format = "{format}", group = {group}', (rows, None if words is None else per_word * words), package_type(dtype))

    given = [one for one in (q, high, scales, zeros) if one is not None]
    if isinstance(q, Value):
        return write(q.trace, given)
    arrays = [asarray(one) for one in given]
    return _call(f"dequant_{format}", write, [array.shape for array in arrays], arrays)


def dequant_matmul(a: Any, q: Any, scales: Any, zeros: Any, group: int, format: str = "gptq4", high: Any = None) -> Any:
    """matmul(a, dequant(q, scales, zeros, group, format, high, a.dtype), transpose_b=True) in one kernel, which reads the weights as they are packed."""
    return _fused_dequant(a, q, scales, zeros, high, group=group, format=format)


def _attributes(**given: Any) -> str:
    """The attributes that are given, as the dialect prints them."""
    words = []
    for name, value in given.items():
        if value is True:
            words.append(name)
        elif value is not None and value is not False:
            words.append(f"{name} = {value:.9e} : f32" if isinstance(value, float) else f"{name} = {value}")
    return ", ".join(words)


def _named(name: str, operands: Sequence[Any], attributes: str, named: dict[str, Any], results: Callable[[list[Value]], list[tuple[Shape, str]]]) -> Any:
    """An operator with results of these shapes and types, a tuple of several; `named` are the operands, or groups of them, that its syntax names."""
    groups = {word: given if isinstance(given, tuple) else (given,) for word, given in named.items()}
    operands = [*operands, *(operand for group in groups.values() for operand in group)]
    words = [(word, len(group)) for word, group in groups.items()]

    def write(trace: Trace, values: list[Value]) -> Any:
        made = trace.ops(name, values, attributes, results(values), words)
        return made if len(made) > 1 else made[0]

    if isinstance(operands[0], Value):
        return write(operands[0].trace, operands)
    arrays = [asarray(one) for one in operands]
    return _call(name, write, [one.shape for one in arrays], arrays)


def _like_first(name: str, operands: Sequence[Any], attributes: str = "", named: dict[str, Any] | None = None) -> Any:
    """An operator whose result is like its first operand."""
    return _named(name, operands, attributes, named or {}, lambda values: [(values[0].shape, values[0].type)])


def _scales(k_scale: Any, v_scale: Any) -> dict[str, Any]:
    if (k_scale is None) != (v_scale is None):
        raise Error("scales are given for keys and for values, or for neither: pass both, an array of one 1 for what has none")
    return {} if k_scale is None else {"scales": (k_scale, v_scale)}


def _given(**operands: Any) -> dict[str, Any]:
    return {name: value for name, value in operands.items() if value is not None}


def _logits(scale: float | None, window: int | None, softcap: float | None, causal: bool = False) -> str:
    """The attributes that say what becomes of q @ k^T."""
    return _attributes(scale=scale and float(scale), causal=causal, window=window, softcap=softcap and float(softcap))


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: int | None = None,
    softcap: float | None = None,
    lengths: Any = None,
    mask: Any = None,
    k_scale: Any = None,
    v_scale: Any = None,
    with_lse: bool = False,
) -> Any:
    """softmax(scale * q @ k^T + mask) @ v of q [B, Hq, S, D] and k, v [B, Hkv, T, D]; Hkv divides Hq, scale is 1 / sqrt(D) if it is not given.

    `lengths` [B] in i32 are the valid keys; causal rows are aligned at their end. k and v may be of 8 bits; `k_scale` and `v_scale` in f32, [B or 1, Hkv or 1, T or 1], are what they are multiplied by.
    With `with_lse` also the logarithm of each row's sum of exponentials [B, Hq, S], in f32.
    """
    named = _given(lengths=lengths, mask=mask) | _scales(k_scale, v_scale)
    attributes = _logits(scale, window, softcap, causal)
    return _named("attention", [q, k, v], attributes, named, lambda values: [(values[0].shape, values[0].type), (values[0].shape[:3], "f32")][: 1 + with_lse])


def all_reduce(x: Any, comm: Communicator, *, part_rows: int | None = None) -> Any:
    """The sum of x over the ranks, in f32, f16 or bf16; all call the function that has it.

    In a function it is made in parts of `part_rows` rows, each while the next is computed; 0: in one. Without it the compiler chooses.
    """
    if not isinstance(x, Value):
        return comm.all_reduce(asarray(x, device=comm.device))
    if x.trace.comm not in (None, comm):
        raise Error("a function sums over the ranks of one communicator")
    x.trace.comm = comm
    return x.trace.op("all_reduce", [x], "" if part_rows is None else f"part_rows = {part_rows}", x.shape, x.type)


def attention_backward(
    q: Any,
    k: Any,
    v: Any,
    o: Any,
    lse: Any,
    do: Any,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: int | None = None,
    softcap: float | None = None,
    lengths: Any = None,
    mask: Any = None,
) -> Any:
    """(dq, dk, dv) of attention(q, k, v, .., with_lse=True), which gave o and lse, from the gradient of o."""
    attributes = _logits(scale, window, softcap, causal)
    return _named("attention_backward", [q, k, v, o, lse, do], attributes, _given(lengths=lengths, mask=mask), lambda values: [(one.shape, one.type) for one in values[:3]])


def paged_attention(
    q: Any,
    k_cache: Any,
    v_cache: Any,
    table: Any,
    lengths: Any,
    *,
    scale: float | None = None,
    window: int | None = None,
    softcap: float | None = None,
    begins: Any = None,
    sinks: Any = None,
    k_scale: Any = None,
    v_scale: Any = None,
) -> Any:
    """Causal attention of q [B, Hq, S, D] over caches [P, page, Hkv, D], whose pages of sequence b are table[b] and hold lengths[b] keys.

    With `begins` [B + 1] sequences have numbers of rows of their own: q is [T, Hq, D], and begins[b] to begins[b + 1] - 1 are the rows of sequence b, its last tokens.
    `sinks` [Hq] in f32 are a logit per head whose weight goes to no value. Caches may be of 8 bits; `k_scale` and `v_scale` in f32, [P or 1, page or 1, Hkv or 1], are what they are multiplied by.
    """
    return _like_first("paged_attention", [q, k_cache, v_cache, table, lengths], _logits(scale, window, softcap), _given(begins=begins, sinks=sinks) | _scales(k_scale, v_scale))


def kv_update(cache: Any, new: Any, pos: Any) -> Any:
    """The cache [B, H, Tmax, D] with rows pos[b] to pos[b] + S - 1 of sequence b replaced by new [B, H, S, D]."""
    return _like_first("kv_update", [cache, new, pos])


def paged_kv_update(cache: Any, new: Any, slots: Any) -> Any:
    """The cache [P, page, H, D] with new [T, H, D] at slots[t] = page * size + place; negative slots are skipped."""
    return _like_first("paged_kv_update", [cache, new, slots])


class function:
    """A function of arrays and operators that is compiled as one, for each kind of arguments: @greta.function.

    It calls greta.ops and + - * / on arrays of equal shapes; it returns one array or a tuple. Arguments that are no arrays are constants.
    """

    def __init__(self, fn: Callable[..., Any]):
        functools.update_wrapper(self, fn)
        self._fn = fn

    def __call__(self, *arguments: Any, **constants: Any) -> Any:
        arrays = [asarray(one) if hasattr(one, "shape") and hasattr(one, "dtype") else one for one in arguments]
        trace = Trace()
        values = [argument_of(trace, one) if isinstance(one, Array) else one for one in arrays]
        results = self._fn(*values, **constants)
        several = isinstance(results, (tuple, list))
        text = trace.text(self._fn.__name__.strip("_<>") or "function", [trace.value(one) for one in (results if several else (results,))])
        given = _compiled_from(trace, text)(*(one for one in arrays if isinstance(one, Array)), comm=trace.comm)
        return given if not several or isinstance(given, tuple) else (given,)


@function
def _fused_dequant(a: Any, q: Any, scales: Any, zeros: Any, high: Any, group: int, format: str) -> Any:
    return matmul(a, dequant(q, scales, zeros, group, format, high, a.type), transpose_b=True)
