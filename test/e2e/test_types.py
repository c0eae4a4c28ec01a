"""Batched products and products of 8-bit floats against float64: on the simulated AMD chips with all their checks, on testing's lavapipe
(cooperative matrices) under its validation layer, on this machine's Vulkan driver (multiply-adds where it is lavapipe), and on the CPU.
"""

import pytest

import harness
from typed import Product

AMD_CHIPS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
BATCHED = [
    Product("plain", "nn", "3", 17, 129, 17, "f16", "f16", "f16"),
    Product("plain", "nt", "2d", 129, 17, 1, "f16", "f16", "f32"),
    Product("heads", "tn", "2x3", 17, 33, 64, "f16", "f16", "f16"),
    Product("heads", "nt", "2x2d", 1, 40, 129, "f16", "f16", "f16"),
    Product("plain", "nn", "3s", 17, 48, 64, "f16", "f16", "f16"),
    Product("heads", "nt", "2x3s", 5, 33, 1000, "f16", "f16", "f16"),
    Product("plain", "tt", "2sd", 17, 33, 129, "f16", "f16", "f16"),
    Product("plain", "nt", "3", 64, 64, 64, "f16", "f16", "f32"),
    Product("plain", "tt", "3", 17, 17, 33, "f32", "f32", "f32"),
    Product("plain", "nn", "1k", 17, 40, 0, "f16", "f16", "f16"),
    Product("plain", "nt", "1k", 17, 33, 100, "f16", "f16", "f32"),
    Product("heads", "nn", "2d", 33, 17, 40, "f32", "f32", "f32"),
]


def cases_of(target):
    return BATCHED


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """(target, device, launcher) -> results of the target's products, compiled and run once."""
    made = {}

    def run(target, device, launcher=()):
        key = target, launcher
        if key not in made:
            chosen = cases_of(target)
            package = harness.compile_package(tmp_path_factory.mktemp("types"), "types", "\n".join(p.mlir() for p in chosen), target)
            made[key] = harness.run_cases(device, package, [[p.name, p.m] for p in chosen], launcher)
        return made[key]

    return run


def check(lines, product):
    assert lines, f"{product.name}: no result"
    for line in lines:
        assert "problem" not in line, f"{product.name}, {line.get('variant')}: {line['problem']}"
        assert all(e <= limit for e, limit in zip(line["errors"], product.tolerances, strict=True)), f"{line} is over {product.tolerances}"


def grid(*targets):
    return [pytest.param(t, p, id=f"{t}-{p.name}", marks=pytest.mark.xdist_group(f"types-{t}")) for t in targets for p in cases_of(t)]


@pytest.mark.parametrize("chip, product", grid(*AMD_CHIPS))
def test_simulated(results, chip, product):
    check(results(chip, f"sim:{chip}")[product.name, product.m], product)


@pytest.mark.parametrize("target, product", grid("vulkan:lavapipe"))
def test_cooperative_matrices(results, driver_parts, target, product):
    if "lavapipe" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no lavapipe here")
    check(results(target, "vulkan", harness.lavapipe_launcher())[product.name, product.m], product)


@pytest.mark.parametrize("device, product", grid("vulkan:portable", "host"))
def test_everywhere(results, device, product):
    check(results(device, device.partition(":")[0])[product.name, product.m], product)
