"""Grouped GEMMs against float64: few rows and many for each group, empty groups, rows of no group, offsets that leave the rows, epilogues, packed
weights, on the CPU, on the simulated AMD chips with all their checks, on testing's lavapipe (cooperative matrices) under its validation layer, and on
this machine's Vulkan driver.
"""

import functools

import numpy as np
import pytest

import harness
from grouped import Grouped
from harness import AMD_CHIPS, CPU_DRIVERS

SHAPES = [
    Grouped("exact", "nt", "s", 128, 8, 40, 256, "f16", "f16", "some"),  # one token of eight experts
    Grouped("exact", "nn", "d", 8, 100, 72, 96, "f16", "f32", "some"),
    Grouped("plain", "nt", "d", 4, 129, 65, 129, "f16", "f16", "short"),
    Grouped("plain", "nn", "s", 3, 70, 33, 17, "bf16", "bf16", "wild"),
    Grouped("exact", "nt", "s", 16, 512, 96, 128, "f16", "f16", "even"),
    Grouped("bias", "nt", "d", 5, 200, 64, 160, "f16", "f16", "even"),
    Grouped("residual", "nt", "s", 20, 40, 24, 512, "f16", "f16", "short"),  # tiles of four rows
    Grouped("swiglu", "nt", "d", 6, 150, 48, 64, "f16", "f16", "short"),
    Grouped("swiglu", "nt", "s", 40, 8, 96, 256, "bf16", "bf16", "some"),
    Grouped("plain", "nn", "s", 300, 64, 17, 40, "f32", "f32", "even"),  # three rounds of the search
    Grouped("exact", "nt", "d", 7, 90, 40, 96, "i8", "i32", "wild"),
    Grouped("plain", "nt", "d", 2, 1, 16, 64, "f16", "f16", "even"),
    Grouped("exact", "nt", "d", 4096, 300, 8, 16, "f16", "f16", "even"),  # as many groups as there may be
    Grouped("exact", "nn", "s", 1000, 40, 8, 16, "f16", "f32", "even"),
    Grouped("plain", "nt", "d", 4, 0, 32, 64, "f16", "f16", "even"),
    Grouped("plain", "nt", "s", 4, 0, 32, 64, "f16", "f16", "even"),
    Grouped("halves", "nt", "d", 5, 70, 64, 96, "f16", "f16", "even"),
    Grouped("halves", "nt", "s", 48, 8, 40, 128, "f16", "f16", "some"),
    Grouped("w4s32", "nt", "s", 64, 8, 48, 256, "f16", "f16", "some"),
    Grouped("w464", "nt", "d", 4, 130, 40, 192, "f16", "f16", "short"),
    Grouped("w4m32", "nt", "s", 16, 64, 40, 512, "f16", "f16", "even"),  # eight rows
    Grouped("w4m32", "nt", "d", 3, 90, 24, 160, "f16", "f16", "wild"),
    Grouped("w464", "nt", "s", 32, 8, 40, 512, "f16", "f16", "some"),
]


def chosen_for(target):
    """A CDNA and an RDNA family take each shape, and so does one of two Vulkan targets."""
    if target in ("gfx942", "host"):
        return SHAPES
    return harness.share_of(SHAPES, target, 2 if target.startswith("vulkan") else 3)


results, test_case, test_together = harness.suite("grouped", chosen_for, ("host", *AMD_CHIPS, *CPU_DRIVERS), functools.partial(harness.one_kernel, least=0))


TARGETS = ("host", *AMD_CHIPS, "vulkan:lavapipe", "vulkan:portable")


def test_few_rows_of_a_dynamic_number(tmp_path):
    """They have a range with tiles of one row each: no workgroup is there for a group without rows."""
    case = Grouped("exact", "nt", "d", 128, 8, 64, 256, "f16", "f16", "some")
    package = harness.compile_package(tmp_path, "few", case.mlir(), "gfx942,vulkan:nvidia")
    for variant in harness.function_of(package, case.name)["variants"]:
        (few,) = [r for r in variant["ranges"] if r["when"][0][1] <= case.m <= r["when"][0][2]]
        (kernel,) = few["kernels"]
        assert kernel["config"]["rows"] == 1 and "instruction" not in kernel["config"], kernel["config"]
        assert "+" not in kernel["grid"][0][:2], kernel["grid"]


# Offsets in no order: nothing outside of the tensors is touched, which the simulator's checks see, and rows are those of some group or zero.
UNORDERED = [Grouped("exact", "nt", "d", 20, 90, 40, 64, "f16", "f32", "even"), Grouped("exact", "nt", "s", 40, 8, 40, 64, "f16", "f32", "even")]


@pytest.mark.parametrize("case", UNORDERED, ids=lambda c: c.name)
@pytest.mark.parametrize("target", ["host", "gfx942", "gfx1201"])
def test_offsets_in_no_order(tmp_path, target, case):
    package = harness.compile_package(tmp_path, "unordered", case.mlir(), target)
    a, b, _ = case.inputs()
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    for seed in range(3):
        offsets = np.random.default_rng(seed).integers(-(2**31), 2**31, case.e + 1) if seed == 0 else np.random.default_rng(seed).permutation(case.e + 1) * case.m // case.e
        np.save(tmp_path / "o.npy", offsets.astype(np.int32))
        device = target if target == "host" else f"sim:{target}"
        ran = harness.tool(harness.RUN, package, f"--device={device}", *(f"--input={tmp_path}/{x}.npy" for x in "abo"))
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_checked_offsets(tmp_path):
    """A checked function says which op has wrong offsets."""
    case = UNORDERED[0]
    source = tmp_path / "checked.mlir"
    source.write_text(case.mlir())
    package = tmp_path / "checked.greta"
    made = harness.tool(harness.TRANSLATE, "--greta-to-package", "--targets=gfx942", "--checked", source, "-o", package)
    assert made.returncode == 0, made.stderr
    for i, array in enumerate(case.inputs()):
        np.save(tmp_path / f"{i}.npy", array)
    run = lambda: harness.tool(harness.RUN, package, "--device=sim:gfx942", *(f"--input={tmp_path}/{i}.npy" for i in range(3)))
    assert run().returncode == 0
    np.save(tmp_path / "2.npy", case.inputs()[2][::-1].copy())
    ran = run()
    assert ran.returncode == 1 and "'offsets' do not ascend from 0, or are beyond the rows" in ran.stderr, ran.stdout + ran.stderr
