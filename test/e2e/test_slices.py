"""Slices of tensors against float64: read where they lie, and computed where they are used; on the simulated AMD chips with all their checks, on
testing's lavapipe (cooperative matrices), on this machine's Vulkan driver and on the host.
"""

import harness
from harness import AMD_CHIPS, CPU_DRIVERS
from slices import Slice

CASES = [
    Slice("halves", "rows", 3, 1000, 1, "f16"),
    Slice("norm", "rows", 3, 129, 1, "f16"),
    Slice("norm", "rows", 17, 1000, 1, "f32"),
    Slice("picked", "rows", 17, 129, 1, "bf16"),
    Slice("rope", "neox", 3, 192, 64, "f16"),
    Slice("rope", "gptj", 17, 34, 34, "f32"),
    Slice("computed", "rows", 3, 129, 1, "bf16"),
    Slice("operands", "nt", 17, 33, 129, "f16"),
    Slice("operands", "nn", 33, 72, 40, "bf16"),
    Slice("operands", "tt", 129, 17, 33, "f32"),
    Slice("operands", "nt", 1, 33, 1000, "f16"),
    Slice("operands", "nn", 3, 129, 129, "f16"),
    Slice("batch", "nt", 17, 33, 64, "f16"),
    Slice("pair", "nt", 33, 72, 1000, "f16"),
    Slice("pair", "nn", 17, 129, 33, "bf16"),
    Slice("pair", "nt", 1, 129, 1000, "f16"),
    Slice("qkvneox64", "nt", 33, 192, 129, "f16"),
    Slice("qkvgptj32", "nn", 17, 128, 40, "bf16"),
    Slice("qkvneox32", "nt", 1, 256, 1000, "f16"),
    Slice("threeneox32", "nt", 129, 96, 64, "f32"),
    Slice("threeneox64", "nt", 3, 128, 1000, "f16"),
    Slice("packed", "nt", 1, 33, 1152, "f16"),
    Slice("packed", "nt", 33, 17, 256, "f16"),
]


# Targets that compute element by element, and drivers that take long to compile GEMMs, get some of them.
SMALL = ("halves", "norm", "picked", "rope", "operands", "batch")
MATRICES = [Slice("operands", "nt", 17, 33, 129, "f16"), Slice("pair", "nn", 17, 40, 33, "f16"), Slice("qkvneox32", "nt", 17, 32, 40, "f16")]


def chosen_for(target):
    """A CDNA and an RDNA family take each case."""
    if target == "vulkan:lavapipe":
        return MATRICES
    if target in AMD_CHIPS:
        return harness.share_of(CASES, target, 3)
    return [c for c in CASES if target != "vulkan:portable" or c.kind in SMALL or c.m <= 17]


def is_counted(variant):
    return variant["target"] != "host"


def count_kernels(package):
    names = {f["name"] for f in harness.manifest(package)["functions"]}
    cases = [c for c in {*CASES, *MATRICES} if c.name in names]
    for case in cases:
        for variant in filter(is_counted, harness.function_of(package, case.name)["variants"]):
            assert len(variant["kernels"]) == case.spec.kernels, f"{case.name}, {variant['id']}"


results, test_case, test_together = harness.suite("slices", chosen_for, ("host", *AMD_CHIPS, *CPU_DRIVERS), count_kernels)
