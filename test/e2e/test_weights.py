"""Formats of packed weights against float64: products with few and with many rows, and kernels that unpack, on the simulated AMD chips with all
their checks, on testing's lavapipe (cooperative matrices) under its validation layer, on this machine's Vulkan driver, and on the CPU.
"""

import pytest

import harness
import weights
from harness import AMD_CHIPS, AMD_FAMILIES, check, check_together, results_on, together

TARGETS = ("vulkan:portable", "vulkan:lavapipe", "host", *AMD_CHIPS)


def chosen_for(target):
    """The CPU and gfx942 take all cases; every other family takes a third of them, so that three of a kind take all, and its further chips a ninth."""
    if target in ("gfx942", "host"):
        return weights.CASES
    if target in AMD_CHIPS and target not in AMD_FAMILIES:
        return weights.CASES[AMD_CHIPS.index(target) % 9::9]
    first = AMD_FAMILIES.index(target) % 3 if target in AMD_FAMILIES else TARGETS.index(target) % 3
    return weights.CASES[first::3]


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """(target, device, launcher) -> results of the target's cases, compiled and run once, a kernel each."""
    def one_kernel(package):
        for function in harness.manifest(package)["functions"]:
            kernels = {k["entry"] for v in function["variants"] for k in v.get("kernels", ())}
            assert len(kernels) <= 1, f"{function['name']} is not one kernel: {kernels}"

    return harness.compiled_once(tmp_path_factory, "weights", chosen_for, one_kernel)


@pytest.mark.parametrize("target, case", harness.grid("weights", chosen_for, *TARGETS))
def test_weights(results, driver_parts, target, case):
    check(results_on(results, target, driver_parts), case)


@pytest.mark.parametrize("target", together("weights", *TARGETS))
def test_together(results, driver_parts, target):
    check_together(results_on(results, target, driver_parts))
