"""Rows quantised to 8 bits, alone, behind a norm and in front of a GEMM, on the CPU, on the simulated AMD chips with
all their checks, on testing's lavapipe (cooperative matrices) under its validation layer, and on this machine's Vulkan driver.
"""

import harness
from harness import AMD_CHIPS, CPU_DRIVERS
from quantized import Quantize

SHAPES = [
    Quantize("rows", "d", 5, 200, "f16", "i8"),
    Quantize("rows", "s", 3, 4096, "f32", "i8"),
    Quantize("rows", "d", 4, 9000, "bf16", "i8"),  # in pieces
    Quantize("rows", "s", 7, 33, "f16", "f8e4m3fn"),
    Quantize("rows", "d", 4, 512, "bf16", "f8e4m3fnuz"),
    Quantize("norm", "d", 6, 256, "f16", "i8"),
    Quantize("gemm", "d", 17, 200, "f16", "i8"),
    Quantize("gemm", "s", 2, 512, "f16", "i8"),
]


def chosen_for(target):
    """A CDNA and an RDNA family take each shape, and so does one of two Vulkan targets."""
    if target in ("gfx942", "host"):
        return SHAPES
    return harness.share_of(SHAPES, target, 2 if target.startswith("vulkan") else 3)


def few_kernels(package):
    for function in harness.manifest(package)["functions"]:
        for variant in function["variants"]:
            if variant["target"] != "host":
                assert len(variant["kernels"]) == 1 + ("gemm" in function["name"]), function["name"]


results, test_case, test_together = harness.suite("quantized", chosen_for, ("host", *AMD_CHIPS, *CPU_DRIVERS), few_kernels, in_units=False)
