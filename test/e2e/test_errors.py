"""Bad input: exit status 1, exactly one diagnostic that names what is wrong, nothing written. Never a crash."""

import json
import re
import shutil
import zipfile

import numpy as np
import pytest

import harness

GOOD = """
func.func @rms_norm(%x: tensor<?x64xf32>, %w: tensor<64xf32>) -> tensor<?x64xf32> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
"""
LOCATION = r"\S+\.mlir:\d+:\d+: error: "


def one_diagnostic(run, pattern):
    assert run.returncode == 1, f"exit status {run.returncode}\n{run.stdout}\n{run.stderr}"
    errors = [line for line in run.stderr.splitlines() if re.search(r"\berror:", line)]
    assert len(errors) == 1, run.stderr
    assert re.search(pattern, errors[0]), errors[0]


def function(body, arguments="%x: tensor<?x64xf32>, %w: tensor<64xf32>", result="tensor<?x64xf32>"):
    return f"func.func @f({arguments}) -> {result} {{\n{body}\nreturn %0 : {result}\n}}\n"


SOURCES = {
    "not MLIR": ("this is not MLIR", LOCATION),
    "unknown op": (function("%0 = greta.rms_nrm %x : tensor<?x64xf32> -> tensor<?x64xf32>"), LOCATION + ".*rms_nrm"),
    "weight of another length": (
        function("%0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x64xf32>, tensor<32xf32> -> tensor<?x64xf32>", "%x: tensor<?x64xf32>, %w: tensor<32xf32>"),
        LOCATION + ".*(32.*64|64.*32)",
    ),
    "no eps": (function("%0 = greta.rms_norm %x, %w : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>"), LOCATION + ".*eps"),
    "result of another type": (
        function("%0 = greta.softmax %x : tensor<?x64xf32> -> tensor<?x64xf16>", result="tensor<?x64xf16>"),
        LOCATION,
    ),
    "rope with an odd width": (
        function(
            '%0 = greta.rope %x, %c, %s {style = "neox"} : tensor<?x2x7xf32>, tensor<?x3xf32>, tensor<?x3xf32> -> tensor<?x2x7xf32>',
            "%x: tensor<?x2x7xf32>, %c: tensor<?x3xf32>, %s: tensor<?x3xf32>",
            "tensor<?x2x7xf32>",
        ),
        LOCATION + ".*(7|even)",
    ),
    "rope of an unknown style": (
        function(
            '%0 = greta.rope %x, %c, %s {style = "llama"} : tensor<?x2x8xf32>, tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x2x8xf32>',
            "%x: tensor<?x2x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>",
            "tensor<?x2x8xf32>",
        ),
        LOCATION + ".*(neox|style)",
    ),
    "matmul whose inner dims differ": (
        function(
            "%0 = greta.matmul %x, %b : tensor<?x64xf32>, tensor<32x16xf32> -> tensor<?x16xf32>",
            "%x: tensor<?x64xf32>, %b: tensor<32x16xf32>",
            "tensor<?x16xf32>",
        ),
        LOCATION + ".*(64.*32|32.*64)",
    ),
    "slice at a dynamic offset": (
        function(
            "%i = arith.constant 0 : index\n%n = tensor.dim %x, %i : tensor<?x64xf32>\n%s = tensor.extract_slice %x[0, %n] [%n, 32] [1, 1] : tensor<?x64xf32> to tensor<?x32xf32>\n"
            "%0 = greta.softmax %s : tensor<?x32xf32> -> tensor<?x32xf32>",
            "%x: tensor<?x64xf32>",
            "tensor<?x32xf32>",
        ),
        LOCATION + ".*constant offset",
    ),
    "slice of dynamic columns": (
        function("%0 = tensor.extract_slice %x[0, 0] [4, 32] [1, 1] : tensor<4x?xf32> to tensor<4x32xf32>", "%x: tensor<4x?xf32>", "tensor<4x32xf32>"),
        LOCATION + ".*dimension 1, whose extent is dynamic",
    ),
    "unsupported element type": (
        function("%0 = greta.softmax %x : tensor<?x64xf64> -> tensor<?x64xf64>", "%x: tensor<?x64xf64>", "tensor<?x64xf64>"),
        LOCATION + ".*f64|" + LOCATION + ".*(f32|float)",
    ),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("mode", ("package", "spirv", "hsaco"))
def test_bad_source(tmp_path, name, mode):
    source, pattern = SOURCES[name]
    (tmp_path / "bad.mlir").write_text(source)
    flags = {"package": ["--targets=gfx942,vulkan,host"], "spirv": ["--target=vulkan:portable"], "hsaco": ["--target=gfx1100"]}[mode]
    run = harness.tool(harness.TRANSLATE, f"--greta-to-{mode}", *flags, "bad.mlir", "-o", "out", cwd=tmp_path)
    one_diagnostic(run, pattern)
    assert [p.name for p in tmp_path.iterdir()] == ["bad.mlir"]


# An element type that a target lacks: the verifier takes it, code generation for the target cannot.
UNSUPPORTED = function("%0 = arith.addf %x, %x : tensor<?x64xf64>", "%x: tensor<?x64xf64>", "tensor<?x64xf64>")

COMMANDS = {
    "unknown target": (GOOD, ["--greta-to-package", "--targets=gfx942,gfx999"], r"error: .*gfx999"),
    "no target": (GOOD, ["--greta-to-package", "--targets="], r"error: .*target"),
    "unsupported dtype on a GPU": (UNSUPPORTED, ["--greta-to-package", "--targets=vulkan"], r"error: .*f64"),
    "unsupported dtype on a chip": (UNSUPPORTED, ["--greta-to-hsaco", "--target=gfx942"], r"error: .*f64"),
    "nothing to compile": ("", ["--greta-to-package", "--targets=vulkan"], r"error: .*function"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_bad_command(tmp_path, name):
    source, flags, pattern = COMMANDS[name]
    (tmp_path / "in.mlir").write_text(source)
    one_diagnostic(harness.tool(harness.TRANSLATE, *flags, "in.mlir", "-o", "out", cwd=tmp_path), pattern)
    assert [p.name for p in tmp_path.iterdir()] == ["in.mlir"]


@pytest.mark.parametrize(("target", "adds", "limit"), (("vulkan:lavapipe", 75, 49152), ("gfx942", 100, 65536)))
def test_too_many_instructions(tmp_path, target, adds, limit):
    """A lane has 704 registers of the block, less than the limit, so each addition is as many instructions; half of them are allowed."""
    wave = 8 if target == "vulkan:lavapipe" else 64
    block = f"tensor<{704 * 4 * wave}xf32>"

    def text(count):
        sums = "\n".join(f"  %{i + 1} = arith.addf %{i}, %{i} : {block}" for i in range(count))
        return f"""greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {{wave_size = {wave} : i32, waves = 4 : i32}} {{
  %c0 = arith.constant 0 : i32
  %0 = greta_tile.load %x[%c0] strides [1] bounds [] : !greta_tile.ptr<f32> -> {block}
{sums}
  greta_tile.store %{count}, %y[%c0] strides [1] bounds [] : {block} -> !greta_tile.ptr<f32>
  greta_tile.return
}}
"""

    (tmp_path / "large.mlir").write_text(text(adds))
    (tmp_path / "half.mlir").write_text(text(adds // 2))
    passes = f"--greta-tile-assign-layouts --greta-tile-distribute=target={target}".split()
    run = harness.tool(harness.TRANSLATE.with_name("greta-opt"), *passes, tmp_path / "large.mlir")
    message = rf"out of resources: instructions a lane, \d+ of them here, Required: \d+, limit of {target}: {limit}; blocks of 1/2 of the elements would fit, or num_warps = 8"
    one_diagnostic(run, message)
    run = harness.tool(harness.TRANSLATE.with_name("greta-opt"), *passes, tmp_path / "half.mlir")
    assert run.returncode == 0, run.stderr


def test_no_such_source(tmp_path):
    one_diagnostic(harness.tool(harness.TRANSLATE, "--greta-to-package", "--targets=vulkan", "none.mlir", "-o", "out", cwd=tmp_path), "none.mlir")
    assert not list(tmp_path.iterdir())


def test_output_cannot_be_written(tmp_path):
    (tmp_path / "in.mlir").write_text(GOOD)
    run = harness.tool(harness.TRANSLATE, "--greta-to-package", "--targets=vulkan", "in.mlir", "-o", "no/such/folder.greta", cwd=tmp_path)
    one_diagnostic(run, "no/such/folder")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return harness.compile_package(tmp_path_factory.mktemp("errors"), "good", GOOD, "gfx942,vulkan,host")


def rewrite(package, change):
    """The archive again, with `change(name, bytes)` applied to every member."""
    with zipfile.ZipFile(package) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(package, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(name, change(name, data))


def edit_manifest(edit):
    def change(name, data):
        if name != "manifest.json":
            return data
        value = json.loads(data)
        edit(value)
        return json.dumps(value)

    return lambda package: rewrite(package, change)


def flip_object_bit(package):
    rewrite(package, lambda name, data: data if name == "manifest.json" else data[:-1] + bytes([data[-1] ^ 1]))


def truncate(package):
    data = package.read_bytes()
    package.write_bytes(data[: len(data) * 2 // 3])


def outside_objects(value):
    value["functions"][0]["variants"][0]["kernels"][0]["file"] = "../../etc/passwd"


BAD_PACKAGES = {
    "truncated": (truncate, ""),
    "empty": (lambda package: package.write_bytes(b""), ""),
    "not a ZIP": (lambda package: package.write_bytes(b"hello" * 100), ""),
    "an object changed": (flip_object_bit, "sha|hash|SHA"),
    "of a later schema": (edit_manifest(lambda value: value.update(schema=99)), "schema.*99|99.*schema"),
    "with a manifest that is no JSON": (lambda package: rewrite(package, lambda name, data: data[:50] if name == "manifest.json" else data), "manifest"),
    "with a path outside": (edit_manifest(outside_objects), "objects|path"),
    "without functions": (edit_manifest(lambda value: value.pop("functions")), "functions"),
}


@pytest.mark.parametrize("name", BAD_PACKAGES)
def test_bad_package(tmp_path, package, name):
    damage, pattern = BAD_PACKAGES[name]
    damaged = tmp_path / "damaged.greta"
    shutil.copy(package, damaged)
    damage(damaged)
    for flags in (["--inspect"], ["--device=host", "--function=rms_norm", "--input=3x64xf32:random:1", "--input=64xf32:random:2", "--output=y.npy"]):
        one_diagnostic(harness.tool(harness.RUN, damaged, *flags, cwd=tmp_path), f"error: .*({pattern})")
    assert [p.name for p in tmp_path.iterdir()] == ["damaged.greta"]


INPUTS = ["--input=3x64xf32:random:1", "--input=64xf32:random:2"]
BAD_RUNS = {
    "unknown function": (["--device=host", "--function=softmax", *INPUTS], "softmax"),
    "unknown device": (["--device=cuda", "--function=rms_norm", *INPUTS], "cuda"),
    "unknown chip": (["--device=sim:gfx999", "--function=rms_norm", *INPUTS], "gfx999"),
    "no code for the device": (["--device=sim:gfx1201", "--function=rms_norm", *INPUTS], "gfx1201"),
    "no such GPU": (["--device=vulkan:77", "--function=rms_norm", *INPUTS], "77"),
    "unknown variant": (["--device=host", "--function=rms_norm", "--variant=nope", *INPUTS], "nope"),
    "variant of another device": (["--device=vulkan", "--function=rms_norm", "--variant=gfx942", *INPUTS], "gfx942"),
    "too few inputs": (["--device=host", "--function=rms_norm", INPUTS[0]], "1.*2|2.*1"),
    "shape of an input": (["--device=host", "--function=rms_norm", "--input=3x65xf32:random:1", INPUTS[1]], "65"),
    "rank of an input": (["--device=host", "--function=rms_norm", "--input=3x1x64xf32:random:1", INPUTS[1]], "rank|3x1x64|dim"),
    "element type of an input": (["--device=host", "--function=rms_norm", "--input=3x64xf16:random:1", INPUTS[1]], "f16"),
    "shape of a file": (["--device=host", "--function=rms_norm", "--input=wide.npy", INPUTS[1]], "65"),
    "element type of a file": (["--device=host", "--function=rms_norm", "--input=half.npy", INPUTS[1]], "f16|float16"),
    "no such file": (["--device=host", "--function=rms_norm", "--input=none.npy", INPUTS[1]], "none.npy"),
    "a file that is no array": (["--device=host", "--function=rms_norm", "--input=text.npy", INPUTS[1]], "text.npy"),
    "a file cut off": (["--device=host", "--function=rms_norm", "--input=cut.npy", INPUTS[1]], "cut.npy"),
    "malformed input": (["--device=host", "--function=rms_norm", "--input=3x64xf33:random:1", INPUTS[1]], "f33"),
    "more memory than there is": (["--device=vulkan", "--function=rms_norm", "--input=400000000000x64xf32:random:1", INPUTS[1]], "memory|large|bytes|overflow"),
}


@pytest.mark.parametrize("name", BAD_RUNS)
def test_bad_run(tmp_path, package, name):
    files = {"wide.npy": np.zeros((3, 65), np.float32), "half.npy": np.zeros((3, 64), np.float16), "cut.npy": np.zeros((3, 64), np.float32)}
    for file, array in files.items():
        np.save(tmp_path / file, array)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "cut.npy").read_bytes()[:200])
    (tmp_path / "text.npy").write_text("hello")
    before = sorted(p.name for p in tmp_path.iterdir())
    flags, pattern = BAD_RUNS[name]
    one_diagnostic(harness.tool(harness.RUN, package, *flags, "--output=y.npy", cwd=tmp_path), f"error: .*({pattern})")
    assert sorted(p.name for p in tmp_path.iterdir()) == before


UNITS = """func.func @double(%x: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {{greta.least_compute_units = {least} : i32}} {{
  %0 = arith.addf %x, %x : tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}}"""


@pytest.mark.parametrize("least", [304, 305])
def test_too_few_compute_units(tmp_path, least):
    """An MI300X has 304, lavapipe does not say, and the host has no such limit."""
    package = harness.compile_package(tmp_path, "units", UNITS.format(least=least), "gfx942,vulkan:portable,host")
    assert [v["requires"].get("compute_units") for v in harness.manifest(package)["functions"][0]["variants"]] == [least, least, None]
    words = (harness.RUN, package, "--input=4x64xf32:random:1")
    run = harness.tool(*words, "--device=sim:gfx942", "--json")
    if least == 304:
        assert run.returncode == 0, run.stderr
    else:
        one_diagnostic(run, "error: .*gfx942: 305 compute units are needed, the device has 304")
    one_diagnostic(harness.tool(*words, "--device=vulkan"), f"error: .*{least} compute units are needed, the device does not say how many it has")
    assert harness.tool(*words, "--device=host").returncode == 0


def test_missing_device_feature(tmp_path, package):
    """A variant for subgroups of 64 names what lavapipe (subgroups of 8) lacks."""
    ids = [v["id"] for v in harness.function_of(package, "rms_norm")["variants"] if v["requires"].get("subgroup_size") == 64]
    assert ids
    run = harness.tool(harness.RUN, package, "--device=vulkan", "--function=rms_norm", f"--variant={ids[0]}", *INPUTS, "--output=y.npy", cwd=tmp_path)
    one_diagnostic(run, "error: .*subgroup")
    assert not list(tmp_path.iterdir())
