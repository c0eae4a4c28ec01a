"""Random block programs for a moment; docs/internals/fuzzing.md records long runs."""

import random_programs


def test_random_programs_agree_with_numpy():
    outcomes = [*random_programs.run_all(seed=1, count=10, targets=("gfx90a", "gfx1100"), batch=10), *random_programs.run_all(seed=1, count=4, targets=("vulkan:portable",))]
    wrong = [f"program {index} on {target}: {what}: {detail}" for target, index, what, detail in outcomes if what not in ("right", "refused")]
    assert not wrong, "\n".join(wrong)
    assert sum(what == "right" for _, _, what, _ in outcomes) >= 20


def test_a_difference_is_found():
    """The evaluation of another program with the same output is another."""
    one, other = (random_programs.program(1, k) for k in (0, 1))
    x, y = one.inputs()
    assert (one.evaluate(x, y) == one.evaluate(x, y)).all()
    assert (one.evaluate(x, y) != other.evaluate(x, y)).any()


def test_defects_are_found():
    """Of 120 programs some have a place for each defect that GRETA had, and show it."""
    for defect in random_programs.PLANTS:
        outcomes = list(random_programs.planted(1, defect, range(120)))
        assert sum(has for _, has, _ in outcomes) >= 5, defect
        assert any(shows for _, _, shows in outcomes), defect
