"""Attention and the KV cache against float64: on the simulated AMD families with all their checks, on testing's lavapipe (cooperative matrices), on this
machine's Vulkan driver and on the host.
"""

import re

import numpy as np
import pytest

import harness
from attention_ops import Attention, Decode, Fixed, Paged, PagedDecode, View
from cache_ops import Update
from harness import AMD_FAMILIES, CPU_DRIVERS

# Kind, type, B, Hq, Hkv, S, T, D.
CASES = [
    Attention("plain", "f16", 1, 2, 1, 1, 1, 64),
    Attention("plain", "f16", 2, 2, 1, 70, 129, 64),
    Attention("plain", "f32", 1, 2, 1, 17, 64, 64),
    Attention("plain", "bf16", 1, 2, 2, 33, 100, 128),
    Attention("causal", "f16", 1, 2, 1, 129, 129, 64),
    Attention("causal", "f16", 1, 2, 1, 7, 200, 64),
    Attention("causal", "f16", 1, 2, 1, 40, 9, 64),
    Attention("causal", "bf16", 1, 2, 1, 65, 65, 80),
    Attention("causal", "f16", 1, 1, 1, 17, 40, 96),
    Attention("causal", "f16", 1, 1, 1, 33, 50, 256),
    Attention("window", "f16", 1, 1, 1, 100, 150, 64),
    Attention("causalwindow", "f16", 1, 1, 1, 130, 200, 64),
    Attention("softcap", "f16", 1, 1, 1, 20, 70, 64),
    Attention("mask", "f32", 2, 2, 1, 20, 40, 64),
    Attention("mask", "f16", 1, 2, 1, 20, 70, 128),
    Attention("maskrow", "f16", 2, 4, 2, 20, 70, 64),
    Attention("lengths", "f16", 4, 2, 1, 20, 70, 64),
    Attention("causallengths", "f16", 4, 4, 2, 30, 70, 64),
    Attention("sinks", "f16", 1, 3, 1, 20, 70, 64),
    Attention("all", "f16", 4, 4, 2, 40, 90, 64),
    Attention("all", "bf16", 4, 4, 2, 17, 60, 24),
    Attention("lse", "f16", 2, 2, 1, 20, 70, 64),
    Attention("causal", "f16", 1, 2, 1, 40, 70, 72),
    Decode("causallengths", "bf16", 4, 4, 2, 1, 100, 512),
    PagedDecode("i8pertoken", "f16", 4, 4, 2, 2, 90, 24),
    Fixed("causal", "f16", 1, 4, 1, 1, 100, 64),
    Fixed("causal", "f16", 1, 2, 1, 128, 128, 64),
    Paged("plain", "f16", 4, 4, 2, 5, 70, 64),
    Paged("windowsinks", "bf16", 4, 2, 1, 1, 70, 128),
    Decode("plain", "f16", 1, 8, 2, 1, 1000, 128),
    Decode("maskrow", "f16", 2, 6, 2, 3, 70, 64),
    Decode("causallengths", "f16", 4, 6, 2, 3, 300, 64),
    Decode("causal", "f32", 2, 2, 1, 1, 129, 64),
    Decode("window", "bf16", 1, 4, 4, 2, 333, 128),
    Decode("all", "f16", 4, 4, 2, 5, 200, 80),
    Decode("lse", "f16", 2, 2, 1, 1, 200, 256),
    PagedDecode("plain", "f16", 4, 8, 2, 1, 500, 128),
    PagedDecode("windowsoftcapsinks", "bf16", 4, 4, 1, 4, 200, 64),
    PagedDecode("tokensfirst", "f16", 4, 8, 2, 1, 100, 64),
    Paged("tokensfirst", "f16", 4, 4, 2, 37, 70, 64),
    View("columns", "f16", 2, 4, 2, 70, 70, 64),
    View("pairs", "bf16", 2, 4, 2, 20, 70, 64),
    Fixed("tokensfirstcausal", "f16", 2, 4, 2, 33, 70, 64),
    Attention("half", "f32", 1, 2, 1, 20, 70, 64),
    Attention("e4m3perhead", "f16", 2, 4, 2, 70, 129, 64),
    Attention("e5m2", "bf16", 1, 2, 1, 33, 100, 128),
    Attention("fnuzperall", "f32", 1, 2, 1, 20, 40, 64),
    Attention("causali8pertoken", "f16", 2, 4, 2, 129, 129, 64),
    Attention("i8pertoken", "bf16", 2, 2, 2, 20, 70, 80),
    Attention("softcapsinksfnuzpertoken", "f32", 1, 4, 2, 1, 4096, 64),
    Attention("softcapi8perhead", "f16", 1, 2, 1, 20, 70, 64),
    Paged("i8pertoken", "f16", 4, 4, 2, 5, 70, 64),
    Decode("causallengthse4m3pertoken", "f16", 4, 8, 2, 1, 500, 128),
    Decode("lengthsi8pertoken", "bf16", 4, 4, 1, 3, 200, 64),
    PagedDecode("e4m3perhead", "f16", 4, 8, 2, 1, 300, 128),
    PagedDecode("i8pertoken", "f16", 4, 4, 2, 2, 200, 64),
    Paged("i8pergroup", "f16", 4, 4, 2, 37, 70, 64),
    Paged("windowi8pergroup", "bf16", 4, 2, 1, 1, 70, 80),
    PagedDecode("i8pergroup", "f16", 4, 8, 2, 1, 300, 128),
    *(Update(kind, "f16", 4, 2, 5, 40, 64) for kind in ("rows", "kept", "paged", "turned")),
    Update("rows", "f32", 2, 1, 1, 7, 8),
    Update("paged", "i8", 1, 1, 30, 40, 24),
    Update("quantised", "f8e4m3fn", 4, 2, 5, 40, 64),
    Update("grouped", "f16", 1, 2, 20, 40, 96),
    Update("projected", "f8e4m3fn", 1, 2, 20, 40, 32),
    Update("projected", "f8e5m2", 1, 1, 5, 40, 64),
]


UPDATES = [c for c in CASES if isinstance(c, Update)]
# Cases that drivers compile quickly for a CPU.
SMALL = [
    Attention("plain", "f16", 1, 2, 1, 20, 45, 16),
    Attention("causal", "f16", 1, 1, 1, 9, 20, 32),
    Attention("lse", "f32", 2, 2, 1, 3, 17, 8),
    Attention("causal", "f32", 1, 1, 1, 3, 17, 24),
    Attention("all", "f16", 4, 4, 2, 20, 90, 16),
    Fixed("causallengths", "f16", 4, 4, 1, 1, 40, 16),
    Paged("windowsoftcapsinks", "f16", 4, 2, 1, 5, 70, 16),
    Decode("all", "f16", 4, 4, 2, 3, 90, 16),
    PagedDecode("plain", "f16", 4, 4, 1, 1, 90, 32),
    Paged("tokensfirst", "f16", 4, 4, 2, 5, 70, 16),
    View("columns", "f16", 2, 4, 2, 20, 20, 16),
    View("pairs", "f16", 2, 4, 2, 9, 40, 16),
    Attention("e4m3perhead", "f16", 2, 4, 2, 20, 45, 16),
    Attention("i8pertoken", "f32", 2, 2, 2, 9, 40, 16),
    Attention("half", "f32", 1, 2, 1, 9, 20, 16),
    Decode("causallengthse4m3pertoken", "f16", 4, 4, 2, 1, 90, 32),
    PagedDecode("i8pertoken", "f16", 4, 4, 2, 2, 90, 16),
    PagedDecode("i8pergroup", "f16", 4, 4, 2, 1, 90, 32),
    *UPDATES,
]


# Cases that some families compile for a minute of processor time, and the CDNA and the RDNA family that take the least; RDNA takes 11 s and 4 for the last
# two, whose options it has in other cases.
QUICKEST = {
    Decode("causallengths", "bf16", 4, 4, 2, 1, 100, 512): ("gfx942", "gfx1201"),  # 1 s; gfx1030 33
    Attention("e5m2", "bf16", 1, 2, 1, 33, 100, 128): ("gfx942", "gfx1201"),  # 3 s; gfx1100 6
    Attention("i8pertoken", "bf16", 2, 2, 2, 20, 70, 80): ("gfx950",),  # 6 s; gfx1100 14
    Paged("windowi8pergroup", "bf16", 4, 2, 1, 1, 70, 80): ("gfx950",),  # 7 s; gfx1100 38, gfx1201 14
}


OPTIONS = re.compile(
    "causal|window|softcap|maskrow|mask|lengths|sinks|lse|half|e4m3|e5m2|fnuz|i8|per[a-z]*|tokensfirst|all|columns|pairs|rows|kept|paged|turned|"
    "quantised|grouped|projected"
)


def features(case):
    """Its op, its type and each option."""
    return {type(case), case.dtype, *OPTIONS.findall(case.kind)}


def chosen_for(target):
    """The cases take long to compile: a CDNA and an RDNA family take each feature, the CPU a quarter of the cases."""
    if target.startswith("vulkan"):
        return harness.shared_by_drivers(SMALL, target, 2)
    if target == "host" or harness.WHOLE:
        return harness.share_of(CASES, target, 4)
    return [c for c in harness.spread(CASES, target, features) if c not in QUICKEST] + [c for c, chips in QUICKEST.items() if target in chips]


results, test_case, test_together = harness.suite("attention", chosen_for, ("host", *AMD_FAMILIES, *CPU_DRIVERS))


@pytest.mark.parametrize("kind, says", [("rows", "in place of argument 0"), ("paged", "in place of argument 0"), ("kept", "")])
def test_what_is_updated_in_place(tmp_path, kind, says):
    package = harness.compile_package(tmp_path, "update", Update(kind, "f16", 1, 2, 5, 40, 64).mlir(), "host,gfx942")
    shown = harness.tool(harness.RUN, package, "--inspect")
    assert shown.returncode == 0, shown.stderr
    assert ("in place of" in shown.stdout) == bool(says) and says in shown.stdout


def test_one_kernel(tmp_path):
    cases = [View("columns", "f16", 2, 4, 2, 70, 70, 64), View("pairs", "f16", 2, 4, 2, 20, 70, 64), Update("turned", "f16", 1, 2, 5, 40, 64)]
    cases += [Update("projected", "f8e4m3fn", 1, 2, 20, 40, 32)]  # quantised and stored by the projection's kernel
    package = harness.compile_package(tmp_path, "views", "\n".join(case.mlir() for case in cases), "gfx942,vulkan:portable")
    for case in cases:
        assert [len(variant["kernels"]) for variant in harness.function_of(package, case.function)["variants"]] == [1, 1]


@pytest.mark.parametrize("device", ["vulkan", "sim:gfx1100"])
def test_sums_of_rows_that_are_masked_whole(tmp_path, device):
    """By the least number, as models do, the sum stays finite, and a gradient's weights are those of torch; by -inf there is none."""
    shapes = {"q": (1, 1, 5, 16), "k": (1, 1, 9, 16), "v": (1, 1, 9, 16), "m": (1, 1, 5, 9)}
    q, k, v, m, o = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in (*shapes.values(), shapes["q"]))
    text = f"""func.func @f(%q: {q}, %k: {k}, %v: {v}, %m: {m}) -> ({o}, tensor<1x1x5xf32>) {{
  %o, %l = greta.attention %q, %k, %v mask(%m) {{scale = 0.25 : f32}} : {q}, {k}, {v}, {m} -> {o}, tensor<1x1x5xf32>
  return %o, %l : {o}, tensor<1x1x5xf32>
}}"""
    given = {name: np.random.default_rng(0).standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    least = np.finfo(np.float32).min
    given["m"][..., 1, :], given["m"][..., 3, :] = least, -np.inf
    for name, array in given.items():
        np.save(tmp_path / f"{name}.npy", array)
    package = harness.compile_package(tmp_path, "sums", text, device.removeprefix("sim:"))
    ran = harness.tool(harness.RUN, package, f"--device={device}", *[f"--input={tmp_path}/{name}.npy" for name in shapes], *[f"--output={tmp_path}/{name}.npy" for name in "ol"])
    assert ran.returncode == 0, ran.stderr
    logits = 0.25 * given["q"][0, 0].astype(float) @ given["k"][0, 0].T.astype(float) + given["m"][0, 0]
    want = [least if row == 1 else -np.inf if row == 3 else np.log(np.exp(logits[row]).sum()) for row in range(5)]
    np.testing.assert_allclose(np.load(tmp_path / "l.npy")[0, 0], want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("chip", ["gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_nothing_spills(tmp_path, chip):
    """By the default choice of tiles, with scales for each token too. A pair of chips with the same instructions shares the cases."""
    cases = [Attention(kind, "f16", 1, 8, 2, 1, 1, 64) for kind in ("causal", "window")]
    cases += [Attention(kind, "f16", 1, 8, 2, 1, 1, 128) for kind in ("plain", "causal", "window", "causalwindow", "softcap", "mask", "causali8pertoken")]
    cases = harness.share_of(cases, chip, 2)
    assert harness.vgpr_spills(tmp_path, cases, chip) == {case.function: [0] for case in cases}


# A sequence of two pages of eight places each, of three pages that there are; and what is wrong with it.
PLACES = dict(table=[[0, 1], [2, 9]], lengths=[3, 12], pos=[0, 7], slots=[3, -1, 24], begins=[0, 2, 3])
WRONG = [
    ("paged", dict(), r"paged_attention: an entry of 'table' names no page \(caches.mlir:2\), pid \(\d+, 0, 0\) idx \( *8\)"),
    ("paged", dict(lengths=[3, 17]), "paged_attention: 'lengths' is negative, or beyond the table"),
    ("own", dict(), "paged_attention: an entry of 'table' names no page"),
    ("own", dict(begins=[0, 2, 4]), "paged_attention: 'begins' do not ascend from 0, or are beyond the rows"),
    ("own", dict(begins=[0, 2, 1]), "paged_attention: 'begins' do not ascend from 0, or are beyond the rows"),
    ("attention", dict(), "attention: 'lengths' is negative, or beyond the keys"),
    ("gradients", dict(), "attention_backward: 'lengths' is negative, or beyond the keys"),
    ("rows", dict(), "kv_update: 'pos' has rows beyond the cache"),
    ("slots", dict(), r"paged_kv_update: an entry of 'slots' is beyond the cache .* idx \( *4\)"),
    ("stored", dict(), r"paged_kv_update: an entry of 'slots' is beyond the cache .* idx \( *2\D"),
]
RIGHT = dict(table=[[0, 1], [2, -1]], lengths=[3, 8], pos=[0, 5], slots=[3, -1, 23], begins=[0, 1, 2])


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    caches = """func.func @paged(%q: tensor<2x4x1x32xf16>, %k: tensor<?x8x2x32xf16>, %table: tensor<2x?xi32>, %lengths: tensor<2xi32>) -> tensor<2x4x1x32xf16> {
  %0 = greta.paged_attention %q, %k, %k, %table, %lengths : tensor<2x4x1x32xf16>, tensor<?x8x2x32xf16>, tensor<?x8x2x32xf16>, tensor<2x?xi32>, tensor<2xi32> -> tensor<2x4x1x32xf16>
  return %0 : tensor<2x4x1x32xf16>
}
func.func @own(%q: tensor<?x4x32xf16>, %k: tensor<?x8x2x32xf16>, %table: tensor<2x?xi32>, %lengths: tensor<2xi32>, %begins: tensor<3xi32>) -> tensor<?x4x32xf16> {
  %0 = greta.paged_attention %q, %k, %k, %table, %lengths begins(%begins) : tensor<?x4x32xf16>, tensor<?x8x2x32xf16>, tensor<?x8x2x32xf16>, tensor<2x?xi32>, tensor<2xi32>, tensor<3xi32> -> tensor<?x4x32xf16>
  return %0 : tensor<?x4x32xf16>
}
func.func @attention(%q: tensor<2x4x5x32xf16>, %k: tensor<2x2x?x32xf16>, %lengths: tensor<2xi32>) -> tensor<2x4x5x32xf16> {
  %0 = greta.attention %q, %k, %k lengths(%lengths) : tensor<2x4x5x32xf16>, tensor<2x2x?x32xf16>, tensor<2x2x?x32xf16>, tensor<2xi32> -> tensor<2x4x5x32xf16>
  return %0 : tensor<2x4x5x32xf16>
}
func.func @gradients(%q: tensor<2x4x5x32xf16>, %k: tensor<2x2x?x32xf16>, %lse: tensor<2x4x5xf32>, %lengths: tensor<2xi32>) -> tensor<2x2x?x32xf16> {
  %dq, %dk, %dv = greta.attention_backward %q, %k, %k, %q, %lse, %q lengths(%lengths) : tensor<2x4x5x32xf16>, tensor<2x2x?x32xf16>, tensor<2x2x?x32xf16>, tensor<2x4x5x32xf16>, tensor<2x4x5xf32>, tensor<2x4x5x32xf16>, tensor<2xi32> -> tensor<2x4x5x32xf16>, tensor<2x2x?x32xf16>, tensor<2x2x?x32xf16>
  return %dk : tensor<2x2x?x32xf16>
}
func.func @rows(%cache: tensor<2x2x?x32xf16>, %new: tensor<2x2x3x32xf16>, %pos: tensor<2xi32>) -> tensor<2x2x?x32xf16> {
  %0 = greta.kv_update %cache, %new, %pos : tensor<2x2x?x32xf16>, tensor<2x2x3x32xf16>, tensor<2xi32> -> tensor<2x2x?x32xf16>
  return %0 : tensor<2x2x?x32xf16>
}
func.func @slots(%cache: tensor<?x8x2x32xf16>, %new: tensor<3x2x32xf16>, %slots: tensor<3xi32>) -> tensor<?x8x2x32xf16> {
  %0 = greta.paged_kv_update %cache, %new, %slots : tensor<?x8x2x32xf16>, tensor<3x2x32xf16>, tensor<3xi32> -> tensor<?x8x2x32xf16>
  return %0 : tensor<?x8x2x32xf16>
}
func.func @stored(%cache: tensor<?x8x2x32xf16>, %x: tensor<3x64xf16>, %w: tensor<64x64xf16>, %slots: tensor<3xi32>) -> tensor<?x8x2x32xf16> {
  %y = greta.matmul %x, %w {transpose_b} : tensor<3x64xf16>, tensor<64x64xf16> -> tensor<3x64xf16>
  %new = tensor.expand_shape %y [[0], [1, 2]] output_shape [3, 2, 32] : tensor<3x64xf16> into tensor<3x2x32xf16>
  %0 = greta.paged_kv_update %cache, %new, %slots : tensor<?x8x2x32xf16>, tensor<3x2x32xf16>, tensor<3xi32> -> tensor<?x8x2x32xf16>
  return %0 : tensor<?x8x2x32xf16>
}
"""
    directory = tmp_path_factory.mktemp("checked")
    (directory / "caches.mlir").write_text(caches)
    made = harness.tool(harness.TRANSLATE, "--greta-to-package", "--checked", "--targets=vulkan:portable,gfx942", directory / "caches.mlir", "-o", directory / "caches.greta")
    assert made.returncode == 0, made.stderr
    return directory / "caches.greta"


def run_checked(checked, tmp_path, device, function, places):
    shapes = {"paged": "2x4x1x32xf16 3x8x2x32xf16 table lengths", "own": "3x4x32xf16 3x8x2x32xf16 table lengths begins", "attention": "2x4x5x32xf16 2x2x8x32xf16 lengths", "rows": "2x2x8x32xf16 2x2x3x32xf16 pos"}
    shapes |= {"gradients": "2x4x5x32xf16 2x2x8x32xf16 2x4x5xf32 lengths", "slots": "3x8x2x32xf16 3x2x32xf16 slots", "stored": "3x8x2x32xf16 3x64xf16 64x64xf16 slots"}
    for name, numbers in places.items():
        np.save(tmp_path / f"{name}.npy", np.array(numbers, np.int32))
    inputs = [f"--input={tmp_path}/{word}.npy" if word in places else f"--input={word}:value:1" for word in shapes[function].split()]
    return harness.tool(harness.RUN, checked, f"--device={device}", f"--function={function}", *inputs, f"--output={tmp_path}/y.npy")


def devices_for(function):
    """lavapipe compiles for seconds what differs from `paged` by scalar code alone."""
    return ["sim:gfx942"] if function == "own" else ["vulkan", "sim:gfx942"]


@pytest.mark.parametrize("device, function, places, says", [(device, *case) for case in WRONG for device in devices_for(case[0])])
def test_wrong_places_fail_checked_launches(tmp_path, checked, device, function, places, says):
    ran = run_checked(checked, tmp_path, device, function, PLACES | places)
    assert ran.returncode == 1
    assert re.search(f"kernel '{function}_0': device-side assert failed: {says}", ran.stderr), ran.stderr


@pytest.mark.parametrize("device, function", [(device, function) for function in sorted({function for function, *_ in WRONG}) for device in devices_for(function)])
def test_right_places_pass_checks(tmp_path, checked, device, function):
    ran = run_checked(checked, tmp_path, device, function, RIGHT)
    assert ran.returncode == 0, ran.stderr
