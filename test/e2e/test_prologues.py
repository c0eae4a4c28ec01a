"""Products whose operands are computed in their kernel (weights of 4 and 8 bits, casts, scales, norms) against float64, on the simulated AMD
chips with all their checks, on testing's lavapipe (cooperative matrices) under its validation layer, and on this machine's Vulkan driver
(SIMT FMAs where it is lavapipe).
"""

import harness
from harness import AMD_CHIPS, CPU_DRIVERS
from prologues import Product

# Extents below, at and above a tile's; depths that blocks divide and that they do not.
SHAPES = [
    Product("plain", "w4128", "nt", "d", 129, 136, 1024, "f16"),
    Product("plain", "w432", "nt", "s", 33, 17, 160, "f16"),
    Product("plain", "w464", "nt", "d", 1, 129, 1152, "f16"),
    Product("cast", "w432", "nt", "s", 17, 1000, 96, "f16"),
    Product("norm", "w464", "nt", "d", 129, 33, 192, "f16"),
    Product("plain", "w464bf", "nt", "d", 17, 64, 192, "bf16"),
    Product("plain", "w8", "nt", "d", 129, 64, 129, "f16"),
    Product("cast", "w8", "nn", "s", 100, 129, 17, "bf16"),
    Product("scaled", "cast", "nn", "d", 17, 129, 129, "f16"),
    Product("scaled", "scaled", "tt", "s", 129, 17, 1000, "f16"),
    Product("cast", "i8", "tn", "d", 1000, 17, 40, "f16"),
    Product("norm", "plain", "nn", "d", 1, 17, 1000, "f16"),
    Product("norm", "cast", "nt", "s", 129, 1000, 129, "bf16"),
    Product("norm", "scaled", "nt", "d", 17, 129, 17, "f32"),
    Product("scaled", "w8", "tt", "d", 33, 129, 129, "f32"),
    Product("plain", "w4m32", "nt", "d", 129, 136, 1024, "f16"),
    Product("norm", "w4m64", "nt", "s", 33, 17, 192, "f16"),
    Product("plain", "w4m64", "nt", "s", 129, 33, 1152, "f16"),
    Product("plain", "w4m32", "nt", "d", 17, 1000, 96, "f16"),
]


def chosen_for(target):
    """A CDNA and an RDNA family take each shape, and so does one of two Vulkan targets."""
    return harness.share_of(SHAPES, target, 2 if target.startswith("vulkan") else 3)


results, test_case, test_together = harness.suite("prologues", chosen_for, (*AMD_CHIPS, *CPU_DRIVERS), harness.one_kernel)
