"""Skinny GEMMs against float64: element types, transposes, odd shapes, fused neighbours, on this machine's
Vulkan driver (worker.py says in which variants), on testing's lavapipe, on the CPU, and on the simulated AMD chips.
"""

import harness
import gemms
from harness import AMD_CHIPS, CPU_DRIVERS
from registry import Special


def one_of_each(cases, *fields):
    """The first case of what is different in these fields; GRETA_TEST_WHOLE=1: all."""
    return cases if harness.WHOLE else list({tuple(getattr(p, field) for field in fields): p for p in reversed(cases)}.values())[::-1]


# Lavapipe compiles each case for a CPU, which takes longest, so it has one of each kind.
ON_TESTING = one_of_each(gemms.NARROW, "kind", "dtype")
ON_THIS_MACHINE = [p for p in gemms.WIDE if p in one_of_each(gemms.WIDE, "kind", "dtype") + one_of_each(gemms.WIDE, "layout")]


def features(product):
    return {product.kind, product.dtype, product.layout}


def chosen_for(target):
    """This machine's driver and the CPU share the wide cases; the CPU takes the narrow ones, and simulators share them: a CDNA and an RDNA family take
    each kind, type and layout."""
    if target == "vulkan:lavapipe":
        return ON_TESTING
    if target == "vulkan:portable":
        chosen = ON_THIS_MACHINE
    elif target == "host":
        chosen = [*gemms.NARROW, *(p for p in gemms.WIDE if p not in gemms.NARROW and (harness.WHOLE or p not in ON_THIS_MACHINE))]
    else:
        chosen = harness.spread(gemms.NARROW, target, features)
    return [*chosen, *special(chosen)]


def special(chosen):
    """Infinities and NaNs in some of the cases."""
    return [Special(p) for p in chosen if p in gemms.NARROW and p.kind in ("plain", "layer", "w4128", "normw4128", "dequant128") and p.dtype != "i8" and p.k < 4096]


results, test_case, test_together = harness.suite("decode", chosen_for, ("host", *AMD_CHIPS, *CPU_DRIVERS), in_units=False)
