"""greta-tune: candidates ranked and written down, work that is taken up again, and databases that change what is compiled."""

import dataclasses
import json
import os
import signal
import subprocess

import pytest

import harness
from case import Kind, Matmul, tensor
from tiled import Product

TUNE = harness.BUILD / "bin" / "greta-tune"
SMALL = """func.func @product(%a: tensor<{m}x{k}xf16>, %b: tensor<{n}x{k}xf16>) -> tensor<{m}x{n}xf16> {{
  %0 = greta.matmul %a, %b {{transpose_b}} : tensor<{m}x{k}xf16>, tensor<{n}x{k}xf16> -> tensor<{m}x{n}xf16>
  return %0 : tensor<{m}x{n}xf16>
}}
"""
BAD = '{"tile": [16, 16, 16], "instruction": [16, 16, 16], "waves": 1, "stages": 2, "slice": 16}'


@pytest.fixture
def source(tmp_path):
    def write(m, n, k):
        path = tmp_path / "product.mlir"
        path.write_text(SMALL.format(m=m, n=n, k=k))
        return path

    return write


def entries(database):
    return json.loads(database.read_text())["entries"]


def tune(source, database, *flags):
    return harness.tool(TUNE, source, "--targets=gfx942", "--device=estimate", "-o", database, *flags)


def test_bad_candidate_is_last(source, tmp_path):
    """The estimate knows a bad tile, the best one is the entry's, one that does not fit is rejected, and the report says the same."""
    run = tune(source(1024, 1024, 1024), tmp_path / "db.json", "--candidates=3", f"--also={BAD}", '--also={"waves": 64}', "--json")
    assert run.returncode == 0, run.stderr
    (entry,) = entries(tmp_path / "db.json")
    assert (entry["target"], entry["device"], entry["op"], entry["shape"]) == ("gfx942", "estimate", "matmul f16 nt -> f16", [1024, 1024, 1024])
    times = {json.dumps(c["config"], sort_keys=True): c["us"] for c in entry["candidates"] if "us" in c}
    assert len(times) == 4 and len(entry["candidates"]) == 5
    assert max(times, key=times.get) == json.dumps(json.loads(BAD), sort_keys=True)
    assert times[json.dumps(entry["config"], sort_keys=True)] == min(times.values())
    assert "does not fit" in entry["candidates"][4]["rejected"]
    (report,) = json.loads(run.stdout)
    assert report["us"] == min(times.values()) and report["config"] == entry["config"] and (report["candidates"], report["rejected"]) == (5, 1)
    assert [line for line in run.stderr.splitlines() if "[5/5]" in line and "rejected" in line], run.stderr


def test_database_changes_the_tile(tmp_path):
    """What was tuned is what is compiled, and it is right: the entry's tile stands in the manifest, and it is another one than the model's."""
    case, path, database = Product("plain", "nt", "s", 256, 256, 256, "f16", "f16"), tmp_path / "k.mlir", tmp_path / "db.json"
    path.write_text(case.mlir("gfx942"))
    assert tune(path, database, "--candidates=1").returncode == 0
    (entry,) = entries(database)

    def compiled(*flags):
        made = harness.tool(harness.TRANSLATE, "--greta-to-package", "--targets=gfx942", path, "-o", tmp_path / "k.greta", *flags)
        assert made.returncode == 0, made.stderr
        config = harness.function_of(tmp_path / "k.greta", case.function)["variants"][0]["kernels"][0]["config"]
        return [config[name] for name in ("rows", "columns", "depth", "waves")]

    model = compiled()
    assert compiled(f"--tuning={database}") == model == [*entry["config"]["tile"], entry["config"]["waves"]]
    entry["config"] = {"tile": [48, 64, 32], "instruction": [16, 16, 16], "waves": 1}
    database.write_text(json.dumps({"schema": 1, "entries": [entry]}))
    assert compiled(f"--tuning={database}") == [48, 64, 32, 1] != model
    _, verdict = harness.run_tool(tmp_path, tmp_path / "k.greta", "sim:gfx942", case)
    assert "problem" not in verdict, verdict


def test_goes_on_where_it_was(source, tmp_path):
    path, database = source(128, 128, 128), tmp_path / "db.json"
    assert tune(path, database, "--candidates=2").returncode == 0
    first = entries(database)[0]["candidates"]
    again = tune(path, database, "--candidates=3")
    assert again.returncode == 0 and "3 candidates, 2 known" in again.stderr
    assert "[3/3]" in again.stderr and "[2/3]" not in again.stderr
    (entry,) = entries(database)
    assert entry["candidates"][:2] == first and len(entry["candidates"]) == 3
    # Another GEMM has an entry of its own; a new start forgets the candidates of this one only.
    other = source(128, 128, 256)
    assert tune(other, database, "--candidates=1", "--restart").returncode == 0
    assert [len(e["candidates"]) for e in entries(database)] == [3, 1]
    anew = tune(source(128, 128, 128), database, "--candidates=2", "--restart")
    assert "2 candidates, 0 known" in anew.stderr
    assert [len(e["candidates"]) for e in entries(database)] == [2, 1]


def test_each_range_of_a_dynamic_m(tmp_path):
    """A dynamic M: kernels for any M and for each range are tuned, what is found is what the package has for it, and units of a device stay in the file."""
    path, database = tmp_path / "k.mlir", tmp_path / "db.json"
    path.write_text(SMALL.format(m="?", n=128, k=128).replace("transpose_b", "transpose_b, greta.ranges = [8, 64]"))
    assert tune(path, database, "--candidates=2").returncode == 0
    found = entries(database)
    assert [entry["shape"] for entry in found] == [["?", 128, 128], [8, 128, 128], [64, 128, 128]]
    assert [len(entry["candidates"]) for entry in found] == [2, 2, 2]
    found[1]["config"], found[2]["compute_units"] = {"tile": [8, 8, 64], "waves": 2, "run": 4, "unroll": 1}, 304
    database.write_text(json.dumps({"schema": 1, "entries": found}))
    again = tune(path, database, "--candidates=2")
    assert again.stderr.count("2 candidates, 2 known") == 3
    assert [entry.get("compute_units") for entry in entries(database)] == [None, None, 304]
    made = harness.tool(harness.TRANSLATE, "--greta-to-package", "--targets=gfx942", path, "-o", tmp_path / "k.greta", f"--tuning={database}")
    assert made.returncode == 0 and not made.stderr, made.stderr
    (variant,) = harness.function_of(tmp_path / "k.greta", "product")["variants"]
    assert [one["when"] for one in variant["ranges"]] == [[["d0", 1, 8]], [["d0", 9, 64]]]
    (kernel,) = variant["ranges"][0]["kernels"]
    assert [kernel["config"][part] for part in ("rows", "columns", "depth", "waves")] == [8, 8, 64, 2]


@pytest.mark.parametrize("sent", (signal.SIGINT, signal.SIGKILL))
def test_killed_in_the_middle(source, tmp_path, sent):
    """The database is valid whenever the process ends, and what it has is not measured again."""
    path, database, count = source(1024, 1024, 1024), tmp_path / "db.json", 6
    command = [TUNE, path, "--targets=gfx942", "--device=estimate", "-o", database, f"--candidates={count}"]
    process = subprocess.Popen([str(c) for c in command], stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "[2/" in line:
            break
    process.send_signal(sent)
    process.stderr.read()
    assert process.wait(60) == -sent
    (entry,) = entries(database)
    known = len(entry["candidates"])
    assert 2 <= known < count
    rest = tune(path, database, f"--candidates={count}")
    assert rest.returncode == 0 and f"{count} candidates, {known} known" in rest.stderr
    configs = [json.dumps(c["config"], sort_keys=True) for c in entries(database)[0]["candidates"]]
    assert len(configs) == len(set(configs)) == count
    assert entries(database)[0]["candidates"][:known] == entry["candidates"]


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--targets=gfx906"], "unknown target 'gfx906'"),
        (["--targets=host"], "the target 'host' has no tiles to choose"),
        (["--targets=gfx942", "--device=hip:7"], "nothing was tuned"),
        (["--targets=gfx942", "--device=sim:gfx942"], "--device=sim:gfx942: there are hip[:N], vulkan[:N] and estimate"),
        (["--targets=gfx942", "--function=other"], "no public function 'other'"),
        (["--targets=gfx942", "--also={}]"], "--also={}]"),
        (["--targets=gfx942", '--also={"tile": "x"}'], "not a configuration"),
        (["--targets=gfx942", "--candidates=0"], "--candidates"),
        ([], "--targets"),
    ],
)
def test_bad_command_lines(source, tmp_path, flags, message):
    run = harness.tool(TUNE, source(64, 64, 64), "-o", tmp_path / "db.json", *flags)
    assert run.returncode == 1 and message in run.stderr, run.stderr
    assert run.stderr.count("error:") == 1
    assert not (tmp_path / "db.json").exists()


def test_bad_database_is_left_alone(source, tmp_path):
    database = tmp_path / "db.json"
    for text in ("", "[]", '{"schema": 9, "entries": []}', '{"schema": 1, "entries": [{}]}'):
        database.write_text(text)
        run = tune(source(64, 64, 64), database)
        assert run.returncode == 1 and run.stderr.count("error: tuning database") == 1, run.stderr
        assert database.read_text() == text


FEW_ROWS = """func.func @rows(%a: tensor<2x1024xf16>, %b: tensor<70x1024xf16>) -> tensor<2x70xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<2x1024xf16>, tensor<70x1024xf16> -> tensor<2x70xf16>
  return %0 : tensor<2x70xf16>
}
func.func @adds(%a: tensor<40x96xf32>, %b: tensor<70x96xf32>) -> tensor<40x70xf32> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<40x96xf32>, tensor<70x96xf32> -> tensor<40x70xf32>
  return %0 : tensor<40x70xf32>
}
"""


def test_without_matrix_instructions(tmp_path):
    """Skinny GEMMs and SIMT FMAs: the model's choice first, then what differs from it by a factor of two; the best is what is compiled."""
    path, database = tmp_path / "k.mlir", tmp_path / "db.json"
    path.write_text(FEW_ROWS)
    run = harness.tool(TUNE, path, "--targets=gfx1100", "--device=estimate", "-o", database, "--candidates=8")
    assert run.returncode == 0, run.stderr
    for entry, parts in zip(entries(database), ({"tile", "waves", "run", "unroll"}, {"tile", "waves"})):
        configs = [c["config"] for c in entry["candidates"]]
        assert len(configs) == 8 and all(parts <= set(c) <= parts | {"split"} for c in configs)
        assert all("us" in c for c in entry["candidates"]), entry
        for config in configs[1:6]:
            (before, after) = (json.dumps(c, sort_keys=True).split() for c in (configs[0], config))
            assert len(before) != len(after) or sum(a != b for a, b in zip(before, after)) == 1
    rows, adds = entries(database)
    rows["config"], adds["config"] = {"tile": [2, 4, 256], "waves": 2, "run": 4, "unroll": 1}, {"tile": [16, 32, 8], "waves": 4, "split": 2}
    database.write_text(json.dumps({"schema": 1, "entries": [rows, adds]}))
    made = harness.tool(harness.TRANSLATE, "--greta-to-package", "--targets=gfx1100", path, "-o", tmp_path / "k.greta", f"--tuning={database}")
    assert made.returncode == 0 and not made.stderr, made.stderr
    for name, tile in (("rows", [2, 4, 256, 2, None]), ("adds", [16, 32, 8, 4, 2])):
        (found,) = harness.function_of(tmp_path / "k.greta", name)["variants"][0]["kernels"]
        assert [found["config"].get(part) for part in ("rows", "columns", "depth", "waves", "split")] == tile


@dataclasses.dataclass(frozen=True)
class Asked(Matmul):
    """A GEMM with a configuration that the model would not choose."""

    label: str
    layout: str
    m: int
    n: int
    k: int
    dtype: str
    out: str
    config: str
    waves: int = 0

    @property
    def name(self):
        return self.label

    @property
    def precision(self):
        return self.out

    @property
    def spec(self):
        return Kind(asked_mlir, lambda p, rng: (p.activations(rng), p.weights(rng)), lambda p, rounded, a, b: p.multiply(a, b))


def asked_mlir(p, target):
    (a, b), y = (tensor(*shape, p.dtype) for shape in p.shapes), tensor(p.m, p.n, p.out)
    flags = ", ".join([*p.flags, f"greta.config = {{waves = {p.waves}, {p.config}}}"])
    return f"""func.func @{p.name}(%a: {a}, %b: {b}) -> {y} {{
  %0 = greta.matmul %a, %b {{{flags}}} : {a}, {b} -> {y}
  return %0 : {y}
}}
"""


ASKED = [
    Asked("nt", "nt", 3, 129, 1000, "f16", "f16", "tile = [3, 16, 128], run = 8, unroll = 2"),
    Asked("narrow", "nt", 3, 129, 1000, "f16", "f16", "tile = [3, 32, 32], run = 2, unroll = 1"),
    Asked("nn", "nn", 2, 1000, 129, "f16", "f16", "tile = [2, 64, 4], run = 1, unroll = 2"),
    Asked("parts", "nt", 1, 17, 1024, "bf16", "f32", "tile = [1, 16, 128], run = 8, unroll = 1, split = 4"),
    Asked("adds", "nt", 17, 129, 70, "f32", "f32", "tile = [32, 32, 8]"),
    Asked("addsparts", "nn", 17, 60, 1000, "f32", "f32", "tile = [16, 64, 32], split = 3"),
]


@pytest.mark.parametrize("target", [*harness.AMD_FAMILIES, "vulkan:portable", "vulkan:lavapipe"])
def test_asked_for_is_right(tmp_path, driver_parts, target):
    """Skinny GEMMs and SIMT FMAs in other blocks than the model's, against float64."""
    if target == "vulkan:lavapipe" and "lavapipe" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no lavapipe here")
    waves = {"vulkan:portable": 64, "vulkan:lavapipe": 8}.get(target, 2)
    # f32 has matrix instructions on CDNA; the newer lavapipe is slow under its validation layer.
    left_out = {"gfx90a": "adds", "gfx942": "adds", "gfx950": "adds", "vulkan:lavapipe": ("narrow", "nn", "parts", "addsparts")}.get(target, "-")
    cases = [dataclasses.replace(case, waves=waves) for case in ASKED if not case.name.startswith(left_out)]
    package = harness.compile_package(tmp_path, "asked", "".join(case.mlir() for case in cases), target)
    launcher = harness.lavapipe_launcher() if target == "vulkan:lavapipe" else ()
    device = target.split(":")[0] if ":" in target else f"sim:{target}"
    for case in cases:
        _, verdict = harness.run_tool(tmp_path, package, device, case, launcher=launcher)
        assert "problem" not in verdict, (case.name, verdict)


def test_wrong_results_are_rejected(tmp_path):
    """The sine of a large multiple of a sum is another one for each order of its additions: every candidate differs from the host's."""
    t = "tensor<4x256xf32>, tensor<70x256xf32> -> tensor<4x70xf32>"
    path, database = tmp_path / "k.mlir", tmp_path / "db.json"
    path.write_text(f"""func.func @chaos(%a: tensor<4x256xf32>, %b: tensor<70x256xf32>) -> tensor<4x70xf32> {{
  %0 = greta.matmul %a, %b {{transpose_b}} : {t}
  %c = arith.constant dense<1.0e7> : tensor<4x70xf32>
  %1 = arith.mulf %0, %c : tensor<4x70xf32>
  %2 = math.sin %1 : tensor<4x70xf32>
  return %2 : tensor<4x70xf32>
}}
""")
    run = harness.tool(TUNE, path, "--targets=vulkan:portable", "--candidates=2", "--reps=2", "-o", database, "--json")
    assert run.returncode == 0, run.stderr
    (entry,) = entries(database)
    assert entry["config"] == {} and len(entry["candidates"]) == 2
    assert all("wrong result r0: the worst row is off by" in c["rejected"] for c in entry["candidates"]), entry
    assert json.loads(run.stdout)[0]["rejected"] == 2


def test_on_a_device(source, tmp_path, driver_parts):
    """Cooperative matrices on testing's lavapipe: compared with the host's result, measured, and the family found."""
    if "lavapipe" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no lavapipe here")
    database = tmp_path / "db.json"
    flags = ["--targets=vulkan", "--candidates=2", "--reps=2", "-o", database]
    run = harness.tool(*harness.lavapipe_launcher(), TUNE, source(24, 16, 16), *flags)
    assert run.returncode == 0, run.stderr
    (entry,) = entries(database)
    assert entry["target"] == "vulkan:lavapipe" and "llvmpipe" in entry["device"]
    assert [c["us"] > 0 for c in entry["candidates"]] == [True, True]
    assert "vulkan:nvidia left out" in run.stderr


def test_a_device_without_matrix_instructions(source, tmp_path):
    """Each family is left out with that reason, and nothing is tuned."""
    plain = {**os.environ, "GRETA_VULKAN_DENY": "NVIDIA:coopmat,AMD:coopmat,Intel:coopmat"}  # Debian's lavapipe has none anyway
    run = harness.tool(TUNE, source(24, 16, 16), "--targets=vulkan", "--candidates=1", "-o", tmp_path / "db.json", env=plain)
    left_out = [line for line in run.stderr.splitlines() if " left out: " in line]
    assert run.returncode == 1 and "nothing was tuned" in run.stderr
    assert left_out and all("takes the variant vulkan-" in line and line.endswith(", which uses no matrix instructions: its tiles cannot be chosen") for line in left_out), run.stderr
