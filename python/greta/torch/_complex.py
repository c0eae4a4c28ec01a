"""Complex arithmetic by real and imaginary parts, and Fourier transforms as GEMMs.

A transform of n points is a product with the n x n matrix of cos and sin; one of n1 * n2 points is a transform of n1 points, a multiplication by twiddle factors
and one of n2 points, so that matrices stay small. Matrices are computed in f64.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import torch

from ._device import made_for_all_streams
from ._operators import implements

aten = torch.ops.aten
LARGEST_MATRIX = 128  # points of a transform that is one GEMM; more where n is prime

Parts = tuple[torch.Tensor, torch.Tensor | None]  # the imaginary part of a real tensor is None


def _parts(x: torch.Tensor) -> Parts:
    if not x.is_complex():
        return x, None
    both = torch.view_as_real(x.resolve_conj().resolve_neg())
    return both.select(-1, 0), both.select(-1, 1)


def _write(out: torch.Tensor, real: torch.Tensor, imaginary: torch.Tensor | None) -> Any:
    if out.shape != real.shape:
        out.resize_(real.shape)
    if not out.is_complex() or out.is_conj() or out.is_neg():
        return NotImplemented
    both = torch.view_as_real(out)
    both.select(-1, 0).copy_(real)
    if imaginary is None:
        both.select(-1, 1).zero_()
    else:
        both.select(-1, 1).copy_(imaginary)
    return out


#
# Arithmetic
#


def _is_on_device(*tensors: Any) -> bool:
    return all(isinstance(one, torch.Tensor) and (one.device.type == "rdna" or one.dim() == 0) for one in tensors)




def _add(sign: int) -> Any:
    def add(x: torch.Tensor, y: torch.Tensor, *, alpha: Any = 1, out: torch.Tensor) -> Any:
        if not out.is_complex() or not _is_on_device(x, y):
            return NotImplemented
        if isinstance(alpha, complex):
            if alpha.imag:
                return NotImplemented
            alpha = alpha.real
        (a, b), (c, d) = _parts(x), _parts(y)
        imaginary = b if d is None else (sign * alpha * d if b is None else b + sign * alpha * d)
        real = a + sign * alpha * c
        return _write(out, real, None if imaginary is None else imaginary.expand(real.shape))

    return add


implements(aten.add.out)(_add(1))
implements(aten.sub.out)(_add(-1))


@implements(aten.mul.out)
def _mul(x: torch.Tensor, y: torch.Tensor, *, out: torch.Tensor) -> Any:
    if not out.is_complex() or not _is_on_device(x, y):
        return NotImplemented
    (a, b), (c, d) = _parts(x), _parts(y)
    if b is None:
        return _write(out, a * c, None if d is None else a * d)
    if d is None:
        return _write(out, a * c, b * c)
    return _write(out, a * c - b * d, a * d + b * c)


@implements(aten.div.out)
def _div(x: torch.Tensor, y: torch.Tensor, *, out: torch.Tensor) -> Any:
    if not out.is_complex() or not _is_on_device(x, y):
        return NotImplemented
    (a, b), (c, d) = _parts(x), _parts(y)
    if d is None:
        return _write(out, a / c, None if b is None else b / c)
    # Scaled, so that squares stay in range.
    largest = torch.maximum(c.abs(), d.abs())
    c, d = c / largest, d / largest
    size = (c * c + d * d) * largest
    if b is None:
        return _write(out, a * c / size, -(a * d) / size)
    return _write(out, (a * c + b * d) / size, (b * c - a * d) / size)


@implements(aten.conj_physical.out)
def _conjugate(x: torch.Tensor, *, out: torch.Tensor) -> Any:
    if not x.is_complex() or not out.is_complex():
        return NotImplemented
    a, b = _parts(x)
    return _write(out, a, -b)


@implements(aten.neg.out)
def _negative(x: torch.Tensor, *, out: torch.Tensor) -> Any:
    if not x.is_complex() or not out.is_complex():
        return NotImplemented
    a, b = _parts(x)
    return _write(out, -a, -b)


@implements(aten.abs.out)
def _absolute(x: torch.Tensor, *, out: torch.Tensor) -> Any:
    if not x.is_complex() or out.is_complex():
        return NotImplemented
    out.resize_(x.shape)
    return out.copy_(torch.hypot(*_parts(x)))


@implements(aten.angle.out, aten.angle.default)
def _angle(x: torch.Tensor, *, out: torch.Tensor | None = None) -> Any:
    if not x.is_complex() or out is not None and out.is_complex():
        return NotImplemented
    a, b = _parts(x)
    result = torch.atan2(b, a)
    return result if out is None else out.resize_(x.shape).copy_(result)


@implements(aten.sum.IntList_out)
def _sum(x: torch.Tensor, dim: Any, keepdim: bool = False, *, dtype: Any = None, out: torch.Tensor) -> Any:
    if not x.is_complex() or not out.is_complex():
        return NotImplemented
    a, b = _parts(x)
    return _write(out, a.sum(dim, keepdim), b.sum(dim, keepdim))


@implements(aten.complex.out)
def _complex(real: torch.Tensor, imaginary: torch.Tensor, *, out: torch.Tensor) -> Any:
    real, imaginary = torch.broadcast_tensors(real, imaginary)
    return _write(out, real, imaginary)


@implements(aten.polar.out)
def _polar(size: torch.Tensor, angle: torch.Tensor, *, out: torch.Tensor) -> Any:
    return _write(out, size * angle.cos(), size * angle.sin())


#
# Fourier transforms
#


def _table(turns: torch.Tensor, n: int, sign: int, dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sign * sin of 2 pi turns / n."""
    angle = turns.to(torch.float64) * (2 * math.pi / n)
    with made_for_all_streams(device.index):
        return angle.cos().to(dtype).to(device), (sign * angle.sin()).to(dtype).to(device)


@functools.lru_cache(64)
def _matrix(n: int, sign: int, dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sign * sin of 2 pi j k / n."""
    index = torch.arange(n, dtype=torch.int64)
    return _table(index[:, None] * index[None, :] % n, n, sign, dtype, device)


@functools.lru_cache(64)
def _twiddles(rows: int, columns: int, sign: int, dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    return _table(torch.arange(rows)[:, None] * torch.arange(columns)[None, :], rows * columns, sign, dtype, device)


def _multiplied(a: torch.Tensor, b: torch.Tensor | None, c: torch.Tensor, d: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return (a * c, a * d) if b is None else (a * c - b * d, a * d + b * c)


def _transform_last(a: torch.Tensor, b: torch.Tensor | None, sign: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The transform over the last of two dims."""
    rows, n = a.shape
    first = 1 if n <= LARGEST_MATRIX else next((one for one in range(math.isqrt(n), 1, -1) if n % one == 0), 1)
    if first == 1:
        c, d = _matrix(n, sign, a.dtype, a.device)
        return (a @ c, a @ d) if b is None else (a @ c - b @ d, a @ d + b @ c)
    second = n // first

    def columns(x: torch.Tensor | None) -> torch.Tensor | None:
        return None if x is None else x.reshape(rows, first, second).transpose(1, 2).reshape(rows * second, first)

    a, b = _transform_last(columns(a), columns(b), sign)  # [row, j2, k1]
    c, d = _twiddles(second, first, sign, a.dtype, a.device)
    a, b = _multiplied(a.view(rows, second, first), b.view(rows, second, first), c, d)
    a, b = (x.transpose(1, 2).reshape(rows * first, second) for x in (a, b))
    a, b = _transform_last(a, b, sign)  # [row, k1, k2]
    return tuple(x.view(rows, first, second).transpose(1, 2).reshape(rows, n) for x in (a, b))


def _transform(a: torch.Tensor, b: torch.Tensor | None, dim: int, sign: int) -> tuple[torch.Tensor, torch.Tensor]:
    shape = a.movedim(dim, -1).shape

    def rows(x: torch.Tensor | None) -> torch.Tensor | None:
        return None if x is None else x.movedim(dim, -1).reshape(-1, shape[-1])

    return tuple(x.view(shape).movedim(-1, dim) for x in _transform_last(rows(a), rows(b), sign))


def _factor(normalization: int, sizes: Sequence[int]) -> float:
    n = math.prod(sizes)
    return (1.0, 1 / math.sqrt(n), 1 / n)[normalization]


def _joined(a: torch.Tensor, b: torch.Tensor, factor: float) -> torch.Tensor:
    both = torch.stack((a, b), -1)
    return torch.view_as_complex(both * factor if factor != 1 else both)


def _takes(x: torch.Tensor) -> bool:
    return x.dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128) and x.numel() > 0


@implements(aten._fft_c2c.default)
def _c2c(x: torch.Tensor, dims: Sequence[int], normalization: int, forward: bool) -> Any:
    if not _takes(x):
        return NotImplemented
    a, b = _parts(x)
    for dim in dims:
        a, b = _transform(a, b, dim, -1 if forward else 1)
    return _joined(a, b, _factor(normalization, [x.shape[dim] for dim in dims]))


@implements(aten._fft_r2c.default)
def _r2c(x: torch.Tensor, dims: Sequence[int], normalization: int, onesided: bool) -> Any:
    if not _takes(x):
        return NotImplemented
    a, b = x, None
    for dim in reversed(dims):
        a, b = _transform(a, b, dim, -1)
        if onesided and dim == dims[-1]:
            a, b = (one.narrow(dim, 0, x.shape[dim] // 2 + 1) for one in (a, b))
    return _joined(a, b, _factor(normalization, [x.shape[dim] for dim in dims]))


@implements(aten._fft_c2r.default)
def _c2r(x: torch.Tensor, dims: Sequence[int], normalization: int, last: int) -> Any:
    if not _takes(x) or last < 1:
        return NotImplemented
    a, b = _parts(x)
    for dim in dims[:-1]:
        a, b = _transform(a, b, dim, 1)
    dim = dims[-1]
    half = last // 2 + 1
    a, b = a.narrow(dim, 0, half), b.narrow(dim, 0, half)
    # The other half is the conjugate, backwards.
    mirrored = last - half
    if mirrored:
        a, b = (torch.cat((one, sign * one.narrow(dim, 1, mirrored).flip(dim)), dim) for one, sign in ((a, 1), (b, -1)))
    a, _ = _transform(a, b, dim, 1)
    factor = _factor(normalization, [last if one == dims[-1] else x.shape[one] for one in dims])
    return (a * factor if factor != 1 else a).contiguous()


def _out_of(function: Any) -> Any:
    def with_out(*args: Any, out: torch.Tensor) -> Any:
        result = function(*args)
        return result if result is NotImplemented else out.resize_(result.shape).copy_(result)

    return with_out


implements(aten._fft_c2c.out)(_out_of(_c2c))
implements(aten._fft_r2c.out)(_out_of(_r2c))
implements(aten._fft_c2r.out)(_out_of(_c2r))
