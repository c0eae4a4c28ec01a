"""Random functions for a moment; docs/fuzzing.md records a long run."""

import collections

import random_functions


def test_random_functions_agree_with_host():
    outcomes = list(random_functions.run_all(seed=1, count=36))
    wrong = [f"function {o.index} {o.what}\n{o.detail}\n{o.text}" for o in outcomes if o.what not in random_functions.HARMLESS]
    assert not wrong, "\n".join(wrong)
    # The seed is fixed, so this many run on every device, or the compiler refuses more than it did.
    ran = collections.Counter(device for o in outcomes for device in o.ran)
    assert all(ran[device] >= 20 for device in random_functions.DEVICES), ran
