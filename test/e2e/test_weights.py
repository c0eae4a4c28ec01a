"""Formats of packed weights against float64: products with few and with many rows, and kernels that unpack, on the simulated AMD chips with all
their checks, on testing's lavapipe (cooperative matrices) under its validation layer, on this machine's Vulkan driver, and on the CPU.
"""

import pytest

import harness
import weights
from harness import AMD_CHIPS, check, check_together, results_on, together

TARGETS = ("vulkan:portable", "vulkan:lavapipe", "host", *AMD_CHIPS)


def chosen_for(target):
    """The CPU and gfx942 take all cases, every other family a third of them."""
    return weights.CASES if target in ("gfx942", "host") else harness.share_of(weights.CASES, target, 3)


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """(target, device, launcher) -> results of the target's cases, compiled and run once, a kernel each."""
    return harness.compiled_once(tmp_path_factory, "weights", chosen_for, harness.one_kernel)


@pytest.mark.parametrize("target, case", harness.grid("weights", chosen_for, *TARGETS))
def test_weights(results, driver_parts, target, case):
    check(results_on(results, target, driver_parts), case)


@pytest.mark.parametrize("target", together("weights", *TARGETS))
def test_together(results, driver_parts, target):
    check_together(results_on(results, target, driver_parts))
