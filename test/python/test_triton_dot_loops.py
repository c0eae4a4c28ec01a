"""Loops with dots that compute beside them, or have such a loop inside, where the schedule is the compiler's: small integers, so that every sum is exact."""

import numpy as np
import pytest

import greta

pytest.importorskip("triton")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402


@pytest.fixture(params=("sim:gfx942", "sim:gfx1100"))
def device(request):
    greta.triton.activate(request.param)
    yield request.param
    greta.triton.deactivate()


def integers(seed, *shape):
    return np.random.default_rng(seed).integers(-1, 2, shape).astype(np.float16)


@triton.jit
def reduced(a, b, sums, most, n, M: tl.constexpr, K: tl.constexpr):
    i, k = tl.arange(0, M), tl.arange(0, K)
    t = tl.zeros((M, M), tl.float32)
    top = tl.zeros((M,), tl.float32)
    for o in range(n):
        x = tl.load(a + o * M * K + i[:, None] * K + k[None, :])
        y = tl.load(b + o * K * M + k[:, None] * M + i[None, :])
        d = tl.dot(x, y)
        t += d * 2.0
        top = tl.maximum(top, tl.max(d, 1))
    tl.store(most + i, top)
    tl.store(sums + i[:, None] * M + i[None, :], t)


def test_shared_memory_of_a_reduction(device):
    """Two stages of the operands' blocks are all that a compute unit of gfx942 has."""
    a, b = integers(1, 3, 128, 64), integers(2, 3, 64, 128)
    sums, most = np.zeros((128, 128), np.float32), np.zeros(128, np.float32)
    reduced[(1,)](a, b, sums, most, 3, 128, 64, num_warps=8)
    d = a.astype(float) @ b.astype(float)
    assert (sums == 2 * d.sum(0)).all() and (most == np.maximum(d.max(2).max(0), 0)).all()


@triton.jit
def nested(a, b, out, n, m, K: tl.constexpr):
    i, k = tl.arange(0, 64), tl.arange(0, 32)
    t, u = tl.zeros((64, 64), tl.float32), tl.zeros((64, 64), tl.float32)
    for o in range(n):
        x = tl.load(a + i[:, None] * K + o * 32 + k[None, :])
        y = tl.load(b + (o * 32 + k[:, None]) * 64 + i[None, :])
        t = tl.dot(x, y, t)
        for j in range(m):
            x2 = tl.load(a + i[:, None] * K + j * 32 + k[None, :])
            y2 = tl.load(b + (j * 32 + k[:, None]) * 64 + i[None, :])
            u = tl.dot(x2, y2, u)
    tl.store(out + i[:, None] * 64 + i[None, :], t + u)


@pytest.mark.parametrize("n, m", [(0, 2), (3, 0), (3, 2)])
def test_loop_with_dots_in_another(device, n, m):
    a, b = integers(3, 64, 96), integers(4, 96, 64)
    out = np.full((64, 64), np.nan, np.float32)
    nested[(1,)](a, b, out, n, m, 96)
    part = lambda count: a[:, : 32 * count].astype(float) @ b[: 32 * count].astype(float)
    assert (out == part(n) + n * part(m)).all()


@triton.jit
def packed_across(a, a_scale, b, b_scale, out, K: tl.constexpr, M: tl.constexpr):
    # Two e2m1 of a byte are neighbours along M and N.
    i, pairs, k, groups = tl.arange(0, M), tl.arange(0, M // 2), tl.arange(0, 64), tl.arange(0, 2)
    total = tl.zeros((M, M), tl.float32)
    for o in range(0, K, 64):
        x = tl.load(a + pairs[:, None] + (o + k[None, :]) * (M // 2))
        y = tl.load(b + pairs[None, :] + (o + k[:, None]) * (M // 2))
        s = tl.load(a_scale + i[:, None] * (K // 32) + o // 32 + groups[None, :])
        t = tl.load(b_scale + i[:, None] * (K // 32) + o // 32 + groups[None, :])
        total = tl.dot_scaled(x, s, "e2m1", y, t, "e2m1", total, lhs_k_pack=False, rhs_k_pack=False)
    tl.store(out + i[:, None] * M + i[None, :], total)


def test_numbers_of_four_bits_across(device):
    """The numbers of a word lie along M or N, matrix instructions want neighbours along K."""
    rng, k, m = np.random.default_rng(3), 128, 64
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float64)
    table = np.concatenate([table, -table])
    packed = [rng.integers(0, 256, (k, m // 2)).astype(np.uint8) for _ in "ab"]
    scales = [rng.integers(126, 129, (m, k // 32)).astype(np.uint8) for _ in "ab"]
    numbers = [table[np.stack([p & 15, p >> 4], -1).reshape(k, m)].T * np.repeat(2.0 ** (s - 127.0), 32, 1) for p, s in zip(packed, scales)]
    out = np.zeros((m, m), np.float32)
    packed_across[(1,)](packed[0], scales[0], packed[1], scales[1], out, k, m)
    assert (out == numbers[0] @ numbers[1].T).all()


@triton.jit
def scaled_rows(a, scales, b, out):
    i, pairs = tl.program_id(0) * 32 + tl.arange(0, 32), tl.arange(0, 16)
    k, n = tl.arange(0, 32), tl.arange(0, 16)
    x = tl.load(a + i[:, None] * 16 + pairs[None, :])
    y = tl.load(b + k[:, None] * 16 + n[None, :])
    tl.store(out + i[:, None] * 16 + n[None, :], tl.dot_scaled(x, tl.load(scales + i[:, None]), "e2m1", y, None, "e4m3"))


def test_every_scale_of_numbers_of_four_bits(device):
    """The smallest scale is below the normal numbers of f32, the largest makes infinities, and 255 is NaN."""
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    codes = np.stack([np.roll(np.arange(32) % 16, row) for row in range(256)]).astype(np.uint8)
    columns = np.eye(32, 16, dtype=np.float32)
    factors = np.append(np.ldexp(1.0, np.arange(255) - 127), np.nan).astype(np.float32)
    out = np.zeros((256, 16), np.float32)
    scaled_rows[(8,)](codes[:, ::2] | codes[:, 1::2] << 4, np.arange(256, dtype=np.uint8), (columns * 0x38).astype(np.uint8), out)
    with np.errstate(over="ignore", invalid="ignore"):
        want = ((np.concatenate([table, -table])[codes] * factors[:, None])[:, :, None] * columns).sum(1)
    np.testing.assert_array_equal(out, want)
