"""Pointwise work on the sums of a product or a convolution, or on attention's result, which its package does in its epilogue: in f32, rounded once.

In: steps, each an op of OPS on earlier values: %0 is the sums, %1 the first step's result, $0 the first operand, a number itself. Out: the same on values of a trace (for
packages), or on tensors (for what has no package).

    row matrix: add %0 $0; max %1 0.0; add %2 $1    relu(sums + a row) + a matrix
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from .._trace import Trace, Value

OPS: dict[str, tuple[str, Callable[..., torch.Tensor]]] = {
    "add": ("arith.addf", torch.add),
    "sub": ("arith.subf", torch.sub),
    "mul": ("arith.mulf", torch.mul),
    "div": ("arith.divf", torch.div),
    "max": ("arith.maximumf", torch.maximum),
    "min": ("arith.minimumf", torch.minimum),
    "neg": ("arith.negf", torch.neg),
    "abs": ("math.absf", torch.abs),
    "exp": ("math.exp", torch.exp),
    "erf": ("math.erf", torch.erf),
    "tanh": ("math.tanh", torch.tanh),
    "sqrt": ("math.sqrt", torch.sqrt),
    "rsqrt": ("math.rsqrt", torch.rsqrt),
    "lt": ("arith.cmpf olt,", torch.lt),
    "le": ("arith.cmpf ole,", torch.le),
    "gt": ("arith.cmpf ogt,", torch.gt),
    "ge": ("arith.cmpf oge,", torch.ge),
    "where": ("arith.select", torch.where),
    # Within an ulp or two, and 0 in place of numbers below the normal ones: for 1 / (1 + exp(-x)), which is as exact with them.
    "quick_exp": ("math.exp", torch.exp),
    "quick_div": ("arith.divf", torch.div),
}
FLAGS = {"quick_exp": " fastmath<afn>", "quick_div": " fastmath<arcp,afn>"}
TRUTHS = ("lt", "le", "gt", "ge")  # of these results only `where` takes


class Epilogue(NamedTuple):
    """Steps, and how each operand lies: a "scalar", a "row" of N numbers for all rows, a "column" of M, or a "matrix" of the result's shape; behind attention as in
    _attention_epilogues.py. Its text has no types."""

    kinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()  # f16, bf16 or f32, of the operands
    steps: tuple[tuple[str, ...], ...] = ()

    def __str__(self) -> str:
        return f"{' '.join(self.kinds)}: {'; '.join(map(' '.join, self.steps))}"

    def turned(self) -> Epilogue:
        """That of the transposed result."""
        return self._replace(kinds=tuple({"row": "column", "column": "row"}.get(kind, kind) for kind in self.kinds))


@functools.lru_cache(None)
def parsed(text: str) -> Epilogue:
    kinds, _, steps = text.partition(":")
    return Epilogue(tuple(kinds.split()), steps=tuple(tuple(step.split()) for step in steps.split(";") if step.strip()))


def widened(trace: Trace, value: Value) -> Value:
    if value.type == "f32":
        return value
    wide = Value(trace, "", value.shape, "f32")
    return trace.add(f"arith.extf {value.name} : {value.mlir} to {wide.mlir}", value.shape, "f32")


def narrowed(trace: Trace, value: Value, type_: str) -> Value:
    if value.type == type_:
        return value
    narrow = Value(trace, "", value.shape, type_)
    return trace.add(f"arith.truncf {value.name} : {value.mlir} to {narrow.mlir}", value.shape, type_)


Dims = dict[str, tuple[int, ...]]


def _spread(trace: Trace, value: Value, kind: str, over: Value, wanted: str, dimsOf: Dims) -> Value:
    """The value of one kind repeated along the dims of another's tensor that it does not have."""
    kept = dimsOf.get(kind, ()) if wanted == "matrix" else ()
    dims = [dim for dim in range(over.ndim) if dim not in kept]
    return trace.add(f"linalg.broadcast ins({value.name} : {value.mlir}) outs({over.name} : {over.mlir}) dimensions = {dims}", over.shape, value.type)


def written(trace: Trace, epilogue: Epilogue, sums: Value, operands: Sequence[Value], empty: Callable[[str], Value], dimsOf: Dims | None = None) -> Value:
    """The epilogue's result in f32; `empty` makes a tensor of f32 of a kind's shape, whose dims among the result's `dimsOf` says where they are not those of products."""
    empty = functools.lru_cache(None)(empty)
    dimsOf = dimsOf or {"row": (sums.ndim - 1,), "column": (sums.ndim - 2,)}
    values: dict[str, tuple[Value, str]] = {"%0": (sums, "matrix")}

    def value(word: str) -> tuple[Value, str]:
        if word not in values:
            if word[0] == "$":
                values[word] = widened(trace, operands[int(word[1:])]), epilogue.kinds[int(word[1:])]
            else:
                values[word] = trace.add(f"arith.constant dense<{float(word):.17e}> : tensor<f32>", (), "f32"), "scalar"
        return values[word]

    for number, (name, *words) in enumerate(epilogue.steps):
        given = [value(word) for word in words]
        kinds = {kind for _, kind in given} - {"scalar"} or {"scalar"}
        # A truth is a matrix at once: `empty` makes no tensors of i1 to spread one into.
        kind = kinds.pop() if len(kinds) == 1 and name not in TRUTHS else "matrix"
        alike = [one if of == kind else _spread(trace, one, of, empty(kind), kind, dimsOf) for one, of in given]
        types = ", ".join(one.mlir for one in (alike[:2] if name == "where" else alike[:1]))
        made = trace.add(f"{OPS[name][0]} {', '.join(one.name for one in alike)}{FLAGS.get(name, '')} : {types}", alike[0].shape, "i1" if name in TRUTHS else "f32")
        values[f"%{number + 1}"] = made, kind
    result, kind = value(f"%{len(epilogue.steps)}")
    return result if kind == "matrix" else _spread(trace, result, kind, empty("matrix"), "matrix", dimsOf)


def computed(epilogue: Epilogue, sums: torch.Tensor, operands: Sequence[torch.Tensor], axis: int = -1) -> torch.Tensor:
    """The same on tensors, in f32; a row lies along dim `axis` of the sums, a column along the one before the last, and what is of kind "any" is broadcast as it is."""
    values = {"%0": sums.float()}

    def value(word: str) -> torch.Tensor:
        if word[0] not in "$%":
            return torch.tensor(float(word), device=sums.device)
        if word[0] == "$":
            kind, operand = epilogue.kinds[int(word[1:])], operands[int(word[1:])].float()
            if kind == "any":
                return operand
            along = {"row": axis, "column": -2}.get(kind)
            return operand.reshape(sums.shape if kind == "matrix" else () if along is None else (-1, *(1,) * (-along - 1)))
        return values[word]

    for number, (name, *words) in enumerate(epilogue.steps):
        values[f"%{number + 1}"] = OPS[name][1](*map(value, words))
    return values[f"%{len(epilogue.steps)}"].expand(sums.shape)


