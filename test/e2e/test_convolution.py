"""Convolutions against float64: edges, strides, dilations, groups, channels that tiles of K divide and others, dynamic extents, epilogues; on the CPU, on the
simulated AMD chips with all their checks, and on this machine's Vulkan driver.
"""

import numpy as np

import harness
from convolution import ChannelsFirst, Convolution

SHAPES = [
    Convolution("block", "b", "2x7x6x32", "24x3x3x32", "1x1x1x1x1x1x1x1x1", "f16", "f16"),  # a block of K for each tap
    Convolution("bias", "s", "1x9x11x3", "20x5x3x3", "2x2x2x1x2x0x1x1x1", "f32", "f32"),  # a first layer
    Convolution("plain", "s", "1x5x6x32", "16x3x3x32", "1x1x1x1x1x1x1x1x1", "f16", "f16"),  # with masks of the loads on AMD
    Convolution("plain", "d", "1x8x7x64", "33x3x2x64", "2x1x1x2x0x1x2x2x1", "bf16", "bf16"),
    Convolution("plain", "d", "2x4x5x32", "16x1x1x32", "1x1x0x0x0x0x1x1x1", "f16", "f32"),  # a GEMM of a view
    Convolution("exact", "b", "2x5x6x24", "12x3x3x8", "1x2x1x1x1x1x1x1x3", "f16", "f16"),
    Convolution("exact", "d", "1x4x5x12", "12x3x2x1", "1x1x1x1x1x0x1x1x12", "f16", "f16"),  # depthwise
    Convolution("exact", "s", "1x5x5x16", "9x3x3x16", "1x1x2x2x2x2x1x1x1", "i8", "i32"),
    Convolution("norm", "b", "2x7x6x32", "32x3x3x32", "2x1x1x1x1x1x1x1x1", "f16", "f16"),
    Convolution("bias", "b", "1x9x8x40", "40x5x5x1", "2x2x2x2x2x2x1x1x40", "f16", "f16"),  # depthwise
    Convolution("integers", "b", "2x7x6x32", "32x3x3x32", "1x1x1x1x1x1x1x1x1", "i8", "f16"),
    Convolution("plain", "s", "1x40x3x32", "32x40x1x32", "1x1x20x0x19x0x1x1x1", "f16", "f16"),  # more rows of taps than a word has bits
    Convolution("plain", "s", "1x6x7x24", "32x7x7x24", "1x1x3x3x3x3x1x1x1", "bf16", "bf16"),  # more taps than a word has bits
]
FIRST = [
    ChannelsFirst("block", "b", "2x7x6x32", "24x3x3x32", "1x1x1x1x1x1x1x1x1", "f16", "f16"),
    ChannelsFirst("bias", "s", "1x9x11x3", "20x5x3x3", "2x2x2x1x2x0x1x1x1", "f32", "f32"),
    ChannelsFirst("plain", "d", "1x8x7x64", "33x3x2x64", "2x1x1x2x0x1x2x2x1", "bf16", "bf16"),
    ChannelsFirst("plain", "d", "2x4x5x32", "16x1x1x32", "1x1x0x0x0x0x1x1x1", "f16", "f32"),  # GEMMs of views
    ChannelsFirst("plain", "s", "2x4x4x32", "3x1x1x32", "1x1x0x0x0x0x1x1x1", "f16", "f16"),  # of few rows
    ChannelsFirst("plain", "s", "2x8x8x64", "16x1x1x64", "2x2x0x1x0x0x1x1x1", "f16", "f16"),  # one tap that moves
    ChannelsFirst("exact", "b", "2x5x6x24", "12x3x3x8", "1x2x1x1x1x1x1x1x3", "f16", "f16"),
    ChannelsFirst("exact", "s", "1x5x5x16", "9x3x3x16", "1x1x2x2x2x2x1x1x1", "i8", "i32"),
    ChannelsFirst("norm", "b", "2x7x6x32", "32x3x3x16", "2x1x1x1x1x1x1x1x2", "f16", "f16"),  # groups and what follows in one kernel
    ChannelsFirst("bias", "b", "1x9x8x40", "40x5x5x1", "2x2x2x2x2x2x1x1x40", "f16", "f16"),  # depthwise
    ChannelsFirst("integers", "b", "2x7x6x32", "32x3x3x32", "1x1x1x1x1x1x1x1x1", "i8", "f16"),
    ChannelsFirst("plain", "s", "1x40x3x8", "16x40x1x8", "1x1x20x0x19x0x1x1x1", "f16", "f16"),
    ChannelsFirst("plain", "s", "1x6x7x24", "32x7x7x24", "1x1x3x3x3x3x1x1x1", "bf16", "bf16"),
]
EMPTY = Convolution("exact", "d", "1x0x5x4", "8x1x1x4", "1x1x1x0x1x0x1x1x1", "f16", "f16")  # only padding
TARGETS = ("host", "gfx942", "gfx1100", "gfx1201", "vulkan:lavapipe", "vulkan:portable")


def cases_of(target):
    return [*SHAPES, *FIRST, EMPTY] if target == "host" else [*SHAPES, *FIRST]


def as_few_kernels(package):
    """One kernel for all of a function, and another that puts groups in order where channels are last."""
    apart = {case.name for case in SHAPES if case.groups > 1}
    for function in harness.manifest(package)["functions"]:
        for variant in function["variants"]:
            assert variant["target"] == "host" or len(variant["kernels"]) == 1 + (function["name"] in apart), function["name"]


results, test_case, test_together = harness.suite("conv", cases_of, TARGETS, as_few_kernels, in_units=False)


def test_empty_images(tmp_path):
    """A GPU's kernel would read an element of them: the launch is refused."""
    package = harness.compile_package(tmp_path, "empty", EMPTY.mlir(), "gfx942")
    for i, array in enumerate(EMPTY.inputs()):
        np.save(tmp_path / f"{i}.npy", array)
    inputs = [f"--input={tmp_path}/{i}.npy" for i in range(3)]
    ran = harness.tool(harness.RUN, package, "--device=sim:gfx942", f"--function={EMPTY.function}", *inputs, f"--output={tmp_path}/y.npy")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "negative value -1 in a manifest expression" in ran.stderr
