"""What Triton's kernels do with f64, booleans in memory, and atomics of every type, against NumPy and torch."""

import numpy as np
import pytest

import greta

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

COUNT = 96


@triton.jit
def doubles(x, y, out, narrow, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n, other=1.0), tl.load(y + i, mask=i < n, other=1.0)
    total = a * b + tl.sqrt(a) / b - tl.floor(b)
    tl.store(out + i, total + tl.sum(a, axis=0), mask=i < n)
    tl.store(narrow + i, total.to(tl.float16), mask=i < n)


def test_doubles(triton_device):
    rng = np.random.default_rng(1)
    x, y = (rng.uniform(0.5, 4, COUNT) for _ in range(2))
    out, narrow = np.zeros(COUNT), np.zeros(COUNT, np.float16)
    doubles[1,](x, y, out, narrow, COUNT, BLOCK=128)
    total = x * y + np.sqrt(x) / y - np.floor(y)
    np.testing.assert_allclose(out, total + x.sum() + (128 - COUNT), rtol=1e-14)
    np.testing.assert_allclose(narrow, total.astype(np.float16), rtol=1e-3)


@triton.jit
def booleans(x, flags, flipped, counted, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    keep = tl.load(flags + i)
    tl.store(flipped + i, tl.load(x + i) > 0)
    tl.store(counted, tl.sum(tl.where(keep, 1, 0), axis=0))


def test_booleans(triton_device):
    x, flags = torch.randn(64), torch.rand(64) > 0.5
    flipped, counted = torch.zeros(64, dtype=torch.bool), torch.zeros(1, dtype=torch.int32)
    booleans[1,](x, flags, flipped, counted, BLOCK=64)
    assert torch.equal(flipped, x > 0)
    assert counted.item() == flags.sum().item()


@triton.jit
def add_all(x, out, PLACES: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + i % PLACES, tl.load(x + i))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64])
def test_atomic_additions(triton_device, dtype):
    # Small whole numbers, which all types add exactly; neighbours share a word.
    x = torch.randint(0, 4, (128,)).to(dtype)
    out = torch.zeros(5, dtype=dtype)
    add_all[2,](x, out, PLACES=5, BLOCK=64)
    places = torch.arange(128) % 5
    assert torch.equal(out, torch.stack([x[places == place].sum() for place in range(5)]))


@triton.jit
def exchange(x, expected, new, old, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(old + i, tl.atomic_cas(x + i, tl.load(expected + i), tl.load(new + i)))


@pytest.mark.parametrize("dtype", [torch.int16, torch.float16, torch.float32, torch.float64, torch.int32, torch.int64])
def test_compare_and_swap(triton_device, dtype):
    before = torch.randint(0, 2, (64,)).to(dtype)
    x, expected, new = before.clone(), torch.ones_like(before), torch.arange(64).to(dtype)
    old = torch.zeros_like(before)
    exchange[1,](x, expected, new, old, BLOCK=64)
    assert torch.equal(old, before)
    assert torch.equal(x, torch.where(before == 1, new, before))


@triton.jit
def stores_nothing(n):
    tl.device_assert(n > 0)


def test_nothing_to_store(triton_device):
    stores_nothing[2,](3)
