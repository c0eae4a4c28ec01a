"""greta-sim: a kernel run from files, --stats, --trace, and one diagnostic with exit code 1 for every mistake."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from conftest import BUILD, ROOT

TOOL = BUILD / "bin" / "greta-sim"
SOURCE = """
kernel void axpy(global float *y, global const float *x, float a, long n) {
  long i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i < n) y[i] += a * x[i];
}
"""


def run(*args):
    return subprocess.run([TOOL, *args], capture_output=True, text=True)


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    clang = shutil.which("clang-22") or shutil.which("clang", path="/usr/lib/llvm-22/bin")
    folder = tmp_path_factory.mktemp("sim")
    (folder / "k.cl").write_text(SOURCE)
    out = folder / "k.hsaco"
    subprocess.run([clang, "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx1100", "-x", "cl", "-cl-std=CL2.0", "-O2", "-g", "-nogpulib", folder / "k.cl", "-o", out],
                   check=True, capture_output=True)
    return out


def test_runs_a_kernel(code, tmp_path):
    x = np.arange(100, dtype=np.float32)
    x.tofile(tmp_path / "x.bin")
    np.ones(100, np.float32).tofile(tmp_path / "y.bin")
    r = run(code, "--kernel=axpy", "--grid=2", "--block=64", f"--arg=inout:{tmp_path}/y.bin", f"--arg=in:{tmp_path}/x.bin", "--arg=f32:0.5",
            "--arg=i64:100", "--stats", "--trace=3")
    assert r.returncode == 0, r.stderr
    assert np.array_equal(np.fromfile(tmp_path / "y.bin", np.float32), 1 + x / 2)
    assert "workgroups 2, waves 4" in r.stdout
    assert "global: 800 bytes loaded, 400 stored" in r.stdout
    assert r.stdout.count("wave 0 exec ") == 3
    assert re.search(r"compute unit: 1 workgroups \(the grid\), 1.0 waves per SIMD, \d+ cycles, bound by ", r.stdout)
    assert re.search(r"launch: \d+ cycles, [\d.]+ us", r.stdout)


def test_timeline(code, tmp_path):
    np.ones(128, np.float32).tofile(tmp_path / "x.bin")
    shutil.copy(tmp_path / "x.bin", tmp_path / "y.bin")
    options = [code, "--grid=2", "--block=64", f"--arg=inout:{tmp_path}/y.bin", f"--arg=in:{tmp_path}/x.bin", "--arg=f32:0.5", "--arg=i64:128", "--estimate", "--json"]
    r = run(*options, f"--timeline={tmp_path}/t.json")
    assert r.returncode == 0, r.stderr
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    waves = {e["tid"] for e in slices if e["pid"] == 1}
    cycles = json.loads(r.stdout)["cycles"]
    assert len(waves) == 2 and all(e["ts"] + e["dur"] <= cycles + 8 for e in slices if e["pid"] == 1)
    for wave in waves:  # one thing at a time, and every instruction once
        mine = sorted((e["ts"], e["dur"], e["name"]) for e in slices if e["pid"] == 1 and e["tid"] == wave)
        assert all(a[0] + a[1] <= b[0] for a, b in zip(mine, mine[1:]))
        names = [name for _, _, name in mine]
        assert names.count("global_store_b32") == 1 and "wait: global memory" in names
    store = next(e for e in slices if e["name"] == "global_store_b32")
    assert store["args"]["line"] == "k.cl:4" and store["args"]["assembly"].startswith("global_store_b32 v") and store["args"]["address"].startswith("0x")
    tracks = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert "wave 1 (workgroup 0, SIMD 1)" in tracks and "SIMD 1 vector memory" in tracks
    loads = [e for e in events if e["name"].startswith("global_load") and e["ph"] in "be"]
    assert len(loads) == 2 * len(waves) * 2  # x and y, begun and ended
    r = run(*options, "--timeline=/nonexistent/t.json")
    assert r.returncode == 1 and "cannot write '/nonexistent/t.json'" in r.stderr


def test_estimate_runs_only_what_it_needs(code, tmp_path):
    n = 64 * 20000
    np.zeros(n, np.float32).tofile(tmp_path / "x.bin")
    options = ["--grid=20000", "--block=64", f"--arg=inout:{tmp_path}/y.bin", f"--arg=in:{tmp_path}/x.bin", "--arg=f32:0.5", f"--arg=i64:{n}"]
    np.ones(n, np.float32).tofile(tmp_path / "y.bin")
    first = run(code, *options, "--estimate", "--latency=memory:600")
    assert first.returncode == 0, first.stderr
    assert "bound by memory bandwidth" in first.stdout and "workgroups 20000" not in first.stdout
    assert np.array_equal(np.fromfile(tmp_path / "y.bin", np.float32), np.ones(n, np.float32))
    assert run(code, *options, "--estimate", "--latency=memory:600").stdout == first.stdout
    alone = run(code, *options, "--estimate", "--one-wave")
    assert alone.returncode == 0 and "1 workgroups (one wave alone), 1.0 waves per SIMD" in alone.stdout and "launch:" not in alone.stdout
    assert "1 workgroups (the request)" in run(code, *options, "--estimate", "--cu-workgroups=1").stdout


def test_estimate_options(code):
    """Memory that is not kept, arguments at chosen places, JSON, and what the estimate may assume instead of the table."""
    n = 64 * 20000
    options = ["--grid=20000", "--block=64", f"--arg=zero:{4 * n}", "--arg=align:8", f"--arg=zero:{4 * n}", "--arg=f32:0.5", "--arg=align:8", f"--arg=i64:{n}",
               "--estimate", "--json"]  # fmt: skip
    estimate = lambda *more: json.loads(run(code, *options, *more).stdout)
    plain = estimate()
    assert plain["bound"] == "memory bandwidth" and plain["launch_cycles"] == plain["memory_cycles"] and "stats" not in plain
    assert abs(plain["microseconds"] - 2 * 4 * n / 960e3) < 0.1  # the lines of both buffers; GB/s of the table
    assert estimate("--stats")["stats"]["workgroups"] == plain["workgroups"] + 2  # the first and the last of the grid
    assert estimate("--scale=latency:2")["cycles"] > plain["cycles"] > estimate("--scale=latency:0.5")["cycles"]
    few = estimate("--compute-units=2", "--cu-workgroups=1")
    assert few["launch_cycles"] == 20000 * few["cycles"]  # two compute units are one WGP
    null = run(code, "--grid=1", "--block=64", "--arg=null", "--arg=null", "--arg=f32:1", "--arg=i64:5")
    assert null.returncode == 1 and "read of 4 bytes at 0x0" in null.stderr


def test_says_how_far_a_run_is_the_hardwares(code, tmp_path):
    """By the kernel's instructions and the launch; each number of the estimate has its source."""
    options = ["--block=64", "--arg=zero:400", "--arg=zero:400", "--arg=f32:0.5", "--arg=i64:50"]
    plain = run(code, *options).stdout
    assert "exact: integer" in plain and "fused multiply-adds" in plain and "approximate: nothing\n" in plain
    assert "not modelled: caches" in plain and "checked: bounds, uninit, races, waits, hazards\n" in plain and "timing:" not in plain
    assert "checked: races\n" in run(code, *options, "--check=races").stdout and "checked: nothing\n" in run(code, *options, "--check=none").stdout
    estimate = run(code, *options, "--estimate", "--latency=lds:5", "--scale=latency:2,lds-rate:0.5", "--compute-units=3").stdout
    for line in (
        "clock 2500 MHz (AMD's product page)",
        "compute_units 3 (given)",
        "lds_latency 10 cycles (given, times 2)",
        "memory_latency 1200 cycles (assumption, of the order that public microbenchmarks report, times 2)",
        "lds 64 bytes a cycle (RDNA3 ISA manual's banks, times 0.5)",
    ):
        assert f"timing: {line}\n" in estimate
    assert "workgroups that the estimate does without" in estimate and "of a full L2" in estimate
    described = json.loads(run(code, *options, "--estimate", "--json").stdout)
    assert described["fidelity"]["approximate"] == [] and described["fidelity"]["checked"][-1] == "hazards"
    assert described["timing"]["memory_latency"] == {"value": 600, "unit": "cycles", "source": "assumption, of the order that public microbenchmarks report"}
    clang = shutil.which("clang-22") or shutil.which("clang", path="/usr/lib/llvm-22/bin")
    (tmp_path / "k.cl").write_text("kernel void k(global float *y) { y[0] = __builtin_amdgcn_exp2f(y[0]); }")
    subprocess.run([clang, "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx942", "-x", "cl", "-cl-std=CL2.0", "-O2", "-nogpulib", tmp_path / "k.cl", "-o", tmp_path / "k.hsaco"],
                   check=True, capture_output=True)  # fmt: skip
    exp = run(tmp_path / "k.hsaco", "--kernel=k", "--arg=zero:4").stdout
    assert "approximate: v_exp_f32: rounded" in exp and "wait states" not in exp


@pytest.mark.parametrize(
    "args, message",
    [
        (["--kernel=nothing"], "no kernel 'nothing'; it has: axpy"),
        (["--grid=0"], "--grid: Value 0 not in range 1 to"),
        (["--check=magic"], "unknown check 'magic'"),
        (["--check=all,"], "unknown check ''"),
        (["--latency=lds:5"], "--latency, --scale, --timeline, --cu-workgroups and --compute-units need --stats or --estimate"),
        (["--estimate", "--latency=lds:5,lds:6"], "'lds' stands there twice"),
        (["--estimate", "--latency=lds:5,"], "'' is not one of lds, scalar, cache, memory"),
        (["--estimate", "--scale=latency:2,latency:3"], "'latency' stands there twice"),
        (["--arg=in:/does/not/exist"], "cannot read '/does/not/exist'"),
        (["--arg=f64:1"], "unknown kind"),
        (["--grid=1,2,3,4"], "--grid: At Most 3"),
        (["--lds=many"], "--lds = many"),
        (["--frobnicate"], "unknown option '--frobnicate'; greta-sim --help lists all"),
        (["--estimate", "--latency=l3:5"], "'l3:5' is not one of lds, scalar, cache, memory"),
        (["--estimate", "--scale=speed:2"], "'speed:2' is not latency or lds-rate"),
        (["--one-wave"], "need --stats or --estimate"),
        (["--json"], "need --stats or --estimate"),
        (["--timeline=t.json"], "need --stats or --estimate"),
        (["--arg=zero:many"], "needs a number of bytes"),
        (["--arg=align:3"], "needs a power of two"),
        ([], "bytes of arguments given"),
    ],
)
def test_mistakes(code, args, message):
    r = run(code, *args)
    assert r.returncode == 1
    assert message in r.stderr
    assert len(r.stderr.strip().splitlines()) == 1


def test_output_is_written_only_on_success(code, tmp_path):
    np.ones(10, np.float32).tofile(tmp_path / "x.bin")
    r = run(code, "--grid=2", "--block=64", f"--arg=out:{tmp_path}/y.bin:400", f"--arg=in:{tmp_path}/x.bin", "--arg=f32:1", "--arg=i64:100")
    assert r.returncode == 1
    assert "kernel 'axpy'" in r.stderr and "out of bounds" in r.stderr and "lane 10" in r.stderr
    assert not (tmp_path / "y.bin").exists()


def test_not_a_code_object(tmp_path):
    (tmp_path / "x").write_text("hello")
    r = run(tmp_path / "x")
    assert r.returncode == 1 and "not an AMDGPU code object" in r.stderr


@pytest.mark.skipif(not shutil.which("llvm-mca", path="/usr/lib/llvm-22/bin"), reason="needs llvm-mca")
def test_issue_model_agrees_with_llvm_mca(tmp_path, monkeypatch):
    """The main loop of the hand-scheduled GEMM, one wave with LLVM's latencies; all waves keep the matrix units as busy as docs/internals/simulator.md says."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "benchmarks")
    import issue_model

    for case in issue_model.pipelined(tmp_path, "gfx942"):
        one = issue_model.estimate(case, (1, 1), "--one-wave", issue_model.LLVM_LATENCIES)
        mca = issue_model.llvm_mca(case[1], "gfx942", one["begin"], one["end"])
        assert one["matrix"] == 64 * 32
        assert abs(one["cycles"] / mca - 1) < 0.04, case[0]
        every = issue_model.estimate(case, issue_model.GRID)
        assert every["waves"] == 2 and every["bound"] == "matrix units" and 0.9 < every["share"] <= 1
