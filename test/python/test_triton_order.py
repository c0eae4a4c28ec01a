"""A program's loads and stores of one memory take effect in the program's order, whichever lanes do them (docs/internals/tile-language.md, Memory). Triton's interpreter,
which runs a program as one thread, gives what these tests want, too."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import greta

pytest.importorskip("triton")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# One target of each kind: no matrices, MFMA, WMMA of two generations, multiply-adds alone.
DEVICES = ("interpreter",) if IS_INTERPRETED else ("vulkan", "sim:gfx942", "sim:gfx1030", "sim:gfx1100", "sim:gfx1201")


@pytest.fixture(params=DEVICES)
def launch(request):
    """Runs a kernel on arrays, an array that is given twice as one buffer."""

    def run(kernel, grid, *arguments, **options):
        if IS_INTERPRETED:
            import torch

            tensors = {id(a): torch.from_numpy(a) for a in arguments if isinstance(a, np.ndarray)}
            kernel[grid](*(tensors.get(id(a), a) for a in arguments))
        else:
            kernel[grid](*arguments, **options)

    if not IS_INTERPRETED:
        greta.triton.activate(request.param)
    yield run
    if not IS_INTERPRETED:
        greta.triton.deactivate()


@triton.jit
def multiply_in_place(a, c, count, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    for t in range(0, count):
        product = tl.dot(tl.load(c + at), tl.load(a + t * N * N + at))
        tl.store(c + at, product.to(tl.float16))


@pytest.mark.parametrize("warps", [1, 4])
def test_dot_in_place(launch, warps):
    rng = np.random.default_rng(7)
    a = np.stack([np.eye(32)[rng.permutation(32)] for _ in range(5)]).astype(np.float16)
    c = rng.integers(-3, 4, (32, 32)).astype(np.float16)
    want = np.linalg.multi_dot([c.astype(float), *a.astype(float)])
    launch(multiply_in_place, (1,), a, c, 5, 32, num_warps=warps)
    assert (c == want).all()


@triton.jit
def decay(a, b, weights, out, count, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.float32)
    for t in range(0, count):
        weight = tl.load(weights + n)
        x = tl.load(a + t * M * K + i[:, None] * K + k[None, :])
        y = tl.load(b + t * N * K + k[:, None] * N + n[None, :])
        total += tl.dot(x, y) * weight[None, :]
        tl.store(weights + n, weight * 0.5)
    tl.store(out + i[:, None] * N + n[None, :], total)


def test_row_in_place_beside_a_dot(launch):
    """Every wave loads the row, one stores it."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (5, 64, 32)).astype(np.float16), rng.integers(-3, 4, (5, 32, 32)).astype(np.float16)
    weights, out = 64 * rng.integers(1, 5, 32).astype(np.float32), np.zeros((64, 32), np.float32)
    want, left = sum(x.astype(float) @ y.astype(float) * weights * 0.5**t for t, (x, y) in enumerate(zip(a, b))), weights * 0.5**5
    launch(decay, (1,), a, b, weights, out, 5, 64, 32, 32, num_warps=4)
    assert (out == want).all() and (weights == left).all()


@triton.jit
def slide(x, count, step, N: tl.constexpr):
    i = tl.arange(0, N)
    for t in range(0, count):
        block = tl.load(x + t * step + i)
        tl.store(x + t * step + i, block * 3 + t)


@pytest.mark.parametrize("step", [1, 96, 256])
def test_blocks_that_overlap_from_iteration_to_iteration(launch, step):
    x = np.arange(256 + 4 * step, dtype=np.int32)
    want = x.copy()
    for t in range(5):
        want[t * step : t * step + 256] = want[t * step : t * step + 256] * 3 + t
    launch(slide, (1,), x, 5, step, 256, num_warps=4)
    assert (x == want).all()


@triton.jit
def shift(x, N: tl.constexpr):
    i = tl.arange(0, N)
    block = tl.load(x + i)
    tl.store(x + i + 1, block)
    tl.store(x + 2 * i, tl.load(x + N - i))


def test_blocks_that_overlap(launch):
    x = np.arange(600, dtype=np.int32)
    want = x.copy()
    want[1:257] = want[:256]
    want[: 2 * 256 : 2] = want[256:0:-1].copy()
    launch(shift, (1,), x, 256, num_warps=4)
    assert (x == want).all()


@triton.jit
def transposed(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    block = tl.load(x + i[:, None] * N + i[None, :])
    product = tl.dot(block, tl.trans(block))
    tl.store(y + i[:, None] * N + i[None, :], product.to(tl.float16))


def test_one_buffer_for_two_arguments(launch):
    rng = np.random.default_rng(3)
    x = rng.integers(-3, 4, (32, 32)).astype(np.float16)
    want = x.astype(float) @ x.T.astype(float)
    launch(transposed, (1,), x, x, 32, num_warps=4)
    assert (x == want).all()


@triton.jit
def chase(x, index, out, count, N: tl.constexpr):
    """A load's addresses follow from data, and other lanes have stored there."""
    i = tl.arange(0, N)
    at = tl.load(index + i)
    for t in range(0, count):
        tl.store(x + at, i * 7 + t)
        tl.store(x + N - 1 - at, tl.load(x + i) + 1, mask=i % 3 == 0)
    tl.store(out + i, tl.load(x + i))


def test_places_from_data(launch):
    rng = np.random.default_rng(5)
    index, x, out = rng.permutation(128).astype(np.int32), np.zeros(128, np.int32), np.zeros(128, np.int32)
    want, i = np.zeros(128, np.int32), np.arange(128)
    for t in range(3):
        want[index] = i * 7 + t
        loaded = want.copy()
        want[(127 - index)[i % 3 == 0]] = loaded[i % 3 == 0] + 1
    launch(chase, (1,), x, index, out, 3, 128, num_warps=4)
    assert (out == want).all() and (x == want).all()


@triton.jit
def pipelined_then_in_place(a, b, c, K, N: tl.constexpr, B: tl.constexpr):
    """Loads that run ahead in a loop stay behind the store before it and in front of the one after it."""
    i, k = tl.arange(0, N), tl.arange(0, B)
    tl.store(a + i[:, None] * K + i[None, :], tl.load(a + i[:, None] * K + i[None, :]) * 2)
    total = tl.zeros((N, N), dtype=tl.float32)
    for t in range(0, K, B):
        total = tl.dot(tl.load(a + i[:, None] * K + (t + k)[None, :]), tl.load(b + (t + k)[:, None] * N + i[None, :]), total)
    tl.store(a + i[:, None] * K + i[None, :], total.to(tl.float16))
    tl.store(c + i[:, None] * N + i[None, :], total)


def test_pipelined_loads_between_stores(launch):
    rng = np.random.default_rng(6)
    a, b, c = rng.integers(-2, 3, (32, 128)).astype(np.float16), rng.integers(-2, 3, (128, 32)).astype(np.float16), np.zeros((32, 32), np.float32)
    after = a.copy()
    after[:, :32] *= 2
    want = after.astype(float) @ b.astype(float)
    after[:, :32] = want
    launch(pipelined_then_in_place, (1,), a, b, c, 128, 32, 32, num_warps=4)
    assert (c == want).all() and (a == after).all()


@triton.jit
def late_matmul(a, b, c, start, end, N: tl.constexpr, K: tl.constexpr):
    i, k = tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((N, N), dtype=tl.float32)
    for t in range(start, end, K):
        x = tl.load(a + i[:, None] * 64 + (t - start) + k[None, :])
        y = tl.load(b + ((t - start) + k)[:, None] * N + i[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + i[:, None] * N + i[None, :], total)


@pytest.mark.parametrize("start", [2**31 - 1 - 64, 2**31 - 1 - 96, -(2**31), -32])
def test_loads_ahead_of_a_counter_near_its_end(launch, start):
    rng = np.random.default_rng(0)
    a, b, c = rng.integers(-3, 4, (32, 64)).astype(np.float16), rng.integers(-3, 4, (64, 32)).astype(np.float16), np.zeros((32, 32), np.float32)
    launch(late_matmul, (1,), a, b, c, start, start + 64, 32, 32)
    assert (c == a.astype(float) @ b.astype(float)).all()


@triton.jit
def matmul_of_wide_offsets(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    columns = (tl.program_id(1) * BN + tl.arange(0, BN)).to(tl.int64)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + depth)[None, :], mask=rows[:, None] < M, other=0.0)
        y = tl.load(b + (k + depth)[:, None] * N + columns[None, :], mask=columns[None, :] < N, other=0.0)
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total, mask=(rows[:, None] < M) & (columns[None, :] < N))


def test_masks_of_64_bits(launch):
    rng = np.random.default_rng(0)
    a, b, c = rng.integers(-3, 4, (40, 64)).astype(np.float16), rng.integers(-3, 4, (64, 56)).astype(np.float16), np.full((40, 56), -7, np.float32)
    launch(matmul_of_wide_offsets, (2, 2), a, b, c, 40, 56, 64, 32, 32, 32)
    assert (c == a.astype(float) @ b.astype(float)).all()


@triton.jit
def matmul_of_any_strides(a, b, c, M, N, K, first_a, first_b, stride_am, stride_ak, stride_bk, stride_bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WHOLE: tl.constexpr):
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    at_a = a + first_a + m[:, None] * stride_am + k[None, :] * stride_ak
    at_b = b + first_b + k[:, None] * stride_bk + n[None, :] * stride_bn
    total = tl.full((BM, BN), 1, tl.float32)
    for done in range(0, K, BK):
        x = tl.load(at_a, mask=(m[:, None] < M) & (k[None, :] < K - done), other=0.0)
        y = tl.load(at_b, mask=(k[:, None] < K - done) & (n[None, :] < N), other=0.0)
        total = tl.dot(x, y, total)
        at_a += BK * stride_ak
        at_b += BK * stride_bk
    if WHOLE:
        tl.store(c + m[:, None] * (tl.num_programs(1) * BN) + n[None, :], total)
    else:
        tl.store(c + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


# Rows backwards, columns backwards; programs beyond the last row and column, whose sums are stored or not; as many rows as NVIDIA's transposed instruction has.
@pytest.mark.parametrize("rows, block, whole", [(40, 32, False), (40, 32, True), (7, 8, False)])
def test_blocks_beyond_the_end_and_negative_strides(launch, rows, block, whole):
    rng = np.random.default_rng(0)
    m, n, k = rows, 56, 75
    a, b = rng.integers(-3, 4, (m, k)).astype(np.float16), rng.integers(-3, 4, (k, n)).astype(np.float16)
    grid = (-(-m // block) + 1, 3)
    c = np.full((grid[0] * block, grid[1] * 32) if whole else (m, n), -7, np.float32)
    launch(matmul_of_any_strides, grid, a, b, c, m, n, k, (m - 1) * k, k * n - 1, -k, 1, -n, -1, block, 32, 32, whole)
    want = 1 + a[::-1].astype(float) @ b[::-1, ::-1].astype(float)
    if whole:
        want = np.pad(want - 1, ((0, c.shape[0] - m), (0, c.shape[1] - n))) + 1
    assert (c == want).all()


# Targets whose drivers load matrices take one stage, whose selections come later.
@pytest.mark.parametrize("target", ["vulkan:nvidia", "vulkan:rdna3"])
def test_masks_of_64_bits_compile_where_drivers_have_matrices(target):
    greta.compile(matmul_of_wide_offsets, signature="*fp16, *fp16, *fp32, i32, i32, i32, 32, 32, 32", targets=[target])


@triton.jit
def chains(a, b, out, n, TIMES: tl.constexpr):
    """Each step uses the one before twice or more."""
    i = tl.arange(0, 32)
    at = i[:, None] * 32 + i[None, :]
    y = tl.dot(tl.load(a + at), tl.load(b + at))
    mask = at < n
    for _ in tl.static_range(TIMES):
        y = y * (1.5 - 0.5 * y * y)
        mask = (mask & (at < n + 1)) & (mask & (at >= 0))
    far = i
    for _ in tl.static_range(TIMES):
        far = far + far
    row = tl.load(out + far, mask=far < n, other=1.0)
    tl.store(out + at, y * row[None, :], mask=mask)


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "vulkan:portable", "vulkan:nvidia"])
def test_chains_compile_in_linear_time(target):
    greta.compile(chains, signature="*fp16, *fp16, *fp32, i32, 60", targets=[target], grid="1")


@pytest.mark.skipif(IS_INTERPRETED, reason="it is the interpreter")
def test_tritons_interpreter_agrees():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not compile", pathlib.Path(__file__)]
    ran = subprocess.run(command, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0 and "passed" in ran.stdout, ran.stdout
