"""Matrix product: blocks of two dimensions, dots, the order of tiles, and the autotuner.

A program computes a tile of the result. It walks along K, loads a tile of each operand, and adds their product to an accumulator in f32. Neighbouring
programs take tiles below each other in groups of GROUP rows of tiles, so that what they load is in the cache for each other. Which tile is best depends on
the device and on the sizes: the autotuner measures the configurations once for each key.
"""

import torch
import triton
import triton.language as tl

from common import close, device, main

CONFIGS = [
    triton.Config({"BM": 64, "BN": 32, "BK": 32, "GROUP": 8}, num_warps=4, num_stages=2),
    triton.Config({"BM": 32, "BN": 32, "BK": 32, "GROUP": 8}, num_warps=4, num_stages=2),
]


@triton.autotune(CONFIGS, key=["M", "N", "K"])
@triton.jit
def matmul_kernel(a, b, c, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
                  BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr):
    across, down = tl.cdiv(N, BN), tl.cdiv(M, BM)
    program = tl.program_id(0)
    first = program // (GROUP * across) * GROUP
    height = min(down - first, GROUP)
    tile_m = first + program % (GROUP * across) % height
    tile_n = program % (GROUP * across) // height
    m, n, k = tile_m * BM + tl.arange(0, BM), tile_n * BN + tl.arange(0, BN), tl.arange(0, BK)
    # Rows and columns beyond the end are others' again: they are loaded, and not stored.
    at_a = a + (m % M)[:, None] * stride_am + k[None, :] * stride_ak
    at_b = b + k[:, None] * stride_bk + (n % N)[None, :] * stride_bn
    total = tl.zeros((BM, BN), tl.float32)
    for done in range(0, K, BK):
        left = K - done
        total = tl.dot(tl.load(at_a, mask=k[None, :] < left, other=0.0), tl.load(at_b, mask=k[:, None] < left, other=0.0), total)
        at_a += BK * stride_ak
        at_b += BK * stride_bk
    if ACTIVATION == "leaky_relu":
        total = tl.where(total >= 0, total, 0.01 * total)
    tl.store(c + m[:, None] * stride_cm + n[None, :] * stride_cn, total.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def matmul(a, b, activation=""):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    grid = lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)
    matmul_kernel[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), ACTIVATION=activation)
    return c


def check():
    a, b = torch.randn(150, 96, device=device()).half(), torch.randn(96, 70, device=device()).half()
    want = a.float() @ b.float()
    close(matmul(a, b), want, 2e-2)
    close(matmul(a, b, "leaky_relu"), torch.nn.functional.leaky_relu(want, 0.01), 2e-2)


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["size"], x_vals=[128, 256, 512], line_arg="who", line_vals=["kernel", "torch"], line_names=["kernel", "torch"], ylabel="GFLOP/s",
        plot_name="matmul", args={},
    )
)
def benchmark(size, who):
    a, b = (torch.randn(size, size, device=device()).half() for _ in range(2))
    milliseconds = triton.testing.do_bench(lambda: matmul(a, b) if who == "kernel" else a @ b)
    return 2 * size**3 / milliseconds * 1e-6


if __name__ == "__main__":
    main(check, benchmark)
