"""A sample of what scripts/triton-libraries runs, of those libraries that are installed beside the tests."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"
SAMPLE = {"liger-kernel": ("liger_kernel", "^(rms_norm|swiglu|cross_entropy)$"), "flag-gems": ("flag_gems", "^(abs|softmax|sum_dim|sort|index_select)$"), "fla-core": ("fla", "^fused_recurrent_hgrn$"), "mamba-ssm": ("mamba_ssm", "^(chunk_products|selective_state_update)$"), "torchao": ("torchao", "^mixed_mm$")}
INSTALLED = {library: only for library, (package, only) in SAMPLE.items() if importlib.util.find_spec(package)}

if INSTALLED:

    @pytest.mark.parametrize("device", ["vulkan", "sim:gfx942", "sim:gfx1100"])
    @pytest.mark.parametrize("library", INSTALLED)
    def test_sample(library, device, driver_parts):
        if device == "vulkan" and "lavapipe" not in driver_parts:
            pytest.skip("vulkan-drivers has no lavapipe")
        # A process of its own: it makes torch's device `cuda` the CPU for good.
        driver = [SCRIPTS / "vulkan-drivers", "lavapipe"] if device == "vulkan" else []
        command = [*driver, sys.executable, SCRIPTS / "lib" / "triton_libraries.py", f"--device={device}", f"--library={library}", f"--only={INSTALLED[library]}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
