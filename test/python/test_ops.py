"""greta.ops and greta.function against NumPy in float64, by the limits of docs/internals/numerics.md; every check is shown wrong results, too."""

import ml_dtypes
import numpy as np
import pytest

import defects
import greta
import limits
from greta import ops
from greta_runtime import DTYPES

DEVICES = ("vulkan", "host", "sim:gfx942", "sim:gfx1100")
TYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
PRECISIONS = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
ATTENTION = "attention", "attention on the host"
GRADIENTS = "attention gradients", "attention gradients on the host"


@pytest.fixture(params=DEVICES, autouse=True)
def device(request, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp()))
    greta.set_device(request.param)


def random(*shape, seed=0, dtype=np.float16):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def wide(*arrays):
    return [np.asarray(array, float) for array in arrays]


def check(got, want, *limit, depth=0, one_row=False, forms=()):
    """`limit` names one of limits.LIMITS, or one for each kind of device; `forms` are (limit, result) of what else may be computed (docs/internals/numerics.md)."""
    assert isinstance(got, greta.Array) and got.shape == want.shape
    actual, variant = got.numpy(), greta.device().spec.removeprefix("sim:")
    result = limits.Result(PRECISIONS[actual.dtype], depth, one_row or limits.counts_as_one_row(want.shape[-1], depth or 2))
    references = [*((name, [want]) for name in limit or ("row op",)), *((name, [form]) for name, form in forms)]
    problem = lambda y: limits.judge(result, references, [y], variant).get("problem")
    assert not problem(actual), problem(actual)
    assert not defects.unseen(problem, want, actual.dtype)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("shape", [(64,), (5, 96), (2, 3, 128)], ids=str)
def test_rows(type_, shape):
    dtype = TYPES[type_]
    x, up, w, b = random(*shape, dtype=dtype), random(*shape, seed=1, dtype=dtype), random(shape[-1], seed=2, dtype=dtype), random(shape[-1], seed=3, dtype=dtype)
    xd, ud, wd, bd = wide(x, up, w, b)
    check(ops.rms_norm(x, w), xd / np.sqrt((xd * xd).mean(-1, keepdims=True) + 1e-5) * wd)
    centred = xd - xd.mean(-1, keepdims=True)
    check(ops.layer_norm(x, w, b, eps=1e-3), centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-3) * wd + bd, "layer norm")
    e = np.exp(xd - xd.max(-1, keepdims=True))
    check(ops.softmax(x), e / e.sum(-1, keepdims=True))
    check(ops.swiglu(x, up), xd / (1 + np.exp(-xd)) * ud)


@pytest.mark.parametrize("style", ["neox", "gptj"])
def test_rope(style):
    x, angle = random(7, 3, 32), random(7, 16, seed=1, dtype=np.float32)
    cos, sin = np.cos(angle), np.sin(angle)
    xd, c, s = *wide(x), cos[:, None, :].astype(float), sin[:, None, :].astype(float)
    first, second = (xd[..., :16], xd[..., 16:]) if style == "neox" else (xd[..., ::2], xd[..., 1::2])
    turned = (first * c - second * s, second * c + first * s)
    want = np.concatenate(turned, -1) if style == "neox" else np.stack(turned, -1).reshape(x.shape)
    check(ops.rope(x, cos, sin, style=style), want)


@pytest.mark.parametrize("m", [1, 7, 100])
def test_matmul(m):
    a, b = random(m, 64), random(64, 48, seed=1)
    want = np.matmul(*wide(a, b))
    check(ops.matmul(a, b), want, "gemm", depth=64)
    check(ops.matmul(a, np.ascontiguousarray(b.T), transpose_b=True), want, "gemm", depth=64)
    check(ops.matmul(np.ascontiguousarray(a.T), b, transpose_a=True, out_dtype="f32"), want, "gemm", depth=64)


def test_matmul_in_batches_and_of_integers():
    a, b = random(3, 5, 32), random(3, 32, 16, seed=1)
    check(ops.matmul(a, b), np.matmul(*wide(a, b)), "gemm", depth=32)
    i, j = (np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8) for seed, shape in enumerate([(9, 64), (64, 32)]))
    got = ops.matmul(i, j).numpy()
    assert got.dtype == np.int32 and (got == i.astype(int) @ j.astype(int)).all()


@pytest.mark.parametrize("rows", [6, 90])
def test_grouped_matmul(rows):
    """Few rows of each group, and many; the last ones are in none."""
    a, b = random(rows, 64), random(4, 64, 48, seed=1)
    offsets = np.array([0, 2, 2, rows // 2, rows - 1], np.int32)
    want = np.zeros((rows, 48))
    for e in range(4):
        want[offsets[e] : offsets[e + 1]] = np.matmul(*wide(a[offsets[e] : offsets[e + 1]], b[e]))
    check(ops.grouped_matmul(a, b, offsets), want, "gemm", depth=64)
    check(ops.grouped_matmul(a, np.ascontiguousarray(b.transpose(0, 2, 1)), offsets, transpose_b=True, out_dtype="f32"), want, "gemm", depth=64)


def test_conv2d():
    """Taps with edges, on their own and traced with what follows."""
    x, w = random(2, 5, 6, 16), random(8, 3, 3, 16, seed=1)
    bias = random(8, seed=2, dtype=np.float32)
    padded = np.pad(wide(x)[0], ((0, 0), (1, 1), (1, 1), (0, 0)))
    want = sum(padded[:, r : r + 5 : 2, s : s + 6] @ wide(w)[0][:, r, s].T for r in range(3) for s in range(3)) + bias
    check(ops.conv2d(x, w, bias, stride=(np.int64(2), 1), padding=np.int32(1), out_dtype="f32"), want, "gemm", depth=144)
    check(greta.function(lambda x, w, bias: ops.conv2d(x, w, bias, stride=(2, 1), padding=(1, 1, 1, 1), out_dtype="f32") * 2.0)(x, w, bias), 2 * want, "gemm", depth=144)
    x, w = (np.ascontiguousarray(one.transpose(0, 3, 1, 2)) for one in (x, w))
    check(ops.conv2d(x, w, bias, stride=(2, 1), padding=1, out_dtype="f32", layout="nchw"), want.transpose(0, 3, 1, 2), "gemm", depth=144)


def test_quantize_rows():
    x = random(5, 96, dtype=np.float32)
    y, scale = (one.numpy() for one in ops.quantize_rows(x))
    peak = np.abs(x).max(axis=1, keepdims=True)
    assert y.dtype == np.int8 and (y == np.rint(x * (np.float32(127) / peak))).all() and (scale == peak * (np.float32(1) / np.float32(127))).all()


def test_weights_of_four_bits():
    n, k, group = 64, 128, 64
    rng = np.random.default_rng(4)
    weights, zeros = rng.integers(0, 16, (n, k)), rng.integers(0, 16, (n, k // group))
    scales = rng.uniform(0.01, 0.1, (n, k // group)).astype(np.float16)
    pack = lambda nibbles: (np.pad(nibbles, ((0, 0), (0, -nibbles.shape[1] % 8))).reshape(n, -1, 8) << 4 * np.arange(8)).sum(-1).astype(np.uint32).view(np.int32)
    q, z = pack(weights), pack(zeros)
    want = (weights - zeros.repeat(group, 1)) * scales.astype(float).repeat(group, 1)
    x = random(3, k)

    def check_both(zeros, want):
        rounded, wide = want.astype(np.float16).astype(float), x.astype(float)
        check(ops.dequant(q, scales, zeros, group), rounded, "exact")
        forms = ("packed weights", wide @ want.T), ("packed sums", wide @ want.T)
        check(ops.dequant_matmul(x, q, scales, zeros, group), wide @ rounded.T, "gemm chain", depth=k, forms=forms)

    check_both(z, want)
    check_both(None, (weights - 8) * scales.astype(float).repeat(group, 1))
    minima = rng.uniform(-1, 0.2, scales.shape).astype(np.float16)
    check_both(minima, weights * scales.astype(float).repeat(group, 1) + minima.astype(float).repeat(group, 1))


def test_dequant_of_other_formats():
    n, k = 33, 128
    rng = np.random.default_rng(5)
    x, scales = random(3, k), rng.uniform(0.01, 0.1, (n, k // 32)).astype(np.float16)
    bytes_ = rng.integers(-128, 128, (n, k)).astype(np.int8)
    want = bytes_ * scales.astype(float).repeat(32, 1)
    check(ops.dequant(bytes_.view(np.int32), scales, None, 32, "q8_0"), want.astype(np.float16).astype(float), "exact")
    forms = ("packed weights", x.astype(float) @ want.T), ("packed sums", x.astype(float) @ want.T)
    check(ops.dequant_matmul(x, bytes_.view(np.int32), scales, None, 32, "q8_0"), x.astype(float) @ want.astype(np.float16).astype(float).T, "gemm chain", depth=k, forms=forms)
    narrow, rounded = random(3, k, dtype=ml_dtypes.bfloat16), want.astype(ml_dtypes.bfloat16).astype(float)
    check(ops.dequant(bytes_.view(np.int32), scales, None, 32, "q8_0", dtype="bf16"), rounded, "exact")
    forms = (("packed weights", narrow.astype(float) @ want.T),)
    check(ops.dequant_matmul(narrow, bytes_.view(np.int32), scales, None, 32, "q8_0"), narrow.astype(float) @ rounded.T, "gemm chain", depth=k, forms=forms)
    # Weight e of a word of q, and of high, begins at bit 4 (e // 2) + 16 (e % 2), and (e // 2) + 16 (e % 2).
    weights = rng.integers(0, 32, (n, k))
    pack = lambda numbers, bits: (numbers.reshape(n, -1, 32 // bits) << (bits * (np.arange(32 // bits) // 2) + 16 * (np.arange(32 // bits) % 2))).sum(-1).astype(np.uint32).view(np.int32)
    want = (weights - 16) * scales.astype(float).repeat(32, 1)
    check(ops.dequant(pack(weights & 15, 4), scales, None, 32, "q5_0", high=pack(weights >> 4, 1)), want.astype(np.float16).astype(float), "exact")
    # Floats of e4m3, 1.5 and 1 + e / 8 say, with a scale for 128 rows.
    n = 130
    codes, scales = rng.integers(0x38, 0x40, (n, k)).astype(np.uint8), rng.uniform(0.01, 0.1, (2, 1)).astype(np.float32)
    want = ((1 + (codes - 0x38) / 8) * scales.astype(float).repeat(128, 0)[:n]).astype(np.float32)
    check(ops.dequant(codes.view(np.int32), scales, None, 128, "e4m3_block"), want.astype(np.float16).astype(float), "exact")


def attended(q, k, v, keys, causal=False, mask=0.0):
    """One sequence in float64: q [Hq, S, D], k and v [Hkv, T, D]; rows are aligned at the end of the valid keys."""
    q, k, v = wide(q, k, v)
    k, v = (one[:, :keys].repeat(q.shape[0] // one.shape[0], 0) for one in (k, v))
    logits = q @ k.transpose(0, 2, 1) / q.shape[-1] ** 0.5 + mask
    if causal:
        row, key = np.arange(q.shape[1])[:, None], np.arange(keys)[None, :]
        logits = np.where(key <= row + keys - q.shape[1], logits, -np.inf)
    p = np.exp(logits - logits.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v


def test_attention():
    q, k, v = random(2, 4, 5, 32), random(2, 2, 9, 32, seed=1), random(2, 2, 9, 32, seed=2)
    check(ops.attention(q, k, v), np.stack([attended(q[b], k[b], v[b], 9) for b in range(2)]), *ATTENTION, depth=9)
    lengths = np.array([7, 9], np.int32)
    want = np.stack([attended(q[b], k[b], v[b], lengths[b], causal=True) for b in range(2)])
    check(ops.attention(q, k, v, causal=True, lengths=lengths), want, *ATTENTION, depth=9)
    mask = random(1, 1, 5, 9, seed=3, dtype=np.float32)
    check(ops.attention(q, k, v, mask=mask, scale=32**-0.5), np.stack([attended(q[b], k[b], v[b], 9, mask=mask[0, 0]) for b in range(2)]), *ATTENTION, depth=9)


def test_attention_of_quantised_keys():
    q, k, v = random(2, 4, 5, 32), random(2, 2, 9, 32, seed=1), random(2, 2, 9, 32, seed=2)
    k_scale, v_scale = (np.abs(x).max(-1, initial=0.0).astype(np.float32) / 127 for x in (k, v))
    k8, v8 = (np.round(x / scale[..., None]).astype(np.int8) for x, scale in ((k, k_scale), (v, v_scale)))
    near = [x.astype(float) * scale[..., None] for x, scale in ((k8, k_scale), (v8, v_scale))]
    want = np.stack([attended(q[b], near[0][b], near[1][b], 9, causal=True) for b in range(2)])
    check(ops.attention(q, k8, v8, causal=True, k_scale=k_scale, v_scale=v_scale), want, *ATTENTION, depth=9)

    one = np.full((1, 1, 1), 0.25, np.float32)

    @greta.function
    def paged(q, k, v, table, lengths, k_scale, v_scale):
        return ops.paged_attention(q, k, v, table, lengths, k_scale=k_scale, v_scale=v_scale)

    pages = np.round(4 * random(2, 5, 8, 2, 32, seed=3)).astype(np.int8)
    table, lengths = np.array([[3, 0], [1, 4]], np.int32), np.array([11, 16], np.int32)
    flat = lambda cache, b: cache[table[b]].reshape(-1, 2, 32).transpose(1, 0, 2) / 4.0
    want = np.stack([attended(q[b], flat(pages[0], b), flat(pages[1], b), lengths[b], causal=True) for b in range(2)])
    check(paged(q, *pages, table, lengths, one, one), want, *ATTENTION, depth=16)


def test_attention_backward():
    q, k, v, do = random(2, 4, 5, 32), random(2, 2, 9, 32, seed=1), random(2, 2, 9, 32, seed=2), random(2, 4, 5, 32, seed=3)
    lengths = np.array([7, 9], np.int32)
    o, lse = ops.attention(q, k, v, causal=True, lengths=lengths, with_lse=True)
    got = ops.attention_backward(q, k, v, o, lse, do, causal=True, lengths=lengths)
    row, key = np.arange(5)[:, None], np.arange(9)[None, :]
    want = [np.zeros((2, heads, *one.shape[2:])) for heads, one in ((4, q), (4, k), (4, v))]
    sums = np.zeros((2, 4, 5))
    for b in range(2):
        qd, kd, vd, dod = wide(q[b], k[b].repeat(2, 0), v[b].repeat(2, 0), do[b])
        x = np.where(key <= row + lengths[b] - 5, qd @ kd.transpose(0, 2, 1) / 32**0.5, -np.inf)
        largest = x.max(-1, keepdims=True)
        sums[b] = (largest + np.log(np.exp(x - largest).sum(-1, keepdims=True)))[..., 0]
        # Gradients are those of the result and the sums that they are given, which are rounded.
        p = np.exp(x - lse.numpy()[b].astype(float)[..., None])
        dx = p * (dod @ vd.transpose(0, 2, 1) - (o.numpy()[b].astype(float) * dod).sum(-1, keepdims=True)) / 32**0.5
        want[0][b], want[1][b], want[2][b] = dx @ kd, dx.transpose(0, 2, 1) @ qd, p.transpose(0, 2, 1) @ dod
    for one, right in zip(got, (want[0], *(one.reshape(2, 2, 2, 9, 32).sum(2) for one in want[1:])), strict=True):
        check(one, right, *GRADIENTS, depth=9, one_row=True)
    check(lse, sums, *ATTENTION, depth=9)


def test_caches():
    cache, new = random(2, 2, 12, 32), random(2, 2, 3, 32, seed=1)
    want = cache.astype(float)
    for b, pos in enumerate((4, 0)):
        want[b, :, pos : pos + 3] = new[b]
    there = greta.asarray(cache)
    check(ops.kv_update(there, new, np.array([4, 0], np.int32)), want, "exact")
    assert (there.numpy() == cache).all()  # the value is another one
    pages, rows = random(4, 8, 2, 32, seed=2), random(3, 2, 32, seed=3)
    want = pages.astype(float)
    want[1, 3], want[3, 0] = rows[0], rows[2]
    check(ops.paged_kv_update(pages, rows, np.array([11, -1, 24], np.int32)), want, "exact")


def test_checked_caches(request, monkeypatch):
    """What is dropped otherwise is an error then; the host does not check."""
    monkeypatch.setenv("GRETA_CHECK", "1")
    pages, rows = random(4, 8, 2, 32), random(3, 2, 32, seed=1)
    ops.paged_kv_update(pages, rows, np.array([11, -1, 31], np.int32)).numpy()
    if request.node.callspec.params["device"] != "host":
        with pytest.raises(greta.Error, match="an entry of 'slots' is beyond the cache"):
            ops.paged_kv_update(pages, rows, np.array([11, -1, 32], np.int32)).numpy()


def test_paged_attention():
    q, k, v = random(2, 4, 1, 32), random(5, 8, 2, 32, seed=1), random(5, 8, 2, 32, seed=2)
    table, lengths = np.array([[3, 0], [1, 4]], np.int32), np.array([11, 16], np.int32)
    flat = lambda cache, b: cache[table[b]].reshape(-1, 2, 32).transpose(1, 0, 2)
    want = np.stack([attended(q[b], flat(k, b), flat(v, b), lengths[b], causal=True) for b in range(2)])
    none = np.full(4, -np.inf, np.float32)
    check(ops.paged_attention(q, k, v, table, lengths, sinks=none), want, *ATTENTION, depth=16)
    rows = random(4, 4, 32, seed=3)
    begins = np.array([0, 1, 4], np.int32)
    heads = rows.transpose(1, 0, 2)
    want = np.concatenate([attended(heads[:, begins[b] : begins[b + 1]], flat(k, b), flat(v, b), lengths[b], causal=True) for b in range(2)], axis=1).transpose(1, 0, 2)
    check(ops.paged_attention(rows, k, v, table, lengths, begins=begins), want, *ATTENTION, depth=16)


def test_function_fuses():
    @greta.function
    def block(x, residual, w, scale):
        total = x + residual * scale
        return total, ops.rms_norm(total, w) / 2.0

    x, residual, w = random(6, 64), random(6, 64, seed=1), random(64, seed=2)
    total, half = block(x, greta.asarray(residual), w, 0.5)
    want = np.asarray(x + residual * np.float16(0.5), float)
    check(total, want)
    check(half, want / np.sqrt((want * want).mean(-1, keepdims=True) + 1e-5) * w.astype(float) / 2)

    @greta.function
    def arithmetic(x, y):
        return -x * (1.0 - y) + 3 / y, ops.softmax(x - y)

    x, y = random(3, 8, dtype=np.float32), 2 + random(3, 8, seed=1, dtype=np.float32) ** 2
    x, y = wide(*(given := (x, y)))
    difference = np.exp(x - y - (x - y).max(-1, keepdims=True))
    sums, softmax = arithmetic(*given)
    check(sums, -x * (1 - y) + 3 / y)
    check(softmax, difference / difference.sum(-1, keepdims=True), "chain")


@pytest.mark.parametrize(
    "call,message",
    [
        (lambda: ops.rms_norm(random(3, 8), random(5)), "'w' is 'tensor<5xf16>'"),
        (lambda: ops.matmul(random(3, 8), random(9, 4)), "'b' has 9 elements in dimension 0, not 8"),
        (lambda: ops.matmul(random(3, 8), random(8)), "matmul takes matrices"),
        (lambda: ops.grouped_matmul(random(3, 8), random(8, 4), np.zeros(2, np.int32)), "grouped_matmul takes a matrix and one for each group"),
        (lambda: ops.grouped_matmul(random(3, 8), random(2, 8, 4), np.zeros(2, np.int32)), "'offsets' is 'tensor<2xi32>'; it has E . 1 elements"),
        (lambda: ops.conv2d(random(3, 8), random(8, 1, 1, 4)), "conv2d takes images and weights of 4 dimensions"),
        (lambda: ops.conv2d(random(1, 3, 3, 8), random(8, 1, 1, 8), padding=(1, 1, 1)), "padding of conv2d is"),
        (lambda: ops.conv2d(random(1, 3, 3, 8), random(8, 1, 1, 8), stride=(1, 0)), r"stride of conv2d is \(1, 0\); its numbers are at least 1"),
        (lambda: ops.conv2d(random(1, 3, 3, 8), random(8, 1, 1, 8), dilation=1.5), "dilation of conv2d is 1.5; it takes one number"),
        (lambda: ops.conv2d(random(1, 3, 3, 8), random(8, 3, 3, 8), padding=np.int64(-1)), "padding of conv2d is .*; its numbers are at least 0"),
        (lambda: ops.conv2d(random(1, 3, 3, 8), random(8, 1, 2, 8), dilation=(1, 3)), "conv2d has no place for taps of w"),
        (lambda: ops.conv2d(random(1, 8, 3, 3), random(8, 8, 1, 1), layout="chwn"), "layout of conv2d is 'chwn'; it is 'nhwc' or 'nchw'"),
        (lambda: ops.quantize_rows(random(2, 3, 8)), "quantize_rows takes a matrix"),
        (lambda: ops.softmax(np.ones((2, 3), np.int32)), "'x' has element type 'i32'; it takes f32, f16 or bf16"),
        (lambda: ops.softmax(np.float32(1)), "at least 1 dimension"),
        (lambda: ops.swiglu(random(4, 8), random(2, 8)), "argument 1 .* dim 0 is 2, the function needs 4"),
        (lambda: ops.rope(random(2, 1, 8), random(2, 4, dtype=np.float32), random(2, 4, dtype=np.float32), style="bert"), "style"),
        (lambda: greta.function(lambda x, y: x + y)(random(4, 8), random(8)), "add of tensor<4x8xf16> and tensor<8xf16>"),
        (lambda: greta.function(lambda x: x + random(4, 8))(random(4, 8)), "ndarray is no argument of the function"),
        (lambda: ops.matmul(random(3, 8), random(8, 4), out_dtype="f64"), "f64"),
        (lambda: ops.attention(*[random(1, 1, 4, 8)] * 3, k_scale=np.ones((1, 1, 1), np.float32)), "scales are given for keys and for values"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(greta.Error, match=message):
        call()


def message_of(call):
    """Returns the error that refuses a call. A caught exception that somebody keeps would hold the arrays of its frames, and their device open."""
    try:
        call()
    except greta.Error as error:
        return str(error)
    raise AssertionError("nothing was refused")


def test_errors_are_of_a_line_of_python():
    """The compiler's messages name the line that called the operator, in a decorated function as on arrays."""

    @greta.function
    def wrong(x, w):
        doubled = x + x
        return ops.rms_norm(doubled, w)

    x, w = random(3, 64), random(32)
    for call, code in ((lambda: wrong(x, w), "return ops.rms_norm(doubled, w)"), (lambda: ops.rms_norm(x, w), "ops.rms_norm(x, w)")):
        first, second, *_ = message_of(call).splitlines()
        assert first.startswith(f"{__file__}:") and "error: " in first and code in second, (first, second)
        number = int(first.removeprefix(f"{__file__}:").partition(":")[0])
        assert code in open(__file__).read().splitlines()[number - 1]


def test_arrays_hint_at_functions():
    a = greta.asarray(random(4))
    for wrong in (lambda: a + a, lambda: 2 * a, lambda: a @ a, lambda: -a):
        with pytest.raises(TypeError, match="@greta.function"):
            wrong()
