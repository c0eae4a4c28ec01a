"""Persistent matrix product: as many programs as the device runs at a time, each of which takes tile after tile.

A launch with a program for each tile starts programs until all tiles are done, and the last few leave most of the device idle. Here a program stays: it takes
the tiles whose numbers are its own, its own plus the number of programs, and so on. A program computes once what belongs to no tile, like the addresses that all
tiles share.
"""

import torch
import triton
import triton.language as tl

from common import close, device, main


@triton.jit
def persistent_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    across = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * across
    k = tl.arange(0, BK)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        m, n = tile // across * BM + tl.arange(0, BM), tile % across * BN + tl.arange(0, BN)
        at_a = a + (m % M)[:, None] * K + k[None, :]
        at_b = b + k[:, None] * N + (n % N)[None, :]
        total = tl.zeros((BM, BN), tl.float32)
        for done in range(0, K, BK):
            left = K - done
            total = tl.dot(tl.load(at_a, mask=k[None, :] < left, other=0.0), tl.load(at_b, mask=k[:, None] < left, other=0.0), total)
            at_a += BK
            at_b += BK * N
        tl.store(c + m[:, None] * N + n[None, :], total.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def matmul(a, b, programs=16, tile=(32, 32, 32)):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    tiles = triton.cdiv(m, tile[0]) * triton.cdiv(n, tile[1])
    persistent_kernel[(min(programs, tiles),)](a, b, c, m, n, k, *tile, num_warps=4)
    return c


def check():
    a, b = torch.randn(150, 96, device=device()).half(), torch.randn(96, 70, device=device()).half()
    # Fewer programs than tiles, and more.
    for programs in (4, 100):
        close(matmul(a, b, programs), a.float() @ b.float(), 2e-2)


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["size"], x_vals=[128, 256, 512], line_arg="programs", line_vals=[4, 16, 1 << 20], line_names=["4 programs", "16 programs", "one for each tile"],
        ylabel="GFLOP/s", plot_name="persistent_matmul", args={},
    )
)
def benchmark(size, programs):
    a, b = (torch.randn(size, size, device=device()).half() for _ in range(2))
    return 2 * size**3 / triton.testing.do_bench(lambda: matmul(a, b, programs)) * 1e-6


if __name__ == "__main__":
    main(check, benchmark)
