"""greta.compile: Triton's kernels as packages, ahead of time."""

import subprocess
import time

import numpy as np
import pytest

import greta
from conftest import BUILD

pytest.importorskip("triton")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402


@triton.jit
def axpy(x, y, a, n, BLOCK: tl.constexpr, KIND: tl.constexpr = "add"):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n).to(tl.float32) * a
    v = v + tl.load(y + i, mask=i < n) if KIND == "add" else v - tl.load(y + i, mask=i < n)
    tl.store(y + i, v.to(y.dtype.element_ty), mask=i < n)


SIGNATURE = "*fp16:16, *fp16:16, fp32, i32, 128"


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


@pytest.fixture(scope="module")
def package():
    return greta.compile(axpy, SIGNATURE, targets=["gfx942", "gfx1100", "vulkan"], grid=grid, num_warps=2)


@pytest.mark.parametrize("device", ["vulkan", "sim:gfx942", "sim:gfx1100"])
def test_saved_and_loaded(package, tmp_path, device):
    package.save(tmp_path / "axpy.greta")
    greta.set_device(device)
    x, y = np.arange(300, dtype=np.float16), np.ones(300, np.float16)
    result = greta.load(tmp_path / "axpy.greta").axpy(x, y, 0.5, 300)
    assert (result.numpy() == 0.5 * x + 1).all() and (y == 1).all()
    there = greta.asarray(y)  # in place, as the kernel says
    assert package.axpy(x, there, 0.5, 300) is there and (there.numpy() == 0.5 * x + 1).all()


def test_runs_with_the_tools(package, tmp_path):
    package.save(tmp_path / "axpy.greta")
    np.save(tmp_path / "x.npy", np.arange(300, dtype=np.float16))
    command = [BUILD / "bin" / "greta-run", "axpy.greta", "--device=vulkan", "--input=x.npy", "--input=x.npy", "--input=f32:2", "--input=i32:300", "--output=y.npy"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert (np.load(tmp_path / "y.npy") == 3 * np.arange(300)).all()


def test_assembly(package):
    asm = package.asm
    assert "tt.func public @axpy" in asm["ttir"] and "greta_tile.func @axpy_0" in asm["tile"] and "waves = 2" in asm["tile"]
    assert "amdgpu_kernel" in asm["llvmir"] and "s_endpgm" in asm["amdgcn"] and "gfx942" in asm["amdgcn"]
    assert "gfx1100" in asm["amdgcn", "gfx1100"]
    assert asm["hsaco"][:4] == b"\x7fELF" and asm["spirv"][:4] == b"\x03\x02\x23\x07"
    assert set(asm) == {"ttir", "tile", "llvmir", "amdgcn", "hsaco", "spirv"}
    for missing in ("ptx", ("amdgcn", "gfx90a"), ("spirv", "gfx942")):
        with pytest.raises(KeyError):
            asm[missing]


def test_stages_of_a_launch(package):
    asked = greta.compile(axpy, SIGNATURE, targets="gfx942", grid=grid, num_stages=3)
    assert "greta_tile.stages = 3" in asked.asm["tile"] and "greta_tile.stages" not in package.asm["tile"]


def test_report(package):
    report = package.report()
    assert "axpy(x: d0xf16, y: d1xf16, a: f32, n: i32)" in report and "gfx1100: hip" in report and "vgprs" in report


def test_grids(package):
    assert package.manifest["functions"][0]["variants"][0]["kernels"][0]["grid"] == [["floordiv", ["+", "d2", 127], 128], 1, 1]
    words = greta.compile(axpy, SIGNATURE, "gfx942", grid="n ceildiv 128, 2")
    assert words.manifest["functions"][0]["variants"][0]["kernels"][0]["grid"] == [["ceildiv", "d2", 128], 2, 1]
    numbers = greta.compile(axpy, SIGNATURE, "gfx942", grid=(4, 2))
    assert numbers.manifest["functions"][0]["variants"][0]["kernels"][0]["grid"] == [4, 2, 1]
    later = greta.compile(axpy, SIGNATURE, "gfx942")
    assert [one["name"] for one in later.manifest["functions"][0]["args"]] == ["x", "y", "a", "n", "grid_x", "grid_y", "grid_z"]
    with pytest.raises(greta.Error, match="a grid is affine over the kernel's integers"):
        greta.compile(axpy, SIGNATURE, "gfx942", grid=lambda m: (m["n"] if m["n"] > 3 else 1,))


def test_specialisations():
    """Of one kernel, side by side in one package."""
    signatures = {"axpy_f16": SIGNATURE, "axpy_f32": {"x": "*fp32:16", "y": "*fp32:16", "a": "fp32", "n": "i32", "BLOCK": "64", "KIND": "subtract"}}
    package = greta.compile(axpy, signatures, ["gfx942", "vulkan"], grid=grid)
    grids = [one["variants"][0]["kernels"][0]["grid"] for one in package.manifest["functions"]]
    assert grids == [[["floordiv", ["+", "d2", 127], 128], 1, 1], [["floordiv", ["+", "d2", 63], 64], 1, 1]]
    assert "@axpy_f32" in package.asm["axpy_f32"]["ttir"] and "axpy_f16" in package.asm["axpy_f16"]["amdgcn", "gfx942"]
    greta.set_device("sim:gfx942")
    for function, type_, expected in (("axpy_f16", "f16", 3), ("axpy_f32", "f32", 1)):
        x, y = greta.asarray(np.full(100, 2.0), type_), greta.asarray(np.ones(100), type_)
        assert (getattr(package, function)(x, y, 1.0, 100).numpy() == expected).all()
    with pytest.raises(greta.Error, match="'axpy-f16' is no name of a function"):
        greta.compile(axpy, {"axpy-f16": SIGNATURE}, "gfx942")


@triton.jit
def product(a, b, c, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    at = i[:, None] * SIZE + i[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@pytest.mark.parametrize("target, limit", [("gfx942", "1024, limit of gfx942: 768; blocks of 1/2 of the elements would fit, or num_warps = 8"), ("vulkan", "1024, limit of vulkan:[a-z]+: 768; blocks of 1/2 of the elements would fit")])
def test_blocks_far_too_large(target, limit):
    """Whose compilation took minutes, or all memory: an error at once that says what would fit."""
    begin = time.process_time()
    with pytest.raises(greta.Error, match=f"out of resources: registers a lane for one block, Required: {limit}"):
        greta.compile(product, "*fp16:16, *fp16:16, *fp32:16, 512", target, grid=(1,))
    assert time.process_time() - begin < 10


@triton.jit
def repeated(x, z):
    i = tl.arange(0, 32)
    block = tl.load(x + i[:, None] * 32 + i[None, :])
    tl.store(z + i[:, None, None] * 1024 + i[None, :, None] * 32 + i[None, None, :], block[None, :, :])


@pytest.mark.parametrize("device", ("vulkan", "sim:gfx942", "sim:gfx1100"))
def test_large_blocks_in_one_wave(device):
    """1,024 registers in each of 32 lanes are 128 in each of 256 (Triton's test_index1d)."""
    greta.set_device(device)
    x = np.arange(1024, dtype=np.int32)
    package = greta.compile(repeated, "*i32, *i32", device.removeprefix("sim:"), grid=(1,), num_warps=1)
    got = package.repeated(x, np.zeros(32 * 1024, np.int32)).numpy()
    assert (got.reshape(32, 1024) == x).all()


def test_signatures():
    greta.set_device("vulkan")
    x = np.arange(40, dtype=np.float32)
    by_name = greta.compile(axpy, {"x": "*fp32", "y": "*fp32", "a": "fp32", "n": "i32:16", "BLOCK": 64, "KIND": "sub"}, "vulkan", grid=grid)
    assert (by_name.axpy(x, x, 3.0, 40).numpy() == 2 * x).all()
    one = greta.compile(axpy, "*fp32, *fp32, fp32, i32:1, 64", "vulkan", grid=(1,))
    assert (one.axpy(x, x, 3.0).numpy()[:2] == [0, 1]).all() and [a["name"] for a in one.manifest["functions"][0]["args"]] == ["x", "y", "a"]


@pytest.mark.parametrize(
    "signature,message",
    [
        ("*fp16, *fp16, fp32", "has nothing for its parameter 'n'"),
        ("*fp16, *fp16, fp32, i32, 128, add, 1, 2", "has 6 parameters .* the signature has 8"),
        ("*fp16, *fp16, fp32, i32, i32", "parameter 'BLOCK' of kernel 'axpy' is a constexpr"),
        ("*fp17, *fp16, fp32, i32, 128", r"'\*fp17' of parameter 'x' is neither a type nor a value"),
        ("*fp16:8, *fp16, fp32, i32, 128", "a hint is 16"),
    ],
)
def test_wrong_signatures(signature, message):
    with pytest.raises(greta.Error, match=message):
        greta.compile(axpy, signature, "gfx942")


@triton.jit
def windows(x, y, out, stride, n, rows, BLOCK: tl.constexpr):
    """Offsets whose parts are negative, with a mask and without, alone and in a loop; rows that begin again."""
    i = tl.arange(0, BLOCK)
    total = tl.load(x + (n - 1) - i) + tl.load(x - 3 + i, mask=i >= 3, other=7.0)
    moved = x + stride
    for k in range(rows):
        total += tl.load(moved - stride + k * stride + (BLOCK - 1 - i))
        total += tl.load(y + ((i + 5) % rows)[:, None] * stride - 2 + tl.arange(0, 4)[None, :], mask=(tl.arange(0, 4) >= 2)[None, :]).sum(1)
        moved += 0
    tl.store(out + i, total)


@pytest.mark.parametrize("pointer_range", [32, 64])
@pytest.mark.parametrize("device", ["vulkan", "sim:gfx90a", "sim:gfx942", "sim:gfx1100", "sim:gfx1201"])
def test_pointer_range(device, pointer_range):
    block, rows, stride = 64, 5, 100
    kernel = greta.compile(windows, f"*fp32, *fp32, *fp32, i32, i32, i32, {block}", targets="vulkan" if device == "vulkan" else device[4:], grid=(1,), pointer_range=pointer_range)
    assert ("offen" in kernel.asm["amdgcn"] if device != "vulkan" else True) or pointer_range == 64
    greta.set_device(device)
    x, y = (np.random.default_rng(seed).integers(-8, 8, rows * stride).astype(np.float32) for seed in (0, 1))
    i, n = np.arange(block), rows * stride
    want = x[n - 1 - i] + np.where(i >= 3, x[i - 3], 7)
    for k in range(rows):
        row = (i + 5) % rows * stride
        want += x[k * stride + block - 1 - i] + y[row] + y[row + 1]
    got = kernel.windows(x, y, np.zeros(block, np.float32), np.int32(stride), np.int32(n), np.int32(rows))
    np.testing.assert_array_equal(greta.to_numpy(got), want)


def test_wrong_pointer_range():
    with pytest.raises(greta.Error, match="pointer_range is 16; it is 64, or 32 where"):
        greta.compile(axpy, SIGNATURE, targets="gfx942", pointer_range=16)


def test_wrong_targets_options_and_kernels():
    with pytest.raises(greta.Error, match="gfx1"):
        greta.compile(axpy, SIGNATURE, "gfx1")
    for none in [], "":
        with pytest.raises(greta.Error, match="no target is given; targets are gfx90a, "):
            greta.compile(axpy, SIGNATURE, targets=none)
    with pytest.raises(greta.Error, match="no launch has the option warps"):
        greta.compile(axpy, SIGNATURE, "gfx942", warps=3)
    with pytest.raises(greta.Error, match="is no kernel; decorate it with @triton.jit"):
        greta.compile(grid, SIGNATURE, "gfx942")
    with pytest.raises(greta.Error, match="host"):
        greta.compile(axpy, SIGNATURE, "host")


def test_needs_neither_torch_nor_a_device():
    program = """
import sys
sys.modules["torch"] = None
import greta, test_triton_compile as t
from greta import _runtime
_runtime.Device.open = None
print(len(greta.compile(t.axpy, t.SIGNATURE, "gfx90a,vulkan:portable", grid=t.grid).data) > 1000)
"""
    import os
    import pathlib
    import sys

    here = pathlib.Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(here), str(here.parent)])}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert ran.stdout == "True\n", ran.stderr
