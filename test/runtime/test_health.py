"""What the runtime makes of a device that computes wrong: its check's package, with kernels whose arguments are swapped, beside a copy of the library."""

import json
import os
import shutil
import subprocess
import zipfile

import pytest
from conftest import BUILD

RUN = BUILD / "bin" / "greta-run"
HEALTH = BUILD / "lib" / "greta_health.greta"


def change(source, target, wrong):
    """Copies a package; in what wrong(function, variant) names the second operand becomes the first."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename == "manifest.json":
                manifest = json.loads(data)
                for function in manifest["functions"]:
                    for variant in function["variants"]:
                        if wrong(function["name"], variant["id"]):
                            for argument in variant["kernels"][0]["args"]:
                                if argument["kind"] == "arg":
                                    argument["index"] = 0
                data = json.dumps(manifest)
            new.writestr(item.filename, data)


class Device:
    """greta-run with a library, a check and a cache of its own."""

    def __init__(self, folder, wrong):
        self.folder = folder
        shutil.copy(BUILD / "lib" / "libgreta_runtime.so", folder / "libgreta_runtime.so.0")
        change(HEALTH, folder / "greta_health.greta", wrong)

    def run(self, *arguments, status=0, **environment):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self.folder), "XDG_CACHE_HOME": str(self.folder), "GRETA_VULKAN_VALIDATE": "0", **environment}
        command = [str(RUN), *(str(a) for a in arguments), "--device=vulkan"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
        assert result.returncode == status, result.stdout + result.stderr
        return result

    def variant(self, function="muladd_f32", **environment):
        """What is taken of the check's own functions, and what was said."""
        inputs = [f"--input=3x64x{function[-3:]}:zeros"] * 2
        result = self.run(HEALTH, f"--function={function}", *inputs, "--json", **environment)
        return json.loads(result.stdout)["variant"], result.stderr


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    return Device(tmp_path_factory.mktemp("healthy"), lambda function, variant: False)


def test_a_healthy_device_is_believed(healthy):
    assert healthy.variant() == ("vulkan-lavapipe", "")
    assert "10 of 10 runs clean" in healthy.run("--smoke").stdout


def test_denied_by_hand(healthy):
    assert healthy.variant(GRETA_HEALTH="nothing,subgroups") == ("vulkan-portable", "")
    error = healthy.run(HEALTH, "--function=muladd_f32", "--input=3x64xf32:zeros", "--input=3x64xf32:zeros", GRETA_HEALTH="device", status=1).stderr
    assert "the device is used without anything: GRETA_HEALTH names it" in error


def test_profiles(healthy):
    assert healthy.variant(GRETA_PROFILE="ultrasafe") == ("vulkan-portable", "")
    assert healthy.variant(GRETA_PROFILE="default") == healthy.variant(GRETA_PROFILE="fast") == ("vulkan-lavapipe", "")
    error = healthy.run(HEALTH, "--function=muladd_f32", "--input=3x64xf32:zeros", "--input=3x64xf32:zeros", GRETA_PROFILE="safe", status=1).stderr
    assert "GRETA_PROFILE=safe: one of ultrasafe, default, fast" in error


def test_wrong_subgroups(tmp_path):
    device = Device(tmp_path, lambda function, variant: function == "muladd_f32" and variant == "vulkan-lavapipe")
    variant, said = device.variant()
    assert variant == "vulkan-portable"
    assert said.count("\n") == 1 and "computes wrong and is used without subgroups: muladd_f32 (vulkan-lavapipe): element" in said
    assert device.variant() == ("vulkan-portable", "")  # said once
    assert device.variant(GRETA_HEALTH="off") == ("vulkan-lavapipe", "")
    smoke = device.run("--smoke=2", status=1)
    assert "0 of 2 runs clean" in smoke.stdout and "run 2: subgroups: muladd_f32" in smoke.stderr


def test_wrong_type(tmp_path):
    """f16 is wrong without subgroups, too; f32 stays as it is."""
    device = Device(tmp_path, lambda function, variant: "f16" in function.split("_") and function[:6] != "matmul")
    variant, said = device.variant()
    assert variant == "vulkan-lavapipe" and "is used without f16: muladd_f16 (vulkan-portable): element" in said
    error = device.run(HEALTH, "--function=muladd_f16", "--input=3x64xf16:zeros", "--input=3x64xf16:zeros", status=1).stderr
    assert "the device is used without f16: " in error and "(vulkan-portable): element" in error


def test_everything_wrong(tmp_path):
    device = Device(tmp_path, lambda function, variant: True)
    error = device.run(HEALTH, "--function=muladd_i32", "--input=3x64xi32:zeros", "--input=3x64xi32:zeros", status=1).stderr
    assert "computes wrong and is used without anything: " in error and "the device is used without anything: muladd_" in error
