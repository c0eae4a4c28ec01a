"""Softmax of rows: reductions, and why to fuse.

Written with one operator after the other, softmax reads and writes the matrix several times. Here a program keeps a row in registers: it is read once and
written once. The block is the next power of two above the row's length; what it has too much is -inf, which neither the maximum nor the sum sees.
Programs take every so many-th row, so that few of them serve any number of rows.
"""

import torch
import triton
import triton.language as tl

from common import close, device, main


@triton.jit
def softmax_kernel(out, x, stride_out, stride_x, rows, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        v = tl.load(x + row * stride_x + i, mask=i < columns, other=-float("inf"))
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + row * stride_out + i, e / tl.sum(e, axis=0), mask=i < columns)


def softmax(x, programs=64):
    rows, columns = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    softmax_kernel[(min(rows, programs),)](out, x, out.stride(0), x.stride(0), rows, columns, BLOCK=block, num_warps=4 if block < 2048 else 8)
    return out


def check():
    x = torch.randn(83, 781, device=device())
    close(softmax(x), torch.softmax(x, 1), 1e-5)


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["columns"], x_vals=[256, 512, 1024, 2048], line_arg="who", line_vals=["kernel", "torch"], line_names=["kernel", "torch"], ylabel="GB/s",
        plot_name="softmax", args={"rows": 1024},
    )
)
def benchmark(rows, columns, who):
    x = torch.randn(rows, columns, device=device())
    milliseconds = triton.testing.do_bench(lambda: softmax(x) if who == "kernel" else torch.softmax(x, 1))
    return 2 * x.numel() * 4 / milliseconds * 1e-6


if __name__ == "__main__":
    main(check, benchmark)
