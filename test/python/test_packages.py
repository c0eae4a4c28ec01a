"""greta without Triton: devices, arrays and packages."""

import json
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import greta

SOURCE = """
func.func @rms_norm(%x: tensor<?x64xf16>, %w: tensor<64xf16>) -> tensor<?x64xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x64xf16>, tensor<64xf16> -> tensor<?x64xf16>
  return %0 : tensor<?x64xf16>
}
func.func @two(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = arith.addf %x, %x : tensor<?xf32>
  %1 = arith.mulf %x, %x : tensor<?xf32>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}
"""
DEVICES = ("vulkan", "host", "sim:gfx942", "sim:gfx1100")
DTYPES = [np.float32, np.float16, ml_dtypes.bfloat16, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.bool_, ml_dtypes.float8_e4m3fn]


@pytest.fixture(autouse=True)
def vulkan():
    greta.set_device("vulkan")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    from greta import _compiler

    succeeded, data, messages = _compiler.compile([(SOURCE, "")], "gfx942,gfx1100,vulkan,host")
    assert succeeded and not messages
    path = tmp_path_factory.mktemp("package") / "k.greta"
    greta.Package(data).save(path)
    assert [entry.name for entry in path.parent.iterdir()] == ["k.greta"]
    return greta.load(path)


def rms_norm(x, w):
    x = np.asarray(x, float)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * np.asarray(w, float)


def operands(rows=5):
    rng = np.random.default_rng(rows)
    return rng.standard_normal((rows, 64)).astype(np.float16), rng.standard_normal(64).astype(np.float16)


def test_devices():
    names = greta.devices()
    assert {"vulkan:0", "host", "sim:gfx90a", "sim:gfx942", "sim:gfx1201"} <= set(names)
    for name in names:
        if not name.startswith("sim:"):
            assert greta.set_device(name).spec == name
    assert greta.device("vulkan") is greta.device("vulkan:0")


def test_devices_while_one_is_simulated():
    code = "import greta; greta.set_device('sim:gfx942'); assert {'sim:gfx942', 'sim:gfx1100'} <= set(greta.devices())"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["cuda", "vulkan:99", "sim:gfx1", "hip:99"])
def test_unknown_device(name):
    before = greta.device()
    with pytest.raises(greta.Error, match=f"device '{name}' cannot be used: .*there are vulkan:0"):
        greta.set_device(name)
    assert greta.device() is before


def test_device_by_environment(monkeypatch):
    monkeypatch.setattr("greta._devices._current", None)
    monkeypatch.setenv("GRETA_DEVICE", "host")
    assert greta.device().spec == "host"


def test_default_device(monkeypatch):
    monkeypatch.setattr("greta._devices._current", None)
    monkeypatch.delenv("GRETA_DEVICE", raising=False)
    assert greta.device().spec == next(name for name in greta.devices() if not name.startswith("sim:"))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5), (2, 3, 4)], ids=str)
def test_arrays_come_back(dtype, shape):
    host = (np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype)
    array = greta.asarray(host)
    assert array.shape == shape and array.dtype == host.dtype and array.nbytes == host.nbytes and array.size == host.size
    back = greta.to_numpy(array)
    assert back.dtype == host.dtype and (back == host).all()


def test_arrays_from_others():
    strided = np.arange(24.0).reshape(4, 6)[::2, 1::2]
    assert (greta.to_numpy(greta.asarray(strided)) == strided).all()

    class OnlyDlpack:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    assert (greta.to_numpy(greta.asarray(OnlyDlpack(np.arange(5)))) == np.arange(5)).all()
    assert greta.asarray([1, 2, 3]).dtype == np.int64 and greta.asarray([1, 2], "fp16").dtype == np.float16
    with pytest.raises(greta.Error, match="no array has elements of type 'complex64'; there are float32"):
        greta.asarray(np.zeros(3, np.complex64))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint16, np.int64, np.bool_])
def test_dlpack(dtype):
    """Arrays that the host reaches are taken without a copy, and stay as long as somebody has them; others are not the host's."""
    host = (np.arange(12).reshape(3, 4) % 2).astype(dtype)
    array = greta.asarray(host, device="host")
    taken = np.from_dlpack(array[1:])
    assert taken.dtype == host.dtype and (taken == host[1:]).all()
    array.zero_()
    del array
    assert not taken.any()
    assert greta.asarray(host, device="host").__dlpack_device__() == (1, 0)
    assert greta.asarray(host, device="vulkan").__dlpack_device__()[0] == 7
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(greta.asarray(host, device="vulkan"))


@pytest.mark.parametrize("name,dtype", [("f16", "float16"), ("fp16", "float16"), ("bf16", "bfloat16"), ("i32", "int32"), ("u8", "uint8"), ("fp8e5", "float8_e5m2")])
def test_names_of_types(name, dtype):
    assert greta.empty((2, 3), name).dtype.name == dtype


def test_rows_are_views():
    array = greta.asarray(np.arange(24, dtype=np.float32).reshape(4, 6))
    assert (array[1].numpy() == np.arange(6, 12)).all() and (array[-1, 2:4].numpy() == [20, 21]).all()
    assert array[1:3].shape == (2, 6) and array[2].data_ptr() == array.data_ptr() + 48 and len(array) == 4
    assert array.reshape(2, -1).shape == (2, 12) and array.stride() == (6, 1) and array.stride(0) == 6
    row = array[1]
    row.write(np.zeros(24, np.uint8))
    assert (array.numpy()[1] == 0).all() and array.numpy()[2, 0] == 12
    with pytest.raises(IndexError):
        array[4]
    with pytest.raises(IndexError):
        array[:, 1]
    with pytest.raises(greta.Error, match="no shape"):
        array.reshape(5, 5)


def test_no_memory_no_array():
    with pytest.raises(greta.Error):
        greta.empty((1 << 31, 1 << 31), np.float64)
    with pytest.raises(ValueError):
        greta.empty(-1)


@pytest.mark.parametrize("device", DEVICES)
def test_function(package, device):
    greta.set_device(device)
    x, w = operands()
    y = package.rms_norm(x, greta.asarray(w))
    assert isinstance(y, greta.Array) and y.shape == x.shape and y.device.spec.startswith(device)
    np.testing.assert_allclose(np.asarray(y, float), rms_norm(x, w), rtol=2e-3, atol=2e-3)
    assert package.rms_norm.variant().startswith({"vulkan": "vulkan-lavapipe"}.get(device, device.removeprefix("sim:")))
    double, square = package.two(np.arange(1000, dtype=np.float32))
    assert (double.numpy() == 2 * np.arange(1000)).all() and square.numpy()[999] == 999**2


def test_devices_in_turn(package):
    x, w = operands()
    for device in (*DEVICES, *DEVICES):
        greta.set_device(device)
        np.testing.assert_allclose(np.asarray(package.rms_norm(x, w), float), rms_norm(x, w), rtol=2e-3, atol=2e-3)


def test_two_chips_at_once_are_refused(package):
    greta.set_device("sim:gfx942")
    kept = greta.asarray(np.zeros(3))
    with pytest.raises(greta.Error, match="sim:gfx942 is open; one chip can be simulated at a time"):
        greta.set_device("sim:gfx1100")
    del kept
    greta.set_device("sim:gfx1100")


def test_unaligned_rows_and_out(package):
    x, w = operands(8)
    array = greta.asarray(np.arange(40, dtype=np.float32))
    double, _ = package.two(array[3:9])  # begins at no multiple of 16 bytes
    assert (double.numpy() == 2 * np.arange(3, 9)).all()
    out = greta.empty(x.shape, "f16")
    assert package.rms_norm(x, w, out=out) is out
    np.testing.assert_allclose(np.asarray(out, float), rms_norm(x, w), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    "change,message",
    [
        (lambda x, w: (x,), r"'rms_norm' takes 2 arguments \(x, w\), 1 given"),
        (lambda x, w: (x.astype(np.float32), w), "argument 0 'x' of 'rms_norm' is of type float32, the function takes float16; convert it"),
        (lambda x, w: (x[:, :5], w), "argument 0 'x' has shape 5x5: dim 1 is 5, the function needs 64"),
        (lambda x, w: (x[0], w), "argument 0 'x' has rank 1"),
    ],
)
def test_wrong_arguments(package, change, message):
    with pytest.raises(greta.Error, match=message):
        package.rms_norm(*change(*operands()))


def test_no_such_function_or_package(package, tmp_path):
    with pytest.raises(AttributeError, match="the package has no function 'softmax'; it has rms_norm, two"):
        package.softmax
    with pytest.raises(greta.Error, match="cannot read the package .*No such file"):
        greta.load(tmp_path / "none.greta")
    with pytest.raises(greta.Error, match=r"cannot read the package 'two\\nlines': No such file"):
        greta.load("two\nlines")
    with pytest.raises(greta.Error, match="cannot read the package .*: Is a directory"):
        greta.load(tmp_path)
    (tmp_path / "bad.greta").write_bytes(b"PK nothing")
    with pytest.raises(greta.Error, match="bad.greta: not a readable ZIP archive"):
        greta.load(tmp_path / "bad.greta")
    with pytest.raises(greta.Error, match="package in memory: not a readable ZIP archive"):
        greta.Package(b"PK nothing")


def test_where_packages_cannot_be_saved(package, tmp_path):
    (tmp_path / "out").symlink_to("made")
    package.save(tmp_path / "out")
    assert (tmp_path / "out").is_symlink() and (tmp_path / "made").read_bytes() == package.data
    (tmp_path / "full").symlink_to("/dev/full")
    for name, problem in (("full", "No space left on device"), ("", "Is a directory"), ("no/k.greta", "No such file or directory")):
        with pytest.raises(OSError, match=f"{problem}: '{tmp_path / name}'"):
            package.save(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "made", "out"]


def test_streams_and_events(package):
    array = greta.asarray(np.ones(1 << 16, np.float32))
    start, end = greta.Event(), greta.Event()
    with greta.Stream() as stream:
        start.record()
        double, _ = package.two(array)
        end.record()
        stream.synchronize()
    assert start.elapsed_time(end) > 0
    end.wait()
    assert (double.numpy() == 2).all()


def test_manifest_is_the_packages(package):
    assert json.loads(package._package.manifest)["schema"] == 1 and set(package.functions) == {"rms_norm", "two"}
    assert "rms_norm" in dir(package) and repr(package.rms_norm) == "<greta function rms_norm(x: f16, w: f16)>"


def test_a_damaged_file_in_the_cache_is_made_again(tmp_path, monkeypatch):
    from greta import _compile

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data = _compile.compile_cached(SOURCE, "host")
    (path,) = tmp_path.glob("greta/packages/*.greta")
    for left in (0, len(data) // 2):
        path.write_bytes(data[:left])
        assert greta.Package(_compile.compile_cached(SOURCE, "host")).functions.keys() == {"rms_norm", "two"}
        assert path.stat().st_size > left
