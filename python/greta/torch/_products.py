"""GEMM: products of f16, bf16 and f32 are packages of greta.matmul, those of f64 and integers, which it does not sum, a kernel here. Inductor's graphs call both.

A package has what is added to the product in its epilogue. Its operands lie row by row or column by column; one that lies otherwise is copied. The extents that are
features in a model (of a weight) are in the package's types, so each such pair has a package of its own for any number of rows, which has kernels for ranges
of it; products with extents that do not divide 16 bytes, small ones and those beyond MOST_FIXED share packages of any extents.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from .. import _torch
from .._compile import compile_cached
from .._trace import Shape, Trace, Value
from ._device import target_of
from ._dispatch import number_on
from ._epilogues import Epilogue, narrowed, parsed, written
from ._operators import _DOTS, _SUMS, MOST_PROGRAMS, as_argument, aten, begin_of, counted, implements, number, reaches_far

NAMES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}  # of types in packages
MOST_FIXED = 64  # packages of one kind of product that have extents in their types
MOST_DEPTHS = 2  # of them that differ only in the number of rows that a weight's gradient sums
LEAST_FIXED = 64 * 64  # elements of a weight that has a package of its own


class Recipe(NamedTuple):
    """A package's product: a @ b with an epilogue on its sums, extents None where any will do."""

    type: str
    result: str
    isBatched: bool
    transposesA: bool
    transposesB: bool
    epilogue: Epilogue
    m: int | None = None
    n: int | None = None
    k: int | None = None

    def text(self) -> str:
        trace = Trace()
        batch: Shape = (None,) if self.isBatched else ()
        shape: Shape = (*batch, self.m, self.n)
        a = trace.argument((*batch, self.k, self.m) if self.transposesA else (*batch, self.m, self.k), self.type)
        b = trace.argument((*batch, self.n, self.k) if self.transposesB else (*batch, self.k, self.n), self.type)
        attributes = [name for name, isSet in (("transpose_a", self.transposesA), ("transpose_b", self.transposesB)) if isSet]
        if self.n is None:
            attributes.append("greta.ranges = []")  # nothing is known to choose kernels by
        isPlain = not self.epilogue.steps and self.type == self.result
        result = trace.op("matmul", [a, b], ", ".join(attributes), shape, self.type if isPlain else "f32")
        if not isPlain:  # sums are f32 to their end, and rounded once
            lies: dict[str, Shape] = {"scalar": (), "row": (self.n,), "column": (self.m,), "matrix": shape}
            operands = [trace.argument(lies[kind], type_) for kind, type_ in zip(self.epilogue.kinds, self.epilogue.types)]
            dims = {"row": -1, "column": -2, "matrix": None}
            result = written(trace, self.epilogue, result, operands, lambda kind: self._empty(trace, a, b, lies[kind], dims[kind]))
        return trace.text("product", [narrowed(trace, result, self.result)])

    def _empty(self, trace: Trace, a: Value, b: Value, shape: Shape, only: int | None = None) -> Value:
        """A tensor of the result's shape, or of one of its dims, to be written."""

        def extent(of: Value, dim: int) -> str:
            at = trace.add(f"arith.constant {dim % of.ndim} : index", (), "index")
            return trace.add(f"tensor.dim {of.name}, {at.name} : {of.mlir}", (), "index").name

        rows, columns = (a, -1 if self.transposesA else -2), (b, -2 if self.transposesB else -1)
        sources = {-3: (a, 0), -2: rows, -1: columns}
        dims = range(-len(shape), 0) if only is None else [only]
        sizes = ", ".join(extent(*sources[dim]) for dim, size in zip(dims, shape) if size is None)
        made = Value(trace, "", shape, "f32")
        return trace.add(f"tensor.empty({sizes}) : {made.mlir}", shape, "f32")


@functools.lru_cache(None)
def _compiled(recipe: Recipe, target: str) -> _torch.Kernel:
    return _torch.Kernel(compile_cached(recipe.text(), target), "product")


_fixed: dict[Recipe, set[tuple[int | None, ...]]] = {}  # by kind of product: the extents that packages have in their types


def _kernel(kind: Recipe, m: int, n: int, k: int, target: str) -> _torch.Kernel:
    """The package for a product of these extents: with those of a weight in its types where that pays."""
    whole = 16 // (4 if kind.type == "f32" else 2)
    sums = kind.transposesA and not kind.transposesB  # a weight's gradient: its rows are what is summed
    features = (m, n) if sums else (n, k)
    # The CPU's driver takes longer to compile a kernel than such a kernel saves.
    if target == "vulkan:lavapipe" or features[0] * features[1] < LEAST_FIXED or any(one % whole for one in features) or (kind.transposesA and m % whole):
        return _compiled(kind, target)
    known = _fixed.setdefault(kind, set())
    extents = (m, n, k) if sums else (None, n, k)
    if extents not in known and sums and sum(one[:2] == (m, n) for one in tuple(known)) >= MOST_DEPTHS:
        extents = (m, n, None)
    if extents not in known:
        if len(known) >= MOST_FIXED:
            return _compiled(kind, target)
        known.add(extents)
    return _compiled(kind._replace(m=extents[0], n=extents[1], k=extents[2]), target)


def row_by_row(x: torch.Tensor) -> torch.Tensor:
    """The tensor row by row from a multiple of 16 bytes on, as a package takes it: itself or a copy."""
    return x if x.is_contiguous() and x.data_ptr() % 16 == 0 else x.clone(memory_format=torch.contiguous_format)


def laid_out(x: torch.Tensor, turned: torch.Tensor) -> tuple[torch.Tensor, bool]:
    """The memory of a tensor row by row as a package takes it, and whether that is `turned`, the same with two dims in each other's place."""
    for lying, isTurned in ((x, False), (turned, True)):
        if lying.is_contiguous():
            return row_by_row(lying), isTurned
    return x.contiguous(), False


def _adding(added: torch.Tensor | None, alpha: float, beta: float, index: int) -> tuple[Epilogue, list[torch.Tensor]]:
    """The epilogue of addmm, alpha * sums + beta * added, with its operands; added has the result's shape, and may be expanded."""
    kinds, operands, steps, result = [], [], [], "%0"
    if alpha != 1:
        kinds.append("scalar")
        operands.append(number_on(index, float(alpha), torch.float32))
        steps.append(("mul", "%0", "$0"))
        result = "%1"
    if added is not None:
        vector, kind = added, "matrix"
        if not any(added.stride()[:-1]):
            vector, kind = added[(0,) * (added.dim() - 1)], "row"
        elif added.stride(-1) == 0 and not any(added.stride()[:-2]):
            vector, kind = added[(0,) * (added.dim() - 2)][:, 0], "column"
        word = f"${len(kinds)}"
        kinds.append(kind)
        operands.append(vector)
        if beta != 1:
            steps.append(("mul", word, f"${len(kinds)}"))
            word = f"%{len(steps)}"
            kinds.append("scalar")
            operands.append(number_on(index, float(beta), torch.float32))
        steps.append(("add", result, word))
    return Epilogue(tuple(kinds), tuple(NAMES[one.dtype] for one in operands), tuple(steps)), operands


def _product(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, epilogue: Epilogue, operands: Sequence[torch.Tensor]) -> None:
    """By a package; no memory of `out` is another's."""
    # A column is computed as a row, which has kernels of its own.
    isColumn = out.shape[-1] == 1 and out.shape[-2] > 1
    if out.mT.is_contiguous() and (isColumn or not out.is_contiguous()):
        turned = [one.mT if kind == "matrix" else one for kind, one in zip(epilogue.kinds, operands)]
        _product(b.mT, a.mT, out.mT, epilogue.turned(), turned)
        return
    target = out
    if not out.is_contiguous() or out.data_ptr() % 16:
        out = torch.empty(out.shape, dtype=out.dtype, device=out.device)
    (a, transposesA), (b, transposesB) = (laid_out(one, one.mT) for one in (a, b))
    with torch.rdna.device(out.device):
        kind = Recipe(NAMES[a.dtype], NAMES[out.dtype], out.dim() == 3, transposesA, transposesB, epilogue)
        k, m = a.shape[-2:] if transposesA else a.shape[:-3:-1]
        kernel = _kernel(kind, m, out.shape[-1], k, target_of(out.device.index))
        kernel([a, b, *map(row_by_row, operands)], [out])
    if out is not target:
        target.copy_(out)


@triton.jit(do_not_specialize=["out_batch", "added_batch", "alpha", "beta"])
def sum_kernel(
    out,
    a,
    b,
    added,
    M,
    N,
    K,
    a_batch,
    a_row,
    a_col,
    b_batch,
    b_row,
    b_col,
    out_batch,
    out_row,
    out_col,
    added_batch,
    added_row,
    added_col,
    alpha,
    beta,
    ADDS: tl.constexpr,
    SCALES: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    FAR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """out = alpha * a @ b + beta * added, each with any strides, in batches, without matrix units."""
    batch = tl.program_id(1).to(tl.int64)
    across = tl.cdiv(N, BLOCK)
    tile = tl.program_id(0) + tl.program_id(2) * tl.num_programs(0)
    row = counted(begin_of(tile // across, BLOCK, FAR), BLOCK, FAR)
    col = counted(begin_of(tile % across, BLOCK, FAR), BLOCK, FAR)
    a += batch * a_batch
    b += batch * b_batch
    sums = tl.zeros((BLOCK, BLOCK), dtype=ACCUMULATOR)
    for k in range(0, K):
        at = k.to(tl.int64)
        x = tl.load(a + row * a_row + at * a_col, mask=row < M, other=0)
        y = tl.load(b + at * b_row + col * b_col, mask=col < N, other=0)
        sums += x[:, None].to(ACCUMULATOR) * y[None, :].to(ACCUMULATOR)
    mask = (row[:, None] < M) & (col[None, :] < N)
    if SCALES:
        sums = sums * number(alpha, ACCUMULATOR == tl.float64)
    if ADDS:
        more = tl.load(added + batch * added_batch + row[:, None] * added_row + col[None, :] * added_col, mask=mask, other=0).to(ACCUMULATOR)
        sums += more * number(beta, ACCUMULATOR == tl.float64)
    tl.store(out + batch * out_batch + row[:, None] * out_row + col[None, :] * out_col, sums.to(out.dtype.element_ty), mask=mask)


def _sum(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, added: torch.Tensor | None, alpha: float, beta: float) -> None:
    """By the kernel of this file; no memory of `out` is another's."""

    def strides(tensor: torch.Tensor | None) -> tuple[int, ...]:
        if tensor is None:
            return 0, 0, 0
        return tensor.stride() if tensor.dim() == 3 else (0, *tensor.stride())

    (m, k), n = a.shape[-2:], b.shape[-1]
    factors = [as_argument(one, True) if out.is_floating_point() else int(one) for one in (alpha, beta)]
    block = 16
    tiles = triton.cdiv(m, block) * triton.cdiv(n, block)
    with torch.rdna.device(out.device):
        sum_kernel[(min(tiles, MOST_PROGRAMS), out.shape[0] if out.dim() == 3 else 1, triton.cdiv(tiles, MOST_PROGRAMS))](
            out,
            a,
            b,
            out if added is None else added,
            m,
            n,
            k,
            *strides(a),
            *strides(b),
            *strides(out),
            *strides(added),
            *factors,
            ADDS=added is not None,
            SCALES=alpha != 1,
            ACCUMULATOR=_SUMS[a.dtype],
            FAR=reaches_far(a, b, out, added),
            BLOCK=block,
        )


def gemm(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, added: torch.Tensor | None = None, alpha: float = 1, beta: float = 1) -> Any:
    """out = alpha * a @ b + beta * added, of tensors with two dims or three."""
    if a.dtype not in _DOTS and a.dtype not in _SUMS or a.dtype != b.dtype or a.dtype != out.dtype or not a.device == b.device == out.device:
        return NotImplemented
    if added is not None and (added.dtype != out.dtype or added.device != out.device):
        return NotImplemented
    if a.is_conj() or b.is_conj() or a.is_neg() or b.is_neg():
        return NotImplemented
    if a.dim() != b.dim() or a.dim() not in (2, 3) or a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise RuntimeError(f"matrices of {tuple(a.shape)} and {tuple(b.shape)} cannot be multiplied")
    shape = (*a.shape[:-1], b.shape[-1])
    if out.shape != shape:
        out.resize_(shape)
    if out.numel() == 0:
        return out
    if added is not None:
        added = None if beta == 0 else added.expand(shape)
    memory = out.untyped_storage().data_ptr()  # DLPack gives memory a second storage
    if any(one is not None and one.untyped_storage().data_ptr() == memory for one in (a, b, added)):
        return out.copy_(gemm(a, b, torch.empty(shape, dtype=out.dtype, device=out.device), added, alpha, beta))
    if a.dtype in _DOTS:
        _product(a, b, out, *_adding(added, alpha, beta, out.device.index))
    else:
        _sum(a, b, out, added, alpha, beta)
    return out


@implements(aten.mm.out, aten.bmm.out)
def _mm(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> Any:
    return gemm(a, b, out)


@implements(aten.addmm.out, aten.baddbmm.out)
def _addmm(added: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: float = 1, alpha: float = 1, out: torch.Tensor) -> Any:
    return gemm(a, b, out, added, alpha, beta)


@implements(torch.ops.greta.product.default)
def _with_epilogue(a: torch.Tensor, b: torch.Tensor, operands: list[torch.Tensor], epilogue: str, dtype: torch.dtype) -> torch.Tensor:
    out = torch.empty((*a.shape[:-1], b.shape[-1]), dtype=dtype, device=a.device)
    if out.numel():
        shapes = {"scalar": (), "row": out.shape[-1:], "column": out.shape[-2:-1], "matrix": out.shape}
        made = parsed(epilogue)
        _product(a, b, out, made._replace(types=tuple(NAMES[one.dtype] for one in operands)), [one.reshape(shapes[kind]) for kind, one in zip(made.kinds, operands)])
    return out


@implements(aten.addmv.out)
def _addmv(added: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: float = 1, alpha: float = 1, out: torch.Tensor) -> Any:
    if out.shape != a.shape[:1]:
        out.resize_(a.shape[:1])
    result = gemm(a, b[:, None], out[:, None], added.expand(a.shape[:1])[:, None], alpha, beta)
    return result if result is NotImplemented else out


@implements(aten.addbmm.default, aten.addbmm.out)
def _addbmm(added: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: float = 1, alpha: float = 1, out: torch.Tensor | None = None) -> Any:
    """The sum over the batch is a part of K."""
    if a.dim() != 3 or b.dim() != 3 or a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        return NotImplemented
    if out is None:
        out = torch.empty((a.shape[1], b.shape[2]), dtype=a.dtype, device=a.device)
    return gemm(a.permute(1, 0, 2).flatten(1), b.flatten(0, 1), out, added, alpha, beta)


@implements(aten.addbmm_.default)
def _addbmm_in_place(self: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: float = 1, alpha: float = 1) -> Any:
    result = _addbmm(self, a, b, beta=beta, alpha=alpha)
    return result if result is NotImplemented else self.copy_(result)


@implements(aten.dot.default, aten.vdot.default)
def _dot(a: torch.Tensor, b: torch.Tensor) -> Any:
    if a.dim() != 1 or b.dim() != 1 or a.shape != b.shape:
        return NotImplemented
    out = torch.empty((1, 1), dtype=a.dtype, device=a.device)
    if a.numel() == 0:
        return out.zero_().reshape(())
    result = gemm(a[None, :], b[:, None], out)
    return result if result is NotImplemented else out.reshape(())
