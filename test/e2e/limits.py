"""What a right result is (docs/internals/numerics.md): the one table of limits, and the one judge that the tests, worker.py and docs/benchmarks/numerics.py
ask. NumPy alone, so that test_limits.py can show what the judge rejects without a compiler.

A result is compared with its definition in float64 by three measures:
  - the largest error of a row, relative to the row, in the Euclidean and in the maximum norm: nothing is far off;
  - the share of elements that are bit for bit the correctly rounded float64 result: nothing is rounded once more, once less or toward zero.
In f32, where sums of other orders differ in the last bits, there is no share: the two norms are tight instead.
"""

import dataclasses
import math

import numpy as np

from greta_runtime import DTYPES

UNIT = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}  # the error of one rounding, relative to the element
NORMAL = {"f32": 2.0**-126, "f16": 2.0**-14, "bf16": 2.0**-126}  # the smallest normal numbers


@dataclasses.dataclass(frozen=True)
class Limit:
    euclidean: float = 1.25  # of f16 and bf16, in units of one rounding; a quarter for what f32 adds to it
    maximum: float = 1.25
    share: float = 0.95  # of elements that equal the correctly rounded ones
    f32: float = 12  # Euclidean, of a result of f32, and twice that for the maximum
    f32_per_root: float = 0  # and for each unit of the square root of the depth: rounding errors of sums are a random walk
    fused_norm: bool = False  # the form: what of a definition is not rounded (case.Rounding)
    packed: bool = False
    apart: bool = False  # also the form: a minimum is added to a product that is rounded
    only: str | tuple = ""  # variants whose names begin so, or with one of these, may take this form

    def norms(self, precision, depth):
        """The limits of the Euclidean and of the maximum norm."""
        if self.share == 1:
            return 0.0, 0.0
        if precision == "f32":
            limit = (self.f32 + self.f32_per_root * math.sqrt(depth)) * UNIT["f32"]
            return limit, 2 * limit
        return self.euclidean * UNIT[precision], self.maximum * UNIT[precision]


GEMM = dict(f32=6, f32_per_root=1)
ATTENTION, GRADIENTS = dict(f32=64, f32_per_root=1), dict(euclidean=1, maximum=1.75, f32=40, f32_per_root=1)
CHAIN = dict(euclidean=2.5, maximum=3.75)  # up to three roundings one after another, each of which may fall to the other side of a tie
LIMITS = {
    "exact": Limit(share=1),
    "row op": Limit(),
    "layer norm": Limit(f32=96),  # rows of mean 16 times their deviation: what the mean is off by is as much more of the result
    # Numbers of rows that the definition makes in f32, one element after the other, where devices make them in trees (linalg.reduce).
    "one after the other": Limit(only="host", f32_per_root=6),
    "chain": Limit(**CHAIN),
    "gemm": Limit(**GEMM),
    "bf16x3": Limit(f32=256, f32_per_root=1),  # products are off by 2^-17 or so, up and down
    "bf16x3, row op": Limit(f32=512, f32_per_root=2),  # the errors of both factors add up
    "gemm chain": Limit(**CHAIN, **GEMM),
    "gemm, row op": Limit(**CHAIN, f32=18, f32_per_root=1),  # the errors of both in f32 add up
    # Each weight is rounded before it is multiplied, with the maximum that is known by then: about as much again as the result's own rounding.
    # In f32 the last place of a logit, 32 units for those of 16, is as much of its weight. The host's weights are f64.
    "attention": Limit(euclidean=1.75, maximum=2.5, share=0.58, only=("gfx", "vulkan"), **ATTENTION),
    "attention on the host": Limit(only="host"),
    # All rows are judged as one, because a row's rounding may be all that is left of terms that cancel. gfx90a's matrix unit takes denormals for zero.
    "attention gradients": Limit(share=0.57, only=("gfx94", "gfx95", "gfx1", "vulkan"), **GRADIENTS),
    "attention gradients on gfx90a": Limit(share=0.3, only="gfx90a", **GRADIENTS),
    "attention gradients on the host": Limit(only="host", **GRADIENTS),
    # Roundings one after another, of which attention's is one.
    "layer": Limit(fused_norm=True, share=0.8, **CHAIN, **GEMM),
    "fused norm": Limit(fused_norm=True, **CHAIN, **GEMM),
    "packed weights": Limit(fused_norm=True, packed=True, **CHAIN, **GEMM),
    "packed sums": Limit(share=0.2, fused_norm=True, packed=True, only="vulkan", **CHAIN, **GEMM),
    "minimum added apart": Limit(fused_norm=True, apart=True, only="vulkan", **CHAIN, **GEMM),
    "packed sums of two": Limit(euclidean=4, maximum=6, share=0.2, packed=True, only="vulkan", **GEMM),
}


def counts_as_one_row(columns, depth):
    """A GEMM's result of few columns, or of one term each: a row of it may cancel to next to nothing, and relative to that every error is large."""
    return columns < 32 or depth == 1


def unequal_allowed(elements, share):
    """How many of so few elements may differ before it is no longer chance: four standard deviations, and one."""
    if share == 1:
        return 0
    return math.floor(elements * (1 - share) + 4 * math.sqrt(elements * share * (1 - share)) + 1)


def rounded_as(actual, expected, precision):
    """A float64 result in the type of `actual`, as it would be after one rounding to `precision`."""
    if expected.dtype == actual.dtype:
        return expected
    with np.errstate(over="ignore", invalid="ignore"):
        return expected.astype(DTYPES[precision]).astype(actual.dtype)


def measure(actual, expected, precision, one_row=False, is_exact=False):
    """{"euclidean", "maximum", "unequal", "elements"} of one result, or {"problem"} where one is not finite and the other is something else.
    Zeros have signs where results are exact alone: AMD's v_fma_mix adds +0 to a product that it rounds to f16."""
    if actual.shape != expected.shape:
        return dict(problem=f"the shape is {list(actual.shape)} instead of {list(expected.shape)}")
    right = rounded_as(actual, expected, precision)
    y, r = actual.astype(np.float64), right.astype(np.float64)
    finite = np.isfinite(r)
    equal = (y == r) & ((np.signbit(y) == np.signbit(r)) | (not is_exact)) | np.isnan(y) & np.isnan(r)
    odd = np.where(finite, ~np.isfinite(y), ~equal)
    if odd.any():
        place = tuple(int(i) for i in np.argwhere(odd)[0])
        return dict(problem=f"{int(odd.sum())} of {odd.size} elements, the first at {place}, are {y[place]} instead of {r[place]}")
    exact = np.where(finite, expected.astype(np.float64), 0.0)
    rows = (1, -1) if one_row or exact.ndim == 0 else (-1, exact.shape[-1])
    difference, reference = (np.where(finite, y, 0.0) - exact).reshape(rows), exact.reshape(rows)
    least = NORMAL.get(precision, NORMAL["f32"])  # relative to smaller numbers, denormals, one rounding is more
    euclidean = np.linalg.norm(difference, axis=1) / np.maximum(np.linalg.norm(reference, axis=1), least * math.sqrt(reference.shape[1]))
    maximum = np.abs(difference).max(axis=1, initial=0) / np.maximum(np.abs(reference).max(axis=1, initial=0), least)
    return dict(euclidean=float(euclidean.max(initial=0)), maximum=float(maximum.max(initial=0)), unequal=int((~equal).sum()), elements=actual.size)


def has_share(precision, limit):
    return precision != "f32" or limit.share == 1


def over(measured, limit, precision, depth):
    """What of a measurement is over its limit; nothing if it is right."""
    norms, allowed = limit.norms(precision, depth), unequal_allowed(measured["elements"], limit.share)
    if not measured["euclidean"] <= norms[0]:
        return f"the worst row is off by {measured['euclidean']:.3g} (Euclidean, limit {norms[0]:.3g})"
    if not measured["maximum"] <= norms[1]:
        return f"the worst element is off by {measured['maximum']:.3g} of its row's largest (limit {norms[1]:.3g})"
    if has_share(precision, limit) and measured["unequal"] > allowed:
        return f"{measured['unequal']} of {measured['elements']} elements are not the correctly rounded ones (limit {allowed})"
    return ""


def judge_form(name, case, actual, expected):
    measured = [measure(a, e, case.precision, case.one_row, LIMITS[name].share == 1) for a, e in zip(actual, expected, strict=True)]
    for one in measured:
        if "problem" in one:
            return dict(limit=name, problem=one["problem"])
    verdict = dict(limit=name, precision=case.precision)
    verdict |= {key: max(one[key] for one in measured) for key in ("euclidean", "maximum")}
    verdict |= {key: sum(one[key] for one in measured) for key in ("unequal", "elements")}
    problem = over(verdict, LIMITS[name], case.precision, case.depth)
    return verdict | (dict(problem=problem) if problem else {})


@dataclasses.dataclass(frozen=True)
class Result:
    """The fields of a case that `judge` reads, for a result that belongs to no case."""

    precision: str
    depth: int = 0
    one_row: bool = False


def judge(case, references, actual, variant=""):
    """The verdict on a case's results: how they compare with the form of its definition (case.references) that they keep, else with the
    form that has the most elements in common with them, and then the `problem`."""
    verdicts = [judge_form(name, case, actual, expected) for name, expected in references if variant.startswith(LIMITS[name].only)]
    return next((v for v in verdicts if "problem" not in v), min(verdicts, key=lambda v: v.get("unequal", math.inf)))


def judge_together(verdicts):
    """What is wrong with verdicts of one limit and precision as one: many small results have together what one of them cannot show."""
    pool = {key: sum(v[key] for v in verdicts) for key in ("unequal", "elements")} | dict(euclidean=0.0, maximum=0.0)
    return over(pool, LIMITS[verdicts[0]["limit"]], verdicts[0]["precision"], 0)
