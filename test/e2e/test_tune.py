"""greta-tune: candidates ranked and written down, work that is taken up again, and databases that change what is compiled."""

import json
import signal
import subprocess
import time

import pytest

import harness

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


def test_database_changes_the_tile(source, tmp_path):
    """What was tuned is what is compiled: the entry's tile stands in the manifest, and it is another one than the model's."""
    path, database = source(256, 256, 256), tmp_path / "db.json"
    assert tune(path, database, "--candidates=1").returncode == 0
    (entry,) = entries(database)

    def compiled(*flags):
        made = harness.tool(harness.TRANSLATE, "--greta-to-package", "--targets=gfx942", path, "-o", tmp_path / "k.greta", *flags)
        assert made.returncode == 0, made.stderr
        config = harness.function_of(tmp_path / "k.greta", "product")["variants"][0]["kernels"][0]["config"]
        return [config[name] for name in ("rows", "columns", "depth", "waves")]

    model = compiled()
    assert compiled(f"--tuning={database}") == model == [*entry["config"]["tile"], entry["config"]["waves"]]
    entry["config"] = {"tile": [48, 64, 32], "instruction": [16, 16, 16], "waves": 1}
    database.write_text(json.dumps({"schema": 1, "entries": [entry]}))
    assert compiled(f"--tuning={database}") == [48, 64, 32, 1] != model
    run = harness.tool(harness.RUN, tmp_path / "k.greta", "--device=sim:gfx942", "--input=256x256xf16:random:1", "--input=256x256xf16:random:2", f"--output={tmp_path}/y.npy")
    assert run.returncode == 0, run.stderr


def test_goes_on_where_it_was(source, tmp_path):
    path, database = source(128, 128, 128), tmp_path / "db.json"
    assert tune(path, database, "--candidates=2").returncode == 0
    first = entries(database)[0]["candidates"]
    again = tune(path, database, "--candidates=3")
    assert again.returncode == 0 and "3 candidates, 2 known" in again.stderr
    assert "[3/3]" in again.stderr and "[2/3]" not in again.stderr
    (entry,) = entries(database)
    assert entry["candidates"][:2] == first and len(entry["candidates"]) == 3
    # Another product has an entry of its own; a new start forgets the candidates of this one only.
    other = source(128, 128, 256)
    assert tune(other, database, "--candidates=1", "--restart").returncode == 0
    assert [len(e["candidates"]) for e in entries(database)] == [3, 1]
    anew = tune(source(128, 128, 128), database, "--candidates=2", "--restart")
    assert "2 candidates, 0 known" in anew.stderr
    assert [len(e["candidates"]) for e in entries(database)] == [2, 1]


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
        (["--targets=vulkan:portable"], "nothing was tuned"),
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
