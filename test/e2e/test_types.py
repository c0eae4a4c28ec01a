"""Batched GEMMs and GEMMs of 8-bit floats against float64, and exactly their conversions: on the simulated AMD chips with all their checks, on testing's lavapipe
(cooperative matrices) under its validation layer, on this machine's Vulkan driver (SIMT FMAs where it is lavapipe), and on the CPU.
"""

import numpy as np
import pytest

import harness
from greta_runtime import DTYPES
from harness import AMD_CHIPS, CPU_DRIVERS
from typed import MLIR, Conversion, Product

BATCHED = [
    Product("plain", "nn", "3", 17, 129, 17, "f16", "f16", "f16"),
    Product("plain", "nt", "2d", 129, 17, 1, "f16", "f16", "f32"),
    Product("heads", "tn", "2x3", 17, 33, 64, "f16", "f16", "f16"),
    Product("heads", "nt", "2x2d", 1, 40, 129, "f16", "f16", "f16"),
    Product("plain", "nn", "3s", 17, 48, 64, "f16", "f16", "f16"),
    Product("heads", "nt", "2x3s", 5, 33, 1000, "f16", "f16", "f16"),
    Product("plain", "tt", "2sd", 17, 33, 129, "f16", "f16", "f16"),
    Product("heads", "nn", "2x3a", 17, 40, 64, "f16", "f16", "f16"),
    Product("plain", "tt", "3ad", 33, 17, 40, "f16", "f16", "f32"),
    Product("plain", "nn", "3a", 4, 129, 64, "f16", "f16", "f16"),
    Product("plain", "nt", "3", 64, 64, 64, "f16", "f16", "f32"),
    Product("plain", "tt", "3", 17, 17, 33, "f32", "f32", "f32"),
    Product("plain", "nn", "1k", 17, 40, 0, "f16", "f16", "f16"),
    Product("plain", "nt", "1k", 17, 33, 100, "f16", "f16", "f32"),
    Product("heads", "nn", "2d", 33, 17, 40, "f32", "f32", "f32"),
]


# All types with all others of their kind, wherever the target has instructions and where it has none; skinny GEMMs, batches, results of all types.
FLOAT8 = [
    Product("plain", "nt", "1", 33, 40, 129, "f8e4m3fn", "f8e4m3fn", "f32"),
    Product("plain", "nn", "1", 17, 129, 64, "f8e5m2", "f8e5m2", "f16"),
    Product("plain", "tt", "1", 40, 17, 100, "f8e4m3fn", "f8e5m2", "bf16"),
    Product("heads", "nt", "2d", 17, 33, 128, "f8e5m2", "f8e4m3fn", "f16"),
    Product("plain", "nt", "1", 17, 33, 1000, "f8e4m3fnuz", "f8e4m3fnuz", "f16"),
    Product("plain", "tn", "1", 129, 16, 17, "f8e5m2fnuz", "f8e5m2fnuz", "f32"),
    Product("plain", "nt", "2", 33, 48, 192, "f8e5m2fnuz", "f8e4m3fnuz", "bf16"),
    Product("plain", "nn", "1", 40, 40, 40, "f8e4m3fnuz", "f8e5m2fnuz", "f32"),
    Product("plain", "nt", "1", 2, 33, 1000, "f8e4m3fn", "f8e5m2", "f16"),
    Product("plain", "nt", "1", 1, 40, 256, "f8e4m3fnuz", "f8e4m3fnuz", "f32"),
]
CONVERSIONS = [Conversion(direction, dtype) for direction in ("widen", "narrow") for dtype in MLIR]


def cases_of(target):
    """Chips with instructions for 8-bit floats take all GEMMs of them, others, and the CPU's slow drivers, a third of what there is."""
    if target in AMD_CHIPS:
        return harness.share_of(BATCHED, target, 3) + (FLOAT8 if target in ("gfx942", "gfx950", "gfx1201") else harness.share_of(FLOAT8, target, 3)) + CONVERSIONS
    i = 0 if target == "vulkan:lavapipe" else 1
    return (BATCHED + FLOAT8 if target == "host" else BATCHED[i::3] + FLOAT8[i::3]) + CONVERSIONS


results, test_case, test_together = harness.suite("types", cases_of, ("host", *AMD_CHIPS, *CPU_DRIVERS))


def test_files(tmp_path):
    """8-bit floats travel as their bits; the package and greta-run know them by name, and random ones are the same everywhere."""
    source = """func.func @sum(%x: tensor<4x256xf8E4M3FN>, %y: tensor<4x256xf8E5M2>) -> tensor<4x256xf8E4M3FN> {
  %0 = arith.extf %x : tensor<4x256xf8E4M3FN> to tensor<4x256xf32>
  %1 = arith.extf %y : tensor<4x256xf8E5M2> to tensor<4x256xf32>
  %2 = arith.addf %0, %1 : tensor<4x256xf32>
  %3 = arith.truncf %2 : tensor<4x256xf32> to tensor<4x256xf8E4M3FN>
  return %3 : tensor<4x256xf8E4M3FN>
}"""
    package = harness.compile_package(tmp_path, "sum", source, "gfx950,vulkan:portable,host")
    function = harness.function_of(package, "sum")
    assert [a["dtype"] for a in function["args"] + function["results"]] == ["f8e4m3fn", "f8e5m2", "f8e4m3fn"]
    x = np.arange(1024, dtype=np.uint8).reshape(4, 256)
    np.save(tmp_path / "x.npy", x)
    files = []
    for device in ("host", "vulkan", "sim:gfx950"):
        files.append(tmp_path / f"{device}.npy")
        operands = [f"--input=f8e4m3fn:{tmp_path}/x.npy", "--input=4x256xf8e5m2:random:7:0.001", f"--output={files[-1]}"]
        run = harness.tool(harness.RUN, package, f"--device={device}", "--function=sum", *operands)
        assert run.returncode == 0, run.stdout + run.stderr
    sums = [np.load(file) for file in files]
    numbers = sums[0].view(DTYPES["f8e4m3fn"]).astype(np.float64)
    assert sums[0].dtype == np.uint8
    assert np.nanmax(np.abs(numbers - x.view(DTYPES["f8e4m3fn"]).astype(np.float64)) / (1 + np.abs(numbers))) < 0.05
    assert (np.isnan(numbers) == (x & 0x7F == 0x7F)).all()
    for other in sums[1:]:
        decoded = other.view(DTYPES["f8e4m3fn"]).astype(np.float64)
        assert ((decoded == numbers) | np.isnan(decoded) & np.isnan(numbers)).all()


@pytest.mark.parametrize("device", ["host", "vulkan", "sim:gfx942", "sim:gfx1100", "sim:gfx950"])
def test_codes_of_a_cache(tmp_path, device):
    """Attention of one key gives its value: each of the 256 codes of e4m3 in a cache is the number that it stands for, denormals and NaN too."""
    cache = "tensor<2x16x1x128xf8E4M3FN>"
    source = f"""func.func @values(%q: tensor<2x4x1x128xf16>, %k: {cache}, %v: {cache}, %table: tensor<2x1xi32>, %lengths: tensor<2xi32>) -> tensor<2x4x1x128xf16> {{
  %0 = greta.paged_attention %q, %k, %v, %table, %lengths : tensor<2x4x1x128xf16>, {cache}, {cache}, tensor<2x1xi32>, tensor<2xi32> -> tensor<2x4x1x128xf16>
  return %0 : tensor<2x4x1x128xf16>
}}"""
    target = device.removeprefix("sim:").replace("vulkan", "vulkan:portable")
    package = harness.compile_package(tmp_path, "values", source, target)
    codes = np.arange(256, dtype=np.uint8)
    values = np.zeros((2, 16, 1, 128), np.uint8)
    values[:, 0, 0] = codes.reshape(2, 128)
    arrays = {"q": np.zeros((2, 4, 1, 128), np.float16), "k": np.zeros_like(values), "v": values, "t": np.array([[0], [1]], np.int32), "l": np.ones(2, np.int32)}
    operands = []
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
        operands.append(f"--input={'f8e4m3fn:' if array.dtype == np.uint8 else ''}{tmp_path}/{name}.npy")
    run = harness.tool(harness.RUN, package, f"--device={device}", "--function=values", *operands, f"--output={tmp_path}/y.npy")
    assert run.returncode == 0, run.stdout + run.stderr
    numbers = codes.view(DTYPES["f8e4m3fn"]).astype(np.float64)
    assert np.isnan(numbers).sum() == 2 and np.unique(np.abs(numbers[~np.isnan(numbers)])).size == 127
    results = np.load(tmp_path / "y.npy").astype(np.float64)
    for head in range(4):
        np.testing.assert_array_equal(results[:, head, 0].reshape(-1), numbers)
