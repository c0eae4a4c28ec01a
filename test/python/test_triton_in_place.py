"""Kernels that work in place on less than there are lanes: several waves have the same elements, and the simulator sees every race."""

import pytest

import greta

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402


@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, v / tl.sum(v, 0), mask=i < n)


@triton.jit
def count(x, out, turns):
    for _ in range(turns):
        before = tl.load(x)
        tl.store(x, before + 1)
        tl.store(out + before, before)


@pytest.mark.parametrize("warps", [1, 4, 32])
@pytest.mark.parametrize("device", ["vulkan", "sim:gfx942", "sim:gfx1030", "sim:gfx1201"])
def test_in_place(device, warps):
    greta.triton.activate(device)
    x = torch.arange(1, 11, dtype=torch.float32)
    want = x / x.sum()
    double[1,](x, x, 10, BLOCK=16, num_warps=warps)
    torch.testing.assert_close(x, want)
    counter, seen = torch.zeros(1, dtype=torch.int32), torch.full((8,), -1, dtype=torch.int32)
    count[1,](counter, seen, 7, num_warps=warps)
    assert counter.item() == 7 and seen.tolist() == [*range(7), -1]
    greta.triton.deactivate()
