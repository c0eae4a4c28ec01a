"""Dropout without a mask in memory: random numbers from a seed.

Instead of keeping a mask for the backward pass, the kernel draws it again: element i's number depends on the seed and on i alone.
"""

import torch
import triton
import triton.language as tl

from common import close, device, main


@triton.jit
def dropout_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(kept, tl.load(x + i, mask=i < n) / (1 - p), 0.0), mask=i < n)


def dropout(x, p, seed):
    out = torch.empty_like(x)
    dropout_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), p, seed, BLOCK=1024)
    return out


def check():
    x = 1 + torch.rand(20000, device=device())
    once, again, other = dropout(x, 0.25, 7), dropout(x, 0.25, 7), dropout(x, 0.25, 8)
    assert torch.equal(once, again) and not torch.equal(once, other)
    kept = once != 0
    close(once[kept], x[kept] / 0.75, 1e-6)
    assert abs(kept.float().mean().item() - 0.75) < 0.02


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["n"], x_vals=[1 << k for k in (14, 17, 20)], x_log=True, line_arg="who", line_vals=["kernel", "torch"], line_names=["kernel", "torch"],
        ylabel="GB/s", plot_name="dropout", args={},
    )
)
def benchmark(n, who):
    x = torch.rand(n, device=device())
    milliseconds = triton.testing.do_bench(lambda: dropout(x, 0.5, 3) if who == "kernel" else torch.nn.functional.dropout(x, 0.5))
    return 2 * n * 4 / milliseconds * 1e-6


if __name__ == "__main__":
    main(check, benchmark)
