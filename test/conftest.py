"""What the pytest files share: where the repository and the build are, and which drivers this machine has."""

import gc
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
DRIVERS = ROOT / "scripts" / "vulkan-drivers"

# As under scripts/test, the user's caches are left alone, but for the drivers. greta.torch keeps there what Inductor has compiled, by a key of the compiler and of the
# package's text. Triton keys its cache by a kernel's text, not by its path: an entry of another checkout would name files there.
if "GRETA_CACHE" not in os.environ:
    os.environ["GRETA_CACHE"] = str(pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "greta")
    os.environ["XDG_CACHE_HOME"] = str(BUILD / "test-cache")
os.environ.setdefault("TRITON_CACHE_DIR", str(BUILD / "test-cache" / "triton"))


# lavapipe translates a shader without LLVM's optimiser: in a third less time for large blocks, and no test measures what it makes.
os.environ.setdefault("GALLIVM_PERF", "nopt")
# Products of definitions, NumPy's and torch's, take one thread: others would spin for work on processors that the other cases use.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")


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
def hosts(tmp_path):
    """As three hosts: commands that enter each one's network and name, and the first one's name, which on that host itself is a loopback
    address, as on Debian. The first routes between the others."""
    names = [f"greta{os.getpid()}-{n}" for n in range(3)]
    if not shutil.which("ip"):
        pytest.skip("network namespaces: there is no ip (iproute2)")

    def ip(*words):
        ran = subprocess.run(["ip", *words], capture_output=True, text=True)
        if ran.returncode:
            pytest.skip(f"network namespaces: {ran.stderr.strip()}")
        return ran.stdout

    def wait_for_link(name, device):
        """The kernel finds a carrier a while after both ends are up."""
        end = time.monotonic() + 20
        while "state UP" not in ip("-n", name, "-o", "link", "show", device):
            assert time.monotonic() < end, f"{device} of {name} has no carrier"
            time.sleep(0.02)

    made = []
    try:
        for n, name in enumerate(names):
            ip("netns", "add", name)
            made.append(name)
            ip("-n", name, "link", "set", "lo", "up")
            if n == 0:
                continue
            ip("-n", names[0], "link", "add", f"v{n}", "type", "veth", "peer", "name", "e0", "netns", name)
            ip("-n", names[0], "addr", "add", f"10.77.{n}.1/24", "dev", f"v{n}")
            ip("-n", names[0], "link", "set", f"v{n}", "up")
            ip("-n", name, "addr", "add", f"10.77.{n}.2/24", "dev", "e0")
            ip("-n", name, "link", "set", "e0", "up")
            ip("-n", name, "route", "add", "default", "via", f"10.77.{n}.1")
            wait_for_link(name, "e0")
            wait_for_link(names[0], f"v{n}")
        subprocess.run(["ip", "netns", "exec", names[0], "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"], check=True)
        begin = 'hostname "$0" && mount --bind "$1" /etc/hosts && shift && exec "$@"'  # ip has made a namespace of mounts
        enter = []
        for name in names:
            file = tmp_path / f"hosts-{name}"
            file.write_text(f"127.0.0.1 localhost\n{'127.0.1.1' if name == names[0] else '10.77.1.1'} {names[0]}\n")
            enter.append(["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", begin, name, str(file)])
        yield enter, names[0]
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=False)


@pytest.fixture
def alone():
    """alone(program, VARIABLE=value) runs a program in a Python process of its own, without a variable that is None, and returns what it prints."""

    def run(program, timeout=600, **variables):
        environment = {name: value for name, value in (os.environ | variables).items() if value is not None}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=timeout)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def rdna():
    """torch with the device rdna. No operator runs on the CPU in a test that does not allow it."""
    torch = pytest.importorskip("torch")
    import greta.torch  # noqa: F401

    before = torch.rdna.forbid_fallback(True), torch.rdna.allow_quadratic_attention(False)
    torch.rdna.fallbacks(True)
    yield torch
    torch.rdna.forbid_fallback(before[0])
    torch.rdna.allow_quadratic_attention(before[1])


@pytest.fixture
def recording(rdna):
    """rdna of a torch that records a stream's work."""
    if not hasattr(rdna.accelerator, "Graph"):
        pytest.skip("torch 2.11 has no torch.accelerator.Graph")
    return rdna


@pytest.fixture
def measured(rdna):
    """rdna where no garbage of earlier tests holds memory, which a collection in the test's midst would free."""
    gc.collect()
    return rdna
