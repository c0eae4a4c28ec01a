"""Pointwise work behind attention, which attention's kernel does: torch.ops.greta.fused_attention, and the part of a package's text that is that work.

In: the epilogue of _epilogues.py, with operands of any shape whose elements follow each other as a kind says:
    by_tokens    those of the result as [B, S, H, D]           by_heads         as [B, H, S, D]
    numbers_by_tokens   a number for each row, [B, S, H]       numbers_by_heads    [B, H, S]
    rows         D numbers for each head, [H, D]               row    D numbers            scalar    one
Out: the result in the order that the caller asks for. An operand by tokens or by heads is read where it lies, also as a part of the columns or the heads of a wider tensor (Lying); one that lies
otherwise is copied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from .._trace import Shape, Trace, Value
from ._epilogues import Dims, Epilogue, computed, narrowed, parsed, widened, written
from ._products import NAMES, row_by_row

ORDER = (0, 2, 1, 3)  # from heads first to tokens first, and back


def transposed(trace: Trace, value: Value, like: Value | None = None) -> Value:
    """The two dims in the middle change places, which moves nothing in an operand, nor in a result of attention if nobody else reads that: its extents are then those of `like`."""
    shape = tuple(value.shape[dim] for dim in ORDER)
    sizes = [size for dim in ORDER if value.shape[dim] is None for size in [_extent(trace, value if like is None else like, dim)]]
    to = Value(trace, "", shape, value.type).mlir
    empty = trace.add(f"tensor.empty({', '.join(sizes)}) : {to}", shape, value.type)
    return trace.add(f"linalg.transpose ins({value.name} : {value.mlir}) outs({empty.name} : {to}) permutation = [0, 2, 1, 3]", shape, value.type)


def _extent(trace: Trace, value: Value, dim: int) -> str:
    at = trace.add(f"arith.constant {dim} : index", (), "index")
    return trace.add(f"tensor.dim {value.name}, {at.name} : {value.mlir}", (), "index").name


#
# Places of operands
#


class Lying(NamedTuple):
    """The elements of an operand [B, S, H, D] in memory: by tokens, or by heads, as `count` heads of `width` columns each, of which these begin at `head` and `column`."""

    byTokens: bool
    count: int
    width: int
    head: int = 0
    column: int = 0


def lying_of(shape: Sequence[Any], strides: Sequence[Any], isTrue: Any = bool) -> Lying | None:
    """How a tensor [B, S, H, D] lies, but for where it begins; `isTrue` decides comparisons of extents that may be symbols. None: otherwise."""
    batch, tokens, heads, depth = shape
    far, further, near, next_ = strides
    if not isTrue(next_ == 1):
        return None

    def first(other: Any, *pairs: tuple[Any, Any]) -> Any:
        """The distance along the first dim that has several elements, since neighbours along the others are nowhere."""
        return next((stride for extent, stride in pairs if not (isinstance(extent, int) and extent == 1)), other)

    width = first(depth, (heads, near), (tokens, further), (batch, far))
    if isinstance(width, int) and depth <= width:
        row = first(heads * width, (tokens, further), (batch, far))
        if isinstance(row, int) and heads * width <= row and row % width == 0 and isTrue(first(tokens * row, (batch, far)) == tokens * row):
            return Lying(True, row // width, width)
    width = first(depth, (tokens, further), (heads, near), (batch, far))
    if not isinstance(width, int) or width < depth:
        return None
    head = tokens * width
    whole = first(heads * head, (batch, far))
    if not isTrue(first(head, (heads, near)) == head):
        return None
    if isTrue(whole == heads * head):
        return Lying(False, heads, width)
    if isinstance(head, int) and isinstance(whole, int) and whole % head == 0 and whole >= heads * head:
        return Lying(False, whole // head, width)
    return None


def _memory(operand: torch.Tensor) -> tuple[torch.Tensor, Lying]:
    """What a package takes of a tensor [B, S, H, D], and how that lies."""
    batch, tokens, heads, depth = operand.shape
    found = lying_of(operand.shape, operand.stride())
    if found is not None:
        elements = operand.untyped_storage().nbytes() // operand.dtype.itemsize
        count = batch * tokens * found.count * found.width
        across = found.width if found.byTokens else tokens * found.width
        places = [(head, column) for head in range(found.count - heads + 1) for column in range(0, found.width - depth + 1, depth)]
        for head, column in places:
            first = operand.storage_offset() - head * across - column
            isAligned = (operand.data_ptr() - (head * across + column) * operand.dtype.itemsize) % 16 == 0
            if 0 <= first and first + count <= elements and first % (found.count * found.width) == 0 and isAligned:
                shape = (batch, tokens, found.count, found.width) if found.byTokens else (batch, found.count, tokens, found.width)
                return torch.as_strided(operand, shape, _strides(shape), first), found._replace(head=head, column=column)
    return row_by_row(operand), Lying(True, heads, depth)


def _strides(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]


#
# Packages
#


class Behind(NamedTuple):
    """The work of a package: its epilogue has operands that are matrices, columns (a number for each row), heads ([H, D]), rows (D) and scalars."""

    epilogue: Epilogue
    lying: tuple[Lying | None, ...]  # of operands, those that are matrices
    result: str
    keepsResult: bool  # whether attention's own result is stored as well

    def arguments(self, trace: Trace, heads: int, depth: int, byTokens: bool) -> list[Value]:
        """The operands in the result's order."""
        made = []
        middle: Shape = (None, heads) if byTokens else (heads, None)
        shapes: dict[str, Shape] = {"scalar": (), "row": (depth,), "heads": (heads, depth), "column": (None, *middle)}
        for kind, type_, lies in zip(self.epilogue.kinds, self.epilogue.types, self.lying):
            if lies is None:
                made.append(trace.argument(shapes[kind], type_))
                continue
            whole = (None, None, lies.count, lies.width) if lies.byTokens else (None, lies.count, None, lies.width)
            value = trace.argument(whole, type_)
            if (lies.count, lies.width) != (heads, depth):
                value = self._part(trace, value, lies, heads, depth)
            made.append(value if lies.byTokens == byTokens else transposed(trace, value))
        return made

    def _part(self, trace: Trace, value: Value, lies: Lying, heads: int, depth: int) -> Value:
        def ordered(batch: Any, tokens: Any, heads: Any, columns: Any) -> list[Any]:
            return [batch, tokens, heads, columns] if lies.byTokens else [batch, heads, tokens, columns]

        batch, tokens = _extent(trace, value, 0), _extent(trace, value, 1 if lies.byTokens else 2)
        shape = tuple(ordered(None, None, heads, depth))
        begins, sizes = ordered(0, 0, lies.head, lies.column), ordered(batch, tokens, heads, depth)
        to = Value(trace, "", shape, value.type).mlir
        return trace.add(f"tensor.extract_slice {value.name}[{', '.join(map(str, begins))}] [{', '.join(map(str, sizes))}] [1, 1, 1, 1] : {value.mlir} to {to}", shape, value.type)

    def written(self, trace: Trace, result: Value, operands: Sequence[Value], byTokens: bool) -> Value:
        dims: Dims = {"scalar": (), "row": (3,), "heads": (2, 3) if byTokens else (1, 3), "column": (0, 1, 2), "matrix": (0, 1, 2, 3)}

        def empty(kind: str) -> Value:
            shape = tuple(result.shape[dim] for dim in dims[kind])
            sizes = [_extent(trace, result, dim) for dim in dims[kind] if result.shape[dim] is None]
            return trace.add(f"tensor.empty({', '.join(sizes)}) : {Value(trace, '', shape, 'f32').mlir}", shape, "f32")

        return narrowed(trace, written(trace, self.epilogue, widened(trace, result), operands, empty, dims), self.result)


#
# The operator
#


def _shaped(kind: str, operand: torch.Tensor, shape: Sequence[int], byTokens: bool) -> torch.Tensor:
    """An operand as a tensor that broadcasts to the result in its order; `shape` is [B, S, H, D]."""
    batch, tokens, heads, depth = shape
    if kind in ("scalar", "row"):
        return operand.reshape(() if kind == "scalar" else depth)
    if kind == "rows":
        return operand.reshape((heads, depth) if byTokens else (heads, 1, depth))
    isByTokens = kind.endswith("tokens")
    last = 1 if kind.startswith("numbers") else depth
    operand = operand.reshape((batch, tokens, heads, last) if isByTokens else (batch, heads, tokens, last))
    return operand if isByTokens == byTokens else operand.permute(ORDER)


def on_tensors(epilogue: str, result: torch.Tensor, operands: Sequence[torch.Tensor], byTokens: bool) -> torch.Tensor:
    """The work on a result [B, H, S, D], in f32 and in the order that is asked for."""
    made = parsed(epilogue)
    batch, heads, tokens, depth = result.shape
    shaped = [_shaped(kind, one, (batch, tokens, heads, depth), byTokens) for kind, one in zip(made.kinds, operands)]
    return computed(made._replace(kinds=("any",) * len(shaped)), result.permute(ORDER) if byTokens else result, shaped)


def as_package(epilogue: str, operands: Sequence[torch.Tensor], shape: Sequence[int], byTokens: bool, dtype: torch.dtype, keepsResult: bool) -> tuple[Behind, list[torch.Tensor]]:
    """A package's work, and the memory of its operands."""
    made = parsed(epilogue)
    kinds, memory, lying = [], [], []
    for kind, operand in zip(made.kinds, operands):
        one, lies = _shaped(kind, operand, shape, byTokens), None
        if kind.startswith("by_"):
            one, lies = _memory(one if byTokens else one.permute(ORDER))
            kinds.append("matrix")
        elif kind.startswith("numbers"):
            one = row_by_row(one[..., 0])
            kinds.append("column")
        else:
            one = row_by_row(one.reshape(shape[2:]) if kind == "rows" else one)
            kinds.append("heads" if kind == "rows" else kind)
        memory.append(one)
        lying.append(lies)
    types = tuple(NAMES[one.dtype] for one in operands)
    return Behind(Epilogue(tuple(kinds), types, made.steps), tuple(lying), NAMES[dtype], keepsResult), memory
