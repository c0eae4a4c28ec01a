"""Triton's kernels, prints and assertions, and code that spills, on Mesa's RADV over the virtual Radeon."""

import json

import numpy as np
import pytest

import harness
from conftest import ROOT
from radeon import fresh, launcher
from test_kernels import LAUNCHES, TEXTS, check

CARDS = {"phoenix": ("vulkan:rdna3", "backports"), "gfx1201": ("vulkan:rdna4", "testing")}


@pytest.mark.parametrize("chip, name", [(chip, name) for chip, (target, _) in CARDS.items() for name in harness.share_of([*LAUNCHES], target, 2)])
def test_tritons_kernels(tmp_path, driver_parts, chip, name):
    """The two generations share the kernels."""
    target, mesa = CARDS[chip]
    check(tmp_path, "vulkan", target, name, launcher(driver_parts, chip, mesa))


@pytest.mark.parametrize("chip", CARDS)
def test_prints_and_assertions(tmp_path, driver_parts, chip):
    target, mesa = CARDS[chip]
    package = tmp_path / "k.greta"
    made = harness.tool(harness.TRANSLATE, "--triton-to-package", f"--targets={target}", "--grid=2", TEXTS / "3.9" / "debug.ttir", "-o", package)
    assert made.returncode == 0, made.stderr
    for n in (7, -1):
        ran = harness.tool(*launcher(driver_parts, chip, mesa), harness.RUN, package, "--device=vulkan", "--input=16xf32:value:0.25", f"--input=i32:{n}", f"--output={tmp_path}/x.npy")
        assert f"pid (1, 0, 0) idx (15) x is: (operand 0) 0.25\npid (1, 0, 0) idx () x is: (operand 1) {n}\n" in ran.stdout, ran.stdout + ran.stderr
        assert ran.returncode == (n < 0) and ("device-side assert failed: n must be positive" in ran.stderr) == (n < 0)
