"""Cases of liger-kernel: its layers and losses, forward and backward."""

import liger_kernel.ops as ops
import torch
from torch.nn import functional as F

from triton_libraries import differentiate

ROWS, WIDTH, VOCABULARY = 8, 64, 100


def normal(dtype, *shape):
    return torch.randn(*shape).to(dtype)


def rms_norm(dtype):
    def reference(x, w):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w

    return differentiate(lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False), reference, [normal(dtype, ROWS, WIDTH), normal(dtype, WIDTH)])


def fused_add_rms_norm(dtype):
    def reference(x, r, w):
        total = x + r
        return total * torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + 1e-6) * w, total

    return differentiate(lambda x, r, w: ops.LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6, 0.0, "llama", False), reference, [normal(dtype, ROWS, WIDTH), normal(dtype, ROWS, WIDTH), normal(dtype, WIDTH)])


def layer_norm(dtype):
    return differentiate(
        lambda x, w, b: ops.LigerLayerNormFunction.apply(x, w, b, 1e-5),
        lambda x, w, b: F.layer_norm(x, (WIDTH,), w, b, 1e-5),
        [normal(dtype, ROWS, WIDTH), normal(dtype, WIDTH), normal(dtype, WIDTH)],
    )


def group_norm(dtype):
    return differentiate(
        lambda x, w, b: ops.LigerGroupNormFunction.apply(x, w, b, 8, 2, 1e-5),
        lambda x, w, b: F.group_norm(x, 2, w, b, 1e-5),
        [normal(dtype, 2, 8, 32), normal(dtype, 8), normal(dtype, 8)],
    )


def rope(dtype):
    tokens, dim = 8, 32
    angles = torch.arange(tokens)[:, None] * 10000.0 ** (-torch.arange(dim // 2) / (dim // 2))
    cos, sin = (torch.cat([f(angles)] * 2, -1)[None].to(dtype) for f in (torch.cos, torch.sin))

    def turn(x):
        a, b = x.chunk(2, -1)
        return x * cos.float() + torch.cat([-b, a], -1) * sin.float()

    # It works in place.
    return differentiate(
        lambda q, k: ops.LigerRopeFunction.apply(q.clone(), k.clone(), cos, sin), lambda q, k: (turn(q), turn(k)), [normal(dtype, 2, 4, tokens, dim), normal(dtype, 2, 2, tokens, dim)]
    )


def swiglu(dtype):
    return differentiate(ops.LigerSiLUMulFunction.apply, lambda a, b: F.silu(a) * b, [normal(dtype, ROWS, WIDTH), normal(dtype, ROWS, WIDTH)])


def geglu(dtype):
    return differentiate(ops.LigerGELUMulFunction.apply, lambda a, b: F.gelu(a, approximate="tanh") * b, [normal(dtype, ROWS, WIDTH), normal(dtype, ROWS, WIDTH)])


def relu_squared(dtype):
    return differentiate(ops.LigerReLUSquaredFunction.apply, lambda x: F.relu(x).square(), [normal(dtype, ROWS, WIDTH)])


def softmax(dtype):
    return differentiate(ops.LigerSoftmaxFunction.apply, lambda x: x.softmax(-1), [normal(dtype, ROWS, WIDTH)])


def dyt(dtype):
    return differentiate(
        ops.LigerDyTFunction.apply,
        lambda x, alpha, gamma, beta: gamma * torch.tanh(alpha * x) + beta,
        [normal(dtype, ROWS, WIDTH), torch.tensor([0.5]).to(dtype), normal(dtype, WIDTH), normal(dtype, WIDTH)],
    )


def cross_entropy(dtype):
    target = torch.randint(0, VOCABULARY, (ROWS,))
    target[1] = -100

    def run(x):
        return ops.LigerCrossEntropyFunction.apply(x.clone(), target, None, -100, 0.0, 0.1)[0]

    return differentiate(run, lambda x: F.cross_entropy(x, target, label_smoothing=0.1), [normal(dtype, ROWS, VOCABULARY)])


def fused_linear_cross_entropy(dtype):
    target = torch.randint(0, VOCABULARY, (ROWS,))

    def run(x, w):
        return ops.LigerFusedLinearCrossEntropyFunction.apply(x, w, target)[0]

    return differentiate(run, lambda x, w: F.cross_entropy(x @ w.T, target), [normal(dtype, ROWS, WIDTH), (torch.randn(VOCABULARY, WIDTH) / 8).to(dtype)])


def kl_div(dtype):
    target = torch.randn(ROWS, VOCABULARY).softmax(-1).to(dtype)
    return differentiate(
        lambda x: ops.LigerKLDivLossFunction.apply(x, target, "batchmean", False, 1e-10),
        lambda x: F.kl_div(x, target.float(), reduction="batchmean"),
        [torch.randn(ROWS, VOCABULARY).log_softmax(-1).to(dtype)],
    )


def jsd(dtype):
    target = torch.randn(ROWS, VOCABULARY).log_softmax(-1).to(dtype)

    def reference(x):
        q, p = x, target.float()
        middle = torch.log((q.exp() + p.exp()) / 2)
        return (F.kl_div(middle, p, log_target=True, reduction="sum") + F.kl_div(middle, q, log_target=True, reduction="sum")) / 2 / ROWS

    return differentiate(lambda x: ops.LigerJSDFunction.apply(x, target), reference, [torch.randn(ROWS, VOCABULARY).log_softmax(-1).to(dtype)])


CASES = {
    f.__name__: f
    for f in (rms_norm, fused_add_rms_norm, layer_norm, group_norm, rope, swiglu, geglu, relu_squared, softmax, dyt, cross_entropy, fused_linear_cross_entropy, kl_div, jsd)
}
