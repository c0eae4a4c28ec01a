"""Fused optimizers: one kernel updates a parameter and its state; and one takes a GradScaler's scale from a gradient.

In: lists of parameters, gradients and states in f32, f16, bf16 or f64, that torch.optim passes on with fused=True, with the scale of a GradScaler and its mark of infinities.
Out: both updated, unless the mark is set; gradients without the scale. Kernels compute in f32, and in f64 where the parameter is of that: KIND.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from ._operators import as_argument, implements, number, places, reaches_far

aten = torch.ops.aten
_TYPES = {torch.float32, torch.float16, torch.bfloat16, torch.float64}


@triton.jit
def _gradient(grads, i, mask, scale, MAXIMIZES: tl.constexpr, SCALES: tl.constexpr, KIND: tl.constexpr):
    """The gradient, which stays in its place without the scale."""
    g = tl.load(grads + i, mask=mask, other=0.0).to(KIND)
    if SCALES:
        g = g / tl.load(scale)
        tl.store(grads + i, g.to(grads.dtype.element_ty), mask=mask)
    if MAXIMIZES:
        g = -g
    return g


@triton.jit
def _taken(i, n, found, MARKS: tl.constexpr):
    """The elements that take the step: none where an infinity was found."""
    mask = i < n
    if MARKS:
        mask = mask & (tl.load(found) == 0.0)
    return mask


@triton.jit
def _rate(rates, rate, HAS_RATE: tl.constexpr, KIND: tl.constexpr):
    """The learning rate, which a tensor may hold."""
    if HAS_RATE:
        return tl.load(rates).to(KIND)
    else:
        return number(rate, KIND == tl.float64)


@triton.jit
def _one_minus_power(beta, logarithm, step, KIND: tl.constexpr):
    """1 - beta to the power of a whole number: by squares in f64; in f32, where beta is rounded, by its logarithm, as exact where the power is nearly 1."""
    if KIND == tl.float64:
        rest = step.to(tl.int64)
        power = beta * 0.0 + 1.0
        for _ in tl.static_range(32):
            power = tl.where((rest & 1) != 0, power * beta, power)
            beta = beta * beta
            rest = rest >> 1
        return 1.0 - power
    else:
        x = logarithm * step
        return tl.where(x > -0.05, -x * (1.0 + x * (0.5 + x * (0.16666667 + x * 0.041666667))), 1.0 - tl.exp(x))


@triton.jit(do_not_specialize=["n", "rate", "beta1", "rest1", "logarithm1", "beta2", "rest2", "logarithm2", "decay", "eps"])
def adam_kernel(
    parameters,
    grads,
    means,
    squares,
    largest,
    steps,
    rates,
    scale,
    found,
    n,
    rate,
    beta1,
    rest1,
    logarithm1,
    beta2,
    rest2,
    logarithm2,
    decay,
    eps,
    DECOUPLED: tl.constexpr,
    AMSGRAD: tl.constexpr,
    MAXIMIZES: tl.constexpr,
    SCALES: tl.constexpr,
    MARKS: tl.constexpr,
    HAS_RATE: tl.constexpr,
    KIND: tl.constexpr,
    FAR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Adam and, DECOUPLED, AdamW. rest is 1 - beta, logarithm that of beta, both of f64 on the host."""
    i = places(BLOCK, FAR)
    mask = _taken(i, n, found, MARKS)
    rate = _rate(rates, rate, HAS_RATE, KIND)
    beta1, rest1, beta2, rest2 = number(beta1, KIND == tl.float64), number(rest1, KIND == tl.float64), number(beta2, KIND == tl.float64), number(rest2, KIND == tl.float64)
    decay, eps = number(decay, KIND == tl.float64), number(eps, KIND == tl.float64)
    step = tl.load(steps).to(KIND)
    p = tl.load(parameters + i, mask=mask, other=0.0).to(KIND)
    g = _gradient(grads, i, mask, scale, MAXIMIZES, SCALES, KIND)
    if DECOUPLED:
        p = p - rate * decay * p
    else:
        g = g + decay * p
    m = tl.load(means + i, mask=mask, other=0.0).to(KIND) * beta1 + rest1 * g
    v = tl.load(squares + i, mask=mask, other=0.0).to(KIND) * beta2 + rest2 * g * g
    tl.store(means + i, m.to(means.dtype.element_ty), mask=mask)
    tl.store(squares + i, v.to(squares.dtype.element_ty), mask=mask)
    if AMSGRAD:
        v = tl.maximum(tl.load(largest + i, mask=mask, other=0.0).to(KIND), v)
        tl.store(largest + i, v.to(largest.dtype.element_ty), mask=mask)
    size = tl.sqrt(v) / tl.sqrt(_one_minus_power(beta2, logarithm2, step, KIND)) + eps
    p = p - rate / _one_minus_power(beta1, logarithm1, step, KIND) * m / size
    tl.store(parameters + i, p.to(parameters.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["n", "rate", "momentum", "taken", "decay"])
def sgd_kernel(
    parameters,
    grads,
    momenta,
    rates,
    scale,
    found,
    n,
    rate,
    momentum,
    taken,
    decay,
    HAS_MOMENTUM: tl.constexpr,
    IS_FIRST: tl.constexpr,
    NESTEROV: tl.constexpr,
    MAXIMIZES: tl.constexpr,
    SCALES: tl.constexpr,
    MARKS: tl.constexpr,
    HAS_RATE: tl.constexpr,
    KIND: tl.constexpr,
    FAR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """`taken` is 1 less the dampening."""
    i = places(BLOCK, FAR)
    mask = _taken(i, n, found, MARKS)
    rate = _rate(rates, rate, HAS_RATE, KIND)
    momentum, taken, decay = number(momentum, KIND == tl.float64), number(taken, KIND == tl.float64), number(decay, KIND == tl.float64)
    p = tl.load(parameters + i, mask=mask, other=0.0).to(KIND)
    g = _gradient(grads, i, mask, scale, MAXIMIZES, SCALES, KIND) + decay * p
    if HAS_MOMENTUM:
        m = g
        if not IS_FIRST:
            m = tl.load(momenta + i, mask=mask, other=0.0).to(KIND) * momentum + taken * g
        tl.store(momenta + i, m.to(momenta.dtype.element_ty), mask=mask)
        if IS_FIRST and MARKS:  # a first step that is left out has written nothing, and torch says only once that it is the first
            tl.store(momenta + i, tl.zeros_like(g).to(momenta.dtype.element_ty), mask=(i < n) & (tl.load(found) != 0.0))
        if NESTEROV:
            g = g + momentum * m
        else:
            g = m
    tl.store(parameters + i, (p - rate * g).to(parameters.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["n", "rate", "rate_decay", "decay", "eps"])
def adagrad_kernel(
    parameters,
    grads,
    sums,
    steps,
    rates,
    scale,
    found,
    n,
    rate,
    rate_decay,
    decay,
    eps,
    MAXIMIZES: tl.constexpr,
    SCALES: tl.constexpr,
    MARKS: tl.constexpr,
    HAS_RATE: tl.constexpr,
    KIND: tl.constexpr,
    FAR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i = places(BLOCK, FAR)
    mask = _taken(i, n, found, MARKS)
    rate = _rate(rates, rate, HAS_RATE, KIND)
    rate_decay, decay, eps = number(rate_decay, KIND == tl.float64), number(decay, KIND == tl.float64), number(eps, KIND == tl.float64)
    p = tl.load(parameters + i, mask=mask, other=0.0).to(KIND)
    g = _gradient(grads, i, mask, scale, MAXIMIZES, SCALES, KIND) + decay * p
    total = tl.load(sums + i, mask=mask, other=0.0).to(KIND) + g * g
    tl.store(sums + i, total.to(sums.dtype.element_ty), mask=mask)
    step = tl.load(steps).to(KIND)
    p = p - rate / (1.0 + (step - 1.0) * rate_decay) * g / (tl.sqrt(total) + eps)
    tl.store(parameters + i, p.to(parameters.dtype.element_ty), mask=mask)


def _update(kernel: Any, lists: Sequence[Sequence[torch.Tensor]], steps: Sequence[torch.Tensor], rate: Any, scale: Any, found: Any, numbers: Sequence[float], settings: dict[str, bool]) -> Any:
    """Launches the kernel for each parameter; lists are the parameters, the gradients, and states, or none where all have none."""
    parameters, grads, *states = lists
    if any(one.dtype not in _TYPES for one in parameters):
        return NotImplemented
    isTensor = isinstance(rate, torch.Tensor) and rate.device.type != "cpu"
    numbers = (1.0 if isTensor else float(rate), *(float(one) for one in numbers))
    for index, target in enumerate(parameters):
        n = target.numel()
        if n == 0:
            continue
        # The kernel takes copies of tensors in another order than the parameter, or with gaps; they are copied back.
        parameter = target if torch.ops.aten.is_non_overlapping_and_dense(target) else target.contiguous()
        given = [grads[index], *(one[index] for one in states if one)]
        alike = [one if one.stride() == parameter.stride() else torch.empty_like(parameter, dtype=one.dtype).copy_(one) for one in given]
        grad, *others = alike
        rest = iter(others)
        others = [next(rest) if one else parameter for one in states]
        isWide = parameter.dtype == torch.float64
        with torch.rdna.device(parameter.device):
            kernel[(triton.cdiv(n, 1024),)](
                parameter,
                grad,
                *others,
                *([steps[index].to(parameter.device)] if steps else []),
                rate if isTensor else parameter,
                parameter if scale is None else scale,
                parameter if found is None else found,
                n,
                *(as_argument(one, isWide) for one in numbers),
                **settings,
                SCALES=scale is not None,
                MARKS=found is not None,
                HAS_RATE=isTensor,
                KIND=tl.float64 if isWide else tl.float32,
                FAR=reaches_far(parameter),
                BLOCK=1024,
            )
        for one, own in zip((target, *given), (parameter, *alike)):
            if own is not one and (own is not grad or scale is not None):
                one.copy_(own)
    return None


def _adam(isDecoupled: bool) -> Any:
    def adam(
        parameters: Any,
        grads: Any,
        means: Any,
        squares: Any,
        largest: Any,
        steps: Any,
        *,
        lr: Any,
        beta1: float,
        beta2: float,
        weight_decay: float,
        eps: float,
        amsgrad: bool,
        maximize: bool,
        grad_scale: Any = None,
        found_inf: Any = None,
    ) -> Any:
        if not 0 < beta1 < 1 or not 0 < beta2 < 1:
            return NotImplemented
        numbers = [one for beta in (beta1, beta2) for one in (beta, 1 - beta, math.log(beta))]
        settings = dict(DECOUPLED=isDecoupled, AMSGRAD=amsgrad, MAXIMIZES=maximize)
        return _update(adam_kernel, (parameters, grads, means, squares, largest if amsgrad else []), steps, lr, grad_scale, found_inf, (*numbers, weight_decay, eps), settings)

    return adam


implements(aten._fused_adam_.default, aten._fused_adam_.tensor_lr)(_adam(False))
implements(aten._fused_adamw_.default, aten._fused_adamw_.tensor_lr)(_adam(True))


@implements(aten._fused_sgd_.default, aten._fused_sgd_.tensor_lr)
def _sgd(
    parameters: Any,
    grads: Any,
    momenta: Any,
    *,
    weight_decay: float,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Any = None,
    found_inf: Any = None,
) -> Any:
    settings = dict(HAS_MOMENTUM=bool(momenta), IS_FIRST=is_first_step, NESTEROV=nesterov, MAXIMIZES=maximize)
    return _update(sgd_kernel, (parameters, grads, momenta), (), lr, grad_scale, found_inf, (momentum, 1 - dampening, weight_decay), settings)


@implements(aten._fused_adagrad_.default, aten._fused_adagrad_.tensor_lr)
def _adagrad(
    parameters: Any, grads: Any, sums: Any, steps: Any, *, lr: Any, lr_decay: float, weight_decay: float, eps: float, maximize: bool, grad_scale: Any = None, found_inf: Any = None
) -> Any:
    return _update(adagrad_kernel, (parameters, grads, sums), steps, lr, grad_scale, found_inf, (lr_decay, weight_decay, eps), dict(MAXIMIZES=maximize))


@triton.jit(do_not_specialize=["n"])
def unscale_kernel(grads, found, factor, n, KIND: tl.constexpr, FAR: tl.constexpr, BLOCK: tl.constexpr):
    """Programs that find an infinity or NaN write the same mark."""
    i = places(BLOCK, FAR)
    mask = i < n
    g = tl.load(grads + i, mask=mask, other=0.0).to(KIND)
    if tl.max(((g != g) | (tl.abs(g) == float("inf"))).to(tl.int32), 0) != 0:
        tl.store(found, 1.0)
    tl.store(grads + i, (g * tl.load(factor).to(KIND)).to(grads.dtype.element_ty), mask=mask)


@implements(aten._amp_foreach_non_finite_check_and_unscale_.default)
def _unscale(tensors: Sequence[torch.Tensor], found: torch.Tensor, factor: torch.Tensor) -> Any:
    if any(one.dtype not in _TYPES for one in tensors) or found.dtype != torch.float32 or factor.dtype != torch.float32:
        return NotImplemented
    for target in tensors:
        if target.numel() == 0:
            continue
        grads = target if torch.ops.aten.is_non_overlapping_and_dense(target) else target.contiguous()
        n = grads.numel()
        with torch.rdna.device(grads.device):
            kind = tl.float64 if grads.dtype == torch.float64 else tl.float32
            unscale_kernel[(triton.cdiv(n, 1024),)](grads, found, factor, n, KIND=kind, FAR=reaches_far(grads), BLOCK=1024)
        if grads is not target:
            target.copy_(grads)
    return None
