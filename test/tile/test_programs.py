"""Block programs against float64, from their text to a device: on the simulated AMD families with all their checks, on testing's lavapipe (cooperative
matrices) under its validation layer, and on this machine's Vulkan driver.
"""

import pytest

import harness
from harness import AMD_FAMILIES, check, check_together, results_on, together
from programs import PROGRAMS


def programs_for(target):
    return PROGRAMS


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """(target, device, launcher) -> results of the programs, compiled and run once."""
    return harness.compiled_once(tmp_path_factory, "programs", programs_for)


def grid(*targets):
    return harness.grid("programs", programs_for, *targets)


@pytest.mark.parametrize("chip, program", grid(*AMD_FAMILIES))
def test_simulated(results, driver_parts, chip, program):
    check(results_on(results, chip, driver_parts), program, target=chip)


@pytest.mark.parametrize("target, program", grid("vulkan:lavapipe"))
def test_cooperative_matrices(results, driver_parts, target, program):
    check(results_on(results, target, driver_parts), program, target=target)


@pytest.mark.parametrize("device, program", grid("vulkan:portable"))
def test_everywhere(results, driver_parts, device, program):
    check(results_on(results, device, driver_parts), program)


@pytest.mark.parametrize("target", together("programs", *AMD_FAMILIES, "vulkan:lavapipe", "vulkan:portable"))
def test_together(results, driver_parts, target):
    check_together(results_on(results, target, driver_parts))
