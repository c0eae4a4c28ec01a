"""Random functions for a moment; docs/internals/fuzzing.md records a long run."""

import collections

import numpy as np
import pytest

import defects
import far_functions
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


def test_far_rows_are_seen():
    """Functions whose results say that rows were found with 32 bits, and how many could."""
    assert random_functions.planted(1, (6, 7, 16)) == [(6, True, True), (7, False, False), (16, True, True)]
    assert sum(far_functions.is_far(random_functions.made(1, k)) for k in range(400)) >= 10


def test_elements_that_32_bits_find():
    text = "func.func @f(%far0: tensor<3x1500000000xf16>)"
    (found,) = far_functions.wrapped(text, {"args": [{"name": "far0"}]}, [np.arange(1, 13, dtype=np.float16).reshape(3, 4)])
    # The second row begins at 3.0e9 bytes; the third's 6.0e9 are 1.7e9, where nothing was written.
    assert found.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8], [0, 0, 0, 0]]
    assert far_functions.near(text) == "func.func @f(%far0: tensor<3x300xf16>)"


def test_inputs_without_dimensions():
    function = {"symbols": [], "args": [{"name": "x0", "shape": [], "dtype": "f32"}, {"name": "w1", "shape": [4, 16], "dtype": "f32"}]}
    assert random_functions.inputs_of(function, None) == ["--input=f32:random:1", "--input=4x16xf32:random:2:0.25"]


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
