"""torch on simulated chips: operators and a training step beside the CPU, and kernels with a mistake in the line that ends in its name.

`GRETA_CHECK=1 python simulated.py gfx942 gfx1201` prints what each wrong launch said, a line of JSON for each chip (test_torch_sim.py).
"""

import copy
import json
import os
import sys

import torch
import torch._inductor.compile_fx  # noqa: F401 -- once for all chips
import triton
import triton.language as tl


@triton.jit
def add_one(x_ptr, y_ptr, writes, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i) + 1, mask=i < writes)  # bounds


@triton.jit
def write_number(y_ptr):
    tl.store(y_ptr, tl.program_id(0))  # race


def train(model, x, y):
    """A step of SGD; the loss and the parameters behind it."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return [loss.detach(), *(one.detach() for one in model.parameters())]


def check_operators():
    generator = torch.Generator().manual_seed(0)
    x, w, y = (torch.randn(shape, generator=generator) for shape in ((5, 12), (12, 4), (5, 4)))
    product = (x.half().to("rdna") @ w.half().to("rdna")).cpu()
    torch.testing.assert_close(product.float(), x @ w, rtol=5e-3, atol=5e-3)
    for function in (torch.nn.functional.layer_norm, torch.nn.functional.rms_norm, lambda rows, shape, weight: (rows * weight).log_softmax(-1)):
        torch.testing.assert_close(function(x.to("rdna"), (12,), w[:, 0].to("rdna")).cpu(), function(x, (12,), w[:, 0]), rtol=1e-5, atol=1e-5)
    q, k, wide = (torch.randn(shape, generator=generator).half() for shape in ((2, 4, 9, 16), (2, 2, 21, 16), (2, 9, 4, 32)))
    gated = [torch.ops.greta.fused_attention(q.to(d), k.to(d), k.to(d), None, [wide.to(d)[..., 16:]], "by_tokens: exp $0; mul %0 %1", True, None, True, torch.float32, True) for d in ("cpu", "rdna")]
    for one, other in list(zip(*gated))[:3]:
        torch.testing.assert_close(other.cpu(), one, rtol=5e-3, atol=5e-3)
    model = torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    there = train(copy.deepcopy(model).to("rdna"), x.to("rdna"), y.to("rdna"))
    for one, other in zip(there, train(model, x, y), strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-5)


def add_elsewhere(waits):
    """Reads what the current stream makes, on another one."""
    x, stream = torch.ones(128, device="rdna"), torch.rdna.Stream()
    if waits:
        stream.wait_stream(torch.rdna.current_stream())
    with torch.rdna.stream(stream):
        add_one[(1,)](x, torch.empty(128, device="rdna"), 128, BLOCK=128)


def said(launch):
    try:
        launch()
        torch.rdna.synchronize()
    except RuntimeError as error:
        return str(error)
    return ""


def run(chip):
    os.environ["GRETA_TORCH_DEVICES"] = f"sim:{chip}"
    import greta.torch  # noqa: F401

    torch.rdna.forbid_fallback(True)
    check_operators()
    y, numbers = torch.zeros(256, device="rdna"), torch.zeros(1, dtype=torch.int32, device="rdna")
    launches = {
        "right": lambda: add_one[(1,)](y, y[128:], 128, BLOCK=128),
        "bounds": lambda: add_one[(2,)](y, y[:200], 201, BLOCK=128),
        "unwritten": lambda: add_one[(1,)](torch.empty(1 << 16, device="rdna"), y, 128, BLOCK=128),  # of a size that no tensor left
        "race": lambda: write_number[(2,)](numbers),
        "ordered": lambda: add_elsewhere(waits=True),
        "unordered": lambda: add_elsewhere(waits=False),
    }
    print(json.dumps({name: said(launch) for name, launch in launches.items()}), flush=True)


if __name__ == "__main__":
    for chip in sys.argv[1:]:  # a process simulates one chip
        if child := os.fork():
            assert os.waitpid(child, 0)[1] == 0
        else:
            run(chip)
            break
