"""Gradients of attention against float64: on the simulated AMD families with all their checks, on testing's lavapipe (cooperative matrices), on this machine's Vulkan driver
and on the host; and their definition against finite differences of attention's.
"""

import re

import numpy as np
import pytest

import harness
from attention_backward_ops import Backward, BackwardView, gradients
from attention_ops import attend, heads_first
from harness import AMD_FAMILIES, CPU_DRIVERS

# Kind, type, B, Hq, Hkv, S, T, D.
CASES = [
    Backward("sinks", "f16", 1, 2, 1, 1, 1, 64),
    Backward("plain", "f16", 2, 2, 1, 70, 129, 64),
    Backward("plain", "f32", 1, 2, 1, 17, 64, 64),
    Backward("plain", "bf16", 1, 2, 2, 129, 64, 128),
    Backward("causallengths", "f16", 2, 4, 2, 40, 70, 128),
    Backward("causal", "f16", 1, 2, 1, 129, 129, 64),
    Backward("causal", "f16", 1, 1, 1, 33, 50, 256),
    Backward("causal", "f32", 1, 2, 1, 17, 30, 256),
    Backward("all", "bf16", 4, 2, 1, 20, 40, 40),
    Backward("causal", "f16", 1, 2, 1, 7, 200, 64),
    Backward("causal", "f16", 1, 2, 2, 64, 7, 64),
    Backward("causal", "bf16", 1, 2, 1, 65, 65, 80),
    Backward("window", "f16", 1, 1, 1, 100, 150, 64),
    Backward("causalwindow", "f16", 1, 2, 1, 130, 200, 64),
    Backward("softcap", "f16", 1, 1, 1, 20, 70, 64),
    Backward("mask", "f32", 2, 2, 1, 20, 40, 64),
    Backward("mask", "f16", 1, 2, 1, 20, 70, 128),
    Backward("maskrow", "f16", 2, 4, 2, 20, 70, 64),
    Backward("lengths", "f16", 4, 2, 1, 20, 70, 64),
    Backward("causalwindow", "f16", 1, 4, 2, 70, 130, 128),
    Backward("all", "f16", 4, 4, 2, 33, 90, 128),
    Backward("causallengths", "f16", 4, 4, 2, 30, 70, 64),
    Backward("sinks", "f16", 1, 3, 1, 20, 70, 64),
    Backward("all", "f16", 4, 4, 2, 40, 90, 64),
    Backward("all", "bf16", 4, 4, 2, 17, 60, 24),
    Backward("delta", "f16", 1, 2, 1, 7, 64, 96),
    Backward("given", "f16", 1, 2, 1, 64, 70, 64),
    Backward("rows", "f16", 1, 2, 1, 17, 64, 64),
    Backward("tokensfirst", "f16", 2, 4, 2, 33, 70, 64),
    Backward("tokensfirstcausal", "bf16", 2, 2, 1, 50, 40, 128),
    BackwardView("columns", "f16", 2, 4, 2, 70, 70, 64),
]
# Cases that drivers compile quickly for a CPU.
SMALL = [Backward("causal", "f16", 1, 2, 1, 20, 45, 16), Backward("all", "f16", 4, 2, 1, 20, 45, 16), Backward("plain", "f32", 1, 1, 1, 7, 17, 8), Backward("tokensfirst", "f16", 2, 2, 1, 9, 20, 16),
         BackwardView("columns", "f16", 2, 4, 2, 20, 20, 16)]
CDNA = AMD_FAMILIES[:3]
IN_SHARED = "gfx1100", "gfx1201"  # where own rows of large heads lie in shared memory, with one loop for all that they meet


OPTIONS = re.compile("causal|window|softcap|maskrow|mask|lengths|sinks|all|delta|given|rows|tokensfirst|columns")


def features(case):
    return {type(case), case.dtype, *OPTIONS.findall(case.kind)}


def chosen_for(target):
    """The cases take long to compile: a CDNA and an RDNA family take each option and type, the CPU a sixth of the cases."""
    if target in harness.CPU_DRIVERS and not harness.WHOLE:
        # On lavapipe f32 has no matrices, and test_attention_matrix.py draws other options and tokens before heads.
        return [case for case in SMALL if (case.kind == "all") == (target == "vulkan:lavapipe")]
    if target.startswith("vulkan"):
        return SMALL
    if target == "host":
        return harness.share_of(CASES, target, 6)
    if harness.WHOLE:
        return CASES
    part, large = harness.spread([case for case in CASES if case.d <= 64], target, features), [case for case in CASES if case.d > 64]
    if target in CDNA:
        return part + harness.share_of(large, target, 3)
    # gfx1030 compiles one of them for 4 to 8 s, gfx1201 heads of 256 in f32 for 23.
    return part + [case for case in large if case.d <= 128][IN_SHARED.index(target) :: 2] if target in IN_SHARED else part


results, test_case, test_together = harness.suite("attention_backward", chosen_for, ("host", *AMD_FAMILIES, *CPU_DRIVERS))


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "gfx1201"])
def test_nothing_spills(tmp_path, chip):
    """By the default choice of tiles, with heads that share keys and values."""
    kinds = "causal", "causalwindow", "softcap", "mask", "lengths"
    cases = [Backward(kind, "f16", 1, 8, 2, 1, 1, 128) for kind in kinds] + [Backward("plain", "f16", 1, 8, 8, 1, 1, 128), Backward("causal", "f16", 1, 8, 2, 1, 1, 64)]
    assert harness.vgpr_spills(tmp_path, cases, chip) == {case.function: [0, 0] for case in cases}


def test_two_kernels_and_the_same_again(tmp_path):
    """Nothing is added up in memory: another run gives the same bits."""
    case = Backward("causal", "f16", 1, 2, 1, 65, 65, 64)
    package = harness.compile_package(tmp_path, "backward", case.mlir(), "gfx942")
    for variant in harness.function_of(package, case.function)["variants"]:
        assert len(variant["kernels"]) == 2
    inputs = []
    for name, array in zip((name for name, _ in case.operands), case.inputs(), strict=True):
        np.save(tmp_path / f"{name}.npy", array)
        inputs.append(f"--input={tmp_path}/{name}.npy")
    runs = []
    for number in range(2):
        outputs = [tmp_path / f"{name}{number}.npy" for name in case.results]
        ran = harness.tool(harness.RUN, package, "--device=sim:gfx942", *inputs, *(f"--output={path}" for path in outputs))
        assert ran.returncode == 0, ran.stderr
        runs.append([path.read_bytes() for path in outputs])
    assert runs[0] == runs[1]


@pytest.mark.parametrize("kind", ["plain", "causal", "window", "softcap", "mask", "lengths", "all"])
def test_definition_is_the_slope_of_attention(kind):
    """Finite differences of attention's definition along random directions."""
    case = Backward(kind, "f32", 4 if kind in ("lengths", "all") else 1, 4, 2, 9, 13, 8)
    inputs = [x if x.dtype == np.int32 else x.astype(np.float64) for x in case.inputs()]
    named = dict(zip((name for name, _ in case.operands), inputs, strict=True))
    q, k, v, do = (heads_first(case, np.nan_to_num(named[name])) for name in ("q", "k", "v", "do"))
    options = {name: named[name] for name in ("lengths", "mask") if name in named}
    sinks = np.random.default_rng(2).standard_normal(case.hq) if case.has("sinks") else None
    o, lse = attend(case, q, k, v, **options, sinks=sinks)
    named |= dict(q=q, k=k, v=v, o=o, lse=lse, do=do)
    got = gradients(case, *named.values())
    rng = np.random.default_rng(1)
    for number, name in enumerate("qkv"):
        direction = rng.standard_normal(named[name].shape)
        ends = []
        for step in (-1e-5, 1e-5):
            moved = [x + step * direction if i == number else x for i, x in enumerate((q, k, v))]
            ends.append((attend(case, *moved, **options, sinks=sinks)[0] * do).sum())
        np.testing.assert_allclose((got[f"d{name}"] * direction).sum(), (ends[1] - ends[0]) / 2e-5, rtol=1e-6, atol=1e-6)
