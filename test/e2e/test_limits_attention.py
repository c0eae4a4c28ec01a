"""The judge of limits.py rejects wrong attention and gradients. Both are computed here in NumPy as kernels compute them, tile by tile, with
weights rounded to the element type: right kernels of every tile are accepted, and each defect of one is rejected. No compiler, no device.
"""

import functools

import numpy as np
import pytest

from attention_backward_ops import Backward, weights_of
from attention_ops import Attention, visible
from case import rounded_to
from test_limits import HALVES, VULKAN, doubles, finished, judged, rounded_again, toward_zero

CDNA3, CDNA2, HOST = "gfx942-mfma", "gfx90a-mfma", "host"
TYPES = ("f32", *HALVES)
# Large enough that the share of elements tells one rounding more; keys for several tiles of every size.
FORWARD = [Attention(kind, t, 1, 4, 2, 128, 512, 64) for kind in ("plain", "causal", "window", "softcap") for t in TYPES]
BACKWARD = [Backward(kind, t, 1, 4, 2, 128, 256, 64) for kind in ("plain", "causal") for t in TYPES]


def named_inputs(case):
    names = [name for name, _ in case.operands] if isinstance(case, Backward) else ["q", "k", "v"]
    return {name: np.nan_to_num(x) for name, x in zip(names, doubles(case), strict=True)}


def of_heads(case, x):
    return np.repeat(x, case.hq // case.hkv, axis=1)


def logits(case, q, k, scale=1.0, is_seen=None):
    x = scale * np.einsum("bhsd,bhtd->bhst", q, of_heads(case, k)) / np.sqrt(case.d)
    if case.has("softcap"):
        x = 3.0 * np.tanh(x / 3.0)
    return np.where(visible(case, x.shape) if is_seen is None else is_seen, x, -np.inf)


def over_keys(x, v, keys, block, weights, is_lazy, accumulator):
    """(result not yet divided, sums of weights, maxima) of some keys, tile by tile. A lazy kernel keeps a maximum until one is 2^8 above it."""
    top = np.full((*x.shape[:-1], 1), -np.inf)
    y, total = np.zeros((*x.shape[:-1], v.shape[-1])), np.zeros_like(top)
    for first in range(0, len(keys), block):
        tile = keys[first : first + block]
        now = x[..., tile].max(-1, keepdims=True)
        new = np.where(np.isinf(top) | (now > top + (8 * np.log(2) if is_lazy else 0)), np.maximum(top, now), top)
        least = np.where(np.isinf(new), 0, new)
        p = np.exp(x[..., tile] - least)
        kept = np.where(np.isinf(top), 0, np.exp(np.where(np.isinf(top), 0, top) - least))
        y = y * kept + np.einsum("bhst,bhtd->bhsd", rounded_to(weights, 128 * p) / 128 if weights else p, v[:, :, tile])
        y = rounded_to(accumulator, y) if accumulator else y
        total, top = total * kept + p.sum(-1, keepdims=True), new
    return y, total, top


def attended(case, x, v, block=32, split=1, weights="", is_lazy=True, accumulator=None, parts=None):
    """The result of logits, in float64. Weights, the accumulator and the results of split keys pass through these types; weights through that of the elements if none is said."""
    made = [over_keys(x, of_heads(case, v), keys, block, case.dtype if weights == "" else weights, is_lazy, accumulator) for keys in np.array_split(np.arange(x.shape[-1]), split)]
    top = np.maximum.reduce([m for _, _, m in made])
    y = total = 0.0
    for part, weight, m in made:
        scale = np.where(np.isinf(m), 0, np.exp(np.where(np.isinf(m), 0, m) - np.where(np.isinf(top), 0, top)))
        if parts:
            part = rounded_to(parts, part / np.where(weight == 0, 1, weight)) * weight
        y, total = y + part * scale, total + weight * scale
    return [y / np.where(total == 0, 1, total)]


@functools.cache
def forward(case, **how):
    """As a right kernel of such tiles has it."""
    inputs = named_inputs(case)
    return attended(case, logits(case, inputs["q"], inputs["k"]), inputs["v"], **how)


def forward_with(change):
    """A right kernel on other inputs, or other logits."""

    def define(case):
        inputs = named_inputs(case)
        return finished(case, attended(case, change(case, inputs), inputs["v"]))

    return define


def last_key_dropped(case, inputs):
    x = logits(case, inputs["q"], inputs["k"])
    last = np.isfinite(x).cumsum(-1).argmax(-1)  # that a row sees
    np.put_along_axis(x, last[..., None], -np.inf, axis=-1)
    return x


def key_dropped(case, inputs):
    """One of 512, where the rows see it."""
    x = logits(case, inputs["q"], inputs["k"])
    x[..., x.shape[-1] - x.shape[-2]] = -np.inf
    return x


def no_mask(case, inputs):
    return logits(case, inputs["q"], inputs["k"], is_seen=True)


def mask_off_by_one(case, inputs):
    seen = visible(case, (1, case.hq, case.s, case.t))
    return logits(case, inputs["q"], inputs["k"], is_seen=seen | np.roll(seen, 1, axis=-1))


def mask_of_minus_ten(case, inputs):
    """In place of minus infinity."""
    x = logits(case, inputs["q"], inputs["k"], is_seen=True)
    return np.where(visible(case, x.shape), x, x - 10)


def no_scale(case, inputs):
    return logits(case, inputs["q"], inputs["k"], scale=np.sqrt(case.d))


def scale_one_percent_off(case, inputs):
    return logits(case, inputs["q"], inputs["k"], scale=1.01)


def heads_in_turn(case, inputs):
    """Query heads share the key heads h % Hkv in place of h // group."""
    order = np.arange(case.hq) % case.hkv
    seen = visible(case, (1, case.hq, case.s, case.t))
    x = np.einsum("bhsd,bhtd->bhst", inputs["q"], inputs["k"][:, order]) / np.sqrt(case.d)
    return np.where(seen, 3 * np.tanh(x / 3) if case.has("softcap") else x, -np.inf)


def logits_rounded(case, inputs):
    x = logits(case, inputs["q"], inputs["k"])
    return rounded_to(case.dtype if case.dtype != "f32" else "f16", x)


def uniform_weights(case, inputs):
    return np.where(np.isfinite(logits(case, inputs["q"], inputs["k"])), 0.0, -np.inf)


@functools.cache
def backward(case, block=64, accumulator=None, drop=None):
    """Right gradients, tile by tile; `drop(p, dx)` changes weights and slopes."""
    inputs = named_inputs(case)
    q, k, v, o, lse, do = inputs.values()
    wide_k, wide_v = of_heads(case, k), of_heads(case, v)
    p, slopes = weights_of(case, q, wide_k, lse)
    dx = p * slopes * (np.einsum("bhsd,bhtd->bhst", do, wide_v) - (o * do).sum(-1)[..., None])
    if drop:
        drop(p, dx)
    larger = 16 if case.dtype == "f16" else 1
    p, dx = (rounded_to(case.dtype, larger * x) / larger for x in (p, dx))

    def added(formula, a, axis, b):
        total = 0.0
        for first in range(0, a.shape[axis], block):
            tile = range(first, min(a.shape[axis], first + block))
            total = total + np.einsum(formula, np.take(a, tile, axis), np.take(b, tile, 2))
            total = rounded_to(accumulator, total) if accumulator else total
        return total

    together = lambda x: x.reshape(case.b, case.hkv, -1, *x.shape[2:]).sum(2)
    scale = 1 / np.sqrt(case.d)
    over_rows = "bhst,bhsd->bhtd"
    return [scale * added("bhst,bhtd->bhsd", dx, 3, wide_k), scale * together(added(over_rows, dx, 2, q)), together(added(over_rows, p, 2, do))]


def dropped(key=None, row=None):
    def drop(p, dx):
        p[:, :, row, key] = dx[:, :, row, key] = 0

    return lambda case: finished(case, backward(case, drop=drop))


def low(case):
    """The narrow type of a defect: that of the elements, f16 of f32."""
    return "f16" if case.dtype == "f32" else case.dtype


def without(defect):
    """A defect of the finished result alone."""
    return lambda case: defect(case, backward(case) if isinstance(case, Backward) else forward(case))


def one_element_zero(case, results):
    made = finished(case, results)
    flat = made[0].reshape(-1)
    flat[np.argsort(np.abs(flat.astype(np.float64)))[flat.size // 2]] = 0
    return made


SIMPLE = {
    "zeros": without(lambda case, y: [np.zeros_like(one) for one in finished(case, y)]),
    "a row's mean everywhere": without(lambda case, y: finished(case, [np.broadcast_to(one.mean(-1, keepdims=True), one.shape) for one in y])),
    "one percent too large": without(lambda case, y: finished(case, [1.01 * one for one in y])),
    "one element zero": without(one_element_zero),
    "one more rounding": without(lambda case, y: finished(case, [rounded_again(case, one, low(case)) for one in y])),
}
MASKED = [case for case in FORWARD if case.kind in ("causal", "window")]
DEFECTS = {
    **{name: (define, FORWARD + BACKWARD) for name, define in SIMPLE.items()},
    "toward zero": (without(lambda case, y: finished(case, y, toward_zero)), [case for case in FORWARD + BACKWARD if case.dtype != "f32"]),
    **{f"accumulator rounded every {n} keys": (lambda case, n=n: finished(case, forward(case, block=n, accumulator=low(case))), FORWARD) for n in (16, 32, 64)},
    "parts of split keys rounded": (lambda case: finished(case, forward(case, split=4, parts=low(case))), [case for case in FORWARD if case.kind != "window"]),
    "weights in a narrower type": (lambda case: finished(case, forward(case, weights="bf16")), [case for case in FORWARD if case.dtype != "bf16"]),
    "logits rounded": (forward_with(logits_rounded), FORWARD),
    "the last key dropped": (forward_with(last_key_dropped), FORWARD),
    "one key of 512 dropped": (forward_with(key_dropped), FORWARD),
    "no mask": (forward_with(no_mask), MASKED),
    "mask off by one": (forward_with(mask_off_by_one), MASKED),
    "mask of minus ten": (forward_with(mask_of_minus_ten), MASKED),
    "no scale": (forward_with(no_scale), FORWARD),
    "scale one percent off": (forward_with(scale_one_percent_off), FORWARD),
    "heads in turn": (forward_with(heads_in_turn), FORWARD),
    "weights alike": (forward_with(uniform_weights), FORWARD),
    **{f"gradients' accumulators rounded every {n}": (lambda case, n=n: finished(case, backward(case, block=n, accumulator=low(case))), BACKWARD) for n in (32, 64)},
    "gradients without the first key": (dropped(key=0, row=slice(None)), BACKWARD),
    "gradients without the last row": (dropped(key=slice(None), row=-1), BACKWARD),
}
# Defects that no limit can tell from a right kernel. Each must be accepted, so that the table grows no longer than it has to.
NOT_TOLD = {
    # A kernel that rounds no weights and its result twice has more elements in common with the rounded reference than one that rounds weights.
    "one more rounding beside exact weights": (lambda case: finished(case, [rounded_again(case, y) for y in forward(case, weights=None)]), FORWARD, CDNA3),
    # gfx90a's matrix unit takes denormals for zero: right kernels have as few as 38 % of their gradients' elements in common with the rounded ones.
    "one more rounding of gradients on gfx90a": (without(lambda case, y: finished(case, [rounded_again(case, one) for one in y])), BACKWARD, CDNA2),
}
TILES = {f"tiles of {n}": dict(block=n) for n in (16, 64, 512)} | {"newest maximum": dict(is_lazy=False), "split": dict(split=4), "exact weights": dict(weights=None)}


@pytest.mark.parametrize("defect, case", [pytest.param(define, case, id=f"{name}-{case.name}") for name, (define, cases) in DEFECTS.items() for case in cases])
def test_wrong_results_are_rejected(defect, case):
    verdict = judged(case, defect(case), CDNA3)
    assert "problem" in verdict, verdict


@pytest.mark.parametrize("define, case, variant", [pytest.param(d, c, v, id=f"{name}-{c.name}") for name, (d, cases, v) in NOT_TOLD.items() for c in cases if c.dtype != "f32"])
def test_what_cannot_be_told(define, case, variant):
    verdict = judged(case, define(case), variant)
    assert "problem" not in verdict, verdict


@pytest.mark.parametrize("how", TILES.values(), ids=TILES)
@pytest.mark.parametrize("case", FORWARD, ids=lambda case: case.name)
def test_right_kernels_are_accepted(case, how):
    verdict = judged(case, finished(case, forward(case, **how)), CDNA3)
    assert "problem" not in verdict, verdict


@pytest.mark.parametrize("variant", [CDNA3, CDNA2, VULKAN])
@pytest.mark.parametrize("block", [16, 256])
@pytest.mark.parametrize("case", BACKWARD, ids=lambda case: case.name)
def test_right_gradients_are_accepted(case, block, variant):
    verdict = judged(case, finished(case, backward(case, block)), variant)
    assert "problem" not in verdict, verdict


@pytest.mark.parametrize("case", [case for case in FORWARD + BACKWARD if case.dtype != "f32"], ids=lambda case: case.name)
def test_the_host_rounds_no_weights(case):
    rounded = backward(case) if isinstance(case, Backward) else forward(case)
    assert "problem" in judged(case, finished(case, rounded), HOST)
    if not isinstance(case, Backward):
        verdict = judged(case, finished(case, forward(case, weights=None)), HOST)
        assert "problem" not in verdict, verdict
