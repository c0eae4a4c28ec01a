"""The end-to-end cases of the compiler on Mesa's RADV, unmodified, over GRETA's virtual Radeon: the SPIR-V of `vulkan:rdna3` and `vulkan:rdna4`, RADV's machine code, and the
simulator with all its checks as the card, against float64. They are the cases that test/e2e's modules choose for a Vulkan family.
"""

import importlib
import os

import pytest

import harness
from radeon import launcher

MODULES = ("programs", "attention", "attention_backward", "epilogues", "grouped", "layer", "matmul", "precision", "prologues", "quantized", "slices", "types")
# Each chip's family, the Mesa and the variants that run. Only testing's has cooperative matrices on RDNA 4; RDNA 2 has none, and takes its family's other variants.
CARDS = {
    "phoenix": ("vulkan:rdna3", "backports", MODULES),
    "gfx1201": ("vulkan:rdna4", "testing", MODULES),
    "navi21": ("vulkan:rdna3", "backports", ("programs", "prologues")),
}
# GRETA_RADEON_CARDS=all: the other RDNA 3 chips, too, and all three with GRETA_RADEON_MESA (testing).
if os.environ.get("GRETA_RADEON_CARDS") == "all":
    CARDS |= {chip: ("vulkan:rdna3", os.environ.get("GRETA_RADEON_MESA", "backports"), MODULES) for chip in ("phoenix", "navi31", "gfx1151")}
PARTS = [(chip, module) for chip, (_, _, modules) in CARDS.items() for module in modules]
# Programs that add to floats in memory, which RDNA 2 cannot.
FLOAT_ATOMICS = ("split-sums", "split-k")


def part(chip, module, *case):
    name = case[0].name if case else module
    return pytest.param(chip, module, *case, id=f"{name}-{chip}", marks=harness.group("radeon", f"{module}-{chip}"))


def chosen(chip, module):
    """The cases of a module that have a text for the chip's family, which some schedules do not, and that it can run."""
    target = CARDS[chip][0]
    e2e = importlib.import_module(f"test_{module}")
    choose = next(getattr(e2e, name) for name in ("chosen_for", "cases_of", "programs_for") if hasattr(e2e, name))
    cases = {case.name: case for case in choose(target)}
    return [case for case in cases.values() if has_text(case, target) and not (chip == "navi21" and getattr(case, "kind", "") in FLOAT_ATOMICS)]


def has_text(case, target):
    try:
        return bool(case.mlir(target))
    except KeyError:
        return False


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """(chip, module) -> results of its cases, compiled and run once."""
    made = {}

    def run(chip, module, driver_parts):
        if (chip, module) not in made:
            cases, (target, mesa, _) = chosen(chip, module), CARDS[chip]
            text = "\n".join(dict.fromkeys(case.mlir(target) for case in cases))
            package = harness.compile_package(tmp_path_factory.mktemp(module), module, text, target)
            made[chip, module] = harness.run_cases("vulkan", package, [case.name for case in cases], launcher(driver_parts, chip, mesa))
        return made[chip, module]

    return run


@pytest.mark.parametrize("chip, module, case", [part(chip, module, case) for chip, module in PARTS for case in chosen(chip, module)])
def test_case(results, driver_parts, chip, module, case):
    lines = results(chip, module, driver_parts)[case.name]
    assert lines, "no result"
    for line in lines:
        assert "problem" not in line, f"{line.get('variant')}: {line['problem']}"


@pytest.mark.parametrize("chip, module", [part(chip, module) for chip, module in PARTS])
def test_together(results, driver_parts, chip, module):
    harness.check_together(results(chip, module, driver_parts))


@pytest.mark.parametrize("module", ["attention", "matmul", "types"])
@pytest.mark.parametrize("chip", ["phoenix", "gfx1201"])
def test_matrices_are_used(results, driver_parts, chip, module):
    """Their products and their layouts are those that the driver offers and the runtime's probe reads."""
    variants = {line.get("variant") for lines in results(chip, module, driver_parts).values() for line in lines}
    assert f"{CARDS[chip][0].replace(':', '-')}-coopmat" in variants
