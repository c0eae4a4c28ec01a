"""python/tutorials: each kernel's check against torch, with Triton unchanged and GRETA behind it; and the one in C."""

import importlib
import os
import re
import subprocess
import sys

import pytest

import greta
from conftest import BUILD, ROOT
from harness import tool

pytest.importorskip("torch")
pytest.importorskip("triton")

FOLDER = ROOT / "python" / "tutorials"
DEVICES = ("vulkan", "sim:gfx942", "sim:gfx1100")
KERNELS = ("vector_add", "softmax", "matmul", "dropout", "layer_norm", "attention", "grouped_matmul", "block_scaled_matmul", "persistent_matmul")
CASES = [(name, device) for name in KERNELS for device in DEVICES]
pytestmark = pytest.mark.xdist_group("tutorials")


@pytest.fixture
def tutorials(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setenv("GRETA_TRITON", "1")
    yield importlib.import_module
    greta.triton.deactivate()


@pytest.mark.parametrize("name,device", CASES)
def test_check(tutorials, name, device):
    greta.triton.activate(device)
    tutorials(name).check()


def test_every_tutorial_is_tested():
    assert {path.stem for path in FOLDER.glob("*.py")} == {*KERNELS, "common", "packages_in_c"}


def test_plot(tutorials, tmp_path):
    tutorial = tutorials("vector_add")
    greta.triton.activate("vulkan")
    tutorial.benchmark.benchmarks.x_vals = [4096]
    tutorial.benchmark.run(save_path=str(tmp_path))
    assert (tmp_path / "vector_add.csv").read_text().startswith("n,kernel") and (tmp_path / "vector_add.png").exists()


@pytest.mark.parametrize("device", DEVICES)
def test_package_in_c(tutorials, tmp_path, device):
    prefix = tmp_path / "prefix"
    (prefix / "bin").mkdir(parents=True)
    for name, target in (("lib", BUILD / "lib"), ("include", ROOT / "runtime" / "include"), ("bin/greta-translate", BUILD / "bin" / "greta-translate")):
        (prefix / name).symlink_to(target)
    program = tutorials("packages_in_c").build(prefix, tmp_path)
    ran = subprocess.run([program, device], capture_output=True, text=True, env=os.environ)
    assert ran.stdout == "0 of 1000 results are not 2 * x + 1\n", ran.stderr


def test_first_kernel(tmp_path):
    """docs/guide/first-kernel.md, as a reader goes through it: the program, the mistake that is found, the package that greta-run runs."""
    page = (ROOT / "docs" / "guide" / "first-kernel.md").read_text()
    program, ahead = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "add.py").write_text(program + ahead)
    ran = tool(sys.executable, "add.py", cwd=tmp_path)
    assert ran.stdout == "[1. 2. 3.] 1000.0\n", ran.stderr
    (command,) = re.findall(r"^build/bin/greta-run (.*)$", page, re.MULTILINE)
    ran = tool(BUILD / "bin" / "greta-run", *command.split(), cwd=tmp_path)
    assert ran.returncode == 0 and "add on " in ran.stdout and (tmp_path / "sum.npy").exists(), ran.stderr
    (tmp_path / "add.py").write_text(program.replace("a + b, mask=i < n", "a + b, mask=i <= n"))
    ran = tool(sys.executable, "add.py", cwd=tmp_path, env={**os.environ, "GRETA_CHECK": "1"})
    (message,) = re.findall(r"add.py:8:5: (out-of-bounds .*); \.\.\.", page)
    assert ran.returncode == 1 and f"add.py:8:5: {message}; " in ran.stderr, ran.stderr
