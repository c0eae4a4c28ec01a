"""Numbers at the edges, on a device of each family: roundings that must happen once, powers as C has them, sums that must not overflow, rows with NaN."""

import ml_dtypes
import numpy as np
import pytest

import greta

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

NARROW = {
    "float16": (tl.float16, torch.float16, np.float16),
    "bfloat16": (tl.bfloat16, torch.bfloat16, ml_dtypes.bfloat16),
    "float8e5": (tl.float8e5, torch.float8_e5m2, ml_dtypes.float8_e5m2),
    "float8e4nv": (tl.float8e4nv, torch.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
}


@triton.jit
def convert(x, y, dtype: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i).to(dtype))


def around_middles(kind):
    """For neighbours of a type: their middle, the next f64 on both sides of it, and f64 that f32 rounds to the middle."""
    last = 448.0 if kind is ml_dtypes.float8_e4m3fn else float(ml_dtypes.finfo(kind).max)
    numbers = np.unique(np.abs(np.geomspace(float(ml_dtypes.finfo(kind).smallest_subnormal), last, 100)).astype(kind).astype(float))
    middles = (numbers[:-1] + numbers[1:]) / 2
    middles = middles[np.float32(middles) == middles]
    values = np.concatenate([numbers, middles, *(middles * (1 + sign * 2.0**-bits) for sign in (1, -1) for bits in (30, 40, 52))])
    special = [0.0, np.inf, np.nan, 5e-324, 2.0**-151, last * (1 + 2.0**-40), 1e300]
    return np.concatenate([values, special, -values, -np.array(special)])


def narrowed(x, kind):
    """Each f64 as the nearest number of the type, ties to even; beyond them the largest of types of 8 bits, as Triton has it."""
    if kind in (ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn):
        x = np.clip(x, -float(ml_dtypes.finfo(kind).max), float(ml_dtypes.finfo(kind).max))
    bits = ml_dtypes.finfo(kind).nmant
    size = np.abs(x)
    with np.errstate(all="ignore"):
        place = np.maximum(np.floor(np.log2(np.where(size > 0, size, 1))), ml_dtypes.finfo(kind).minexp)
        # log2 may be one off next to a power of two.
        place = np.where(np.ldexp(1.0, place.astype(int)) > size, np.maximum(place - 1, ml_dtypes.finfo(kind).minexp), place)
        unit = np.ldexp(1.0, np.clip(place - bits, -1000, 1000).astype(int))
        return np.where(np.isfinite(x), np.copysign(np.rint(size / unit) * unit, x), x).astype(kind)


@pytest.mark.parametrize("name", NARROW)
def test_doubles_are_rounded_once(triton_device, name):
    dtype, stored, kind = NARROW[name]
    x = around_middles(kind)
    x = np.pad(x, (0, triton.next_power_of_2(len(x)) - len(x)))
    y = torch.zeros(len(x), dtype=stored)
    convert[1,](torch.from_numpy(x), y, dtype, len(x))
    got, want = y.to(torch.float64).numpy(), narrowed(x, kind).astype(float)
    wrong = np.flatnonzero(~((got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)))
    assert not len(wrong), [(x[i].hex(), got[i], want[i]) for i in wrong[:8]]


@triton.jit
def convert_towards_zero(x, y, dtype: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i).to(dtype, fp_downcast_rounding="rtz").to(tl.uint8, bitcast=True))


@pytest.mark.parametrize("dtype,least,negative_zero", [(tl.float8e5b16, 2.0**-17, 0), (tl.float8e4b8, 2.0**-10, 0), (tl.float8e5, 2.0**-16, 0x80), (tl.float8e4nv, 2.0**-9, 0x80)], ids=str)
def test_towards_zero_there_is_no_nan(triton_device, dtype, least, negative_zero):
    """In front of the first number below zero is zero, also where that has no sign and the code of -0 is NaN's."""
    x = torch.tensor([0.75, -0.75, 1, -1, 1.75, -1.75, 0.5, 0]) * least
    y = torch.zeros(8, dtype=torch.uint8)
    convert_towards_zero[1,](x, y, dtype, 8)
    assert y.tolist() == [0, negative_zero, 1, 0x81, 1, 0x81, 0, 0]


@triton.jit
def power(x, e, y, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y + i, tl.extra.libdevice.pow(tl.load(x + i), tl.load(e + i)))


@triton.jit
def constant_power(x, y, E: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.extra.libdevice.pow(tl.load(x + i), tl.full([N], E, tl.float32)))


TINY = float(np.finfo(np.float32).tiny)
BASES = [0, 1, 0.5, 2, 3, 0.999, 1.001, 7.5, 1e-20, 1e20, 3e38, TINY, 2.0**-130, 2.0**-149, np.inf, np.nan]
BASES = np.float32(BASES + [-base for base in BASES])
EXPONENTS = [0, 1, 2, 3, 0.5, 1.5, 2.5, 1 / 3, 20, 21, 64, 65, 16777215, 16777216, 1e30, 3e38, TINY, 2.0**-149, np.inf, np.nan]
EXPONENTS = np.float32(EXPONENTS + [-exponent for exponent in EXPONENTS])


def check_power(x, e, y):
    """Against C's pow in f64; what is denormal in f32 may be zero, as operand and as result."""
    with np.errstate(all="ignore"):
        want = np.power(x.astype(float), e.astype(float)).astype(np.float32)
        flushed = np.power(np.where(np.abs(x) < TINY, np.copysign(0, x), x).astype(float), e.astype(float)).astype(np.float32)
        near = (np.abs(y.astype(float) - want) <= 3e-5 * np.abs(want)) & np.isfinite(want) & (np.signbit(y) == np.signbit(want))
        small = (np.abs(want) < TINY) & (np.abs(y) <= TINY) & (np.signbit(y) == np.signbit(want))
        right = (y == want) & (np.signbit(y) == np.signbit(want)) | near | small | np.isnan(y) & np.isnan(want)
        # A denormal base that a device takes for zero.
        right |= (y == flushed) & (np.abs(x) < TINY) & (x != 0)
    wrong = np.flatnonzero(~right)
    assert not len(wrong), [f"pow({x[i]}, {e[i]}) = {y[i]}, not {want[i]}" for i in wrong[:8]]


def test_powers(triton_device):
    x, e = (grid.ravel() for grid in np.meshgrid(BASES, EXPONENTS))
    y = np.zeros(len(x), np.float32)
    power[len(x) // 128,](x, e, y, 128)
    check_power(x, e, y)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, -3.0, 64.0, 0.5, -2.5, 65.0, 1e30, -1e30, float("inf"), float("-inf")])
def test_powers_by_a_constant(triton_device, exponent):
    y = np.zeros(len(BASES), np.float32)
    constant_power[1,](BASES, y, exponent, len(BASES))
    check_power(BASES, np.full(len(BASES), exponent, np.float32), y)


@triton.jit
def remainder(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.load(x + i) % tl.load(y + i))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_remainders_are_exact(triton_device, kind):
    """As C's fmod, however large the quotient: x - y trunc(x / y) is wrong by y where the quotient is rounded."""
    rng, n = np.random.default_rng(6), 256
    x, y = rng.uniform(-60000, 60000, n).astype(kind), rng.uniform(0.01, 1, n).astype(kind)
    least, most = np.finfo(kind).smallest_subnormal, np.finfo(kind).max
    if kind is not np.float16:
        x[::3] *= kind(1e20)
        y[::5] *= kind(1e-10)
    special = [0, least, 3 * least, most, np.inf, np.nan, -y[0]]
    pairs = np.array([(a, b) for a in special for b in special], kind)
    x[: len(pairs)], y[: len(pairs)] = pairs.T
    z = np.zeros(n, kind)
    remainder[1,](*map(torch.from_numpy, (x, y, z)), n)
    with np.errstate(all="ignore"):
        want = np.fmod(x, y)
    assert ((z == want) & (np.signbit(z) == np.signbit(want)) | np.isnan(z) & np.isnan(want)).all()


@triton.jit
def compensated(x, y, out, N: tl.constexpr):
    """What a sum lost (Knuth), Kahan's sum of four, and whether there is NaN."""
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    total = a + b
    there = total - a
    tl.store(out + i, (a - (total - there)) + (b - there))
    kept, lost = a, a * 0
    for _ in range(3):
        next = b - lost
        more = kept + next
        lost = (more - kept) - next
        kept = more
    tl.store(out + N + i, kept)
    tl.store(out + 2 * N + i, lost)
    tl.store(out + 3 * N + i, a - a)


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64))
def test_compensated_sums(triton_device, dtype):
    """Drivers that take (a + b) - a for b make nothing of them."""
    rng = np.random.default_rng(3)
    kind = np.float32 if dtype == torch.float32 else np.float64
    a, b = (rng.standard_normal(256).astype(kind) * kind(scale) for scale in (1e3, 1))
    a[:3] = np.nan, np.inf, -np.inf
    out = torch.zeros(4 * 256, dtype=dtype)
    compensated[1,](torch.from_numpy(a), torch.from_numpy(b), out, 256)
    with np.errstate(invalid="ignore"):
        total = a + b
        there = total - a
        kept, lost = a, a * 0
        for _ in range(3):
            following = b - lost
            more = kept + following
            kept, lost = more, (more - kept) - following
        want = np.concatenate([(a - (total - there)) + (b - there), kept, lost, a - a])
    assert np.count_nonzero(want[3:256]) > 200
    np.testing.assert_array_equal(out.numpy(), want)


@triton.jit
def compensated_rows(x, out, N: tl.constexpr, ROWS: tl.constexpr):
    """Kahan's sum, whose correction an iteration takes from what the one before has left."""
    i = tl.arange(0, N)
    total = tl.load(x + i)
    old = tl.load(x + i)
    added = total * 0
    for k in range(1, ROWS):
        lost = (total - old) - added
        added = tl.load(x + k * N + i) - lost
        old = total
        total = total + added
    tl.store(out + i, total)
    tl.store(out + N + i, (total - old) - added)


@pytest.mark.parametrize("rows", (3, 8))
def test_compensated_sums_in_loops(triton_device, rows):
    """A driver unrolls the loop and sees (total + added) - total."""
    rng = np.random.default_rng(rows)
    x = (rng.standard_normal((rows, 256)) * 10.0 ** rng.integers(-3, 4, (rows, 1))).astype(np.float32)
    out = torch.zeros(512)
    compensated_rows[1,](torch.from_numpy(x), out, 256, rows)
    total = old = x[0]
    added = total * 0
    for row in x[1:]:
        added = row - ((total - old) - added)
        old, total = total, total + added
    np.testing.assert_array_equal(out.numpy(), np.concatenate([total, (total - old) - added]))


@pytest.mark.parametrize("device", ["vulkan", "sim:gfx942"])
@pytest.mark.parametrize("size", [1e4, 65504.0])
def test_packed_weights_of_large_rows(device, size):
    greta.set_device(device)
    # In the second half of the rows B's scale keeps the result in f16.
    a = np.full((4, 256), size, np.float16)
    words, scales, zeros = np.full((64, 32), -1, np.int32), np.full((64, 2), 1e-4, np.float16), np.zeros((64, 1), np.int32)
    y = greta.to_numpy(greta.ops.dequant_matmul(a, words, scales, zeros, 128)).astype(float)
    np.testing.assert_allclose(y, 256 * size * 15 * float(np.float16(1e-4)), rtol=5e-3)
    greta.set_device("vulkan")


def test_packed_weights_of_small_rows():
    # Sums of 128ths are denormal where A is about 1e-3: digits go, a few of them.
    greta.set_device("vulkan")
    rng = np.random.default_rng(0)
    a = (rng.standard_normal((2, 1024)) * 1e-3).astype(np.float16)
    words, scales, zeros = rng.integers(-(2**31), 2**31, (64, 128), dtype=np.int32), np.ones((64, 8), np.float16), np.full((64, 1), -2004318072, np.int32)
    y = greta.to_numpy(greta.ops.dequant_matmul(a, words, scales, zeros, 128)).astype(float)
    nibbles = (words[:, :, None].astype(np.int64) >> (4 * np.arange(8)) & 15).reshape(64, 1024) - 8
    want = a.astype(float) @ nibbles.T
    assert np.linalg.norm(y - want) <= 2 * 2.0**-11 * np.linalg.norm(want)


@pytest.mark.parametrize("device", ["vulkan", "host", "sim:gfx942", "sim:gfx1100"])
def test_rows_with_nan(device):
    """A NaN makes its row NaN, and no other; so does the difference of two infinities."""
    greta.set_device(device)
    for columns in (64, 5000):
        x = np.random.default_rng(0).standard_normal((6, columns)).astype(np.float32)
        x[1, columns // 2], x[3], x[4, 0] = np.nan, np.nan, np.inf
        for dtype in (np.float32, np.float16):
            y = greta.to_numpy(greta.ops.softmax(x.astype(dtype)))
            assert [np.isnan(row).all() for row in y] == [False, True, False, True, True, False]
            assert not np.isnan(y[[0, 2, 5]]).any()
    q, k, v = (np.random.default_rng(i).standard_normal((1, 2, 64, 16)).astype(np.float16) for i in range(3))
    q[0, 0, 5, 3] = np.nan
    k[0, 1, 40, 0] = np.nan
    y = greta.to_numpy(greta.ops.attention(q, k, v, causal=True))[0]
    for head, wrong in ((0, [5]), (1, range(40, 64))):
        assert [i for i in range(64) if np.isnan(y[head, i]).any()] == list(wrong)
        assert all(np.isnan(y[head, i]).all() for i in wrong)
    greta.set_device("vulkan")
