"""Kernels in Triton's language whose Triton IR, as Triton's versions print it, lies in texts/: texts.py writes it.

KERNELS has for each function the types of its arguments, its constants, and the back end of Triton that its text comes from.
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice

KERNELS = {}
F16, F32, I32, U8 = "*fp16", "*fp32", "*i32", "*u8"


def kernel(backend="hip", num_warps=4, constants=None, **signature):
    """A kernel with a text; its arguments' types stand in the order of its parameters."""

    def register(f):
        jitted = triton.jit(f)
        KERNELS[f.__name__] = dict(function=jitted, signature=signature, constants=constants or {}, backend=backend, num_warps=num_warps)
        return jitted

    return register


@kernel(x=F32, y=F32, out=F32, n="i32", constants=dict(B=256))
def vector_add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@kernel(out=F16, x=F16, rows="i32", columns="i32", constants=dict(B=128))
def softmax(out, x, rows, columns, B: tl.constexpr):
    # Each program takes every so many-th row.
    i = tl.arange(0, B)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=2):
        v = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf")).to(tl.float32)
        e = tl.exp(v - tl.max(v, 0))
        tl.store(out + row * columns + i, (e / tl.sum(e, 0)).to(tl.float16), mask=i < columns)


@kernel(a=F16, b=F16, c=F16, M="i32", N="i32", K="i32", stride_a="i32", stride_b="i32", stride_c="i32",
        constants=dict(BM=64, BN=32, BK=32, GROUP=4))
def matmul(a, b, c, M, N, K, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    across, down = tl.cdiv(N, BN), tl.cdiv(M, BM)
    program = tl.program_id(0)
    first = program // (GROUP * across) * GROUP
    height = min(down - first, GROUP)
    pm = first + program % (GROUP * across) % height
    pn = program % (GROUP * across) // height
    tl.assume(pm >= 0)
    m, n, k = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN), tl.arange(0, BK)
    pa = a + (m % M)[:, None] * stride_a + k[None, :]
    pb = b + k[:, None] * stride_b + (n % N)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for left in range(K, 0, -BK):
        x = tl.load(pa, mask=k[None, :] < left, other=0.0)
        y = tl.load(pb, mask=k[:, None] < left, other=0.0)
        total = tl.dot(x, y, total)
        pa += BK
        pb += BK * stride_b
    total = tl.where(total > 0, total, 0.125 * total)
    tl.store(c + m[:, None] * stride_c + n[None, :], total.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@kernel(x=F32, out=F32, n="i32", p="fp32", seed="i32", constants=dict(B=256))
def dropout(x, out, n, p, seed, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(tl.rand(seed, i) > p, v / (1 - p), 0.0), mask=i < n)


@kernel(x=F16, weight=F32, bias=F32, out=F16, mean_out=F32, scale_out=F32, n="i32", eps="fp32", constants=dict(B=128))
def layer_norm(x, weight, bias, out, mean_out, scale_out, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    mean = 0.0
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        mean += tl.sum(tl.load(x + row * n + i, mask=i < n, other=0.0).to(tl.float32), 0)
    mean /= n
    squares = tl.zeros((B,), tl.float32)
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        d = tl.where(i < n, tl.load(x + row * n + i, mask=i < n, other=0.0).to(tl.float32) - mean, 0.0)
        squares += d * d
    scale = 1 / tl.sqrt(tl.sum(squares, 0) / n + eps)
    tl.store(mean_out + row, mean)
    tl.store(scale_out + row, scale)
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        v = tl.load(x + row * n + i, mask=i < n, other=0.0).to(tl.float32)
        y = (v - mean) * scale * tl.load(weight + i, mask=i < n) + tl.load(bias + i, mask=i < n)
        tl.store(out + row * n + i, y.to(tl.float16), mask=i < n)


@kernel(x=F16, weight=F32, grad=F16, mean=F32, scale=F32, dx=F16, dweight=F32, dbias=F32, n="i32", constants=dict(B=256))
def layer_norm_backward(x, weight, grad, mean, scale, dx, dweight, dbias, n, B: tl.constexpr):
    # The sums over rows meet in memory.
    row = tl.program_id(0)
    i = tl.arange(0, B)
    inside = i < n
    s = tl.load(scale + row)
    normal = (tl.load(x + row * n + i, mask=inside, other=0.0).to(tl.float32) - tl.load(mean + row)) * s
    normal = tl.where(inside, normal, 0.0)
    g = tl.load(grad + row * n + i, mask=inside, other=0.0).to(tl.float32)
    gw = g * tl.load(weight + i, mask=inside, other=0.0)
    along = tl.sum(normal * gw, 0) / n
    average = tl.sum(gw, 0) / n
    tl.store(dx + row * n + i, ((gw - (normal * along + average)) * s).to(tl.float16), mask=inside)
    tl.atomic_add(dweight + i, g * normal, mask=inside, sem="relaxed")
    tl.atomic_add(dbias + i, g, mask=inside, sem="relaxed")


@kernel(q=F16, k=F16, v=F16, out=F16, scale="fp32", queries="i32", keys="i32", constants=dict(BM=64, BN=32, D=64))
def attention(q, k, v, out, scale, queries, keys, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    m, n, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    head = tl.program_id(1)
    at = head * queries * D + m[:, None] * D + d[None, :]
    x = tl.load(q + at, mask=m[:, None] < queries, other=0.0)
    pk = k + head * keys * D + n[None, :] * D + d[:, None]
    pv = v + head * keys * D + n[:, None] * D + d[None, :]
    most = tl.full((BM,), -float("inf"), tl.float32)
    sums = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, keys, BN):
        inside = start + n < keys
        s = tl.dot(x, tl.load(pk, mask=inside[None, :], other=0.0)) * (scale * 1.4426950408889634)
        s = tl.where(inside[None, :], s, -float("inf"))
        new = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(most - new)
        sums = sums * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), tl.load(pv, mask=inside[:, None], other=0.0), acc * shrink[:, None])
        most = new
        pk += BN * D
        pv += BN * D
    tl.store(out + at, (acc / sums[:, None]).to(tl.float16), mask=m[:, None] < queries)


@kernel(a=F16, b=F16, c=F32, rows=I32, N="i32", K="i32", constants=dict(G=3, BM=32, BN=32, BK=32))
def grouped_matmul(a, b, c, rows, N, K, G: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Group g has rows[g] rows of a and c, and a matrix of b of its own; programs take tiles of all groups in turn.
    tile = tl.program_id(0)
    before = 0
    row = 0
    for g in range(G):
        M = tl.load(rows + g)
        tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
        while tile >= before and tile < before + tiles:
            m = (tile - before) // tl.cdiv(N, BN) * BM + tl.arange(0, BM)
            n = (tile - before) % tl.cdiv(N, BN) * BN + tl.arange(0, BN)
            total = tl.zeros((BM, BN), tl.float32)
            for start in range(0, K, BK):
                k = start + tl.arange(0, BK)
                x = tl.load(a + (row + m)[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
                y = tl.load(b + g * K * N + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
                total = tl.dot(x, y, total)
            tl.store(c + (row + m)[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))
            tile += tl.num_programs(0)
        before += tiles
        row += M


@kernel(a=U8, a_scale=U8, b=U8, b_scale=U8, c=F32, constants=dict(M=32, N=32, K=64))
def block_scaled_matmul(a, a_scale, b, b_scale, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    # a: two e2m1 in a byte; b: e4m3, once with scales and once without.
    m, n = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(a + m[:, None] * (K // 2) + tl.arange(0, K // 2)[None, :])
    y = tl.load(b + tl.arange(0, K)[:, None] * N + n[None, :])
    sx = tl.load(a_scale + m[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    sy = tl.load(b_scale + n[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    total = tl.dot_scaled(x, sx, "e2m1", y, sy, "e4m3")
    total = tl.dot_scaled(x, sx, "e2m1", y, None, "e4m3", acc=total)
    tl.store(c + m[:, None] * N + n[None, :], total)


@triton.jit
def _welford(mean_a, squares_a, count_a, mean_b, squares_b, count_b):
    d = mean_b - mean_a
    count = count_a + count_b
    part = tl.where(count == 0.0, 0.0, count_b / count)
    return mean_a + d * part, squares_a + squares_b + d * d * count_a * part, count


@triton.jit
def _recurrence(a, x, b, y):
    return a * b, x * b + y


@kernel(x=F32, variance=F32, best=I32, out=F32, constants=dict(M=8, N=16))
def combine(x, variance, best, out, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + m[:, None] * N + n[None, :])
    _, squares, count = tl.reduce((v, tl.zeros_like(v), tl.full((M, N), 1.0, tl.float32)), 1, _welford)
    tl.store(variance + m, squares / count)
    tl.store(best + m, tl.argmax(v, 1))
    _, decayed = tl.associative_scan((v * 0 + 0.5, v), 1, _recurrence, reverse=True)
    at = m[:, None] * N + n[None, :]
    tl.store(out + at, decayed)
    tl.store(out + M * N + at, tl.cumsum(v, 1))
    tl.store(out + 2 * M * N + at, tl.sort(v, dim=1))


@kernel(x=F32, index=I32, out=F32, counts=I32, constants=dict(B=32))
def move(x, index, out, counts, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, cache_modifier=".cg", eviction_policy="evict_first")
    k = tl.load(index + i)
    even, odd = tl.split(tl.reshape(v, (B // 2, 2)))
    tl.store(out + i, tl.trans(tl.reshape(v, (4, B // 4))).reshape(B), cache_modifier=".wt")
    tl.store(out + B + i, tl.cat(odd, even, can_reorder=True))
    tl.store(out + 2 * B + i, tl.gather(v, k, axis=0))
    tl.store(out + 3 * B + i, tl.permute(tl.reshape(v, (2, 2, B // 4)), (2, 0, 1)).reshape(B))
    tl.store(out + 4 * B + i, tl.flip(v, 0))
    tl.store(counts + tl.arange(0, 16), tl.histogram(k, 16))


@kernel(x=F32, i=I32, out=F32, constants=dict(B=64))
def elementwise(x, i, out, B: tl.constexpr):
    at = tl.arange(0, B)
    v, k = tl.load(x + at), tl.load(i + at)
    u = k.to(tl.uint32)
    y = tl.exp(v) + tl.log(v) - tl.sin(v) + tl.sqrt(v) + tl.rsqrt(v) + tl.math.erf(v) + tl.floor(v) + tl.ceil(-v) + tl.abs(v - 1)
    tl.store(out + at, y)
    tl.store(out + B + at, tl.fma(v, v, v) + tl.sqrt_rn(v) + tl.div_rn(v, v + 1) + tl.clamp(v, 0.25, 1.0) + tl.minimum(v, 0.5, propagate_nan=tl.PropagateNan.ALL) + v % 0.3)
    z = (k // 3 + k % 7 + (k << 2)) ^ (k & 5) | (k >> 1)
    tl.store(out + 2 * B + at, (tl.maximum(z, k) + tl.minimum(z, 4)).to(tl.float32))
    tl.store(out + 3 * B + at, (tl.umulhi(u * 0x9E3779B9, u * 0x85EBCA6B) // 7 % 1000 + (u >> 3)).to(tl.float32))
    tl.store(out + 4 * B + at, v.to(tl.bfloat16).to(tl.float32) + (v * 100).to(tl.float16, fp_downcast_rounding="rtz").to(tl.float32) + (v * 60).to(tl.int8).to(tl.float32))
    tl.store(out + 5 * B + at, (v * 100).to(tl.float8e5).to(tl.float32) + tl.cast(k, tl.int64).to(tl.float32) + (k > 3).to(tl.float32))


@kernel(backend="cuda", x=F32, out=F32, constants=dict(B=64))
def library(x, out, B: tl.constexpr):
    v = tl.load(x + tl.arange(0, B))
    y = libdevice.tanh(v) + libdevice.pow(v, 2.5) + libdevice.log1p(v) + libdevice.expm1(v) + tl.where(libdevice.isnan(v), 1.0, 0.0)
    tl.store(out + tl.arange(0, B), y + libdevice.rint(v * 10) + libdevice.hypot(v, 2.0))


@triton.jit(noinline=True)
def _scaled(x, y):
    return x * y + 1.0


@triton.jit
def _larger(a, b):
    if a < b:
        return b, 2
    else:
        return a, 1


@kernel(x=F32, out=F32, n="i32", mode="i32", constants=dict(B=32))
def control(x, out, n, mode, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i) + _scaled(tl.load(x), 2.0)
    if mode == 0:
        return
    k = 0
    while k < n:
        if mode > 1:
            v += 1.0
        else:
            v *= 2.0
        k += 1
    for j in tl.static_range(2):
        v += j
    for j in tl.range(0, n, 2, num_stages=3):
        v += j
    larger, which = tl.map_elementwise(_larger, v, 8.0 - v)
    tl.store(out + i, larger + which)


@kernel(x=I32, out=I32, lock=I32, constants=dict(B=32))
def atomics(x, out, lock, B: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * B + tl.arange(0, B))
    tl.atomic_add(out, tl.sum(v, 0))
    tl.atomic_max(out + 1 + tl.arange(0, B), v)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out + 40, tl.load(out + 40, volatile=True) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@kernel(backend="cuda", a=F32, out=F32, M="i32", N="i32", constants=dict(BM=16, BN=16))
def descriptors(a, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(a, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    target = tl.make_tensor_descriptor(out, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    target.store([i, j], source.load([i, j]) * 2)


@kernel(backend="cuda", source="tensordesc<fp32[1, 32]>", target="tensordesc<fp32[1, 32]>", index=I32, constants=dict(B=16))
def host_descriptors(source, target, index, B: tl.constexpr):
    rows = tl.load(index + tl.arange(0, B))
    target.scatter(source.gather(rows, 0), rows, 0)


@kernel(x=F32, n="i32", num_warps=1, constants=dict(B=16))
def debug(x, n, B: tl.constexpr):
    v = tl.load(x + tl.arange(0, B))
    tl.device_print("x is", v, n)
    tl.device_assert(n > 0, "n must be positive")


@kernel(x=F16, w=F16, y=F32, H="i32", W="i32", C="i32", N="i32", constants=dict(BM=32, BN=32, BK=32))
def padded_convolution(x, w, y, H, W, C, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # 3x3, of images [H, W, C], zeros around them; a program has BM pixels of a row
    row, first, image = tl.program_id(0), tl.program_id(1) * BM, tl.program_id(2)
    n, c = tl.arange(0, BN), tl.arange(0, BK)
    tl.assume(H > 0)
    tl.assume(W > 0)
    tl.assume(C > 0)
    tl.assume(N > 0)
    total = tl.zeros((BM, BN), tl.float32)
    for down in range(3):
        for right in range(3):
            at, columns = row + down - 1, first + tl.arange(0, BM) + right - 1
            inside = (at >= 0) & (at < H)
            for done in range(0, C, BK):
                a = tl.load(x + ((image * H + at) * W + columns[:, None]) * C + done + c[None, :],
                            mask=inside & (columns[:, None] >= 0) & (columns[:, None] < W) & (done + c[None, :] < C), other=0.0)
                b = tl.load(w + n[None, :] * (9 * C) + (down * 3 + right) * C + done + c[:, None], mask=(n[None, :] < N) & (done + c[:, None] < C), other=0.0)
                total = tl.dot(a, b, total)
    columns = first + tl.arange(0, BM)
    tl.store(y + ((image * H + row) * W + columns[:, None]) * N + n[None, :], total, mask=(columns[:, None] < W) & (n[None, :] < N))


@kernel(a=F16, b=F16, a_low=F16, b_low=F16, scale=F32, total=F32, scaled=F32, K="i32", constants=dict(BM=64, BN=64, BK=32))
def chained_products(a, b, a_low, b_low, scale, total, scaled, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # three products into one sum, and one whose rows are scaled in every iteration
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    left, right = m[:, None] * K + k[None, :], n[None, :] * K + k[:, None]
    sums, others = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for done in range(0, K, BK):
        x, y = tl.load(a + left + done), tl.load(b + right + done)
        x_low, y_low = tl.load(a_low + left + done), tl.load(b_low + right + done)
        sums = tl.dot(x, y, tl.dot(x, y_low, tl.dot(x_low, y, sums)))
        others += tl.dot(x, y) * tl.load(scale + done // BK * BM + m)[:, None]
    at = m[:, None] * BN + n[None, :]
    tl.store(total + at, sums)
    tl.store(scaled + at, others)
