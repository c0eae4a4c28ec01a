"""Flash attention: softmax over keys that arrive block by block.

A program has a block of queries and walks over the keys. It keeps the largest logit so far, the sum of exponentials relative to it, and the weighted sum of
values; when a block brings a larger logit, both sums shrink by the same factor. With causal attention the walk ends at the diagonal, where a mask cuts off later keys.

Source: T. Dao, "FlashAttention-2", 2023, arXiv:2307.08691.
"""

import torch
import triton
import triton.language as tl

from common import close, device, main


@triton.jit
def attention_kernel(q, k, v, out, scale, length, stride, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(1) * stride
    m, n, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    queries = tl.load(q + head + m[:, None] * D + d[None, :], mask=m[:, None] < length, other=0.0)
    largest = tl.full((BM,), -float("inf"), tl.float32)
    weights = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * BM, length) if CAUSAL else length
    at_k = k + head + n[None, :] * D + d[:, None]
    at_v = v + head + n[:, None] * D + d[None, :]
    for start in range(0, end, BN):
        at = start + n
        keys = tl.load(at_k, mask=at[None, :] < length, other=0.0)
        # Powers of two are what the hardware has.
        logits = tl.dot(queries, keys) * (scale * 1.4426950408889634)
        seen = at[None, :] < length
        if CAUSAL:
            seen = seen & (at[None, :] <= m[:, None])
        logits = tl.where(seen, logits, -float("inf"))
        larger = tl.maximum(largest, tl.max(logits, 1))
        p = tl.exp2(logits - larger[:, None])
        shrink = tl.exp2(largest - larger)
        weights = weights * shrink + tl.sum(p, 1)
        values = tl.load(at_v, mask=at[:, None] < length, other=0.0)
        total = tl.dot(p.to(values.dtype), values, total * shrink[:, None])
        largest = larger
        at_k += BN * D
        at_v += BN * D
    tl.store(out + head + m[:, None] * D + d[None, :], (total / weights[:, None]).to(out.dtype.element_ty), mask=m[:, None] < length)


def attention(q, k, v, causal, queries=64, keys=32):
    batch, heads, length, size = q.shape
    out = torch.empty_like(q)
    grid = (triton.cdiv(length, queries), batch * heads)
    attention_kernel[grid](q, k, v, out, size**-0.5, length, length * size, CAUSAL=causal, BM=queries, BN=keys, D=size, num_warps=4)
    return out


def check():
    q, k, v = (torch.randn(1, 2, 40, 16, device=device()).half() for _ in range(3))
    for causal in (False, True):
        want = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=causal)
        close(attention(q, k, v, causal, queries=16, keys=16), want, 5e-3)


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["length"], x_vals=[128, 256, 512], line_arg="who", line_vals=["kernel", "torch"], line_names=["kernel", "torch"], ylabel="GFLOP/s",
        plot_name="attention", args={"heads": 4, "size": 64},
    )
)
def benchmark(heads, size, length, who):
    q, k, v = (torch.randn(1, heads, length, size, device=device()).half() for _ in range(3))
    torch_attention = torch.nn.functional.scaled_dot_product_attention
    milliseconds = triton.testing.do_bench(lambda: attention(q, k, v, False) if who == "kernel" else torch_attention(q, k, v))
    return 4 * heads * length**2 * size / milliseconds * 1e-6


if __name__ == "__main__":
    main(check, benchmark)
