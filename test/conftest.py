"""What the pytest files share: where the repository and the build are, and which drivers this machine has."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
DRIVERS = ROOT / "scripts" / "vulkan-drivers"

# Triton and Inductor key their caches by a kernel's text, not by its path: an entry of another checkout would name files there.
for variable, folder in (("TRITON_CACHE_DIR", "triton"), ("TORCHINDUCTOR_CACHE_DIR", "inductor")):
    os.environ.setdefault(variable, str(BUILD / "test-cache" / folder))


# lavapipe translates a shader without LLVM's optimiser: in a third less time for large blocks, and no test measures what it makes.
os.environ.setdefault("GALLIVM_PERF", "nopt")


@pytest.fixture(scope="session")
def driver_parts():
    """The parts of scripts/vulkan-drivers that are set up: lavapipe, radv, ggml."""
    return subprocess.run([DRIVERS, "status"], capture_output=True, text=True, check=True).stdout.split()


@pytest.fixture(params=("vulkan", "sim:gfx942", "sim:gfx1100"))
def triton_device(request):
    """Triton's active driver is this device's for a test."""
    import greta  # installed for tests of the Python package only

    greta.triton.activate(request.param)
    yield request.param
    greta.triton.deactivate()


@pytest.fixture
def rdna():
    """torch with the device rdna. No operator runs on the CPU in a test that does not allow it."""
    torch = pytest.importorskip("torch")
    import greta.torch  # noqa: F401

    before = torch.rdna.set_fallback(False)
    torch.rdna.fallbacks(True)
    yield torch
    torch.rdna.set_fallback(before)
