"""torch's device rdna on a GPU beside torch's CUDA on the same one: `torch_gpu.py --csv=FILE [--log=FILE] [--only=REGEX] [--tiny] [--budget=SECONDS]`.

In: a machine with torch and greta.torch; CUDA where it is. Out: a row of the CSV for each case, with the rate on both devices and their ratio; the largest error
beside the CPU; the host's time to ask for a step, the number of operators and kernels in it, and in the log those that took most of the device's time. Each group of cases runs in a process for
each device, so that one that fails or takes too long takes no other group with it: what it said is in the log. The first processes of rdna check results and fill
the caches of compiled kernels, side by side; the ones that measure run alone. An operator that runs on the CPU in place of rdna is an error (torch.rdna.forbid_fallback(True)).
--tiny takes small sizes, which a CPU driver can do, and --devices=rdna,cpu torch's CPU as the peer: no measure of anything.

Correctness comes first: outputs, losses and gradients of a small batch are compared with those of the CPU in f32 or f64, by the Euclidean norm of the difference over
that of the CPU's. The status is 1 where one is beyond the tolerance, which is the rounding of f16 (2^-11) through some layers.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import csv
import dataclasses
import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch_models as models
from torch import nn
from torch_resnet import resnet

COLUMNS = ["date", "commit", "gpu", "driver", "torch", "case", "unit", "rdna", "cuda", "ratio", "goal", "error", "cuda_error", "tolerance", "rdna_ms", "rdna_host_ms", "rdna_events", "cuda_ms", "cuda_host_ms", "fallbacks", "first_s"]


@dataclasses.dataclass
class Case:
    name: str
    group: str
    unit: str
    make: Callable[[str, bool], Work]
    goal: float | None = None
    tolerance: float = 2e-2


@dataclasses.dataclass
class Work:
    """One case on a device."""

    step: Callable[[], Any]
    amount: float  # of the unit, for a step
    check: Callable[[], float]  # the largest error


def error_of(got: torch.Tensor, expected: torch.Tensor) -> float:
    got, expected = got.detach().cpu().double(), expected.detach().cpu().double()
    if not torch.isfinite(got).all():
        return float("inf")
    return float((got - expected).norm() / expected.norm().clamp_min(1e-30))


def synchronize(device: str) -> None:
    {"rdna": lambda: torch.rdna.synchronize(), "cuda": torch.cuda.synchronize, "cpu": lambda: None}[device]()


#
# Cases
#


def training(device: str, model: nn.Module, loss_of: Callable[[nn.Module, Any], torch.Tensor], make_optimizer: Callable[[Any], Any], batch: Any, small: Any, amount: float) -> Work:
    """A step of training in f16 by autocast, with a GradScaler; the loss and the gradient of the first and the last parameter are compared."""
    theirs = copy.deepcopy(model)
    ours = model.to(device)
    optimizer, scaler = make_optimizer(ours.parameters()), torch.amp.GradScaler(device)

    def loss_in_f16(inputs: Any) -> torch.Tensor:
        with torch.autocast(device, dtype=torch.float16):
            return loss_of(ours, inputs)

    def check() -> float:
        on_device = tuple(one.to(device) for one in small)
        expected, got = loss_of(theirs, small), loss_in_f16(on_device)
        expected.backward()
        (got * 64).backward()  # in f16 small gradients vanish
        parameters = [(one, other) for one, other in zip(ours.parameters(), theirs.parameters()) if one.dim() > 1]
        errors = [error_of(got, expected)] + [error_of(one.grad.float() / 64, other.grad) for one, other in (parameters[0], parameters[-1])]
        print("errors of the loss, the first and the last gradient", *(f"{one:.3g}" for one in errors), flush=True)
        ours.zero_grad(set_to_none=True)
        return max(errors[0], errors[-1])  # of the first gradient all layers' roundings are in

    given = tuple(one.to(device) for one in batch)

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_in_f16(given)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    return Work(step, amount, check)


def resnet_training(isLast: bool) -> Callable[[str, bool], Work]:
    def make(device: str, isTiny: bool) -> Work:
        depth, size, batch, few = (18, 64, 8, 8) if isTiny else (50, 224, 64, 4)
        format = torch.channels_last if isLast else torch.contiguous_format
        model = resnet(depth).to(memory_format=format)
        images = torch.randn(batch, 3, size, size).to(memory_format=format)
        labels = torch.randint(0, 1000, (batch,))
        return training(
            device,
            model,
            lambda network, given: nn.functional.cross_entropy(network(given[0]), given[1]),
            lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True),
            (images, labels),
            (images[:few].contiguous(memory_format=format), labels[:few]),
            batch,
        )

    return make


def llama_training(device: str, isTiny: bool) -> Work:
    shape, batch, length, few = (models.TINY_LLAMA, 2, 32, 32) if isTiny else (models.LLAMA_1B, 2, 1024, 128)
    ids = torch.randint(0, shape.words, (batch, length))
    return training(
        device,
        models.Decoder(shape),
        lambda network, given: network(given[0]),
        lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, fused=True),
        (ids,),
        (ids[:1, :few],),
        batch * length,
    )


def characters_training(device: str, isTiny: bool) -> Work:
    """A step of the network whose curve torch_curve.py draws."""
    shape, batch, length = (models.TINY_CHARACTERS, 2, 32) if isTiny else (models.CHARACTERS, 64, 256)
    ids = torch.randint(0, shape.words, (batch, length + 1))
    return training(
        device,
        models.Gpt(shape, length),
        lambda network, given: network(given[0]),
        lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, fused=True),
        (ids,),
        (ids[:2],),
        batch * length,
    )


def bert_forward(isCompiled: bool) -> Callable[[str, bool], Work]:
    def make(device: str, isTiny: bool) -> Work:
        shape, batch, length = (models.TINY_BERT, 2, 32) if isTiny else (models.BERT_BASE, 32, 512)
        theirs = models.Encoder(shape).eval()
        ours = copy.deepcopy(theirs).half().to(device)
        ids = torch.randint(0, shape.words, (batch, length))
        given = ids.to(device)
        run = torch.compile(ours) if isCompiled else ours

        def step() -> torch.Tensor:
            with torch.no_grad():
                return run(given)

        def check() -> float:
            with torch.no_grad():
                return error_of(step()[:1], theirs(ids[:1]))

        return Work(step, batch, check)

    return make


# Channels, size of the image's side, stride of ResNet-50's convolutions of 3 x 3; its first one is 7 x 7 of images with 3 channels.
CONVOLUTIONS = [(64, 56, 1), (128, 56, 2), (128, 28, 1), (256, 28, 2), (256, 14, 1), (512, 14, 2), (512, 7, 1)]


def convolution(inputs: int, channels: int, size: int, kernel: int, stride: int, isLast: bool, isBackward: bool) -> Callable[[str, bool], Work]:
    """Of images with 3 inputs, which are a network's first layer, the gradient of the weight alone is computed."""

    def make(device: str, isTiny: bool) -> Work:
        isImage = inputs == 3
        batch, width, side = (2, 32, 8) if isTiny else (64, channels, size)
        depth = inputs if isImage else width
        format = torch.channels_last if isLast else torch.contiguous_format
        x = torch.randn(batch, depth, side, side).half().to(memory_format=format)
        w = (torch.randn(width, depth, kernel, kernel) / (kernel * depth**0.5)).half().to(memory_format=format)
        ours, weight = x.to(device).requires_grad_(isBackward and not isImage), w.to(device).requires_grad_(isBackward)
        side = (side - 1) // stride + 1
        grad = torch.randn(batch, width, side, side).half().to(memory_format=format)
        ours_grad = grad.to(device)

        def step() -> Any:
            out = nn.functional.conv2d(ours, weight, None, stride, kernel // 2)
            return torch.autograd.grad(out, (weight,) if isImage else (ours, weight), ours_grad) if isBackward else out

        def check() -> float:
            if not isBackward:
                return error_of(step()[:2], nn.functional.conv2d(x[:2].double(), w.double(), None, stride, kernel // 2))
            got = step()
            x32, w32 = x.float().requires_grad_(), w.float().requires_grad_()  # all images are in the weight's gradient
            expected = torch.autograd.grad(nn.functional.conv2d(x32, w32, None, stride, kernel // 2), (w32,) if isImage else (x32, w32), grad.float())
            return max(error_of(*pair) for pair in zip(got, expected))

        return Work(step, 2e-12 * batch * side * side * width * depth * kernel**2 * (1 + isBackward * (1 if isImage else 2)), check)

    return make


def operator(work: float, function: Callable[..., Any], *shapes: Any) -> Callable[[str, bool], Work]:
    """One operator on random f16; dims are a sixteenth of it where sizes are tiny."""

    def make(device: str, isTiny: bool) -> Work:
        given = [torch.randn(*(max(size // 16, 4) if isTiny and size > 16 else size for size in shape)).half() for shape in shapes]
        ours = [one.to(device) for one in given]
        rows = min(given[0].shape[0], 256)
        return Work(lambda: function(*ours), work, lambda: error_of(function(*ours)[:rows], function(given[0][:rows].double(), *(one.double() for one in given[1:]))))

    return make


def many_small(device: str, isTiny: bool) -> Work:
    """100 additions of a tensor of 16 elements: what a launch costs."""
    x = torch.ones(16, device=device)

    def step() -> torch.Tensor:
        y = x
        for _ in range(100):
            y = y + x
        return y

    return Work(step, 100, lambda: error_of(step(), torch.full((16,), 101.0)))


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return nn.functional.scaled_dot_product_attention(*(one.unflatten(0, (-1, 12)) if one.shape[0] % 12 == 0 else one[None] for one in (q, k, v))).flatten(0, 1)


def cases() -> list[Case]:
    made = [
        Case("launches", "operators", "launches/s", many_small, tolerance=0.0),
        Case("matmul_f16_4096", "operators", "TFLOP/s", operator(2e-12 * 4096**3, torch.matmul, (4096, 4096), (4096, 4096)), tolerance=2e-3),
        Case("linear_f16_16384x768x3072", "operators", "TFLOP/s", operator(2e-12 * 16384 * 768 * 3072, nn.functional.linear, (16384, 768), (3072, 768)), tolerance=2e-3),
        Case("attention_f16_32x12x512x64", "operators", "TFLOP/s", attention_work, tolerance=4e-3),
        Case("add_f16_64Mi", "operators", "GB/s", operator(6e-9 * 8192 * 8192, lambda x, y: x + y[: x.shape[0]], (8192, 8192), (8192, 8192)), tolerance=2e-3),
        Case("softmax_f16_8192", "operators", "GB/s", operator(4e-9 * 8192 * 8192, lambda x: torch.softmax(x, -1), (8192, 8192)), tolerance=2e-3),
        Case("layer_norm_f16_16384x768", "operators", "GB/s", operator(4e-9 * 16384 * 768, lambda x, w: nn.functional.layer_norm(x, x.shape[-1:], w), (16384, 768), (768,)), tolerance=2e-3),
        Case("bert_forward_compiled", "bert_forward_compiled", "sequences/s", bert_forward(True), goal=0.4),
        Case("resnet50_training_channels_last", "resnet50_training_channels_last", "images/s", resnet_training(True), goal=0.35, tolerance=5e-2),
        Case("llama_1b_training", "llama_1b_training", "tokens/s", llama_training, goal=0.35),
        Case("gpt_characters_training", "gpt_characters_training", "tokens/s", characters_training),
        *convolutions(True, False),
        Case("bert_forward_eager", "bert_forward_eager", "sequences/s", bert_forward(False)),
        Case("resnet50_training", "resnet50_training", "images/s", resnet_training(False), goal=0.35, tolerance=5e-2),
    ]
    return made + convolutions(False, False) + convolutions(True, True) + convolutions(False, True)


def convolutions(isLast: bool, isBackward: bool) -> list[Case]:
    kind = f"{'gradients_' if isBackward else ''}{'nhwc' if isLast else 'nchw'}"
    group = f"conv3x3_{kind}"
    made = [
        Case(f"{group}_{channels}_{size}_s{stride}", group, "TFLOP/s", convolution(channels, channels, size, 3, stride, isLast, isBackward), None if isBackward else 0.45, 4e-3)
        for channels, size, stride in CONVOLUTIONS
    ]
    return [*made, Case(f"conv7x7_{kind}_3_224_s2", group, "TFLOP/s", convolution(3, 64, 224, 7, 2, isLast, isBackward), tolerance=4e-3)]


def attention_work(device: str, isTiny: bool) -> Work:
    batch, length = (1, 64) if isTiny else (32, 512)
    given = [torch.randn(batch * 12, length, 64).half() for _ in range(3)]
    ours = [one.to(device) for one in given]
    return Work(lambda: attention(*ours), 4e-12 * batch * 12 * length * length * 64, lambda: error_of(attention(*ours)[:12], attention(*(one[:12].double() for one in given))))


#
# One case on one device, in a process of its own
#


# A GPU that only Vulkan uses runs at 345 of 1980 MHz when it has been idle, and takes 0.4 s of work to reach the latter (H200).
WARM_SECONDS = 1.0


def steps_of(work: Work, device: str, seconds: float) -> tuple[float, float]:
    """The time of a step, and that until the host has asked for it, behind a second of steps that brings the device to its clock."""
    begin = time.perf_counter()
    count = 1
    while time.perf_counter() - begin < WARM_SECONDS:
        start = time.perf_counter()
        for _ in range(count):
            work.step()
        synchronize(device)
        once = (time.perf_counter() - start) / count
        count = max(1, min(50, int(0.1 / max(once, 1e-6))))
    count = max(2, min(50, int(seconds / 5 / max(once, 1e-6))))
    whole, asked = [], []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(count):
            work.step()
        asked.append((time.perf_counter() - begin) / count)
        synchronize(device)
        whole.append((time.perf_counter() - begin) / count)
    return statistics.median(whole), statistics.median(asked)


MOST_LINES = 40


def profile(work: Work, device: str) -> tuple[int, list[str]]:
    """The number of operators and kernels of a step, and lines of those that take most of the device's time, by the shapes of their inputs."""
    if device != "rdna":
        return 0, []
    with torch.autograd.profiler.profile(use_device="rdna", use_kineto=False, record_shapes=True) as profiled:
        work.step()
        synchronize(device)
    found = sorted(profiled.key_averages(group_by_input_shape=True), key=lambda one: -one.self_device_time_total)
    total = sum(one.self_device_time_total for one in found)
    count = sum(one.count for one in found)
    lines = [f"{total / 1e3:10.3f} ms of the device in all, {len(found)} kinds of operators and kernels, {count} of them; the host's time includes the profiler's"]
    for one in found[:MOST_LINES]:
        shapes = " ".join("x".join(map(str, shape)) for shape in one.input_shapes if shape)
        time_of = f"{one.self_device_time_total / 1e3:10.3f} ms {100 * one.self_device_time_total / max(total, 1):5.1f} % {one.count:6d} x"
        lines.append(f"{time_of} {one.self_cpu_time_total / max(one.count, 1):9.1f} us of the host, {one.key[:110]} {shapes[:110]}")
    return count, lines


def run_case(case: Case, device: str, options: argparse.Namespace) -> dict[str, Any]:
    torch.manual_seed(0)
    begin = time.perf_counter()
    work = case.make(device, options.tiny)
    made = time.perf_counter()
    result: dict[str, Any] = {}
    if options.check:
        result["error"] = work.check()
        print(f"error {result['error']:.3g} of {case.tolerance:g}, {time.perf_counter() - made:.1f} s; made in {made - begin:.1f} s", flush=True)
    begin = time.perf_counter()
    for index in range(3):
        work.step()
        synchronize(device)
        result.setdefault("first", time.perf_counter() - begin)
        print(f"step {index} at {time.perf_counter() - begin:.2f} s", flush=True)
    if not options.measure:
        return result
    seconds, asked = steps_of(work, device, options.seconds)
    result.update(rate=work.amount / seconds, ms=seconds * 1e3, host_ms=asked * 1e3)
    print(f"{result['rate']:.6g} {case.unit}, {result['ms']:.4g} ms, of which the host asks for {result['host_ms']:.4g}", flush=True)
    print(f"RESULT {json.dumps({case.name: result})}", flush=True)  # what comes may fail
    if device == "rdna":
        result["events"], lines = profile(work, device)
        print(*lines, sep="\n", flush=True)
        result["fallbacks"] = sum(torch.rdna.fallbacks().values())
    return result


def run_group(group: str, device: str, options: argparse.Namespace) -> None:
    if device == "rdna":
        import greta.torch  # noqa: F401 -- the device

        torch.rdna.forbid_fallback(True)
    elif device == "cuda":
        torch.backends.cudnn.benchmark = True
    for case in cases():
        if case.group == group and re.search(options.only, case.name):
            print(f"-- {case.name} on {device}", flush=True)
            try:
                print(f"RESULT {json.dumps({case.name: run_case(case, device, options)})}", flush=True)
            except Exception:
                traceback.print_exc()
                print("", flush=True)


#
# All cases
#


class Runs:
    """Processes for cases on devices, with what they say in the log."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.log = open(options.log, "a") if options.log else None
        self.end = time.monotonic() + options.budget

    def start(self, group: str, device: str, flags: list[str]) -> tuple[Any, Any]:
        environment = dict(os.environ)
        if device == "rdna":
            environment["CUDA_VISIBLE_DEVICES"] = ""
        if "--measure" not in flags:
            environment["OMP_NUM_THREADS"] = "4"  # others run beside
        arguments = [sys.executable, "-u", __file__, f"--child={group}", f"--devices={device}", f"--seconds={self.options.seconds}", f"--only={self.options.only}", *flags]
        output = open(f"{self.options.csv}.{group}.{device}", "w+")
        return subprocess.Popen(arguments + ["--tiny"] * self.options.tiny, stdout=output, stderr=subprocess.STDOUT, env=environment), output

    def finish(self, started: tuple[Any, Any], what: str, most: float) -> dict[str, Any]:
        """Waits so many seconds for a process, and gives its results by case."""
        process, output = started
        try:
            process.wait(max(0.1, min(most, self.end - time.monotonic())))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        output.seek(0)
        lines = output.read()
        output.close()
        os.remove(output.name)
        results: dict[str, Any] = {}
        for found in re.findall(r"^RESULT (.*)$", lines, re.M):
            results.update(json.loads(found))
        if self.log:
            self.log.write(f"== {what}: status {process.returncode}\n{lines}\n")
            self.log.flush()
        if process.returncode or "Traceback" in lines:
            print(f"== {what}: status {process.returncode}\n" + "\n".join(line for line in lines.splitlines()[-14:] if not line.startswith("RESULT")), flush=True)
        return results


@contextlib.contextmanager
def table(path: str, columns: list[str]) -> Iterator[Callable[..., None]]:
    """Appends rows to a CSV file, which gets a header if it is new: calls give the columns but for those of the build, of today and of the machine."""
    gpu, driver = machine()
    is_new = not pathlib.Path(path).exists()
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if is_new:
            writer.writeheader()

        def append(digits: int, **row: Any) -> None:
            row.update(date=datetime.date.today().isoformat(), commit=os.environ.get("GRETA_COMMIT", "unknown"), gpu=gpu, driver=driver, torch=torch.__version__)
            writer.writerow({name: f"{value:.{digits}g}" if isinstance(value, float) else "" if value is None else value for name, value in row.items()})
            file.flush()

        yield append


def machine() -> tuple[str, str]:
    try:
        said = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True, check=True).stdout
        return tuple(one.strip() for one in said.splitlines()[0].split(","))  # type: ignore[return-value]
    except (OSError, subprocess.CalledProcessError):
        return "none", "none"


def check_side_by_side(runs: Runs, groups: list[str], device: str, options: argparse.Namespace) -> dict[str, Any]:
    begin = time.monotonic()
    results: dict[str, Any] = {}
    waiting, running = list(groups), []
    while waiting or running:
        while waiting and len(running) < options.side_by_side:
            group = waiting.pop(0)
            running.append((group, runs.start(group, device, ["--check"]), time.monotonic()))
        for entry in [entry for entry in running if entry[1][0].poll() is not None or time.monotonic() - entry[2] > options.first_most]:
            running.remove(entry)
            found = runs.finish(entry[1], f"{entry[0]} on {device}, first", 0.1)
            results.update(found)
            for name, result in found.items():
                print(f"{name}: error {result['error']:.3g}, first step {result['first']:.1f} s, until {time.monotonic() - begin:.0f} s", flush=True)
        time.sleep(0.2)
    return results


def run_all(options: argparse.Namespace) -> int:
    chosen = [case for case in cases() if re.search(options.only, case.name)]
    groups = list(dict.fromkeys(case.group for case in chosen))
    ours, peer = options.devices.split(",")
    runs = Runs(options)
    checked = check_side_by_side(runs, groups, ours, options)
    isWrong = any(not checked.get(case.name, {}).get("error", float("inf")) <= case.tolerance for case in chosen)
    with table(options.csv, COLUMNS) as append:
        for group in groups:
            if time.monotonic() > runs.end:
                print(f"{group}: no time is left", flush=True)
                continue
            peers = runs.finish(runs.start(group, peer, ["--measure"] + ["--check"] * options.check_peer), f"{group} on {peer}", options.most)
            own = runs.finish(runs.start(group, ours, ["--measure"]), f"{group} on {ours}", options.most)
            for case in (case for case in chosen if case.group == group):
                mine, theirs, first = own.get(case.name, {}), peers.get(case.name, {}), checked.get(case.name, {})
                ratio = mine["rate"] / theirs["rate"] if "rate" in mine and "rate" in theirs else None
                row: dict[str, Any] = dict(case=case.name, unit=case.unit, goal=case.goal, ratio=ratio, error=first.get("error"), first_s=first.get("first"), tolerance=case.tolerance)
                row.update(rdna=mine.get("rate"), rdna_ms=mine.get("ms"), rdna_host_ms=mine.get("host_ms"), rdna_events=mine.get("events"), fallbacks=mine.get("fallbacks"))
                row.update(cuda_error=theirs.get("error"), cuda=theirs.get("rate"), cuda_ms=theirs.get("ms"), cuda_host_ms=theirs.get("host_ms"))
                append(digits=5, **row)
                shown = ("case", "rdna", "cuda", "unit", "ratio", "goal", "error", "cuda_error", "rdna_ms", "rdna_host_ms", "rdna_events", "cuda_ms")
                print(" ".join(f"{name}={row[name]:.4g}" if isinstance(row[name], float) else f"{name}={row[name]}" for name in shown), flush=True)
    return int(isWrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", default="torch_gpu.csv")
    parser.add_argument("--log")
    parser.add_argument("--only", default="", help="a regular expression for the names of cases")
    parser.add_argument("--devices", default="rdna,cuda")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--seconds", type=float, default=1.0, help="about so long a case is measured")
    parser.add_argument("--most", type=float, default=120, help="seconds for a group on a device")
    parser.add_argument("--first-most", type=float, default=300, help="seconds for a group the first time")
    parser.add_argument("--budget", type=float, default=3600, help="seconds for all")
    parser.add_argument("--side-by-side", type=int, default=8, help="processes that check and compile")
    parser.add_argument("--check-peer", action="store_true", help="the peer's results are compared with the CPU's, too")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.child:
        return run_all(options)
    run_group(options.child, options.devices, options)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
