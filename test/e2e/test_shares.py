"""What the suites leave out on a chip is on another one (harness.spread)."""

import pytest

import gemms
import harness
import test_attention
import test_attention_backward
import test_skinny
import test_weights
import weights

CDNA, RDNA = harness.AMD_FAMILIES[:3], harness.AMD_FAMILIES[3:]


@pytest.mark.parametrize("suite, cases, features", [
    (test_attention, test_attention.CASES, test_attention.features),
    (test_attention_backward, test_attention_backward.CASES, test_attention_backward.features),
    (test_weights, weights.CASES, test_weights.features),
    (test_skinny, gemms.NARROW, test_skinny.features),
], ids=["attention", "gradients", "weights", "skinny"])
def test_every_feature_on_both_generations(suite, cases, features):
    """Every case is somewhere, too."""
    on = {family: suite.chosen_for(family) for family in harness.AMD_FAMILIES}
    assert {case for chosen in on.values() for case in chosen} >= set(cases)
    wanted = {feature for case in cases for feature in features(case)}
    for families in (CDNA, RDNA):
        assert {feature for family in families for case in on[family] for feature in features(case)} >= wanted


def test_spread():
    """The case of both features is on two families."""
    cases = ["a", "ab", "b", "a"]
    on = {family: harness.spread(cases, family, set) for family in harness.AMD_FAMILIES}
    if harness.WHOLE:
        assert all(chosen == cases for chosen in on.values())
    else:
        assert [*on.values()] == [["a"], ["ab"], ["b"], ["a"], ["ab"], []]
