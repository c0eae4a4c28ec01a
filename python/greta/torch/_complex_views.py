"""Operators that move, compare, add up or multiply matrices of complex numbers, by views of these as pairs of real ones: x [..] is a view [.., 2] of the same memory.

`run` is asked for operators with complex tensors that no kernel of the table takes, before Inductor, which has no complex numbers. What depends on both parts at once beyond that
(powers, logarithms, trigonometry) runs on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
_TYPES = {torch.complex32, torch.complex64, torch.complex128}
_table: dict[Any, Callable[..., Any]] = {}


def _implements(*ops: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        _table.update(dict.fromkeys(ops, function))
        return function

    return add


def run(op: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The operator's result, or NotImplemented."""
    function = _table.get(op)
    given = [one for value in (*args, *kwargs.values()) for one in (value if isinstance(value, (list, tuple)) else (value,)) if isinstance(one, torch.Tensor)]
    if function is None or not any(one.is_complex() for one in given):
        return NotImplemented
    # A number of the CPU is a tensor without dims, whose pair has one.
    device = next((one.device for one in given if one.device.type != "cpu"), None)
    if device is not None:
        args = tuple(one.to(device) if isinstance(one, torch.Tensor) and one.device.type == "cpu" and one.dim() == 0 else one for one in args)
    return function(*args, **kwargs)


def _pairs(x: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """[.., 2], which shares the memory of x if x has this type and no conjugation to be carried out."""
    x = x if dtype in (None, x.dtype) else x.to(dtype)
    return torch.view_as_real(x.resolve_conj().resolve_neg())


def _numbers(pairs: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(pairs.contiguous())


def _write(out: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
    return out.resize_(made.shape).copy_(made)


def _dims(x: torch.Tensor, dims: Sequence[int] | None) -> list[int] | None:
    """From the front, so that they are the same of pairs; None where x has no such dim."""
    count = max(x.dim(), 1)
    found = list(range(x.dim())) if not dims else [dim % count for dim in dims if -count <= dim < count]
    return None if dims and len(found) != len(dims) else found


def _same(*tensors: torch.Tensor) -> bool:
    return all(one.dtype == tensors[0].dtype and one.dtype in _TYPES for one in tensors)


@_implements(aten.cat.out)
def _cat(tensors: Sequence[torch.Tensor], dim: int = 0, *, out: torch.Tensor) -> Any:
    found = _dims(tensors[0], [dim])
    if found is None or not out.is_complex() or tensors[0].dim() == 0 or any(one.dim() != tensors[0].dim() for one in tensors):
        return NotImplemented
    return _write(out, _numbers(torch.cat([_pairs(one, out.dtype) for one in tensors], found[0])))


@_implements(aten.index.Tensor_out)
def _index(x: torch.Tensor, indices: Any, *, out: torch.Tensor) -> Any:
    return _write(out, _numbers(aten.index.Tensor(_pairs(x), indices)))


@_implements(aten._index_put_impl_.default)
def _index_put(x: torch.Tensor, indices: Any, values: torch.Tensor, accumulate: bool = False, unsafe: bool = False) -> Any:
    if not _same(x, values) or x.is_conj() or x.is_neg():
        return NotImplemented
    aten.index_put_.default(torch.view_as_real(x), indices, _pairs(values), accumulate)
    return x


@_implements(aten.index_select.default)
def _index_select(x: torch.Tensor, dim: int, index: torch.Tensor) -> Any:
    found = _dims(x, [dim])
    return NotImplemented if found is None or x.dim() == 0 else _numbers(_pairs(x).index_select(found[0], index))


@_implements(aten.gather.out)
def _gather(x: torch.Tensor, dim: int, index: torch.Tensor, *, sparse_grad: bool = False, out: torch.Tensor) -> Any:
    found = _dims(x, [dim])
    if found is None or x.dim() == 0 or index.dim() != x.dim():
        return NotImplemented
    return _write(out, _numbers(_pairs(x).gather(found[0], index[..., None].expand(*index.shape, 2))))


@_implements(aten.flip.default)
def _flip(x: torch.Tensor, dims: Sequence[int]) -> Any:
    found = _dims(x, dims)
    if found is None or x.dim() == 0 or len(set(found)) != len(found):
        return NotImplemented
    return _numbers(_pairs(x).flip(found if dims else []))


@_implements(aten.roll.default)
def _roll(x: torch.Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    if not dims and len(shifts) == 1:
        return x.clone() if x.dim() == 0 else _numbers(_pairs(x).flatten(0, -2).roll(shifts, 0)).view(x.shape)
    found = _dims(x, dims)
    return NotImplemented if found is None or len(shifts) != len(dims) or x.dim() == 0 else _numbers(_pairs(x).roll(shifts, found))


def _of_triangle(keep: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    def triangle(x: torch.Tensor, diagonal: int = 0, *, out: torch.Tensor) -> Any:
        if x.dim() < 2 or out.dtype != x.dtype:
            return NotImplemented
        isKept = keep(torch.ones(x.shape[-2:], dtype=torch.int32, device=x.device), diagonal)[..., None] != 0
        return _write(out, _numbers(torch.where(isKept, _pairs(x), 0)))

    return triangle


for _op, _keep in ((aten.tril.out, torch.tril), (aten.triu.out, torch.triu)):
    _implements(_op)(_of_triangle(_keep))


@_implements(aten.where.self)
def _where(condition: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> Any:
    kind = torch.result_type(x, y)
    return _numbers(torch.where(condition[..., None], _pairs(x, kind), _pairs(y, kind)))


def _all_equal(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    kind = torch.result_type(x, y)  # a tensor without dims does not widen the other's numbers
    return (_pairs(x, kind) == _pairs(y, kind)).all(-1)


@_implements(aten.eq.Tensor_out)
def _eq(x: torch.Tensor, y: torch.Tensor, *, out: torch.Tensor) -> Any:
    return _write(out, _all_equal(x, y))


@_implements(aten.ne.Tensor_out)
def _ne(x: torch.Tensor, y: torch.Tensor, *, out: torch.Tensor) -> Any:
    return _write(out, ~_all_equal(x, y))


@_implements(aten.eq.Scalar_out)
def _eq_number(x: torch.Tensor, y: Any, *, out: torch.Tensor) -> Any:
    return _write(out, _all_equal(x, torch.full((), y, dtype=x.dtype, device=x.device)))


@_implements(aten.ne.Scalar_out)
def _ne_number(x: torch.Tensor, y: Any, *, out: torch.Tensor) -> Any:
    return _write(out, ~_all_equal(x, torch.full((), y, dtype=x.dtype, device=x.device)))


@_implements(aten.equal.default)
def _equal(x: torch.Tensor, y: torch.Tensor) -> Any:
    if x.device != y.device or x.dtype != y.dtype:
        return NotImplemented
    return x.shape == y.shape and bool((_pairs(x) == _pairs(y)).all().item())


@_implements(aten.isnan.default)
def _isnan(x: torch.Tensor) -> Any:
    return _pairs(x).isnan().any(-1)


@_implements(aten.sgn.out)
def _sgn(x: torch.Tensor, *, out: torch.Tensor) -> Any:
    size = x.abs()[..., None]
    return _write(out, _numbers(torch.where(size == 0, 0, _pairs(x) / size)))


@_implements(aten.mean.out)
def _mean(x: torch.Tensor, dim: Any, keepdim: bool = False, *, dtype: Any = None, out: torch.Tensor) -> Any:
    found = _dims(x, dim)
    if found is None or out.dtype not in _TYPES or x.dim() == 0 or len(set(found)) != len(found):
        return NotImplemented
    return _write(out, _numbers(_pairs(x, out.dtype).mean(found, keepdim)))


@_implements(aten.cumsum.out)
def _cumsum(x: torch.Tensor, dim: int, *, dtype: Any = None, out: torch.Tensor) -> Any:
    found = _dims(x, [dim])
    if found is None or out.dtype not in _TYPES or x.dim() == 0:
        return NotImplemented
    return _write(out, _numbers(_pairs(x, out.dtype).cumsum(found[0])))


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor | None:
    """Four products of real matrices; None where the two do not fit each other."""
    if not _same(a, b) or a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        return None
    (ar, ai), (br, bi) = (_pairs(one).unbind(-1) for one in (a, b))
    return torch.complex(ar @ br - ai @ bi, ar @ bi + ai @ br)


@_implements(aten.mm.out, aten.bmm.out)
def _mm(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> Any:
    made = _product(a, b)
    return NotImplemented if made is None or made.dtype != out.dtype else _write(out, made)


def _added(added: torch.Tensor, made: torch.Tensor | None, beta: Any, alpha: Any, out: torch.Tensor) -> Any:
    """With a beta of 0 what is added may be anything."""
    if made is None or not _same(added, made, out) or added.dim() > made.dim():
        return NotImplemented
    made = made * alpha if alpha != 1 else made
    return _write(out, made if beta == 0 else made + (added * beta if beta != 1 else added))


@_implements(aten.addmm.out, aten.baddbmm.out)
def _addmm(added: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: Any = 1, alpha: Any = 1, out: torch.Tensor) -> Any:
    return _added(added, _product(a, b), beta, alpha, out)


@_implements(aten.addmv.out)
def _addmv(added: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: Any = 1, alpha: Any = 1, out: torch.Tensor) -> Any:
    made = _product(a, b[:, None])
    return _added(added, None if made is None else made[:, 0], beta, alpha, out)


@_implements(aten.dot.default)
def _dot(a: torch.Tensor, b: torch.Tensor) -> Any:
    made = _product(a[None], b[:, None]) if a.dim() == b.dim() == 1 else None
    return NotImplemented if made is None else made.reshape(())


@_implements(aten.vdot.default)
def _vdot(a: torch.Tensor, b: torch.Tensor) -> Any:
    return _dot(a.conj(), b)
