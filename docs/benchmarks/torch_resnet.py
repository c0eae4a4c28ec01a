"""Trains torchvision's ResNet-18 or ResNet-50 on torch's device rdna beside the CPU: `torch_resnet.py --depth=50 --size=64`.

In: a depth, the images' size and batch, a number of steps. Out: a line per step with the loss on rdna and on the CPU, then the largest difference, and the operators
that ran on the CPU, of which each line has the number so far. Images are random, one batch for each step; SGD with momentum. The network is torchvision's, with its
initialisation, so that torchvision need not be there. The exit status is 1 where a loss is further from the CPU's than --tolerance.

Two trainings in f32 part after a few steps, on the CPU as well: a rounding moves a number over ReLU's corner, and normalisation over few numbers makes much of it. So
each step of the CPU begins from the device's parameters and statistics, and the free-running losses are printed beside, of the CPU in f32 and in f64.
"""

from __future__ import annotations

import argparse
import copy
import time
from typing import Any

import torch
from torch import nn

LAYERS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}


def convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)


class Block(nn.Module):
    """Two convolutions of 3 x 3, or 1 x 1, 3 x 3 and 1 x 1 to four times the width; the input is added."""

    def __init__(self, inputs: int, width: int, stride: int, isBottleneck: bool):
        super().__init__()
        outputs = width * 4 if isBottleneck else width
        shapes = ((inputs, width, 1, 1), (width, width, 3, stride), (width, outputs, 1, 1)) if isBottleneck else ((inputs, width, 3, stride), (width, width, 3, 1))
        layers: list[nn.Module] = []
        for shape in shapes:
            layers += [convolution(*shape), nn.BatchNorm2d(shape[1]), nn.ReLU(inplace=True)]
        self.layers = nn.Sequential(*layers[:-1])
        self.relu = nn.ReLU(inplace=True)
        self.downsample = nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)) if stride != 1 or inputs != outputs else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.layers(x) + (x if self.downsample is None else self.downsample(x)))


def resnet(depth: int, classes: int = 1000) -> nn.Module:
    isBottleneck = depth >= 50
    layers: list[nn.Module] = [convolution(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, count in enumerate(LAYERS[depth]):
        for index in range(count):
            width = 64 << stage
            layers.append(Block(inputs, width, 2 if stage and not index else 1, isBottleneck))
            inputs = width * 4 if isBottleneck else width
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network


class Training:
    """One copy of the network with its optimizer, on one device."""

    def __init__(self, network: nn.Module, device: str, options: argparse.Namespace, isCompiled: bool):
        self.model = copy.deepcopy(network).to(device)
        if options.channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)
        self.device = device
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=options.rate, momentum=0.9, weight_decay=1e-4, fused=True)
        self.loss_of: Any = torch.compile(self.loss) if isCompiled else self.loss

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(self.model(x), y)

    def step(self, x: torch.Tensor, y: torch.Tensor) -> float:
        self.optimizer.zero_grad()
        loss = self.loss_of(x.to(self.device), y.to(self.device))
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def follow(self, other: Training) -> None:
        self.model.load_state_dict({name: value.cpu() for name, value in other.model.state_dict().items()})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depth", type=int, default=50, choices=LAYERS)
    parser.add_argument("--size", type=int, default=64, help="pixels of an image's side")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    options = parser.parse_args()
    import greta.torch  # noqa: F401 -- the device; who takes only the network needs it not

    torch.manual_seed(0)
    network = resnet(options.depth)
    ours, theirs = Training(network, "rdna", options, options.compile), Training(network, "cpu", options, False)
    free, wide = Training(network, "cpu", options, False), Training(network.double(), "cpu", options, False)
    generator = torch.Generator().manual_seed(1)
    largest = 0.0
    print("step,rdna,CPU from the same parameters,CPU,CPU in f64,seconds,operators on the CPU", flush=True)
    for step in range(options.steps):
        x = torch.randn(options.batch, 3, options.size, options.size, generator=generator)
        y = torch.randint(0, 1000, (options.batch,), generator=generator)
        begin = time.perf_counter()
        loss = ours.step(x, y)
        seconds = time.perf_counter() - begin
        expected = theirs.step(x, y)
        theirs.follow(ours)
        largest = max(largest, abs(loss - expected))
        print(f"{step},{loss:.6f},{expected:.6f},{free.step(x, y):.6f},{wide.step(x.double(), y):.6f},{seconds:.2f},{sum(torch.rdna.fallbacks().values())}", flush=True)
    print(f"largest difference from the CPU with the same parameters {largest:.3g}; operators on the CPU: {torch.rdna.fallbacks() or 'none'}")
    return 0 if largest <= options.tolerance else 1


if __name__ == "__main__":
    raise SystemExit(main())
