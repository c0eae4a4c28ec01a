"""Attention and its gradients as packages of greta.attention and greta.attention_backward, for any batch and any numbers of queries and keys.

Each operand lies as [B, H, S, D], or by tokens as [B, S, H, D], which the kernels read and write as it is; one that lies otherwise is copied first.
`fits` says which calls these are; the kernels of _attention.py compute the others.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch

from .. import _torch
from .._compile import compile_cached
from .._trace import Shape, Trace, Value
from ._device import target_of
from ._products import NAMES


class Recipe(NamedTuple):
    type: str
    heads: int
    keyHeads: int
    depth: int
    isCausal: bool
    scale: float
    mask: tuple[bool, bool, str] | None  # whether it is one for the batch, one for all heads, and its type
    byTokens: tuple[bool, ...]  # of q, k, v and the result, or o and do, as they lie; gradients lie as what they are of
    isBackward: bool

    def text(self) -> str:
        trace = Trace()
        operands = [_argument(trace, heads, self, lies) for heads, lies in zip((self.heads, self.keyHeads, self.keyHeads), self.byTokens)]
        rows: Shape = (None, self.heads, None)
        if self.isBackward:
            o, lse, do = _argument(trace, self.heads, self, self.byTokens[3]), trace.argument(rows, "f32"), _argument(trace, self.heads, self, self.byTokens[4])
            operands += [o, lse, do]
        named = []
        if self.mask is not None:
            ofBatch, ofHeads, type_ = self.mask
            operands.append(trace.argument((1 if ofBatch else None, 1 if ofHeads else self.heads, None, None), type_))
            named.append(("mask", 1))
        attributes = f"scale = {self.scale:.9e} : f32" + (", causal" if self.isCausal else "")
        q, k = operands[0].shape, operands[1].shape
        if self.isBackward:
            results = trace.ops("attention_backward", operands, attributes, [(q, self.type), (k, self.type), (k, self.type)], named)
            return trace.text("attention", [_transposed(trace, one) if lies else one for one, lies in zip(results, self.byTokens)])
        out, lse = trace.ops("attention", operands, attributes, [(q, self.type), (rows, "f32")], named)
        return trace.text("attention", [_transposed(trace, out) if self.byTokens[3] else out, lse])


def _argument(trace: Trace, heads: int, of: Recipe, byTokens: bool) -> Value:
    if byTokens:
        return _transposed(trace, trace.argument((None, None, heads, of.depth), of.type))
    return trace.argument((None, heads, None, of.depth), of.type)


def _transposed(trace: Trace, value: Value) -> Value:
    """The two dims in the middle change places, which moves nothing in an operand or a result of attention."""
    shape = tuple(value.shape[dim] for dim in (0, 2, 1, 3))
    sizes = []
    for dim in (0, 2, 1, 3):
        if value.shape[dim] is None:
            at = trace.add(f"arith.constant {dim} : index", (), "index")
            sizes.append(trace.add(f"tensor.dim {value.name}, {at.name} : {value.mlir}", (), "index").name)
    to = Value(trace, "", shape, value.type).mlir
    empty = trace.add(f"tensor.empty({', '.join(sizes)}) : {to}", shape, value.type)
    return trace.add(f"linalg.transpose ins({value.name} : {value.mlir}) outs({empty.name} : {to}) permutation = [0, 2, 1, 3]", shape, value.type)


@functools.lru_cache(None)
def _compiled(recipe: Recipe, target: str) -> _torch.Kernel:
    return _torch.Kernel(compile_cached(recipe.text(), target), "attention")


def fits(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor | None, isCausal: bool) -> bool:
    """Whether packages compute this: heads of one size, causal rows that stand at a key, and a bias with a row for each query."""
    queries, keys = q.shape[2], k.shape[2]
    hasRows = bias is None or bias.stride(2) != 0 or queries == 1
    return q.dtype in NAMES and q.shape[3] == v.shape[3] and q.shape[3] % 8 == 0 and keys > 0 and hasRows and not (isCausal and queries > keys)


def _laid_out(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
    """The memory as a package takes it, and whether it lies by tokens."""
    for lying, byTokens in ((x, False), (x.transpose(1, 2), True)):
        if lying.is_contiguous():
            return (lying if lying.data_ptr() % 16 == 0 else lying.clone()), byTokens
    return x.contiguous(), False


def _result(like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, bool]:
    """A tensor that lies as another does, its memory as a package writes it, and whether it lies by tokens."""
    byTokens = like.transpose(1, 2).is_contiguous() and not like.is_contiguous()
    made = torch.empty(like.transpose(1, 2).shape if byTokens else like.shape, dtype=like.dtype, device=like.device)
    return (made.transpose(1, 2) if byTokens else made), made, byTokens


def _mask(bias: torch.Tensor) -> tuple[torch.Tensor, tuple[bool, bool, str]]:
    """A bias of [B, H, S, T] as an operand: what is repeated is there once."""
    ofBatch, ofHeads = bias.stride(0) == 0 or bias.shape[0] == 1, bias.stride(1) == 0 or bias.shape[1] == 1
    bias = bias[:1] if ofBatch else bias
    bias = bias[:, :1] if ofHeads else bias
    if not bias.is_contiguous() or bias.data_ptr() % 16:
        bias = bias.clone(memory_format=torch.contiguous_format)
    return bias, (ofBatch, ofHeads, NAMES[bias.dtype])


def _seen(isCausal: bool, q: torch.Tensor, *ofKeys: torch.Tensor | None) -> list[Any]:
    """The keys, or the values, or a bias's columns, that causal rows see: torch's rows stand at the first keys, the package's at the last."""
    return [one if one is None or not isCausal else one.narrow(dim, 0, q.shape[2]) for one, dim in zip(ofKeys, (2, 2, 3))]


def _launch(q: torch.Tensor, operands: list[torch.Tensor], others: list[torch.Tensor], bias: Any, isCausal: bool, scale: float, results: list[torch.Tensor], byTokens: tuple[bool, ...] = ()) -> None:
    """`operands` may lie either way, `others` follow them as they are."""
    taken, lie = zip(*(_laid_out(one) for one in operands))
    arguments, mask = [*taken[:4], *others, *taken[4:]], None
    if bias is not None:
        given, mask = _mask(bias)
        arguments.append(given)
    recipe = Recipe(NAMES[q.dtype], q.shape[1], operands[1].shape[1], q.shape[3], isCausal, scale, mask, (*lie, *byTokens), bool(others))
    with torch.rdna.device(q.device):
        _compiled(recipe, target_of(q.device.index))(arguments, results)


def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: Any, isCausal: bool, scale: float, out: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    """Returns the result, which lies as `out` does."""
    k, v, bias = _seen(isCausal, q, k, v, bias)
    result, made, byTokens = _result(out)
    _launch(q, [q, k, v], [], bias, isCausal, scale, [made, lse], (byTokens,))
    return result


def backward(grad: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: Any, out: torch.Tensor, lse: torch.Tensor, isCausal: bool, scale: float) -> list[torch.Tensor]:
    """The gradients of q, k and v."""
    seenK, seenV, bias = _seen(isCausal, q, k, v, bias)
    lying = [_laid_out(one) for one in (q, seenK, seenV)]
    given = [one.transpose(1, 2) if byTokens else one for one, byTokens in lying]
    made = [torch.empty_like(one) for one, _ in lying]
    _launch(q, [*given, out, grad], [lse.contiguous()], bias, isCausal, scale, made)
    results = [one.transpose(1, 2) if byTokens else one for one, (_, byTokens) in zip(made, lying)]
    if seenK.shape != k.shape:
        results[1:] = [torch.nn.functional.pad(one, (0, 0, 0, k.shape[2] - q.shape[2])) for one in results[1:]]
    return results
