"""Trains a small GPT over bytes on two devices: `torch_curve.py --devices=rdna,cuda [--f16] [--tiny] [--steps=200] --csv=FILE TEXT..`.

In: files whose bytes are learned. Out: a CSV with a line for each step, and a line that sums it up. The network, the optimizer and its rate are nanoGPT's for
characters (6 layers, 384 wide, 64 sequences of 256 bytes, AdamW, warm-up, gradients clipped) without dropout, as devices draw other random numbers. Each training
begins from the same parameters and sees the same batches. Each device has a process of its own: torch differentiates on one kind of accelerator in a process.

Two right trainings part, as each rounds its sums in its own order. How far is measured: the second device trains twice, the second time with the sequences
of each batch in reverse order, which is the same mathematics. The curves lie on each other where the mean of the steps' differences is at most that of the second
device's two, or at most --tolerance and eight times that of the two. The status is 1 where they do not, and where an operator of rdna ran on the CPU.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import csv
import multiprocessing
import os
import pathlib
import sys
import time

import torch
from torch_models import CHARACTERS, TINY_CHARACTERS, Gpt, Shape

MOST_SPREADS = 8
WARM_UP = 100  # steps


def batches(text: bytes, steps: int, count: int, length: int) -> torch.Tensor:
    """So many batches of sequences of length + 1 bytes: [steps, count, length + 1]."""
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    begins = torch.randint(0, len(data) - length, (steps, count, 1), generator=torch.Generator().manual_seed(1))
    return data[begins + torch.arange(length + 1)].long()


def train(shape: Shape, device: str, data: torch.Tensor, isF16: bool) -> tuple[list[float], dict[str, int]]:
    """The loss of each step of training, and how often which operator of rdna ran on the CPU."""
    if device == "rdna":
        import greta.torch  # noqa: F401 -- the device

    begin = time.perf_counter()
    torch.manual_seed(0)
    model = Gpt(shape, data.shape[2] - 1).to(device)
    matrices = [one for one in model.parameters() if one.dim() > 1]
    groups = [dict(params=matrices, weight_decay=0.1), dict(params=[one for one in model.parameters() if one.dim() < 2], weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), fused=True)
    scaler = torch.amp.GradScaler(device, enabled=isF16)
    losses = []
    for step, batch in enumerate(data):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * min(1.0, (step + 1) / WARM_UP)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=torch.float16, enabled=isF16):
            loss = model(batch.to(device))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
        if step % 20 == 0:
            print(f"{device}: step {step}, loss {loss.item():.4f}", flush=True)
    found = torch.stack(losses).float().cpu().tolist()
    print(f"{device}: {len(data)} steps in {time.perf_counter() - begin:.1f} s, losses from {found[0]:.4f} to {found[-1]:.4f}", flush=True)
    return found, torch.rdna.fallbacks() if device == "rdna" else {}


def curves(shape: Shape, data: torch.Tensor, ours: str, peer: str, isF16: bool) -> tuple[list[list[float]], dict[str, int]]:
    """The losses on our device, on its peer, and on its peer with batches in reverse order; the operators of rdna that ran on the CPU."""
    found, fallbacks = [], {}
    for device, given in ((ours, [data]), (peer, [data, data.flip(1)])):
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            for losses, more in process.map(train, *zip(*((shape, device, one, isF16) for one in given))):
                found.append(losses)
                fallbacks |= more
    return found, fallbacks


def distance(one: list[float], other: list[float]) -> tuple[float, float]:
    """The mean and the largest difference of two curves."""
    differences = [abs(a - b) for a, b in zip(one, other, strict=True)]
    return sum(differences) / len(differences), max(differences)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="+", type=pathlib.Path)
    parser.add_argument("--devices", default="rdna,cuda")
    parser.add_argument("--f16", action="store_true", help="autocast with a GradScaler, else f32")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--tolerance", type=float, default=1e-2, help="of the mean difference, in nats")
    parser.add_argument("--tiny", action="store_true", help="2 layers, 64 wide, 4 sequences of 32 bytes")
    parser.add_argument("--csv", required=True)
    options = parser.parse_args()
    shape, count, length = (TINY_CHARACTERS, 4, 32) if options.tiny else (CHARACTERS, 64, 256)
    text = b"".join(one.read_bytes() for one in options.text)
    if len(text) <= length:
        print(f"torch_curve.py: the text has {len(text)} bytes, and a sequence {length + 1}", file=sys.stderr)
        return 2
    ours, peer = options.devices.split(",")
    (mine, theirs, reversed_), fallbacks = curves(shape, batches(text, options.steps, count, length), ours, peer, options.f16)
    with open(options.csv, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        run = time.strftime("%Y-%m-%d"), os.environ.get("GRETA_COMMIT", ""), "f16" if options.f16 else "f32"
        writer.writerow(["date", "commit", "type", "step", ours, peer, f"{peer} reversed"])
        writer.writerows([*run, step, *(f"{loss:.6f}" for loss in losses)] for step, losses in enumerate(zip(mine, theirs, reversed_)))
    (mean, most), (spread, most_of_spread) = distance(mine, theirs), distance(theirs, reversed_)
    print(f"{ours} and {peer} differ by {mean:.3g} in the mean and {most:.3g} at most, {peer}'s two by {spread:.3g} and {most_of_spread:.3g}")
    print(f"operators on the CPU: {fallbacks or 'none'}")
    return int(bool(fallbacks) or not mean <= max(spread, min(options.tolerance, MOST_SPREADS * max(spread, 1e-6))))


if __name__ == "__main__":
    raise SystemExit(main())
