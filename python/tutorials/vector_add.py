"""Vector addition: programs, blocks and masks.

A kernel is written for one program; a launch runs many, and each finds its part of the data by its number. A program works on blocks, whose extents
are powers of two and known when the kernel is compiled. If the data ends inside a block a mask keeps the program from touching what lies behind.
"""

import torch
import triton
import triton.language as tl

from common import close, device, main


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    # Program 0 has the elements from 0, program 1 those from BLOCK, and so on.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


def add(x, y):
    out = torch.empty_like(x)
    # As many programs as there are blocks; `meta` has the constants, BLOCK among them.
    add_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, x.numel(), BLOCK=1024)
    return out


def check():
    x, y = torch.rand(10007, device=device()), torch.rand(10007, device=device())
    close(add(x, y), x + y, 0)


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["n"], x_vals=[1 << k for k in range(12, 23, 2)], x_log=True, line_arg="who", line_vals=["kernel", "torch"], line_names=["kernel", "torch"],
        ylabel="GB/s", plot_name="vector_add", args={},
    )
)
def benchmark(n, who):
    x, y = torch.rand(n, device=device()), torch.rand(n, device=device())
    milliseconds = triton.testing.do_bench(lambda: add(x, y) if who == "kernel" else x + y)
    return 3 * n * 4 / milliseconds * 1e-6


if __name__ == "__main__":
    main(check, benchmark)
