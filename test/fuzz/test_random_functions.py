"""Random functions for a moment; docs/internals/fuzzing.md records a long run."""

import collections

import numpy as np
import pytest

import defects
import random_functions


def test_random_functions_agree_with_host():
    outcomes = list(random_functions.run_all(seed=1, count=36))
    wrong = [f"function {o.index} {o.what}\n{o.detail}\n{o.text}" for o in outcomes if o.what not in random_functions.HARMLESS]
    assert not wrong, "\n".join(wrong)
    said = random_functions.too_many_as_a_whole(outcomes)
    assert not said
    # The seed is fixed, so this many run on every device, or the compiler refuses more than it did.
    ran = collections.Counter(device for o in outcomes for device in o.ran)
    assert all(ran[device] >= 20 for device in random_functions.DEVICES), ran


@pytest.mark.parametrize("dtype", random_functions.ROUNDING)
def test_wrong_results_are_found(dtype):
    right = np.random.default_rng(1).standard_normal((17, 96))
    assert not defects.unseen(lambda result: not random_functions.is_near(result.astype(float), right, random_functions.ROUNDING[dtype]), right, random_functions.greta_runtime.DTYPES[dtype])
    with_infinity = right.copy()
    with_infinity[3, 3] = np.inf
    assert random_functions.is_near(with_infinity, with_infinity, 0) and not random_functions.is_near(right, with_infinity, 1) and not random_functions.is_near(with_infinity, right, 1)


def test_many_that_agree_as_a_whole_are_too_many():
    some = [random_functions.Outcome(k, "", "agrees as a whole" if k < 5 else "agrees", ran=("host",)) for k in range(40)]
    assert random_functions.too_many_as_a_whole(some) and not random_functions.too_many_as_a_whole(some[2:])
