"""torch.ops.greta.paged_attention (ops.py) as packages of greta.paged_attention: one for any batch, pages and numbers of keys."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import torch

from .. import _torch
from .._compile import compile_cached
from .._trace import Shape, Trace
from ._attention_packages import is_kept_scale
from ._device import target_of
from ._operators import implements
from ._products import NAMES, row_by_row

MOST_FIXED = 8  # queries of a sequence that have a package for their number, as decoding wants


class Recipe(NamedTuple):
    type: str
    heads: int
    keyHeads: int
    depth: int
    page: int
    queries: int | None
    scale: float

    def text(self) -> str:
        trace = Trace()
        rows: Shape = (None, self.heads, self.queries, self.depth)
        pages: Shape = (None, self.page, self.keyHeads, self.depth)
        operands = [trace.argument(shape, kind) for shape, kind in ((rows, self.type), (pages, self.type), (pages, self.type), ((None, None), "i32"), ((None,), "i32"))]
        return trace.text("paged_attention", [trace.op("paged_attention", operands, f"scale = {self.scale:.9e} : f32", rows, self.type)])


@functools.lru_cache(None)
def _compiled(recipe: Recipe, target: str) -> _torch.Kernel:
    return _torch.Kernel(compile_cached(recipe.text(), target), "paged_attention")


@implements(torch.ops.greta.paged_attention.default)
def _paged_attention(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor, scale: float | None = None) -> Any:
    if q.dim() != 4 or k_cache.dim() != 4 or k_cache.shape != v_cache.shape or q.shape[3] != k_cache.shape[3] or k_cache.shape[2] == 0 or q.shape[1] % k_cache.shape[2] or not q.dtype == k_cache.dtype == v_cache.dtype:
        raise RuntimeError(f"q of {tuple(q.shape)} in {q.dtype} and caches of {tuple(k_cache.shape)} and {tuple(v_cache.shape)} do not fit: they are [B, Hq, S, D] and [pages, page, Hkv, D] of one type, and Hkv divides Hq")
    batch, heads, queries, depth = q.shape
    if table.dim() != 2 or table.shape[0] != batch or lengths.shape != (batch,) or table.is_floating_point() or lengths.is_floating_point():
        raise RuntimeError(f"a table of {tuple(table.shape)} in {table.dtype} and lengths of {tuple(lengths.shape)} in {lengths.dtype} are not of {batch} sequences: they are integers [B, most pages] and [B]")
    scale = 1 / math.sqrt(depth) if scale is None else scale
    if q.dtype not in NAMES or depth % 8 or not is_kept_scale(scale):
        return NotImplemented
    if not q.numel() or not k_cache.numel() or not table.numel():
        return torch.zeros(q.shape, dtype=q.dtype, device=q.device)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    recipe = Recipe(NAMES[q.dtype], heads, k_cache.shape[2], depth, k_cache.shape[1], queries if queries <= MOST_FIXED else None, scale)
    with torch.rdna.device(q.device):
        _compiled(recipe, target_of(q.device.index))([*map(row_by_row, (q, k_cache, v_cache, table.to(torch.int32), lengths.to(torch.int32)))], [out])
    return out
