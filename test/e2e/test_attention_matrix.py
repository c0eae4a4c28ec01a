"""Options of attention beside each other, drawn (attention_matrix.py): every family has every option of each op."""

import pytest

import harness
from attention_matrix import sample
from harness import AMD_FAMILIES, check, results_on


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """(target, device, launcher) -> results of the cases, compiled and run once."""
    return harness.compiled_once(tmp_path_factory, "attention_matrix", sample)


@pytest.mark.parametrize("target, case", harness.grid("attention_matrix", sample, *AMD_FAMILIES, "vulkan:lavapipe", "vulkan:portable", "host"))
def test_drawn(results, driver_parts, target, case):
    check(results_on(results, target, driver_parts), case)
