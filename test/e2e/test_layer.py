"""A whole Llama layer, as prefill and as decode, against float64: on the simulated AMD families, on testing's lavapipe and this machine's Vulkan driver, and on
the host; and in how many launches.
"""

import pytest

import harness
import layer_ops
from harness import AMD_FAMILIES, CPU_DRIVERS
from layer_ops import Layer

CASES = [Layer("prefill", "f16", 21), Layer("decode", "f16", 3), Layer("prefill", "bf16", 5), Layer("decode", "bf16", 1)]
EXAMPLE = harness.ROOT / "examples" / "llama_layer.mlir"


def chosen_for(target):
    """gfx942 takes all cases; a layer takes others seconds to compile, and drivers for a CPU half a minute: each takes one of two. GRETA_TEST_WHOLE=1: both."""
    return CASES if target == "gfx942" else CASES[:2] if target == "host" else harness.share_of(CASES[:2], target, 2)


results, test_case, test_together = harness.suite("layer", chosen_for, ("host", *AMD_FAMILIES, *CPU_DRIVERS))


def test_example_is_current():
    assert EXAMPLE.read_text() == layer_ops.example()


@pytest.mark.parametrize("target", ["gfx942", "gfx1201", "vulkan:nvidia"])
def test_launches(tmp_path, target):
    package = harness.compile_package(tmp_path, "layer", EXAMPLE.read_text(), target)
    for function, most in (("decode", 6), ("prefill", 7)):
        for variant in harness.function_of(package, function)["variants"]:
            assert len(variant["kernels"]) <= most, variant["name"]
