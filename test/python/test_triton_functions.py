"""Functions of scalars in Triton's kernels (mapped over blocks, combining elements), and descriptors that control flow hands on or the host makes."""

import numpy as np
import pytest

import greta

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402
from triton._C.libtriton import passes  # noqa: E402
from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402


#
# Functions mapped over blocks
#


@triton.jit
def order(x, y):
    if x < y:
        return -1
    elif x == y:
        return 0
    else:
        return 1


@triton.jit
def ordered(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.map_elementwise(order, tl.load(x + i), tl.load(y + i)))


def test_returns_in_branches_of_a_mapped_function(triton_device):
    rng = np.random.default_rng(1)
    x, y = (rng.integers(-3, 3, 128, dtype=np.int32) for _ in range(2))
    out = np.full(128, 7, np.int32)
    ordered[1,](x, y, out, BLOCK=128)
    np.testing.assert_array_equal(out, np.sign(x - y))


@triton.jit
def turn_pairs(a0, a1, b0, b1):
    return a1 - b0, a0 + b1, a0 * b0, a1 * 2


@triton.jit
def turn_fours(a0, a1, a2, a3):
    return a3, a0, a1, a2


@triton.jit
def neighbours(x, y, first, second, turned, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    a, b = tl.load(x + i), tl.load(y + i)
    c, d = tl.map_elementwise(turn_pairs, a, b, pack=2)
    tl.store(first + i, c)
    tl.store(second + i, d)
    tl.store(turned + i, tl.map_elementwise(turn_fours, a, pack=4)[0])


def test_functions_of_neighbours(triton_device):
    x, y = (np.random.default_rng(seed).integers(-99, 99, (8, 32), dtype=np.int32) for seed in (1, 2))
    first, second, turned = (np.zeros_like(x) for _ in range(3))
    neighbours[1,](x, y, first, second, turned, 8, 32)
    a, b = x.reshape(-1, 2), y.reshape(-1, 2)
    np.testing.assert_array_equal(first.reshape(-1, 2), np.stack([a[:, 1] - b[:, 0], a[:, 0] + b[:, 1]], 1))
    np.testing.assert_array_equal(second.reshape(-1, 2), np.stack([a[:, 0] * b[:, 0], a[:, 1] * 2], 1))
    np.testing.assert_array_equal(turned.reshape(-1, 4), np.roll(x.reshape(-1, 4), 1, axis=1))


#
# Assertions of functions that combine
#


@triton.jit
def small_sum(a, b):
    tl.device_assert(a + b < 1000, "the sum grows")
    return a + b


@triton.jit(debug=True)
def checked_sums(x, total, sums, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.arange(0, ROWS)
    i = rows[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    values = tl.load(x + i)
    tl.store(total + rows, tl.reduce(values, 1, small_sum))
    tl.store(sums + i, tl.associative_scan(values, 1, small_sum))


def test_combining_functions_assert(triton_device):
    x = np.random.default_rng(3).integers(0, 10, (4, 64), dtype=np.int32)
    total, sums = np.zeros(4, np.int32), np.zeros_like(x)
    checked_sums[1,](x, total, sums, 4, 64, sanitize_overflow=False)
    np.testing.assert_array_equal(total, x.sum(1))
    np.testing.assert_array_equal(sums, x.cumsum(1))
    x[2, 5:7] = 600
    with pytest.raises(greta.Error, match="device-side assert failed: the sum grows.*; and 1 more"):
        checked_sums[1,](x, total, sums, 4, 64, sanitize_overflow=False)


@triton.jit(debug=True)
def positive_roots(x, roots, N: tl.constexpr):
    i = tl.arange(0, N)
    values = tl.load(x + i)
    tl.device_assert(values >= 0, "there is no root")
    tl.store(roots + i, tl.sqrt(values))


def test_assertions_are_told_where_somebody_waits(triton_device):
    """Once: the launch itself does not wait, and what it computed is there."""
    x, roots = greta.asarray(np.array([4, 9, -1, 16], np.float32), device=triton_device), greta.empty(4, np.float32, triton_device)
    for _ in range(2):
        positive_roots[1,](x, roots, 4)
        with pytest.raises(greta.Error, match=r"device-side assert failed: there is no root \(test_triton_functions.py:\d+\), pid \(0, 0, 0\) idx \(2\)$"):
            roots.numpy()
        np.testing.assert_array_equal(roots.numpy(), np.array([2, 3, np.nan, 4], np.float32))


@triton.jit
def sum_of(x, out, BLOCK: tl.constexpr):
    tl.store(out, tl.load(x) + tl.load(out))


def test_overflow_checks_say_device_side_assert(triton_device):
    x, out = np.full(1, 2**31 - 1, np.int32), np.ones(1, np.int32)
    with pytest.raises(greta.Error, match="device-side assert failed: int32 overflow detected for operation add"):
        sum_of[1,](x, out, BLOCK=1, debug=True)


#
# Descriptors
#


@triton.jit
def rows_in_turn(x, y, out, n, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    from_x = tl.make_tensor_descriptor(x, [n, COLUMNS], [COLUMNS, 1], [1, BLOCK])
    from_y = tl.make_tensor_descriptor(y, [n, COLUMNS], [COLUMNS, 1], [1, BLOCK])
    to = tl.make_tensor_descriptor(out, [n, COLUMNS], [COLUMNS, 1], [1, BLOCK])
    source = from_x
    for row in range(n):
        to.store([row, 0], source.load([row, 0]))
        if row % 3 == 1:
            source = from_y
        else:
            source = from_x


def test_loops_and_ifs_hand_on_descriptors(triton_device):
    x, y, out = torch.randn(12, 32), torch.randn(12, 32), torch.zeros(12, 32)
    rows_in_turn[1,](x, y, out, 12, 32, 32)
    rows = torch.arange(12)[:, None]
    assert torch.equal(out, torch.where((rows - 1) % 3 == 1, y, x))


@triton.jit
def through_host(x, out, greatest, least, M: tl.constexpr, N: tl.constexpr):
    value = x.load([0, 0])
    out.store([0, 0], value)
    greatest.atomic_max([0, 0], value)
    least.atomic_min([0, 0], value)


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint32], ids=str)
def test_the_hosts_descriptors_of_integers(dtype, triton_device):
    def random(seed):
        return torch.from_numpy(np.random.default_rng(seed).integers(-(2**31), 2**31, (8, 32), dtype=np.int64).astype(np.int32)).view(dtype)

    x, greatest, least = random(1), random(2), random(3)
    want = [np.maximum(x.numpy(), greatest.numpy()), np.minimum(x.numpy(), least.numpy())]
    out = torch.zeros_like(x)
    through_host[1,](*(TensorDescriptor.from_tensor(one, [8, 32]) for one in (x, out, greatest, least)), 8, 32)
    assert torch.equal(out, x)
    np.testing.assert_array_equal(greatest.numpy(), want[0])
    np.testing.assert_array_equal(least.numpy(), want[1])


@triton.jit
def copy_block(x, out, M: tl.constexpr, N: tl.constexpr):
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], x.load([0, 0]))


@pytest.mark.parametrize("padding, dtype", [("zero", torch.int8), ("zero", torch.int16), *((p, t) for p in ("zero", "nan") for t in (torch.float16, torch.float32))], ids=str)
def test_what_the_hosts_descriptors_pad_with(dtype, padding, triton_device):
    x = (torch.arange(6 * 16).reshape(6, 16) + 1).to(dtype)
    out = torch.full((8, 32), 77, dtype=dtype)
    copy_block[1,](TensorDescriptor.from_tensor(x, [8, 32], padding=padding), out, 8, 32)
    want = torch.full((8, 32), float("nan") if padding == "nan" else 0).to(dtype)
    want[:6, :16] = x
    assert torch.equal(out.nan_to_num(99), want.nan_to_num(99))


@pytest.mark.skipif(not hasattr(passes.ttir, "add_rewrite_tensor_pointer"), reason="newer Tritons have no block pointers")
def test_block_pointers(triton_device):
    @triton.jit
    def kernel(x, out, n, BLOCK: tl.constexpr):
        source = tl.make_block_ptr(x, [n], [1], [0], [BLOCK], [0])
        to = tl.make_block_ptr(out, [n], [1], [0], [BLOCK], [0])
        for _ in range(0, n, BLOCK):
            tl.store(to, tl.load(source, boundary_check=[0], padding_option="zero") + 1, boundary_check=[0])
            source, to = tl.advance(source, [BLOCK]), tl.advance(to, [BLOCK])

    x, out = torch.randn(100), torch.zeros(128)
    kernel[1,](x, out, 100, BLOCK=32)
    assert torch.equal(out[:100], x + 1) and not out[100:].any()
