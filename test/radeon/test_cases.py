"""The end-to-end cases of the compiler on Mesa's RADV, unmodified, over GRETA's virtual Radeon: the SPIR-V of `vulkan:rdna3`, RADV's machine code, and the simulator
with all its checks as the card, against float64. They are the cases that test/e2e's modules choose for a Vulkan family.
"""

import importlib

import pytest

import harness
from radeon import launcher

TARGET = "vulkan:rdna3"
CHIP = "phoenix"
MODULES = ("programs", "attention", "attention_backward", "epilogues", "layer", "matmul", "prologues", "slices", "types")


def chosen(module):
    """The cases of a module that have a text for the target; some schedules are not described for it."""
    e2e = importlib.import_module(f"test_{module}")
    choose = next(getattr(e2e, name) for name in ("chosen_for", "cases_of", "programs_for") if hasattr(e2e, name))
    cases = {case.name: case for case in choose(TARGET)}
    return [case for case in cases.values() if has_text(case)]


def has_text(case):
    try:
        return bool(case.mlir(TARGET))
    except KeyError:
        return False


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """module -> results of its cases, compiled and run once."""
    made = {}

    def run(module, driver_parts):
        if module not in made:
            cases = chosen(module)
            package = harness.compile_package(tmp_path_factory.mktemp(module), module, "\n".join(dict.fromkeys(case.mlir(TARGET) for case in cases)), TARGET)
            made[module] = harness.run_cases("vulkan", package, [case.name for case in cases], launcher(driver_parts, CHIP))
        return made[module]

    return run


@pytest.mark.parametrize("module, case", [pytest.param(module, case, id=case.name, marks=harness.group("radeon", module)) for module in MODULES for case in chosen(module)])
def test_case(results, driver_parts, module, case):
    lines = results(module, driver_parts)[case.name]
    assert lines, "no result"
    for line in lines:
        assert "problem" not in line, f"{line.get('variant')}: {line['problem']}"


@pytest.mark.parametrize("module", [pytest.param(module, marks=harness.group("radeon", module)) for module in MODULES])
def test_together(results, driver_parts, module):
    harness.check_together(results(module, driver_parts))
