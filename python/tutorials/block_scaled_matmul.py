"""Block-scaled products: operands of 4 and 8 bits, with a scale for each 32 numbers along K.

The formats are those of the Open Compute Project's Microscaling Formats (MX) 1.0, 2023. A number is an e2m1 (two in a byte) or an e4m3, a scale a power of two (e8m0: a byte that is the
exponent plus 127). `tl.dot_scaled` multiplies them as they are where the hardware can, and as what they stand for elsewhere.
"""

import torch
import triton
import triton.language as tl

from common import close, device, main

GROUP = tl.constexpr(32)  # numbers of one scale


@triton.jit
def scaled_kernel(a, a_scale, b, b_scale, c, M, N, K, A: tl.constexpr, B: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # In a byte of A or B are so many numbers along K.
    IN_A: tl.constexpr = 2 if A == "e2m1" else 1
    IN_B: tl.constexpr = 2 if B == "e2m1" else 1
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    in_m, in_n = (m < M)[:, None], n < N
    of_a, of_b, of_scale = tl.arange(0, BK // IN_A), tl.arange(0, BK // IN_B), tl.arange(0, BK // GROUP)
    total = tl.zeros((BM, BN), tl.float32)
    for done in range(0, K, BK):
        x = tl.load(a + m[:, None] * (K // IN_A) + done // IN_A + of_a[None, :], mask=in_m, other=0)
        y = tl.load(b + n[None, :] * (K // IN_B) + done // IN_B + of_b[:, None], mask=in_n[None, :], other=0)
        x_scale = tl.load(a_scale + m[:, None] * (K // GROUP) + done // GROUP + of_scale[None, :], mask=in_m, other=127)
        y_scale = tl.load(b_scale + n[:, None] * (K // GROUP) + done // GROUP + of_scale[None, :], mask=in_n[:, None], other=127)
        total = tl.dot_scaled(x, x_scale, A, y, y_scale, B, total)
    tl.store(c + m[:, None] * N + n[None, :], total, mask=in_m & in_n[None, :])


def matmul(a, a_scale, b, b_scale, kinds=("e2m1", "e4m3"), tile=(32, 32, 64)):
    """Bytes [M, K / numbers in a byte] by [N, ..], scales [M, K / 32] and [N, K / 32], K a multiple of the tile's."""
    (m, groups), n = a_scale.shape, b.shape[0]
    c = torch.empty((m, n), device=a.device)
    scaled_kernel[(triton.cdiv(m, tile[0]), triton.cdiv(n, tile[1]))](a, a_scale, b, b_scale, c, m, n, 32 * groups, *kinds, *tile, num_warps=4)
    return c


def numbers(values, scale, kind):
    """What bytes stand for."""
    if kind == "e2m1":
        table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], device=values.device)
        values = table[torch.stack([values & 15, values >> 4], -1).flatten(1).long()]
    else:
        values = values.view(torch.float8_e4m3fn).float()
    return values * torch.exp2(scale.float() - 127).repeat_interleave(32, 1)


def random(rows, k, kind):
    # No NaN among the e4m3, which is 0x7f and 0xff.
    values = torch.randint(0, 256, (rows, k // 2), device=device()) if kind == "e2m1" else torch.randint(0, 0x78, (rows, k), device=device())
    return values.to(torch.uint8), torch.randint(124, 131, (rows, k // 32), device=device()).to(torch.uint8)


def check():
    for kinds in (("e2m1", "e4m3"), ("e4m3", "e2m1")):
        (a, a_scale), (b, b_scale) = random(70, 128, kinds[0]), random(50, 128, kinds[1])
        want = numbers(a, a_scale, kinds[0]) @ numbers(b, b_scale, kinds[1]).T
        largest = want.abs().max()
        close(matmul(a, a_scale, b, b_scale, kinds) / largest, want / largest, 1e-3)


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["size"], x_vals=[128, 256], line_arg="kind", line_vals=["e2m1", "e4m3"], line_names=["4 bits", "8 bits"], ylabel="GFLOP/s",
        plot_name="block_scaled_matmul", args={},
    )
)
def benchmark(size, kind):
    (a, a_scale), (b, b_scale) = random(size, size, kind), random(size, size, kind)
    return 2 * size**3 / triton.testing.do_bench(lambda: matmul(a, a_scale, b, b_scale, (kind, kind))) * 1e-6


if __name__ == "__main__":
    main(check, benchmark)
