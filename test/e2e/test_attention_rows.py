"""greta.paged_attention where sequences have numbers of rows of their own: against float64, and bit by bit against each sequence alone."""

import pytest

import harness
from attention_ops import Rows
from harness import check, results_on

# Kind, type, B, Hq, Hkv, S, T, D.
CASES = {
    "gfx942": [Rows("plain", "f16", 5, 4, 2, 180, 200, 64), Rows("windowsoftcapsinks", "bf16", 5, 4, 2, 180, 200, 64), Rows("i8pergroup", "f16", 5, 4, 2, 180, 200, 64)],
    "gfx1100": [Rows("plain", "f16", 5, 4, 2, 180, 200, 64)],
    "gfx1201": [Rows("windowsinks", "f16", 5, 4, 2, 180, 200, 64)],
    "vulkan:lavapipe": [Rows("plain", "f16", 5, 4, 2, 180, 200, 16), Rows("windowsinks", "f16", 5, 4, 2, 180, 200, 16), Rows("i8pergroup", "f16", 5, 4, 2, 180, 200, 32)],
    "vulkan:portable": [Rows("windowsinks", "f16", 5, 4, 2, 180, 200, 16)],
    "host": [Rows("windowsoftcapsinks", "f16", 5, 4, 2, 180, 200, 16), Rows("i8pergroup", "f16", 5, 4, 2, 180, 200, 32)],
}


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """(target, device, launcher) -> results of the cases, compiled and run once."""
    return harness.compiled_once(tmp_path_factory, "attention_rows", CASES.get)


@pytest.mark.parametrize("target, case", harness.grid("attention_rows", CASES.get, *CASES))
def test_rows(results, driver_parts, target, case):
    check(results_on(results, target, driver_parts), case, target=target)
