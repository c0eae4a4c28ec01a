"""Deliberately wrong results: a check that accepts one of them sees nothing. Tests of values ask the very check that they use, with the right result of each case."""

import ml_dtypes
import numpy as np

NARROWER = {np.dtype(np.float64): np.float32, np.dtype(np.float32): np.float16, np.dtype(np.float16): ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16): ml_dtypes.float8_e5m2}


def element_dropped(right):
    """One of the middle size among those that are not zero."""
    made = right.copy()
    order = np.argsort(np.abs(right), axis=None)
    order = order[right.reshape(-1)[order] != 0]
    if order.size:
        made.reshape(-1)[order[order.size // 2]] = 0
    return made


def with_nan(right):
    made = right.copy()
    made.reshape(-1)[made.size // 3] = np.nan
    return made


DEFECTS = {
    "zeros": np.zeros_like,
    "a row's mean": lambda y: np.broadcast_to(y.mean(-1, keepdims=True), y.shape).copy(),
    "one percent more": lambda y: 1.01 * y,
    "an element dropped": element_dropped,
    "columns shifted": lambda y: np.roll(y, 1, -1),
    "rows shifted": lambda y: np.roll(y, 1, -2) if y.ndim > 1 else y,
    "a NaN": with_nan,
}


def wrong(right, dtype):
    """(name, result) of the wrong results of `right`, an array in float64, as `dtype`; without those that happen to be right."""
    right = np.asarray(right, np.float64)
    with np.errstate(all="ignore"):
        rounded = right.astype(dtype)
        made = {name: define(right).astype(dtype) for name, define in DEFECTS.items()}
        made["in a narrower type"] = right.astype(NARROWER[np.dtype(dtype)]).astype(dtype)
    return [(name, y) for name, y in made.items() if not np.array_equal(y.astype(np.float64), rounded.astype(np.float64))]


def unseen(problem, right, dtype):
    """The names of wrong results of which `problem`, a function of a result, says nothing."""
    return [name for name, y in wrong(right, dtype) if not problem(y)]
