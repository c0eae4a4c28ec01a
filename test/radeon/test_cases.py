"""The end-to-end cases of the compiler on Mesa's RADV, unmodified, over GRETA's virtual Radeon: the SPIR-V of `vulkan:rdna3` and `vulkan:rdna4`, RADV's machine code, and the
simulator with all its checks as the card, against float64. They are the cases that test/e2e's modules choose for a Vulkan family.
"""

import importlib

import pytest

import harness
from radeon import launcher

# Only testing's RADV has cooperative matrices on RDNA 4.
CARDS = {"vulkan:rdna3": ("phoenix", "backports"), "vulkan:rdna4": ("gfx1201", "testing")}
MODULES = ("programs", "attention", "attention_backward", "epilogues", "layer", "matmul", "prologues", "slices", "types")
PARTS = [(target, module) for target in CARDS for module in MODULES]


def part(target, module, *case):
    name = case[0].name if case else module
    return pytest.param(target, module, *case, id=f"{name}-{CARDS[target][0]}", marks=harness.group("radeon", f"{module}-{target}"))


def chosen(target, module):
    """The cases of a module that have a text for the target; some schedules are not described for it."""
    e2e = importlib.import_module(f"test_{module}")
    choose = next(getattr(e2e, name) for name in ("chosen_for", "cases_of", "programs_for") if hasattr(e2e, name))
    cases = {case.name: case for case in choose(target)}
    return [case for case in cases.values() if has_text(case, target)]


def has_text(case, target):
    try:
        return bool(case.mlir(target))
    except KeyError:
        return False


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """(target, module) -> results of its cases, compiled and run once."""
    made = {}

    def run(target, module, driver_parts):
        if (target, module) not in made:
            cases, (chip, mesa) = chosen(target, module), CARDS[target]
            text = "\n".join(dict.fromkeys(case.mlir(target) for case in cases))
            package = harness.compile_package(tmp_path_factory.mktemp(module), module, text, target)
            made[target, module] = harness.run_cases("vulkan", package, [case.name for case in cases], launcher(driver_parts, chip, mesa))
        return made[target, module]

    return run


@pytest.mark.parametrize("target, module, case", [part(target, module, case) for target, module in PARTS for case in chosen(target, module)])
def test_case(results, driver_parts, target, module, case):
    lines = results(target, module, driver_parts)[case.name]
    assert lines, "no result"
    for line in lines:
        assert "problem" not in line, f"{line.get('variant')}: {line['problem']}"


@pytest.mark.parametrize("target, module", [part(target, module) for target, module in PARTS])
def test_together(results, driver_parts, target, module):
    harness.check_together(results(target, module, driver_parts))


@pytest.mark.parametrize("module", ["attention", "matmul", "types"])
@pytest.mark.parametrize("target", CARDS)
def test_matrices_are_used(results, driver_parts, target, module):
    """Their products and their layouts are those that the driver offers and the runtime's probe reads."""
    variants = {line.get("variant") for lines in results(target, module, driver_parts).values() for line in lines}
    assert f"{target.replace(':', '-')}-coopmat" in variants
