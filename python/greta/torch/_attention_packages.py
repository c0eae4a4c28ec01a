"""Attention and its gradients as packages of greta.attention and greta.attention_backward, for any batch and any numbers of queries and keys.

Each operand lies as [B, H, S, D], or by tokens as [B, S, H, D], which the kernels read and write as it is; one that lies otherwise is copied first.
`fits` says which calls these are; the kernels of _attention.py compute the others.
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
from ._attention_epilogues import Behind, transposed
from ._device import target_of
from ._products import NAMES, laid_out, row_by_row

MOST_SCALES = 16  # that have packages: a temperature that changes with each step would compile and keep one each time

_scales: set[float] = set()


class Recipe(NamedTuple):
    type: str
    heads: int
    keyHeads: int
    depth: int
    isCausal: bool
    scale: float
    mask: tuple[bool, bool, bool, str] | None  # whether it is one for the batch, for all heads and for all queries, and its type
    byTokens: tuple[bool, ...]  # how operands, then results lie: q, k, v, then the result, or o, do and the gradients
    isBackward: bool
    behind: Behind | None = None  # pointwise work on the result

    def text(self) -> str:
        trace = Trace()
        operands = [_argument(trace, heads, self, lies) for heads, lies in zip((self.heads, self.keyHeads, self.keyHeads), self.byTokens)]
        rows: Shape = (None, self.heads, None)
        if self.isBackward:
            o, lse, do = _argument(trace, self.heads, self, self.byTokens[3]), trace.argument(rows, "f32"), _argument(trace, self.heads, self, self.byTokens[4])
            operands += [o, lse, do]
        named = []
        if self.mask is not None:
            isOne, type_ = self.mask[:3], self.mask[3]
            operands.append(trace.argument((*(1 if one else extent for one, extent in zip(isOne, rows)), None), type_))
            named.append(("mask", 1))
        attributes = f"scale = {self.scale:.9e} : f32" + (", causal" if self.isCausal else "")
        q, k = operands[0].shape, operands[1].shape
        if self.isBackward:
            results = trace.ops("attention_backward", operands, attributes, [(q, self.type), (k, self.type), (k, self.type)], named)
            return trace.text("attention", [transposed(trace, one, like) if lies else one for one, like, lies in zip(results, (operands[0], operands[1], operands[1]), self.byTokens[5:])])
        # Operands of the work behind come last.
        given = [] if self.behind is None else self.behind.arguments(trace, self.heads, self.depth, self.byTokens[3])
        out, lse = trace.ops("attention", operands, attributes, [(q, self.type), (rows, "f32")], named)
        result = transposed(trace, out, operands[0]) if self.byTokens[3] else out
        if self.behind is None:
            return trace.text("attention", [result, lse])
        return trace.text("attention", [self.behind.written(trace, result, given, self.byTokens[3]), lse, *[result] * self.behind.keepsResult])


def _argument(trace: Trace, heads: int, of: Recipe, byTokens: bool) -> Value:
    if byTokens:
        return transposed(trace, trace.argument((None, None, heads, of.depth), of.type))
    return trace.argument((None, heads, None, of.depth), of.type)


@functools.lru_cache(None)
def _compiled(recipe: Recipe, target: str) -> _torch.Kernel:
    return _torch.Kernel(compile_cached(recipe.text(), target), "attention")


def fits(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, isCausal: bool, scale: float) -> bool:
    """Whether packages compute this: heads of one size, causal rows that stand at a key, and one of the first MOST_SCALES scales."""
    queries, keys = q.shape[2], k.shape[2]
    if q.dtype not in NAMES or q.shape[3] != v.shape[3] or q.shape[3] % 8 or keys == 0 or (isCausal and queries > keys):
        return False
    return is_kept_scale(scale)


def is_kept_scale(scale: float) -> bool:
    if scale not in _scales and math.isfinite(scale) and len(_scales) < MOST_SCALES:
        _scales.add(scale)
    return scale in _scales


def _to_write(result: torch.Tensor) -> tuple[torch.Tensor, bool]:
    """The memory that a package writes, and whether it lies by tokens; where the result lies in neither way it is other memory."""
    for lying, byTokens in ((result, False), (result.transpose(1, 2), True)):
        if lying.is_contiguous() and lying.data_ptr() % 16 == 0:
            return lying, byTokens
    return torch.empty(result.shape, dtype=result.dtype, device=result.device), False


def _mask(bias: torch.Tensor) -> tuple[torch.Tensor, tuple[bool, bool, bool, str]]:
    """A bias of [B, H, S, T] as an operand: what is repeated is there once."""
    isOne = tuple(bias.stride(dim) == 0 or bias.shape[dim] == 1 for dim in range(3))
    bias = row_by_row(bias[tuple(slice(1 if one else None) for one in isOne)])
    return bias, (*isOne, NAMES[bias.dtype])


def _seen(isCausal: bool, q: torch.Tensor, *ofKeys: torch.Tensor | None) -> list[Any]:
    """The keys, or the values, or a bias's columns, that causal rows see: torch's rows stand at the first keys, the package's at the last."""
    return [one if one is None or not isCausal else one.narrow(dim, 0, q.shape[2]) for one, dim in zip(ofKeys, (2, 2, 3))]


def _launch(operands: list[torch.Tensor], numbers: list[torch.Tensor], bias: Any, isCausal: bool, scale: float, results: list[torch.Tensor]) -> None:
    """Operands are q, k and v, and of the gradients o and do; `numbers` is the log of the sums, the last result or the operand before do."""
    isBackward = len(operands) > 3
    made, written = zip(*(_to_write(one) for one in results))
    if isBackward:
        _launch_into(operands, numbers, bias, isCausal, scale, list(made), written)
    else:
        _launch_into(operands, [], bias, isCausal, scale, [*made, *numbers], written)
    for result, memory in zip(results, made):
        if memory.data_ptr() != result.data_ptr():
            result.copy_(memory)


def _launch_into(
    operands: list[torch.Tensor],
    numbers: list[torch.Tensor],
    bias: Any,
    isCausal: bool,
    scale: float,
    made: list[torch.Tensor],
    written: tuple[bool, ...],
    behind: Behind | None = None,
    others: Sequence[torch.Tensor] = (),
) -> None:
    """`made` is the memory of all results, of which `written` says how it lies; `others` are the operands of work behind attention."""
    q, k = operands[:2]
    isBackward = len(operands) > 3
    taken, lie = zip(*(laid_out(one, one.transpose(1, 2)) for one in operands))
    arguments, mask = [*taken[:4], *numbers, *taken[4:]], None
    if bias is not None:
        given, mask = _mask(bias)
        arguments.append(given)
    recipe = Recipe(NAMES[q.dtype], q.shape[1], k.shape[1], q.shape[3], isCausal, scale, mask, (*lie, *written), isBackward, behind)
    with torch.rdna.device(q.device):
        _compiled(recipe, target_of(q.device.index))([*arguments, *others], made)


def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: Any, isCausal: bool, scale: float, out: torch.Tensor, lse: torch.Tensor) -> None:
    """Writes the result, and the log of the sums."""
    k, v, bias = _seen(isCausal, q, k, v, bias)
    _launch([q, k, v], [lse], bias, isCausal, scale, [out])


def forward_and(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    bias: Any,
    isCausal: bool,
    scale: float,
    behind: Behind,
    others: Sequence[torch.Tensor],
    results: list[torch.Tensor],
    byTokens: bool,
    lse: torch.Tensor,
) -> None:
    """Writes the result of the work behind attention and, if they are two, attention's own, each by tokens or by heads; and the log of the sums."""
    k, v, bias = _seen(isCausal, q, k, v, bias)
    _launch_into([q, k, v], [], bias, isCausal, scale, [results[0], lse, *results[1:]], (byTokens,), behind, others)


def backward(grad: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: Any, out: torch.Tensor, lse: torch.Tensor, isCausal: bool, scale: float) -> list[torch.Tensor]:
    """The gradients of q, k and v, which lie as those."""
    results = [torch.empty_like(one) for one in (q, k, v)]
    seenK, seenV, bias = _seen(isCausal, q, k, v, bias)
    seen = [results[0], *_seen(isCausal, q, *results[1:], None)[:2]]
    if seenK.shape != k.shape:
        for one in results[1:]:
            one.zero_()
    _launch([q, seenK, seenV, out, grad], [lse.contiguous()], bias, isCausal, scale, seen)
    return results
