"""Compiles Triton kernels for an AMD chip, without a GPU: code from a compiler that is validated on real hardware.

    python triton_kernels.py OUT CHIP      writes OUT/<kernel>.hsaco and OUT/<kernel>.json

A development dependency (pip install triton); test_triton.py runs the results in the simulator.
"""

import json
import pathlib
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vector_add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def softmax(o, x, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + r * n + c, mask=c < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(o + r * n + c, (e / tl.sum(e, 0)).to(tl.float16), mask=c < n)


@triton.jit
def layer_norm(o, x, w, b, n, eps, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < n
    v = tl.load(x + r * n + c, mask=m, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / n
    d = tl.where(m, v - mean, 0.0)
    s = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    y = d * s * tl.load(w + c, mask=m) + tl.load(b + c, mask=m)
    tl.store(o + r * n + c, y.to(tl.float16), mask=m)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A [M, K] and B [N, K] row-major, C [M, N] f32
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = K - k * BK
        x = tl.load(a + (rm % M)[:, None] * K + k * BK + rk[None, :], mask=rk[None, :] < left, other=0.0)
        y = tl.load(b + (rn % N)[None, :] * K + k * BK + rk[:, None], mask=rk[:, None] < left, other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def attention(Q, K, V, O, scale, S, T, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    om = tl.program_id(0) * BM + tl.arange(0, BM)
    h = tl.program_id(1)
    on = tl.arange(0, BN)
    od = tl.arange(0, D)
    q = tl.load(Q + h * S * D + om[:, None] * D + od[None, :])
    kp = K + h * T * D + on[None, :] * D + od[:, None]
    vp = V + h * T * D + on[:, None] * D + od[None, :]
    m = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, T, BN):
        s = tl.dot(q, tl.load(kp)) * (scale * 1.44269504)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        fix = tl.exp2(m - new)
        total = total * fix + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), tl.load(vp), acc * fix[:, None])
        m = new
        kp += BN * D
        vp += BN * D
    tl.store(O + h * S * D + om[:, None] * D + od[None, :], (acc / total[:, None]).to(tl.float16))


FP8 = {"gfx942": "fp8e4b8", "gfx950": "fp8e4nv", "gfx1200": "fp8e4nv", "gfx1201": "fp8e4nv"}


def jobs(chip):
    """name, function, signature, constants, options"""
    yield "vector_add", vector_add, dict(x="*fp32", y="*fp32", o="*fp32", n="i32"), dict(B=1024), {}
    for warps in (1, 4):
        yield f"softmax_w{warps}", softmax, dict(o="*fp16", x="*fp16", n="i32"), dict(B=1024), dict(num_warps=warps)
    yield "layer_norm", layer_norm, dict(o="*fp16", x="*fp16", w="*fp32", b="*fp32", n="i32", eps="fp32"), dict(B=1024), {}
    types = ["fp16", "bf16"] + ([FP8[chip]] if chip in FP8 else [])
    for dtype in types:
        for bm, bn, bk, stages in [(64, 64, 32, 1), (128, 128, 32, 2), (128, 64, 64, 2)]:
            if (bm, bn, bk) == (128, 64, 64) and dtype == "bf16":
                continue
            signature = dict(a="*" + dtype, b="*" + dtype, c="*fp32", M="i32", N="i32", K="i32")
            yield (f"matmul_{dtype}_{bm}x{bn}x{bk}", matmul, signature, dict(BM=bm, BN=bn, BK=bk),
                   dict(num_warps=4, num_stages=stages))
    signature = dict(Q="*fp16", K="*fp16", V="*fp16", O="*fp16", scale="fp32", S="i32", T="i32")
    yield "attention", attention, signature, dict(BM=64, BN=32, D=64), dict(num_warps=4, num_stages=1)


def compile_all(out, chip):
    out.mkdir(parents=True, exist_ok=True)
    target = GPUTarget("hip", chip, 64 if chip.startswith("gfx9") else 32)
    for name, fn, signature, constants, options in jobs(chip):
        full = {**signature, **{k: "constexpr" for k in constants}}
        index = {n: k for k, n in enumerate(fn.arg_names)}
        attrs = {}
        for n, t in signature.items():
            if t.startswith("*"):
                attrs[(index[n],)] = [["tt.divisibility", 16], ["tt.pointer_range", 32]]
        source = ASTSource(fn, full, {(index[n],): v for n, v in constants.items()}, attrs)
        kernel = triton.compile(source, target=target, options=options)
        (out / f"{name}.hsaco").write_bytes(kernel.asm["hsaco"])
        record = dict(name=name, entry=kernel.metadata.name, block=kernel.metadata.num_warps * target.warp_size,
                      shared=kernel.metadata.shared, constants=constants, signature=signature)
        (out / f"{name}.json").write_text(json.dumps(record))


if __name__ == "__main__":
    compile_all(pathlib.Path(sys.argv[1]), sys.argv[2])
