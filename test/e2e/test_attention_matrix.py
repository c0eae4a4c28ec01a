"""Options of attention beside each other, drawn (attention_matrix.py): a CDNA and an RDNA family have every option of each op; Vulkan's two share the ops."""

import pytest

import harness
from attention_matrix import sample
from harness import AMD_FAMILIES, check, results_on


def chosen_for(target):
    return sample(target) if target == "host" else harness.share_of(sample(target), target, 2)


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """(target, device, launcher) -> results of the cases, compiled and run once."""
    return harness.compiled_once(tmp_path_factory, "attention_matrix", chosen_for)


@pytest.mark.parametrize("target, case", harness.grid("attention_matrix", chosen_for, *AMD_FAMILIES, "vulkan:lavapipe", "vulkan:portable", "host"))
def test_drawn(results, driver_parts, target, case):
    check(results_on(results, target, driver_parts), case)
