"""Layer normalisation, forward and backward: a program per row, sums over rows by atomics, and torch's autograd.

The forward kernel keeps each row's mean and inverse deviation for the backward one. There, a row's gradient takes two sums over the row; the gradients of weight and
bias are sums over all rows, which programs add up in memory.
"""

import torch
import triton
import triton.language as tl

from common import close, device, main


@triton.jit
def forward_kernel(x, weight, bias, out, means, scales, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / n
    d = tl.where(i < n, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)
    y = d * scale * tl.load(weight + i, mask=i < n) + tl.load(bias + i, mask=i < n)
    tl.store(out + row * n + i, y.to(out.dtype.element_ty), mask=i < n)


@triton.jit
def backward_kernel(x, weight, grad, means, scales, dx, dweight, dbias, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    scale = tl.load(scales + row)
    normal = (tl.load(x + row * n + i, mask=i < n, other=0.0).to(tl.float32) - tl.load(means + row)) * scale
    normal = tl.where(i < n, normal, 0.0)
    g = tl.load(grad + row * n + i, mask=i < n, other=0.0).to(tl.float32)
    gw = g * tl.load(weight + i, mask=i < n, other=0.0)
    change = gw - tl.sum(gw, 0) / n - normal * tl.sum(normal * gw, 0) / n
    tl.store(dx + row * n + i, (change * scale).to(dx.dtype.element_ty), mask=i < n)
    tl.atomic_add(dweight + i, g * normal, mask=i < n, sem="relaxed")
    tl.atomic_add(dbias + i, g, mask=i < n, sem="relaxed")


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(context, x, weight, bias, eps):
        rows, n = x.shape
        out = torch.empty_like(x)
        means, scales = (torch.empty(rows, device=x.device) for _ in range(2))
        block = triton.next_power_of_2(n)
        forward_kernel[(rows,)](x, weight, bias, out, means, scales, n, eps, BLOCK=block)
        context.save_for_backward(x, weight, means, scales)
        context.block = block
        return out

    @staticmethod
    def backward(context, grad):
        x, weight, means, scales = context.saved_tensors
        rows, n = x.shape
        dx = torch.empty_like(x)
        dweight, dbias = (torch.zeros(n, device=x.device) for _ in range(2))
        backward_kernel[(rows,)](x, weight, grad.contiguous(), means, scales, dx, dweight, dbias, n, BLOCK=context.block)
        return dx, dweight.to(weight.dtype), dbias.to(weight.dtype), None


def layer_norm(x, weight, bias, eps=1e-5):
    return LayerNorm.apply(x, weight, bias, eps)


def check():
    x, grad = torch.randn(12, 200, device=device()), torch.randn(12, 200, device=device())
    weight, bias = torch.rand(200, device=device()), torch.rand(200, device=device())
    gradients = []
    for norm in (layer_norm, lambda x, w, b: torch.nn.functional.layer_norm(x, (200,), w, b)):
        leaves = [one.clone().requires_grad_() for one in (x, weight, bias)]
        out = norm(*leaves)
        out.backward(grad)
        gradients.append([out, *(one.grad for one in leaves)])
    for got, want in zip(*gradients):
        close(got, want, 1e-4)


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["n"], x_vals=[256, 512, 1024], line_arg="who", line_vals=["kernel", "torch"], line_names=["kernel", "torch"], ylabel="GB/s", plot_name="layer_norm",
        args={"rows": 512},
    )
)
def benchmark(rows, n, who):
    x, weight, bias = torch.randn(rows, n, device=device()), torch.rand(n, device=device()), torch.rand(n, device=device())
    torch_norm = torch.nn.functional.layer_norm
    milliseconds = triton.testing.do_bench(lambda: layer_norm(x, weight, bias) if who == "kernel" else torch_norm(x, (n,), weight, bias))
    return 2 * x.numel() * 4 / milliseconds * 1e-6


if __name__ == "__main__":
    main(check, benchmark)
