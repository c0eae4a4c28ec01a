"""greta-run from the command line: files in and out, expectations, benchmarks, devices, and what the package says about itself."""

import concurrent.futures
import json
import os
import resource
import signal
import stat
import subprocess

import numpy as np
import pytest

import cases
import harness

CASES = [cases.RowOp("rms_norm", dtype, 1000, 3) for dtype in cases.ELEMENT_TYPES]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return harness.compile_package(tmp_path_factory.mktemp("tools"), "norms", "\n".join(c.mlir() for c in CASES), "gfx942,vulkan,host")


@pytest.mark.parametrize("device", ("vulkan", "host", "sim:gfx942"))
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.dtype)
def test_files(tmp_path, package, case, device):
    run, verdict = harness.run_tool(tmp_path, package, device, case, "--json")
    assert json.loads(run.stdout)["variant"]
    assert "problem" not in verdict, verdict


def test_outputs_keep_what_stands_there(tmp_path, package):
    """A FIFO and a symlink stay what they are and get the bytes; a new file's mode follows the umask, an old file's stays."""
    flags = [f"--function={CASES[0].function}", "--device=host", "--input=3x1000xf32:random:1", "--input=1000xf32:random:2"]

    def write(path, umask=0o022):
        run = subprocess.run([harness.RUN, package, *flags, f"--output={path}"], capture_output=True, text=True, umask=umask, timeout=300)
        assert run.returncode == 0, run.stderr

    def mode(path):
        return stat.S_IMODE(path.lstat().st_mode)

    new, old, target, link, fifo = (tmp_path / name for name in ("new.npy", "old.npy", "target.npy", "link.npy", "fifo.npy"))
    write(new, umask=0o027)
    assert mode(new) == 0o640
    old.write_bytes(b"old")
    old.chmod(0o604)
    write(old)
    assert mode(old) == 0o604
    link.symlink_to(target)
    write(link)
    assert link.is_symlink() and mode(target) == 0o644
    os.mkfifo(fifo)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        read = pool.submit(fifo.read_bytes)
        write(fifo)
        assert stat.S_ISFIFO(fifo.lstat().st_mode)
        assert read.result(timeout=60) == new.read_bytes() == old.read_bytes() == target.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in (new, old, target, link, fifo))


def test_one_file_for_two_results(tmp_path):
    """Nothing is written; a device, which keeps nothing, may take both."""
    package = harness.compile_package(tmp_path, "both", "func.func @f(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {\n  %0 = arith.negf %a : tensor<4xf32>\n  %1 = arith.mulf %a, %a : tensor<4xf32>\n  return %0, %1 : tensor<4xf32>, tensor<4xf32>\n}\n", "host")
    before = sorted(path.name for path in tmp_path.iterdir())
    for path, says in ((tmp_path / "y.npy", "greta-run: error: cannot write {}: it is named twice\n"), ("/dev/null", "")):
        run = harness.tool(harness.RUN, package, "--device=host", "--input=4xf32:zeros", f"--output={path}", f"--output={path}")
        assert run.stderr == says.format(path) and run.returncode == (says != ""), run.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_results_of_one_shape_on_the_host(tmp_path):
    """One GEMM's result is another's operand, and both are returned: each has memory of its own."""
    t = "tensor<8x8xf32>"
    source = f"""func.func @f(%a: {t}, %b: {t}) -> ({t}, {t}) {{
  %0 = greta.matmul %a, %b : {t}, {t} -> {t}
  %1 = greta.matmul %0, %b : {t}, {t} -> {t}
  return %0, %1 : {t}, {t}
}}"""
    package = harness.compile_package(tmp_path, "twice", source, "host")
    a, b = np.random.default_rng(1).integers(-4, 5, (2, 8, 8)).astype(np.float32)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    run = harness.tool(harness.RUN, package, "--device=host", *(f"--input={tmp_path}/{x}.npy" for x in "ab"), *(f"--output={tmp_path}/{y}.npy" for y in "yz"))
    assert run.returncode == 0, run.stderr
    assert (np.load(tmp_path / "y.npy") == a @ b).all() and (np.load(tmp_path / "z.npy") == a @ b @ b).all()


@pytest.mark.parametrize("tool", ["tune", "run"])
def test_a_disk_that_is_full(tmp_path, package, tool):
    """One line, and nothing is left: no file may have more than a few bytes. greta-translate writes as greta-tune does; LLVM takes the limit's signal for a crash there."""
    (tmp_path / "m.mlir").write_text("func.func @f(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {\n  %0 = greta.matmul %a, %b : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>\n  return %0 : tensor<64x64xf16>\n}\n")
    inputs = [f"--input={'x'.join(map(str, array.shape))}xf32:zeros" for array in CASES[0].inputs()]
    command = {
        "tune": (harness.BUILD / "bin" / "greta-tune", "m.mlir", "--targets=gfx942", "--device=estimate", "--candidates=1", "-o", "out"),
        "run": (harness.RUN, package, "--device=sim:gfx942", f"--function={CASES[0].function}", *inputs, "--output=out"),
    }[tool]

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write fails then, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    run = harness.tool(*command, cwd=tmp_path, preexec_fn=limit)
    assert run.returncode == 1 and "LLVM ERROR" not in run.stderr and "cannot write" in run.stderr.splitlines()[-1] and run.stderr.endswith(": File too large\n"), run.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["m.mlir"]


@pytest.mark.parametrize("tool", ("opt", "translate", "run", "llm", "sim", "tune"))
def test_names_with_control_characters(tmp_path, tool):
    """A file's name and an argument are repeated in one line, and no terminal takes anything for more than letters."""
    name = "two\nlines\x1b[31m\x9b31m"  # U+009B begins a terminal's commands, too
    (tmp_path / name).write_text("func.func\n")
    own = {"translate": ["--greta-to-package", "--targets=host", "-oout.greta"], "llm": ["tokenize"], "tune": ["--targets=gfx942", "-oout.json"]}.get(tool, [])
    after = ["text"] if tool == "llm" else []
    options = [] if tool == "opt" else [[f"--no-such-{name}"]]  # those of greta-opt are read by LLVM
    for words in ([*own, name, *after], [*own, f"missing{name}", *after], *options):
        run = subprocess.run([harness.RUN.with_name(f"greta-{tool}"), *words], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert run.returncode == 1 and run.stdout == "", (words, run)
        assert "two?lines?[31m?" in run.stderr, (words, run.stderr)
        assert not any(c < " " and c != "\n" or "\x7f" <= c < "\xa0" for c in run.stderr), (words, run.stderr)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_output_that_nobody_can_read():
    with open("/dev/full", "w") as full:
        run = subprocess.run([harness.RUN, "--list-devices"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
    assert run.returncode == 1
    assert run.stderr.endswith("greta-run: error: writing standard output: No space left on device\n")


def test_expectation(tmp_path, package):
    case = CASES[0]
    inputs = case.inputs()
    (expected,) = case.reference(inputs)
    for i, array in enumerate(inputs):
        np.save(tmp_path / f"{i}.npy", array)
    operands = [f"--input={tmp_path}/{i}.npy" for i, _ in enumerate(inputs)]
    for factor, status in ((1.0, 0), (1.01, 1)):
        np.save(tmp_path / "expected.npy", (expected * factor).astype(np.float32))
        flags = [f"--expect={tmp_path}/expected.npy", "--rtol=1e-4", "--atol=1e-5"]
        run = harness.tool(harness.RUN, package, "--device=vulkan", f"--function={case.function}", *operands, *flags)
        assert run.returncode == status, run.stdout + run.stderr


@pytest.mark.parametrize("device", ("vulkan", "sim:gfx942"))
def test_check_against_host(package, device):
    run = harness.tool(harness.RUN, package, f"--device={device}", f"--function={CASES[1].function}", "--input=3x1000xf16:random:1", "--input=1000xf16:random:2", "--check")
    assert run.returncode == 0, run.stdout + run.stderr


def test_check_says_passed_with_its_limit(package):
    run = harness.tool(harness.RUN, package, "--device=vulkan", f"--function={CASES[0].function}", "--input=3x1000xf32:random:1", "--input=1000xf32:random:2", "--check")
    first, result, check = run.stdout.splitlines()
    assert "first launch" in first and first.endswith(" ms") and result == "r0: 3x1000 of f32"
    assert check.startswith("check r0: passed: max abs ") and check.endswith("limit: worst row 2e-05 (Euclidean) 4e-05 (maximum)")


def test_progress_is_for_terminals(tmp_path, package):
    """Each line replaces the one before, and nothing is left; elsewhere nothing is written."""
    mlir = tmp_path / "norm.mlir"
    mlir.write_text(CASES[0].mlir())
    runs = {
        "running " + CASES[0].function: [harness.RUN, package, "--device=vulkan", f"--function={CASES[0].function}", "--input=3x1000xf32:random:1", "--input=1000xf32:random:2"],
        f"compiling {CASES[0].function} for gfx942 (1 of 2)": [harness.TRANSLATE, "--greta-to-package", "--targets=gfx942,host", mlir, "-o", tmp_path / "norm.greta"],
    }
    for shown, command in runs.items():
        said = harness.said_on_a_terminal(*command)
        assert f"\r\x1b[K{shown}" in said and said.endswith("\r\x1b[K") and "\n" not in said.replace("once for each version of its driver\r\n", "")
        assert harness.tool(*command).stderr == ""
    assert harness.said_on_a_terminal(*command, "--quiet") == ""


def test_health_check_is_announced(tmp_path, package):
    """The first use of a device takes seconds, and a terminal is told why; the second says nothing of it."""
    run = [harness.RUN, package, "--device=vulkan", f"--function={CASES[0].function}", "--input=3x1000xf32:random:1", "--input=1000xf32:random:2"]
    fresh = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    said = [" computes right, once for each version of its driver\r\n" in harness.said_on_a_terminal(*run, env=fresh) for _ in range(2)]
    assert said == [True, False]


def test_same_seed_same_numbers(tmp_path, package):
    for name in "ab":
        flags = ["--input=3x1000xf32:random:7", "--input=1000xf32:random:8", f"--output={tmp_path}/{name}.npy"]
        run = harness.tool(harness.RUN, package, "--device=host", f"--function={CASES[0].function}", *flags)
        assert run.returncode == 0, run.stderr
    a, b = (np.load(tmp_path / f"{name}.npy") for name in "ab")
    assert np.array_equal(a, b) and a.std() > 0.1


def test_bench(package):
    flags = ["--input=64x1000xf32:random:7", "--input=1000xf32:random:8", "--bench", "--reps=5", "--json"]
    run = harness.tool(harness.RUN, package, "--device=vulkan", f"--function={CASES[0].function}", *flags)
    assert run.returncode == 0, run.stderr
    times = [v for k, v in json.loads(run.stdout).items() if "median" in k]
    assert len(times) == 1 and times[0] > 0


CHAIN = """\
func.func @chain(%a: tensor<?x64xf16>, %b: tensor<64x64xf16>, %c: tensor<64x32xf16>) -> tensor<?x32xf16> {
  %0 = greta.matmul %a, %b : tensor<?x64xf16>, tensor<64x64xf16> -> tensor<?x64xf16>
  %1 = greta.matmul %0, %c : tensor<?x64xf16>, tensor<64x32xf16> -> tensor<?x32xf16>
  return %1 : tensor<?x32xf16>
}
"""


def test_bench_with_a_temporary(tmp_path):
    """--bench records graphs of two GEMMs with a temporary between them, under ROCm's rules of what may happen meanwhile."""
    package = harness.compile_package(tmp_path, "chain", CHAIN, "gfx942")
    assert harness.manifest(package)["functions"][0]["variants"][0]["temps"]
    flags = ["--input=16x64xf16:random:1", "--input=64x64xf16:random:2", "--input=64x32xf16:random:3", "--bench", "--reps=2", "--launches=2", "--rotate=2", "--json"]
    run = harness.tool(harness.RUN, package, "--device=sim:gfx942", *flags)
    assert run.returncode == 0, run.stderr
    assert len(json.loads(run.stdout)["kernels"]) == 2


def test_list_devices():
    simulator = {**os.environ, "GRETA_HIP_LIBRARY": str(harness.BUILD / "lib" / "libgreta_hip_sim.so")}
    run = harness.tool(harness.RUN, "--list-devices", env=simulator)
    assert run.returncode == 0, run.stderr
    for device in ("hip", "vulkan", "host", "compute_units: 304"):
        assert device in run.stdout


def test_every_variant_is_inspected(package):
    shown = harness.tool(harness.RUN, package, "--inspect")
    assert shown.returncode == 0, shown.stderr
    for function in harness.manifest(package)["functions"]:
        assert function["name"] in shown.stdout
        for variant in function["variants"]:
            assert variant["id"] in shown.stdout


def test_radv_reports_its_compilation(package, driver_parts):
    """RADV's null navi31 compiles the kernels without spills or scratch, and --inspect shows what it made of them."""
    if "radv" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no RADV here")
    shown = harness.tool(harness.DRIVERS, "radv", "navi31", harness.RUN, package, "--inspect", "--device=vulkan", "--json")
    assert shown.returncode == 0, shown.stderr
    text = shown.stdout
    assert "VGPRs" in text
    values = [int(v) for k, v in statistics(json.loads(text)) if "pill" in k or "cratch" in k]
    assert values and not any(values), text


def statistics(value):
    """Every (key, number) and (name, value) of a JSON tree."""
    if isinstance(value, dict):
        if "name" in value and "value" in value:
            yield value["name"], value["value"]
        for key, entry in value.items():
            if isinstance(entry, (int, float)) and not isinstance(entry, bool):
                yield key, entry
            else:
                yield from statistics(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from statistics(entry)
