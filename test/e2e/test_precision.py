"""GEMMs of f32 by three products of bf16 (`precision`) against float64, on the simulated AMD chips with all their checks, by the matrix unit where it takes bf16,
in f32 on the CPU and on this machine's Vulkan drivers. None is as bad as one product of bf16 would be, and in few rows all are f32's.
"""

import harness
from harness import AMD_CHIPS, CPU_DRIVERS
from precision import Split

SHAPES = [
    Split("plain", "nt", "d", 129, 130, 1000),
    Split("plain", "nn", "s", 64, 64, 128),
    Split("plain", "tn", "s", 100, 72, 129),
    Split("swiglu", "nt", "d", 70, 65, 448),
    Split("plain", "nt", "s", 300, 256, 512),
]


def chosen_for(target):
    """Families that follow each other share the shapes."""
    return harness.share_of(SHAPES, target, 2) if target in AMD_CHIPS else SHAPES


results, test_case, test_together = harness.suite("precision", chosen_for, ("host", *AMD_CHIPS, *CPU_DRIVERS))
