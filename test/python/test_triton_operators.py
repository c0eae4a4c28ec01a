"""Operators of Triton's language by type and shape, against NumPy: operators.py has the table.

All on this machine's Vulkan driver; on every simulated chip the types of one shape.
"""

import functools
import importlib.util

import ml_dtypes
import numpy as np
import pytest

import greta
from operators import TABLES, kernel_source

pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

TYPES = {
    **{name: ("float", dtype, tolerance) for name, dtype, tolerance in (("f16", np.float16, 2e-3), ("bf16", ml_dtypes.bfloat16, 1.6e-2), ("f32", np.float32, 4e-6))},
    **{dtype.__name__: ("integer", dtype, 0) for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32)},
}
# Small ones, because the CPU behind Vulkan compiles what a GPU spreads over lanes; a larger one on chips.
SHAPES = [(1, 32), (8, 8), (2, 16), (16, 4), (4, 8), (1, 64)]
CHIPS = [name for name in greta.devices() if name.startswith("sim:")]
SAMPLED = (4, 64)
CASES = [("vulkan", type_, shape, name) for type_, (kind, *_) in TYPES.items() for shape in SHAPES for name in TABLES[kind]]
CASES += [(chip, type_, SAMPLED, None) for chip in CHIPS for type_ in TYPES]
# Few operators at a time: what a driver compiles grows faster than they do.
AT_ONCE = 14


@functools.cache
def operands(type_, shape):
    kind, dtype, _ = TYPES[type_]
    rng = np.random.default_rng([len(type_), *shape])
    if kind == "float":
        x, y = rng.uniform(-4, 4, shape), rng.uniform(0.5, 2, shape)
        return x.astype(dtype), y.astype(dtype)
    low, high = (-60, 60) if np.dtype(dtype).kind == "i" else (0, 120)
    return tuple(rng.integers(low, high, shape).astype(dtype) for _ in range(2))


@functools.cache
def kernel(folder, kind, first):
    names = list(TABLES[kind])[first : first + AT_ONCE]
    path = folder / f"{kind}_{first}.py"
    path.write_text(kernel_source(kind, names))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@functools.cache
def results(folder, device, type_, shape, first):
    kind = TYPES[type_][0]
    x, y = operands(type_, shape)
    out = np.zeros((min(AT_ONCE, len(TABLES[kind]) - first), *shape), x.dtype)
    kernel(folder, kind, first)[1,](x, y, out, *shape, tl.float32)
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    greta.triton.activate()
    yield tmp_path_factory.mktemp("operators")
    greta.triton.deactivate()
    for cached in (kernel, results):
        cached.cache_clear()


def judge(folder, device, type_, shape, name):
    kind, dtype, tolerance = TYPES[type_]
    place = list(TABLES[kind]).index(name)
    got = results(folder, device, type_, shape, place // AT_ONCE * AT_ONCE)[place % AT_ONCE]
    x, y = operands(type_, shape)
    with np.errstate(over="ignore"):
        if kind == "integer":
            want = TABLES[kind][name][1](x, y)
            assert (got == np.asarray(want).astype(dtype)).all()
        else:
            want = np.asarray(TABLES[kind][name][1](x.astype(float), y.astype(float)), float)
            # Sums round at each of their terms.
            largest = max(1.0, np.abs(want).max())
            np.testing.assert_allclose(got.astype(float), want, rtol=tolerance, atol=tolerance * largest)


def parameters(device, type_, shape, name):
    # One process has all of a type's kernels, or of a chip's.
    group = pytest.mark.xdist_group(f"operators-{type_ if name else device}")
    return pytest.param(device, type_, shape, name, id=f"{device}-{type_}-{'x'.join(map(str, shape))}-{name or 'all'}", marks=group)


@pytest.mark.parametrize("device,type_,shape,name", [parameters(*case) for case in CASES])
def test_operator(folder, device, type_, shape, name):
    if not greta.device().spec.startswith(device):
        greta.set_device(device)
    for one in (name,) if name else TABLES[TYPES[type_][0]]:
        judge(folder, device, type_, shape, one)
