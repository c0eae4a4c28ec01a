"""Random numbers, whose state is the device's generator: Philox at the numbers' places in its sequence.

A graph reads the state from memory, which a replay writes (python/src/torch/Graphs.cpp), so that it draws what calls would have.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl

from .. import _torch
from ._device import NAME
from ._operators import TYPES, as_argument, implements, number, places, reaches_far

aten = torch.ops.aten


@triton.jit(do_not_specialize=["n", "seed", "offset", "low", "high", "span"])
def random_kernel(out, n, state, seed, offset, low, high, span, p, KIND: tl.constexpr, RECORDED: tl.constexpr, FAR: tl.constexpr, BLOCK: tl.constexpr):
    """Numbers `offset` to `offset + n - 1` of the generator, as KIND says. A kernel in a graph, RECORDED, reads the seed, and where its offset counts from, from `state`."""
    i = places(BLOCK, FAR)
    start = offset.to(tl.int64)
    if RECORDED:
        seed = tl.load(state)
        start += tl.load(state + 1)
    at = start + i
    zero = tl.zeros((BLOCK,), tl.uint32)
    first, second, _, _ = tl.philox(seed, (at & 0xFFFFFFFF).to(tl.uint32), (at >> 32).to(tl.uint32), zero, zero)
    kind = out.dtype.element_ty
    if KIND != "integer":
        low = number(low, kind == tl.float64)
        high = number(high, kind == tl.float64)
    if KIND == "integer":
        bits = (first.to(tl.uint64) << 32) | second.to(tl.uint64)
        value = (low + (bits % span.to(tl.uint64)).to(tl.int64)).to(kind)
    elif KIND == "normal":
        normal, _ = tl.pair_uniform_to_normal(tl.uint_to_uniform_float(first), tl.uint_to_uniform_float(second))
        value = (normal * high + low).to(kind)
    else:
        uniform = tl.uint_to_uniform_float(first)
        if KIND == "uniform":
            value = (uniform * (high - low) + low).to(kind)
            value = tl.where(value >= high.to(kind), low.to(kind), value)  # rounded up to the end, which is no part
        elif KIND == "bernoulli":
            value = (uniform < tl.load(p + i, mask=i < n, other=0.0).to(tl.float32)).to(kind)
        elif KIND == "exponential":
            value = (-tl.log(1.0 - uniform) / low).to(kind)
        elif KIND == "cauchy":
            value = (low + high * tl.sin(3.141592653589793 * (uniform - 0.5)) / tl.cos(3.141592653589793 * (uniform - 0.5))).to(kind)
        elif KIND == "geometric":
            value = tl.ceil(tl.log(1.0 - uniform) / low).to(kind)
    tl.store(out + i, value, mask=i < n)


def _draw(self: torch.Tensor, generator: Any, kind: str, low: float = 0.0, high: float = 1.0, span: int = 1, p: Any = None) -> Any:
    """Fills a tensor, in the order of its indices."""
    if self.dtype.is_complex or self.dtype not in TYPES:
        return NotImplemented
    if self.numel() == 0:
        return self
    out = self if self.is_contiguous() else torch.empty(self.shape, dtype=self.dtype, device=self.device)
    n = out.numel()
    seed, offset = _torch.take_numbers(generator, self.device.index, n)
    isRecorded = isinstance(seed, torch.Tensor)
    state, seed = (seed, 0) if isRecorded else (out, _signed(seed))
    low, high = (int(low), int(high)) if kind == "integer" else (as_argument(one, out.dtype == torch.float64) for one in (low, high))
    with torch.rdna.device(self.device):
        random_kernel[(triton.cdiv(n, 512),)](
            out, n, state, seed, offset, low, high, span, out if p is None else p, KIND=kind, RECORDED=isRecorded, FAR=reaches_far(out), BLOCK=512
        )
    if out is not self:
        self.copy_(out)
    return self


def _signed(seed: int) -> int:
    return seed - (1 << 64) if seed >= 1 << 63 else seed


@implements(aten.uniform_.default)
def _uniform(self: torch.Tensor, low: float = 0, high: float = 1, *, generator: Any = None) -> Any:
    return _draw(self, generator, "uniform", low, high) if self.is_floating_point() and low < high else NotImplemented


@implements(aten.normal_.default)
def _normal(self: torch.Tensor, mean: float = 0, std: float = 1, *, generator: Any = None) -> Any:
    """Both parts of a complex number have half of the variance."""
    if self.is_complex() and not self.is_conj() and std >= 0:
        torch.view_as_real(self).normal_(mean, std / math.sqrt(2), generator=generator)
        return self
    return _draw(self, generator, "normal", mean, std) if self.is_floating_point() and std >= 0 else NotImplemented


@implements(aten.exponential_.default)
def _exponential(self: torch.Tensor, rate: float = 1, *, generator: Any = None) -> Any:
    return _draw(self, generator, "exponential", rate) if self.is_floating_point() and rate > 0 else NotImplemented


@implements(aten.cauchy_.default)
def _cauchy(self: torch.Tensor, median: float = 0, sigma: float = 1, *, generator: Any = None) -> Any:
    return _draw(self, generator, "cauchy", median, sigma) if self.is_floating_point() else NotImplemented


@implements(aten.geometric_.default)
def _geometric(self: torch.Tensor, p: float, *, generator: Any = None) -> Any:
    return _draw(self, generator, "geometric", math.log1p(-p)) if 0 < p < 1 else NotImplemented


@implements(aten.bernoulli_.float)
def _bernoulli_number(self: torch.Tensor, p: float = 0.5, *, generator: Any = None) -> Any:
    if not 0 <= p <= 1:
        return NotImplemented
    return _draw(self, generator, "bernoulli", p=torch.full(self.shape, p, dtype=torch.float32, device=self.device))


@implements(aten.bernoulli_.Tensor)
def _bernoulli_tensor(self: torch.Tensor, p: torch.Tensor, *, generator: Any = None) -> Any:
    return _draw(self, generator, "bernoulli", p=p.to(self.device, torch.float32).expand(self.shape).contiguous())


@implements(aten.bernoulli.out)
def _bernoulli_out(self: torch.Tensor, *, generator: Any = None, out: torch.Tensor) -> Any:
    return _bernoulli_tensor(out.resize_(self.shape), self, generator=generator)


@implements(getattr(aten.random_, "from"))
def _random_from(self: torch.Tensor, low: int, high: int | None, *, generator: Any = None) -> Any:
    if high is None or high <= low:
        return NotImplemented
    return _draw(self, generator, "integer", low, 0, high - low)


@implements(aten.random_.to)
def _random_to(self: torch.Tensor, high: int, *, generator: Any = None) -> Any:
    return _random_from(self, 0, high, generator=generator)


@implements(aten.random_.default)
def _random(self: torch.Tensor, *, generator: Any = None) -> Any:
    digits = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24, torch.float64: 53, torch.uint8: 8, torch.int8: 7, torch.int16: 15, torch.int32: 31, torch.int64: 63}
    if self.dtype not in digits:
        return NotImplemented
    return _draw(self, generator, "integer", 0, 0, (1 << digits[self.dtype]) - (1 if self.dtype == torch.int64 else 0))


@implements(aten.randperm.generator_out)
def _randperm(n: int, *, generator: Any = None, out: torch.Tensor) -> Any:
    keys = torch.empty(n, dtype=torch.int64, device=NAME)
    _random(keys, generator=generator)
    return out.resize_(n).copy_(keys.argsort())


@implements(aten.multinomial.default)
def _multinomial(self: torch.Tensor, n: int, replacement: bool = False, *, generator: Any = None) -> Any:
    """Places drawn by the weights in each row. Without replacement they are those of the largest weight / e, with e exponential; with it, those of uniform numbers among the weights' sums."""
    if self.dim() not in (1, 2) or not self.is_floating_point() or self.numel() == 0 or n <= 0 or (n > self.shape[-1] and not replacement):
        return NotImplemented
    weights = self.to(torch.float64 if replacement or self.dtype == torch.float64 else torch.float32)
    isRight = ((weights >= 0) & (weights < math.inf)).all() & (weights.sum(-1) > 0).all()
    if not isRight.item():
        return NotImplemented  # the CPU says what is wrong
    if replacement:
        sums = weights.cumsum(-1)
        numbers = _uniform(torch.empty((*self.shape[:-1], n), dtype=torch.float64, device=self.device), generator=generator)
        last = torch.searchsorted(sums, sums[..., -1:])  # that has a weight: a product may be rounded up to the whole sum
        return torch.minimum(torch.searchsorted(sums, numbers * sums[..., -1:], right=True), last)
    # A number may be 0, of which a weight of 0 makes NaN, the largest of all; the next one is 2 ** -24.
    numbers = _exponential(torch.empty_like(weights), generator=generator).clamp_(min=2.0**-26)
    return (weights / numbers).topk(n, -1)[1] if n > 1 else (weights / numbers).argmax(-1, keepdim=True)


@implements(aten.normal.Tensor_Tensor, aten.normal.Tensor_Tensor_out)
def _normal_tensors(mean: torch.Tensor, std: torch.Tensor, *, generator: Any = None, out: torch.Tensor | None = None) -> Any:
    if mean.is_complex() or std.is_complex():
        return NotImplemented
    numbers = torch.empty(torch.broadcast_shapes(mean.shape, std.shape), dtype=mean.dtype, device=NAME)
    if _normal(numbers, generator=generator) is NotImplemented:
        return NotImplemented
    result = numbers * std + mean
    return result if out is None else out.resize_(result.shape).copy_(result)


@implements(aten.normal.Tensor_float, aten.normal.Tensor_float_out)
def _normal_mean(mean: torch.Tensor, std: float = 1, *, generator: Any = None, out: torch.Tensor | None = None) -> Any:
    return _normal_tensors(mean, torch.full_like(mean, std), generator=generator, out=out)


@implements(aten.normal.float_Tensor, aten.normal.float_Tensor_out)
def _normal_std(mean: float, std: torch.Tensor, *, generator: Any = None, out: torch.Tensor | None = None) -> Any:
    return _normal_tensors(torch.full_like(std, mean), std, generator=generator, out=out)


@implements(aten.native_dropout.default)
def _dropout(x: torch.Tensor, p: float, train: bool | None) -> Any:
    if x.is_complex() or not x.is_floating_point() or not 0 <= p <= 1:
        return NotImplemented
    if train is False or p == 0:
        return x.clone(), torch.ones(x.shape, dtype=torch.bool, device=x.device)
    numbers = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    _uniform(numbers)
    kept = numbers >= p
    return torch.where(kept, x * (1 / (1 - p)) if p < 1 else torch.zeros_like(x), torch.zeros_like(x)), kept
