"""Rows of a block that lie further apart than 32 bits of bytes reach. The tensors have gigabytes, of which few pages are touched."""

import numpy as np
import pytest

import greta
from greta import _compiler

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

# Debian's lavapipe has 2 GiB of memory: there `test_rows_in_reverse` is what takes 64 bits.
FAR = ("sim:gfx942", "sim:gfx1100")
DEVICES = (*FAR, "vulkan")


@triton.jit
def fill(x, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS).to(tl.int64), tl.arange(0, COLUMNS)
    tl.store(x + i[:, None] * stride + j[None, :], (i[:, None] % 61 + j[None, :] % 3).to(tl.float16))


def written(rows, columns):
    return np.arange(rows)[:, None] % 61 + np.arange(columns) % 3


def far_rows(device, rows, columns, stride):
    """A tensor of f16 whose rows begin as `written`."""
    greta.triton.activate(device)
    x = greta.empty((rows, stride), "f16")
    fill[1,](x, stride, rows, columns)
    return x


def compiled(text, device, tmp_path):
    target = {"vulkan": "vulkan:portable"}.get(device, device.split(":")[-1])
    succeeded, data, messages = _compiler.compile([(text, "")], target)
    assert succeeded, messages
    greta.Package(data).save(tmp_path / "k.greta")
    return greta.load(tmp_path / "k.greta")


@pytest.fixture(autouse=True)
def inactive():
    yield
    greta.triton.deactivate()


@pytest.mark.parametrize("device", FAR)
def test_load_and_store(device, tmp_path):
    stride = 9_000_000  # 18 MB
    x = far_rows(device, 256, 8, stride)
    # The bound masks the last row off; the store goes back behind what was loaded.
    text = """
greta_tile.func @k(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f32>) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %rows = arith.constant 255 : i32
  %v = greta_tile.load %x[%c0, %c0] strides [STRIDE, 1] bounds [0] (%rows) : !greta_tile.ptr<f16> -> tensor<256x8xf16>
  %w = arith.extf %v : tensor<256x8xf16> to tensor<256x8xf32>
  greta_tile.store %w, %y[%c0, %c0] strides [8, 1] bounds [] : tensor<256x8xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
func.func @f(%x: tensor<256xSTRIDExf16>) -> tensor<256x8xf32> {
  %0 = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (256, 8)>] : (tensor<256xSTRIDExf16>) -> tensor<256x8xf32>
  return %0 : tensor<256x8xf32>
}
greta_tile.func @s(%y: !greta_tile.ptr<f32>, %x: !greta_tile.ptr<f16>) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %v = greta_tile.load %y[%c0, %c0] strides [8, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<256x8xf32>
  %w = arith.truncf %v : tensor<256x8xf32> to tensor<256x8xf16>
  greta_tile.store %w, %x[%c0, %c0] strides [STRIDE, 1] bounds [] : tensor<256x8xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}
func.func @g(%y: tensor<256x8xf32>, %x: tensor<256xSTRIDExf16>) -> tensor<256xSTRIDExf16> {
  %0 = greta_tile.launch @s grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%y, %x) tied [1] shapes [] : (tensor<256x8xf32>, tensor<256xSTRIDExf16>) -> tensor<256xSTRIDExf16>
  return %0 : tensor<256xSTRIDExf16>
}
""".replace("STRIDE", str(stride))
    package = compiled(text, device, tmp_path)
    want = written(256, 8)
    got = greta.to_numpy(package.f(x))
    np.testing.assert_array_equal(got, np.where(np.arange(256)[:, None] < 255, want, 0))
    package.g(greta.asarray((want + 1).astype(np.float32)), x, out=x)
    np.testing.assert_array_equal(greta.to_numpy(package.f(x))[:255], want[:255] + 1)


@pytest.mark.parametrize("device", FAR)
def test_matmul_of_a_slice(device, tmp_path):
    stride = 34_300_000  # 69 MB
    x = far_rows(device, 128, 32, stride)
    config = " {greta.config = {tile = [128, 16, 32], waves = 4}}" if device == "sim:gfx942" else ""
    text = """
func.func @f(%x: tensor<128xSTRIDExf16>, %b: tensor<32x16xf16>) -> tensor<128x16xf16> {
  %a = tensor.extract_slice %x[0, 0] [128, 32] [1, 1] : tensor<128xSTRIDExf16> to tensor<128x32xf16>
  %0 = greta.matmul %a, %bCONFIG : tensor<128x32xf16>, tensor<32x16xf16> -> tensor<128x16xf16>
  return %0 : tensor<128x16xf16>
}
""".replace("STRIDE", str(stride)).replace("CONFIG", config)
    b = np.random.default_rng(0).integers(-3, 4, (32, 16)).astype(np.float16)
    got = greta.to_numpy(compiled(text, device, tmp_path).f(x, greta.asarray(b)))
    np.testing.assert_array_equal(got, written(128, 32) @ b.astype(float))


def test_distance_of_run_time(tmp_path):
    """A launch refuses rows that its kernel's offsets do not reach, and takes those of half the distance."""
    text = """
func.func @f(%a: tensor<?x?xf16>, %b: tensor<16x?xf16>) -> tensor<?x16xf16> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {tile = [128, 16, 32], waves = 4}} : tensor<?x?xf16>, tensor<16x?xf16> -> tensor<?x16xf16>
  return %0 : tensor<?x16xf16>
}
"""
    package = compiled(text, "sim:gfx942", tmp_path)
    greta.triton.activate("sim:gfx942")
    with pytest.raises(greta.Error, match="rows are 20000000 elements apart, of which its 32-bit offsets reach [0-9]+; compile the function with that extent static"):
        package.f(greta.empty((128, 20_000_000), "f16"), greta.empty((16, 20_000_000), "f16"))


@pytest.mark.parametrize("device", DEVICES)
def test_rows_in_reverse(device, tmp_path):
    """A negative stride is one that no unsigned offset of 32 bits reaches."""
    text = """
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %rows = arith.constant 100 : i32
  %last = arith.constant 1016 : i32
  %end = greta_tile.ptr_add %x, %last : !greta_tile.ptr<f32>, i32
  %v = greta_tile.load %end[%c0, %c0] strides [-8, 1] bounds [0] (%rows) : !greta_tile.ptr<f32> -> tensor<128x8xf32>
  %back = greta_tile.ptr_add %y, %last : !greta_tile.ptr<f32>, i32
  greta_tile.store %v, %back[%c0, %c0] strides [-8, 1] bounds [] : tensor<128x8xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
func.func @f(%x: tensor<128x8xf32>) -> tensor<128x8xf32> {
  %0 = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (128, 8)>] : (tensor<128x8xf32>) -> tensor<128x8xf32>
  return %0 : tensor<128x8xf32>
}
"""
    greta.triton.activate(device)
    x = np.arange(128 * 8, dtype=np.float32).reshape(128, 8)
    got = greta.to_numpy(compiled(text, device, tmp_path).f(greta.asarray(x)))
    np.testing.assert_array_equal(got, np.where(np.arange(128)[:, None] >= 28, x, 0))


@pytest.mark.parametrize("device", DEVICES)
def test_clamp_along_memory(device, tmp_path):
    text = """
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %n = arith.constant 8 : i32
  %v = greta_tile.load %x[%c0, %c0] strides [1024, 1] bounds [1] (%n) clamp [1] : !greta_tile.ptr<f32> -> tensor<4x64xf32>
  greta_tile.store %v, %y[%c0, %c0] strides [64, 1] bounds [] : tensor<4x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
func.func @f(%x: tensor<4x1024xf32>) -> tensor<4x64xf32> {
  %0 = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (4, 64)>] : (tensor<4x1024xf32>) -> tensor<4x64xf32>
  return %0 : tensor<4x64xf32>
}
"""
    greta.triton.activate(device)
    x = np.arange(4 * 1024, dtype=np.float32).reshape(4, 1024)
    got = greta.to_numpy(compiled(text, device, tmp_path).f(greta.asarray(x)))
    np.testing.assert_array_equal(got, x[:, np.minimum(np.arange(64), 7)])
