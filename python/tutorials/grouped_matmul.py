"""Grouped products: many small matrix products of different heights in one launch, as a mixture of experts has them.

The rows of all groups lie one after another; `starts` says where each begins. Tiles are numbered over all groups. A program walks along the groups, counts
tiles until it reaches the group that its tile is in, multiplies, and goes on to its next tile; how many rows a group has is only known on the device.
"""

import torch
import triton
import triton.language as tl

from common import close, device, main


@triton.jit
def grouped_kernel(x, weights, out, starts, groups, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    across = tl.cdiv(N, BN)
    tile = tl.program_id(0)
    before = 0
    k = tl.arange(0, BK)
    for group in range(groups):
        start, end = tl.load(starts + group), tl.load(starts + group + 1)
        tiles = tl.cdiv(end - start, BM) * across
        while tile < before + tiles:
            own = tile - before
            m, n = start + own // across * BM + tl.arange(0, BM), own % across * BN + tl.arange(0, BN)
            inside_m, inside_n = m[:, None] < end, n[None, :] < N
            total = tl.zeros((BM, BN), tl.float32)
            for done in range(0, K, BK):
                inside_k = done + k < K
                left = tl.load(x + m[:, None] * K + done + k[None, :], mask=inside_m & inside_k[None, :], other=0.0)
                right = tl.load(weights + group * K * N + (done + k[:, None]) * N + n[None, :], mask=inside_k[:, None] & inside_n, other=0.0)
                total = tl.dot(left, right, total)
            tl.store(out + m[:, None] * N + n[None, :], total.to(out.dtype.element_ty), mask=inside_m & inside_n)
            tile += tl.num_programs(0)
        before += tiles


def grouped_matmul(x, weights, starts, programs=16, tile=(32, 32, 32)):
    """Rows starts[g] to starts[g + 1] of x times weights[g]."""
    groups, k, n = weights.shape
    out = torch.empty((x.shape[0], n), device=x.device, dtype=x.dtype)
    grouped_kernel[(programs,)](x, weights, out, starts, groups, n, k, *tile, num_warps=4)
    return out


def separately(x, weights, starts):
    places = starts.tolist()
    return torch.cat([x[begin:end] @ weight for weight, begin, end in zip(weights, places, places[1:])])


def check():
    starts = torch.tensor([0, 40, 40, 75, 140], dtype=torch.int32, device=device())  # the second group is empty
    x, weights = torch.randn(140, 48, device=device()).half(), torch.randn(4, 48, 70, device=device()).half()
    close(grouped_matmul(x, weights, starts, programs=5), separately(x.float(), weights.float(), starts), 2e-2)


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["groups"], x_vals=[2, 4, 8], line_arg="who", line_vals=["kernel", "torch"], line_names=["one launch", "torch, one product after another"],
        ylabel="GFLOP/s", plot_name="grouped_matmul", args={"size": 128},
    )
)
def benchmark(groups, size, who):
    starts = torch.arange(groups + 1, dtype=torch.int32, device=device()) * size
    x, weights = torch.randn(groups * size, size, device=device()).half(), torch.randn(groups, size, size, device=device()).half()
    milliseconds = triton.testing.do_bench(lambda: grouped_matmul(x, weights, starts) if who == "kernel" else separately(x, weights, starts))
    return 2 * groups * size**3 / milliseconds * 1e-6


if __name__ == "__main__":
    main(check, benchmark)
