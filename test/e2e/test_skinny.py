"""Skinny GEMMs against float64: element types, transposes, odd shapes, fused neighbours, on this machine's
Vulkan driver (worker.py says in which variants), on testing's lavapipe, on the CPU, and on the simulated AMD chips.
"""

import pytest

import harness
import gemms
from harness import AMD_CHIPS, check, check_together, together
from registry import Special


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """(device, newer driver?) -> results of the cases, compiled and run once."""
    made = {}

    def run(device, launcher=()):
        key = device, bool(launcher)
        if key not in made:
            chosen = ON_TESTING if launcher else chosen_for(device)
            target = device.removeprefix("sim:")
            package = harness.compile_package(tmp_path_factory.mktemp("decode"), "products", "\n".join(p.mlir() for p in chosen), target)
            made[key] = harness.run_cases(device, package, [p.name for p in [*chosen, *special(chosen)]], launcher)
        return made[key]

    return run


def one_of_each(cases, *fields):
    """The first case of what is different in these fields; GRETA_TEST_WHOLE=1: all."""
    return cases if harness.WHOLE else list({tuple(getattr(p, field) for field in fields): p for p in reversed(cases)}.values())[::-1]


# Lavapipe compiles each case for a CPU, which takes longest, so it has one of each kind.
ON_TESTING = one_of_each(gemms.NARROW, "kind", "dtype")
ON_THIS_MACHINE = [p for p in gemms.WIDE if p in one_of_each(gemms.WIDE, "kind", "dtype") + one_of_each(gemms.WIDE, "layout")]


def features(product):
    return {product.kind, product.dtype, product.layout}


def chosen_for(device):
    """This machine's driver and the CPU share the wide cases; the CPU takes the narrow ones, and simulators share them: a CDNA and an RDNA family take
    each kind, type and layout."""
    if device == "vulkan":
        return ON_THIS_MACHINE
    if device == "host":
        return [*gemms.NARROW, *(p for p in gemms.WIDE if p not in gemms.NARROW and (harness.WHOLE or p not in ON_THIS_MACHINE))]
    return harness.part_for(device.removeprefix("sim:"), lambda family: harness.spread(gemms.NARROW, family, features))


def special(chosen):
    """Infinities and NaNs in some of the cases."""
    return [Special(p) for p in chosen if p in gemms.NARROW and p.kind in ("plain", "layer", "w4128", "normw4128", "dequant128") and p.dtype != "i8" and p.k < 4096]


DEVICES = ("vulkan", "host", *[f"sim:{chip}" for chip in AMD_CHIPS])
GRID = [
    pytest.param(device, p, id=f"{device}-{p.name}", marks=harness.group("decode", device))
    for device in DEVICES
    for chosen in [chosen_for(device)]
    for p in [*chosen, *special(chosen)]
]


@pytest.mark.parametrize("device, product", GRID)
def test_products_with_few_rows(results, device, product):
    check(results(device), product)


@pytest.mark.parametrize("device", together("decode", *DEVICES))
def test_together(results, device):
    check_together(results(device))


@pytest.mark.xdist_group("decode-validated")
@pytest.mark.parametrize("product", ON_TESTING, ids=lambda p: p.name)
def test_validated_on_newer_lavapipe(results, driver_parts, product):
    if "lavapipe" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no lavapipe here")
    check(results("vulkan", harness.lavapipe_launcher()), product)
