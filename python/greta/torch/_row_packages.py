"""Softmax, its logarithm and norms of rows as packages: one for each length of rows, for any number of them.

Rows are f16, bf16 or f32 and lie one behind another. The first MOST_LENGTHS lengths of a kind of operator have packages, up to MOST_LENGTH; other lengths, types and
layouts are left to Inductor (_eager.py), whose function is for all of them, and which greta.torch.warm compiles.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from .. import _torch
from .._compile import compile_cached
from .._trace import Shape, Trace, Value
from . import _eager
from ._device import target_of
from ._epilogues import narrowed, widened
from ._operators import aten, implements
from ._products import NAMES, row_by_row

MOST_LENGTHS = 16  # of a kind that have packages: attention's scores come with another length at each step of decoding
MOST_LENGTH = 1 << 16  # a row is one workgroup's; Inductor divides longer ones, which takes half the time where there are few (docs/experiments/torch-gpu.md)


class Recipe(NamedTuple):
    """A package's function of rows [T, length]."""

    op: str  # softmax, log_softmax, layer_norm or rms_norm
    type: str
    result: str
    vectors: tuple[str, ...] = ()  # types of the operands [length], the weight and the bias
    hasWeight: bool = False
    eps: float = 0.0
    length: int = 0

    def text(self) -> str:
        trace = Trace()
        x = trace.argument((None, self.length), self.type)
        vectors = [trace.argument((self.length,), one) for one in self.vectors]
        if self.op == "softmax":
            x = x if self.result == self.type else widened(trace, x)
            return trace.text("rows", [trace.op("softmax", [x], "", x.shape, x.type)])
        rows = _Rows(trace, x, self.length)
        if self.op == "log_softmax":
            made = _log_softmax(rows)
        else:
            made = _norm(rows, self.op == "layer_norm", self.eps, [widened(trace, one) for one in vectors], self.hasWeight)
        return trace.text("rows", [narrowed(trace, made[0], self.result), *made[1:]])


class _Rows:
    """Writes a function's values in f32, [T, length] or [T]."""

    def __init__(self, trace: Trace, x: Value, length: int):
        self.trace, self.length = trace, length
        at = trace.add("arith.constant 0 : index", (), "index")
        size = trace.add(f"tensor.dim {x.name}, {at.name} : {x.mlir}", (), "index").name
        self.x = widened(trace, x)
        self._empty = {shape: self._made(f"tensor.empty({size})", shape) for shape in (x.shape, x.shape[:1])}

    def _made(self, op: str, shape: Shape) -> Value:
        to = Value(self.trace, "", shape, "f32")
        return self.trace.add(f"{op} : {to.mlir}", shape, "f32")

    def applied(self, op: str, value: Value) -> Value:
        return self._made(f"{op} {value.name}", value.shape)

    def spread(self, value: Value, like: Value) -> Value:
        """A value [T], [length] or [] repeated to the shape of another."""
        dims = [dim for dim, size in enumerate(like.shape) if size not in value.shape]
        empty = self._empty[like.shape]
        return self.trace.add(f"linalg.broadcast ins({value.name} : {value.mlir}) outs({empty.name} : {empty.mlir}) dimensions = {dims}", like.shape, "f32")

    def number(self, number: float, like: Value) -> Value:
        return self.spread(self.trace.add(f"arith.constant dense<{number:.9e}> : tensor<f32>", (), "f32"), like)

    def reduced(self, op: str, value: Value, start: str) -> Value:
        """One number for each row [T]; `start` changes none."""
        empty = self._empty[value.shape[:1]]
        number = self.trace.add(f"arith.constant {start} : f32", (), "f32")
        init = self.trace.add(f"linalg.fill ins({number.name} : f32) outs({empty.name} : {empty.mlir}) -> {empty.mlir}", empty.shape, "f32")
        return self.trace.add(f"linalg.reduce {{ {op} }} ins({value.name} : {value.mlir}) outs({init.name} : {init.mlir}) dimensions = [1]", init.shape, "f32")

    def mean(self, value: Value) -> Value:
        total = self.reduced("arith.addf", value, "0.0")
        return total / self.number(float(self.length), total)


def _log_softmax(rows: _Rows) -> list[Value]:
    most = rows.reduced("arith.maximumf", rows.x, "0xFF800000")
    below = rows.x - rows.spread(most, rows.x)
    total = rows.reduced("arith.addf", rows.applied("math.exp", below), "0.0")
    return [below - rows.spread(rows.applied("math.log", total), rows.x)]


def _norm(rows: _Rows, isCentred: bool, eps: float, vectors: list[Value], hasWeight: bool) -> list[Value]:
    """The result, then each row's mean, if there is one, and the reciprocal of its deviation."""
    x, statistics = rows.x, []
    if isCentred:
        statistics.append(rows.mean(x))
        x = x - rows.spread(statistics[0], x)
    variance = rows.mean(x * x)
    statistics.append(rows.applied("math.rsqrt", variance + rows.number(eps, variance)))
    result = x * rows.spread(statistics[-1], x)
    for index, vector in enumerate(vectors):
        other = rows.spread(vector, x)
        result = result * other if hasWeight and index == 0 else result + other
    return [result, *statistics]


@functools.lru_cache(None)
def _compiled(recipe: Recipe, target: str) -> _torch.Kernel:
    return _torch.Kernel(compile_cached(recipe.text(), target), "rows")


_lengths: dict[Recipe, set[int]] = {}  # that have packages, by kind


def _is_kept(kind: Recipe, length: int) -> bool:
    if _eager.is_for_all_sizes():
        return False
    known = _lengths.setdefault(kind, set())
    if len(known) < MOST_LENGTHS and length <= MOST_LENGTH:
        known.add(length)
    return length in known


def _fits(x: torch.Tensor, *others: torch.Tensor) -> bool:
    """Whether a package takes these rows as they lie, and vectors of these types on their device."""
    isRight = x.dtype in NAMES and x.is_contiguous() and x.data_ptr() % 16 == 0
    return isRight and all(one.dtype in NAMES and one.device == x.device for one in others)


def _launch(kind: Recipe, x: torch.Tensor, length: int, vectors: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> None:
    with torch.rdna.device(x.device):
        kernel = _compiled(kind._replace(length=length), target_of(x.device.index))
        kernel([x.view(-1, length), *map(row_by_row, vectors)], [results[0].view(-1, length), *(one.view(-1) for one in results[1:])])


def _softmax(op: str, x: torch.Tensor, dim: int, out: torch.Tensor) -> Any:
    if not x.dim() or dim % x.dim() != x.dim() - 1 or not _fits(x) or not _fits(out) or out.shape != x.shape or x.device != out.device:
        return NotImplemented
    if not x.numel():
        return out
    kind = Recipe(op, NAMES[x.dtype], NAMES[out.dtype])
    if kind.result not in (kind.type, "f32") or x.untyped_storage().data_ptr() == out.untyped_storage().data_ptr() or not _is_kept(kind, x.shape[-1]):
        return NotImplemented
    _launch(kind, x, x.shape[-1], (), (out,))
    return out


@implements(aten._softmax.out)
def _softmax_out(x: torch.Tensor, dim: int, half_to_float: bool, *, out: torch.Tensor) -> Any:
    return _softmax("softmax", x, dim, out)


@implements(aten._log_softmax.out)
def _log_softmax_out(x: torch.Tensor, dim: int, half_to_float: bool, *, out: torch.Tensor) -> Any:
    return _softmax("log_softmax", x, dim, out)


def _normalised(op: str, x: torch.Tensor, shape: Sequence[int], weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float, statistics: int) -> Any:
    vectors = [one for one in (weight, bias) if one is not None]
    length, outer = math.prod(shape), x.dim() - len(shape)
    isRight = len(shape) > 0 and outer >= 0 and all(list(one) == list(shape) for one in (x.shape[max(outer, 0) :], *(one.shape for one in vectors)))
    if not isRight or not x.numel() or not math.isfinite(eps) or not _fits(x, *vectors):
        return NotImplemented
    kind = Recipe(op, NAMES[x.dtype], NAMES[x.dtype], tuple(NAMES[one.dtype] for one in vectors), weight is not None, eps)
    if not _is_kept(kind, length):
        return NotImplemented
    out = torch.empty_like(x)
    numbers = [torch.empty((*x.shape[:outer], *(1 for _ in shape)), dtype=torch.float32, device=x.device) for _ in range(statistics)]
    _launch(kind, x, length, [one.flatten() for one in vectors], (out, *numbers))
    return out, *numbers


@implements(aten.native_layer_norm.default)
def _layer_norm(x: torch.Tensor, shape: Sequence[int], weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float) -> Any:
    """With each row's mean and the reciprocal of its deviation in f32."""
    return _normalised("layer_norm", x, shape, weight, bias, eps, 2)


@implements(aten._fused_rms_norm.default)
def _rms_norm(x: torch.Tensor, shape: Sequence[int], weight: torch.Tensor | None, eps: float | None) -> Any:
    """With the reciprocal of each row's root mean square in f32; torch's own eps for narrow types is that of f32, too."""
    return _normalised("rms_norm", x, shape, weight, None, torch.finfo(torch.float32).eps if eps is None else eps, 1)


@implements(torch.ops.greta.layer_norm.default)
def _greta_layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, eps: float) -> Any:
    made = _layer_norm(x, x.shape[-1:], weight, bias, eps)
    return made if made is NotImplemented else made[0]


@implements(torch.ops.greta.rms_norm.default)
def _greta_rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> Any:
    made = _rms_norm(x, x.shape[-1:], weight, eps)
    return made if made is NotImplemented else made[0]
