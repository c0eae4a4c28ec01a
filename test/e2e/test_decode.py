"""Products with few rows (the decode schedule) against float64: element types, transposes, odd shapes, fused neighbours, on this machine's
Vulkan driver in every variant, on testing's lavapipe, on the CPU, and on the simulated AMD chips.
"""

import pytest

import harness
import products
from harness import AMD_CHIPS, check



@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """(device, newer driver?) -> results of the cases, compiled and run once."""
    made = {}

    def run(device, launcher=()):
        key = device, bool(launcher)
        if key not in made:
            chosen = chosen_for(device, launcher)
            target = device.removeprefix("sim:")
            package = harness.compile_package(tmp_path_factory.mktemp("decode"), "products", "\n".join(p.mlir() for p in chosen), target)
            made[key] = harness.run_cases(device, package, [[p.name, p.m] for p in chosen], launcher)
        return made[key]

    return run


def chosen_for(device, launcher=()):
    return products.WIDE if device == "vulkan" and not launcher else products.NARROW


GRID = [
    pytest.param(device, p, id=f"{device}-{p.name}", marks=pytest.mark.xdist_group(f"decode-{device}"))
    for device in ("vulkan", "host", *[f"sim:{chip}" for chip in AMD_CHIPS])
    for p in chosen_for(device)
]


@pytest.mark.parametrize("device, product", GRID)
def test_products_with_few_rows(results, device, product):
    check(results(device)[product.name, product.m], product)


@pytest.mark.xdist_group("decode-validated")
@pytest.mark.parametrize("product", chosen_for("vulkan", ("newer",)), ids=lambda p: p.name)
def test_validated_on_newer_lavapipe(results, driver_parts, product):
    if "lavapipe" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no lavapipe here")
    check(results("vulkan", harness.lavapipe_launcher())[product.name, product.m], product)
