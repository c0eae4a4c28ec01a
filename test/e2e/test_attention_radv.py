"""What RADV makes of attention on RDNA3's matrix unit, by its null device: no spills."""

import json
import re
import zipfile

import pytest

import harness
from attention_ops import Attention, Decode, Paged

CASES = [Attention(kind, "f16", 1, 8, 2, 1, 1, size) for kind in ("causal", "window", "causali8pertoken") for size in (64, 128)]
CASES += [Attention("softcap", "f16", 1, 8, 2, 1, 1, 128), Paged("plain", "f16", 4, 8, 2, 5, 70, 128)]
CASES += [Decode("causallengths", "f16", 4, 8, 2, 1, 70, size) for size in (64, 128)]


def without_layouts(package, path):
    """The variants that ask for layouts alone, without asking: a null device runs no probe that could tell them."""
    with zipfile.ZipFile(package) as archive, zipfile.ZipFile(path, "w") as copy:
        for name in archive.namelist():
            data = archive.read(name)
            if name == "manifest.json":
                manifest = json.loads(data)
                for function in manifest["functions"]:
                    function["variants"] = [variant for variant in function["variants"] if variant["requires"].pop("layouts", None)]
                data = json.dumps(manifest)
            copy.writestr(name, data)
    return path


def test_rdna3_spills_nothing(tmp_path, driver_parts):
    """With the layouts that are to be expected there."""
    if "radv" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no RADV here")
    package = without_layouts(harness.compile_package(tmp_path, "attention", "\n".join(case.mlir() for case in CASES), "vulkan:rdna3"), tmp_path / "expected.greta")
    command = [harness.DRIVERS, "radv", "navi31", "env", f"XDG_CACHE_HOME={tmp_path}", "RADV_DEBUG=nocache", harness.RUN, package, "--inspect", "--device=vulkan"]
    ran = harness.tool(*command)
    assert ran.returncode == 0, ran.stderr[-2000:]
    spilled = dict(re.findall(r"driver, (\w+)_0: .*Scratch size (\d+, Spilled SGPRs \d+, Spilled VGPRs \d+)", ran.stdout))
    assert spilled == {case.function: "0, Spilled SGPRs 0, Spilled VGPRs 0" for case in CASES}
