"""Reductions of rows by any combination of one or several values, on the CPU, on the simulated AMD chips with all their checks, on testing's lavapipe
(cooperative matrices) under its validation layer, and on this machine's Vulkan driver.
"""

import harness
from harness import AMD_CHIPS, CPU_DRIVERS
from reductions import Reduction

SHAPES = [
    Reduction("sum", "d", 9, 100),
    Reduction("sum", "s", 2, 20000),  # in pieces on some devices
    Reduction("product", "d", 5, 40),
    Reduction("maximum", "s", 5, 1000),
    Reduction("minimum", "d", 3, 77),
    Reduction("maxnum", "d", 3, 50),
    Reduction("sumi", "s", 4, 300),
    Reduction("leasti", "d", 4, 20000),
    Reduction("mosti", "d", 4, 65),
    Reduction("andi", "d", 5, 33),
    Reduction("ori", "s", 3, 1),
    Reduction("xori", "d", 2, 9001),
    Reduction("softmax", "d", 5, 100),
    Reduction("softmax", "s", 3, 10000),
    Reduction("argmax", "d", 6, 77),
    Reduction("argmax", "s", 3, 8192),  # several waves
    Reduction("argmax", "d", 2, 40001),  # in pieces on every device, the last of which is not whole
    Reduction("argmax", "d", 70, 1),
    Reduction("byKey", "d", 5, 64),
    Reduction("byKey", "s", 3, 1001),
    Reduction("both", "d", 4, 100),
    Reduction("both", "s", 2, 20001),
    Reduction("anyOf", "d", 5, 300),
    Reduction("anyOf", "s", 3, 4096),
    Reduction("logsumexp", "d", 4, 129),
    Reduction("logsumexp", "s", 3, 8192),
    Reduction("welford", "d", 4, 300),
    Reduction("welford", "s", 3, 8191),
    Reduction("welford", "d", 2, 20000),
]


def chosen_for(target):
    """Two chips and the host take all of the shapes, other targets a quarter, so that four of a kind take all."""
    if target in ("gfx942", "gfx1201", "host"):
        return SHAPES
    return harness.share_of(SHAPES, target, 2 if target.startswith("vulkan") else 4)


results, test_case, test_together = harness.suite("reductions", chosen_for, ("host", *AMD_CHIPS, *CPU_DRIVERS), harness.one_kernel, in_units=False)
