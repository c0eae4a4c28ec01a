"""greta-run and the runtime without the compiler: packages made by hand (make_package.py)."""

import json
import os
import pathlib
import subprocess

import make_package
import numpy as np
import pytest
from conftest import BUILD, DRIVERS

# GRETA_RUN: another build of it, one with sanitizers for example.
RUN = os.environ.get("GRETA_RUN") or BUILD / "bin" / "greta-run"
MASK = (1 << 64) - 1


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return make_package.make(tmp_path_factory.mktemp("package") / "scale.greta")


def run(*arguments, launcher=(), status=0, cwd=None, **environment):
    result = subprocess.run([str(a) for a in (*launcher, RUN, *arguments)], capture_output=True, text=True, timeout=600, cwd=cwd, env={**os.environ, **environment})
    assert result.returncode == status, result.stdout + result.stderr
    if status:
        assert result.stderr.count("error:") == 1 and result.stderr.count("\n") == 1, result.stderr
        return result.stderr
    return result.stdout


def word(seed, k):
    """w(k) of docs/guide/runtime.md."""
    z = (seed + k + 1) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def normal(seed, i):
    u = [((word(seed, i // 2 * 2 + j) >> 11) + 0.5) / 2**53 for j in range(2)]
    return np.sqrt(-2 * np.log(u[0])) * (np.sin if i % 2 else np.cos)(2 * np.pi * u[1])


def test_random_numbers_are_the_documented_ones(tmp_path, package):
    run(package, "--device=host", "--input=3x7xf32:random:7:0.5", f"--output={tmp_path}/y.npy")
    expected = 2 * np.array([np.float32(0.5 * normal(7, i)) for i in range(21)], np.float32).reshape(3, 7) + 1
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=3e-7)


def test_random_numbers_are_normal(tmp_path, package):
    run(package, "--device=host", "--input=100x1000xf32:random:1", f"--output={tmp_path}/y.npy")
    x = np.sort((np.load(tmp_path / "y.npy").ravel() - 1) / 2)
    assert abs(x.mean()) < 0.02 and abs(x.std() - 1) < 0.02
    assert abs(np.searchsorted(x, 1.0) / len(x) - 0.8413) < 0.01 and x[-1] > 3.5


def test_a_simulated_device_that_cannot_be_opened_says_why(package):
    arguments = (package, "--device=sim:gfx942", "--input=3x7xf32:random:7")
    errors = run(*arguments, status=1, GRETA_SIM_CHECKS="races,magic")
    assert "does not open the chip 'gfx942': GRETA_SIM_CHECKS: unknown check 'magic' (all, none, or some of bounds" in errors
    assert "GRETA_SIM_CHECKS: unknown check ''" in run(*arguments, status=1, GRETA_SIM_CHECKS="races,")
    errors = run(package, "--device=sim:gfx1", "--input=3x7xf32:random:7", status=1)
    assert "does not open the chip 'gfx1': the simulator has no chip 'gfx1'; it has gfx90a " in errors


def takes(dtype):
    """The package's function with another element type (never launched: its kernels are of f32)."""

    def change(value):
        (function,) = value["functions"]
        function["args"][0]["dtype"] = function["results"][0]["dtype"] = dtype

    return change


@pytest.mark.parametrize("array", [np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((0, 4), np.float32), np.ones((4, 1), np.float32)])
def test_files(tmp_path, package, array):
    for version in ((1, 0), (2, 0), (3, 0)):
        with open(tmp_path / "x.npy", "wb") as file:
            np.lib.format.write_array(file, array, version)
        run(package, "--device=host", f"--input={tmp_path}/x.npy", f"--output={tmp_path}/y.npy")
        y = np.load(tmp_path / "y.npy")
        assert y.dtype == np.float32 and np.array_equal(y, 2 * array + 1)


@pytest.mark.parametrize(
    "dtype, given, says",
    [
        ("f32", "x.npy", "'<c8'"),
        ("f32", "2x2xi64:random:1", "is i64, argument 'x' is f32"),
        ("bf16", "u16.npy", "bf16:FILE"),
        ("f16", "bf16:u16.npy", "is bf16, argument 'x' is f16"),
        ("f32", "bf16:f32.npy", "save it as uint16"),
        ("f32", "fortran.npy", "Fortran"),
        ("f32", "big.npy", "'>f4'"),
        ("f32", "2x2xf32:random", "2x2xf32:random"),
        ("f32", "2x2xf32:random:x", "'x' is not a number"),
        ("f32", "2x2xf32:random:-1", "'-1' is not a number"),
        ("f32", "-2x2xf32:zeros", "negative"),
        ("f32", "2x2xi8:random:1:0:128", "the range does not fit i8"),
        ("f32", "99999999999999999999xf32:zeros", "not a number"),
        ("f32", "9999999999x9999999999xf32:zeros", "address space"),
    ],
)
def test_bad_inputs(tmp_path, dtype, given, says):
    package = make_package.make(tmp_path / "p.greta", takes(dtype))
    np.save(tmp_path / "x.npy", np.zeros((2, 2), np.complex64))
    np.save(tmp_path / "u16.npy", np.zeros((2, 2), np.uint16))
    np.save(tmp_path / "f32.npy", np.zeros((2, 2), np.float32))
    np.save(tmp_path / "big.npy", np.zeros((2, 2), ">f4"))
    np.save(tmp_path / "fortran.npy", np.zeros((2, 3), np.float32, order="F"))
    before = sorted(tmp_path.iterdir())
    assert says in run(package, "--device=host", f"--input={given}", "--output=y.npy", status=1, cwd=tmp_path)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("cut", range(0, 208, 5))
def test_npy_cut_anywhere(tmp_path, package, cut):
    np.save(tmp_path / "x.npy", np.zeros((4, 5), np.float32))
    data = (tmp_path / "x.npy").read_bytes()
    assert len(data) == 208
    (tmp_path / "x.npy").write_bytes(data[:cut])
    assert "x.npy" in run(package, "--device=host", "--input=x.npy", status=1, cwd=tmp_path)


def test_outputs_appear_only_on_success(tmp_path, package):
    np.save(tmp_path / "wrong.npy", np.full((2, 2), 4.0, np.float64))
    np.save(tmp_path / "right.npy", np.full((2, 2), 3.0, np.float64))
    np.save(tmp_path / "words.npy", np.zeros((2, 2), np.uint16))
    before = sorted(tmp_path.iterdir())
    flags = [package, "--device=host", "--input=2x2xf32:value:1", "--output=y.npy"]
    assert "2 elements" not in run(*flags, "--expect=wrong.npy", status=1, cwd=tmp_path)
    assert "4 of 4 elements" in run(*flags, "--expect=wrong.npy", "--rtol=0.1", status=1, cwd=tmp_path)
    run(*flags, "--expect=missing.npy", status=1, cwd=tmp_path)
    assert "--expect=f32:FILE" in run(*flags, "--expect=words.npy", status=1, cwd=tmp_path)
    run(*flags, "--output=z.npy", status=1, cwd=tmp_path)
    run(package, "--device=host", "--input=2x2xf32:value:1", "--output=no/such/folder.npy", status=1, cwd=tmp_path)
    assert sorted(tmp_path.iterdir()) == before
    run(*flags, "--expect=right.npy", cwd=tmp_path)
    run(*flags, "--expect=wrong.npy", "--atol=1", cwd=tmp_path)
    assert np.array_equal(np.load(tmp_path / "y.npy"), np.full((2, 2), 3, np.float32))


def test_nan_is_never_right(tmp_path, package):
    np.save(tmp_path / "expected.npy", np.full((2, 2), 3.0, np.float32))
    for rule in ([], ["--rtol=1e9"]):
        run(package, "--device=host", "--input=2x2xf32:value:nan", "--expect=expected.npy", *rule, status=1, cwd=tmp_path)


def test_bench(package):
    flags = ["--input=64x64xf32:random:1", "--bench", "--reps=3", "--launches=7", "--rotate=4", "--bench-copy=1M", "--json"]
    report = json.loads(run(package, "--device=vulkan", *flags, GRETA_VULKAN_VALIDATE="0"))
    assert report["reps"] == 3 and report["launches"] == 7 and report["buffer_sets"] == 4
    assert 0 < report["min_us"] <= report["median_us"] <= report["max_us"]
    assert [k["kernel"] for k in report["kernels"]] == ["scale"] and report["kernels"][0]["us"] > 0
    assert report["bytes"] == 2 * 64 * 64 * 4
    assert report["copy"]["gb_per_s"] > 0 and report["variant"] == "vulkan-portable"


def test_bench_host(package):
    flags = ["--input=64x64xf32:random:1", "--bench-host", "--reps=2", "--launches=10", "--json"]
    host = json.loads(run(package, "--device=vulkan", *flags))["host"]
    assert host["launches"] == 10 and all(0 < host[what]["min_us"] <= host[what]["median_us"] for what in ("launch", "record", "replay", "auto_graph"))


def test_long_traces(tmp_path, package):
    """More than is kept in memory: what is written piece by piece is one file."""
    trace = tmp_path / "trace.json"
    flags = ["--input=64x64xf32:random:1", "--bench-host", "--reps=4", "--launches=3000", "--json"]
    run(package, "--device=vulkan", *flags, GRETA_TRACE=str(trace))
    events = json.loads(trace.read_text())["traceEvents"]
    calls = [e for e in events if e.get("cat") == "call"]
    assert len(calls) > 20000
    assert {e["ph"] for e in events} == {"M", "X", "C"}


def test_profile(tmp_path):
    """Two kernels with a temporary between them, whose bytes count for both."""

    def twice(manifest):
        variant = manifest["functions"][0]["variants"][0]
        variant["temps"] = [{"dtype": "f32", "shape": ["m", "n"]}]
        first, second = variant["kernels"][0], json.loads(json.dumps(variant["kernels"][0]))
        first["args"][1] = {"kind": "temp", "index": 0}
        second["args"][0] = {"kind": "temp", "index": 0}
        variant["kernels"] = [first, second]

    package = make_package.make(tmp_path / "twice.greta", twice)
    flags = ["--device=vulkan", "--input=10x10xf32:random:1", "--profile", "--flop=300", "--bench-copy=1M"]
    profile = json.loads(run(package, *flags, "--json"))["profile"]
    assert [(k["kernel"], k["bytes"]) for k in profile["kernels"]] == [("scale", 800)] * 2
    assert all(k["us"] > 0 and k["of_copy"] > 0 for k in profile["kernels"]) and profile["tflop_per_s"] > 0
    text = run(package, *flags)
    assert text.count("\nscale ") == 2 and "of the copy" in text and "TFLOP/s" in text


def test_device_list_says_what_was_probed():
    devices = json.loads(run("--list-devices", "--json", GRETA_HIP_LIBRARY="/nonexistent/libamdhip64.so", GRETA_HIP_SIM="/nonexistent/sim.so"))
    reasons = {d["spec"]: d.get("reason") for d in devices if not d["available"]}
    assert "/nonexistent/libamdhip64.so" in reasons["hip"] and "/nonexistent/sim.so" in reasons["sim:<gfx>"]
    assert any(d["spec"] == "host" and d["available"] for d in devices)


def test_advice():
    environment = dict(GRETA_HIP_SIM="/nonexistent/sim.so", GRETA_VULKAN_DENY="llvmpipe")
    found = json.loads(run("--list-devices", "--diagnose", "--json", **environment))
    advice = found["advice"]
    assert {d["spec"] for d in found["devices"]} >= {"host", "sim:<gfx>"}
    assert "sim:<gfx>: install libgreta_hip_sim.so beside the runtime, or name it in GRETA_HIP_SIM" in advice
    assert any(text.endswith(": unset GRETA_VULKAN_DENY to use it") for text in advice)
    if not pathlib.Path("/dev/kfd").exists():
        assert any(text.startswith("hip: this machine has no driver of an AMD GPU (/dev/kfd)") for text in advice)
    assert all(f"-> {text}" in run("--list-devices", "--diagnose", **environment) for text in advice)
    if not pathlib.Path("/dev/dri").exists():
        assert "is the CPU; this machine has no GPU" in run("--list-devices", "--diagnose", launcher=(DRIVERS, "lavapipe"))
    assert "--diagnose requires --list-devices" in run("--diagnose", status=1)


def test_real_hip_library_without_a_gpu():
    """Debian's libamdhip64 loads, finds no GPU, and the default device is another one."""
    hip = [d for d in json.loads(run("--list-devices", "--json")) if d["spec"].startswith("hip")]
    if any(d["available"] for d in hip):
        pytest.skip("there is an AMD GPU")
    if "cannot open shared object" in hip[0]["reason"]:
        pytest.skip("libamdhip64 is not installed")
    assert "libamdhip64.so.5 was loaded" in hip[0]["reason"] and "(100)" in hip[0]["reason"]


def test_denied_devices(package):
    denied = json.loads(run("--list-devices", "--json", GRETA_VULKAN_DENY="no such device,llvmpipe"))
    assert [d["reason"] for d in denied if d["spec"] == "vulkan" and "llvmpipe" in d["name"]] == ["denied by GRETA_VULKAN_DENY"]
    assert "denied by GRETA_VULKAN_DENY" in run(package, "--device=vulkan", "--input=1x1xf32:zeros", status=1, GRETA_VULKAN_DENY="llvmpipe")


LAYOUT = {"use": "acc", "dtype": "f32", "rows": 8, "cols": 8, "lane": [[0, 1], [0, 2], [0, 4]], "element": [[1, 0], [2, 0], [4, 0]]}
OTHER = {**LAYOUT, "lane": LAYOUT["element"], "element": LAYOUT["lane"]}
PRODUCT = {"m": 8, "n": 8, "k": 8, "a": "f16", "b": "f16", "c": "f32", "result": "f32"}


def test_variants_by_cooperative_matrix(tmp_path, driver_parts):
    """A variant is taken only when the device lists its product exactly and holds elements as it was compiled for."""
    if "lavapipe" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no lavapipe here")

    def change(value):
        value["functions"][0]["variants"][:0] = [
            make_package.variant("wider", {"subgroup_size": 8, "coopmat": [{**PRODUCT, "n": 16}]}),
            make_package.variant("other-type", {"subgroup_size": 8, "coopmat": [{**PRODUCT, "a": "bf16"}]}),
            make_package.variant("other-layout", {"subgroup_size": 8, "coopmat": [PRODUCT], "layouts": [OTHER]}),
            make_package.variant("matches", {"subgroup_size": 8, "coopmat": [PRODUCT], "layouts": [LAYOUT]}),
            make_package.variant("plain", {"subgroup_size": 8}),
        ]

    package = make_package.make(tmp_path / "coopmat.greta", change)
    lavapipe = (DRIVERS, "lavapipe", "--validate")
    shown = run(package, "--inspect", "--device=vulkan", "--json", launcher=lavapipe)
    device = json.loads(shown)["device"]["scale"]
    assert {name: v["runnable"] for name, v in device.items()} == {
        "wider": False,
        "other-type": False,
        "other-layout": False,
        "matches": True,
        "plain": True,
        "vulkan-portable": True,
        "host": False,
    }
    assert "does not list cooperative matrix 8x16x8" in device["wider"]["reason"]
    assert "layout of acc 8x8 f32 is another one" in device["other-layout"]["reason"]
    for denied, chosen in (("", "matches"), ("llvmpipe:coopmat", "plain")):
        report = run(package, "--device=vulkan", "--input=4x5xf32:random:1", "--check", "--json", launcher=lavapipe, GRETA_VULKAN_DENY=denied)
        assert json.loads(report)["variant"] == chosen
    message = run(package, "--device=vulkan", "--input=4x5xf32:random:1", "--variant=matches", launcher=lavapipe, status=1, GRETA_VULKAN_DENY="llvmpipe:coopmat")
    assert "denied" in message


def test_layouts_are_cached(tmp_path, driver_parts):
    if "lavapipe" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no lavapipe here")
    drivers = os.environ.get("GRETA_CACHE") or f"{os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')}/greta"
    environment = {"XDG_CACHE_HOME": str(tmp_path), "GRETA_CACHE": drivers}
    first = run("--list-devices", launcher=(DRIVERS, "lavapipe"), **environment)
    (cache,) = (tmp_path / "greta").glob("vulkan-layouts-*")
    written = cache.stat().st_mtime_ns
    assert first.count("layouts: ") == 10
    assert run("--list-devices", launcher=(DRIVERS, "lavapipe"), **environment) == first
    assert cache.stat().st_mtime_ns == written
    cache.write_bytes(cache.read_bytes()[:-20])  # damaged: probed again
    assert run("--list-devices", launcher=(DRIVERS, "lavapipe"), **environment) == first
    assert cache.stat().st_mtime_ns != written
