"""Operators of Triton's language by type and shape, against NumPy: operators.py has the table.

On this machine's Vulkan driver every type takes half of the shapes; of simulated chips those of one generation share the types, of one shape.
"""

import functools
import importlib.util

import ml_dtypes
import numpy as np
import pytest

import defects
import greta
from harness import WHOLE
from limits import UNIT
from operators import NEAR, SUMS, TABLES, kernel_source

pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

TYPES = {
    **{name: ("float", dtype) for name, dtype in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("f32", np.float32))},
    **{dtype.__name__: ("integer", dtype) for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32)},
}
# Small ones, because the CPU behind Vulkan compiles what a GPU spreads over lanes; a larger one on chips.
SHAPES = [(1, 32), (8, 8), (2, 16), (16, 4), (4, 8), (1, 64)]
CHIPS = [name for name in greta.devices() if name.startswith("sim:")]
SAMPLED = (4, 64)


def shapes_of(type_):
    """Every second one, from the first or the second on: all of them for floats and for integers."""
    return SHAPES if WHOLE else SHAPES[list(TYPES).index(type_) % 2 :: 2]


def types_of(chip):
    """Chips of one generation, whose names differ in the last two letters, share them."""
    generation = [other for other in CHIPS if other[:-2] == chip[:-2]]
    return list(TYPES) if WHOLE else list(TYPES)[generation.index(chip) :: len(generation)]


CASES = [("vulkan", type_, shape, name) for type_, (kind, _) in TYPES.items() for shape in shapes_of(type_) for name in TABLES[kind]]
CASES += [(chip, type_, SAMPLED, None) for chip in CHIPS for type_ in types_of(chip)]
NORMAL_F16 = 2.0**-14
# Defects that a sum of so many roundings cannot be told from.
TOO_SMALL = {"one percent more", "in a narrower type"}
# Few operators at a time: what a driver compiles grows faster than they do.
AT_ONCE = 14


@functools.cache
def operands(type_, shape):
    kind, dtype = TYPES[type_]
    rng = np.random.default_rng([len(type_), *shape])
    if kind == "float":
        x, y = rng.uniform(-4, 4, shape), rng.uniform(0.5, 2, shape)
    else:
        low, high = (-60, 60) if np.dtype(dtype).kind == "i" else (0, 120)
        x, y = (rng.integers(low, high, shape) for _ in range(2))
    x.flat[3::7] = y.flat[3::7]  # some are equal
    return x.astype(dtype), y.astype(dtype)


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


def problem(type_, name, x, y, want, got):
    """Says how one operator's result is wrong: an element is off by more than one rounding and what f32 adds. Sums in the type of their terms round at
    each level of a tree of additions, at random."""
    if TYPES[type_][0] == "integer":
        return "" if (got == want).all() else "wrong integers"
    allowed = 1.01 * UNIT[type_] * np.abs(want) + NORMAL_F16 * UNIT["f16"] * (type_ == "f16")
    # Exponentials, logarithms and angles in f32: so many units of a result, or of the size near which one is computed.
    allowed = allowed + 32 * UNIT["f32"] * np.maximum(np.abs(want), NEAR.get(name, 0))
    if name in SUMS:
        terms, axis = SUMS[name](x, y)
        allowed = allowed + UNIT[type_] * (1 + np.log2(terms.shape[axis])) * np.sqrt((terms**2).sum(axis, keepdims=True))
    with np.errstate(invalid="ignore"):
        off = ~(np.abs(got.astype(float) - want) <= allowed)
    if not off.any():
        return ""
    at = tuple(np.argwhere(off)[0])
    return f"{off.sum()} of {off.size} elements, the first at {at}, are {got[at]} instead of {want[at]}"


def judge(folder, device, type_, shape, name):
    kind, dtype = TYPES[type_]
    place = list(TABLES[kind]).index(name)
    got = results(folder, device, type_, shape, place // AT_ONCE * AT_ONCE)[place % AT_ONCE]
    x, y = operands(type_, shape)
    with np.errstate(over="ignore"):
        if kind == "integer":
            want = np.asarray(TABLES[kind][name][1](x, y)).astype(dtype)
        else:
            x, y = x.astype(float), y.astype(float)
            want = np.asarray(TABLES[kind][name][1](x, y), float)
    said = problem(type_, name, x, y, want, got)
    assert not said, f"{name}: {said}"
    if kind == "float":
        unseen = defects.unseen(lambda result: problem(type_, name, x, y, want, result), want, dtype)
        assert not set(unseen) - (TOO_SMALL if name in SUMS and type_ != "f32" else set()), f"{name}: {unseen}"


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
