"""Operators on rows on a GPU through rdna, as packages and by the ways before, beside torch's CUDA: `torch_rows.py --csv=FILE [--devices=rdna,cuda] [--only=REGEX] [--tiny]`.

In: a machine with torch and greta.torch; CUDA where it is. Out: a row of the CSV for each case and way with microseconds of a call, the host's part of them, and the largest error beside
the CPU in float64 over the first rows, by the Euclidean norm. Ways of rdna: `package` (_row_packages.py and _lookups.py; what has none is not in the CSV under this name), `inductor` (one kernel or some, for
just these sizes), `composed` (norms as torch composes them of other operators). Each device has a process; all is compiled first and then measured in one go, so that the clock stays up.
Each case has one set of tensors: those of less than the GPU's cache stay there. --tiny takes a sixteenth of the rows.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import torch
from torch_gpu import error_of, synchronize, table

COLUMNS = ["date", "commit", "gpu", "driver", "torch", "case", "way", "us", "host_us", "of_cuda", "error"]
MOST_ERROR = {torch.float16: 1e-3, torch.float32: 1e-5}
functional = torch.nn.functional


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, x.shape[-1:], w, b)


def rms_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(x, x.shape[-1:], w, 1e-5)


# By name: of rows, a weight and a bias of their length, ids of rows and labels of columns.
OPERATORS: dict[str, Callable[..., torch.Tensor]] = {
    "softmax": lambda x, w, b, ids, labels: torch.softmax(x, -1),
    "log_softmax": lambda x, w, b, ids, labels: torch.log_softmax(x, -1),
    "layer_norm": lambda x, w, b, ids, labels: layer_norm(x, w, b),
    "rms_norm": lambda x, w, b, ids, labels: rms_norm(x, w, b),
    "embedding": lambda x, w, b, ids, labels: functional.embedding(ids, x),
    "cross_entropy": lambda x, w, b, ids, labels: functional.cross_entropy(x, labels, reduction="none"),
    "embedding_step": lambda x, w, b, ids, labels: torch.autograd.grad(functional.embedding(ids, x), x, x.detach())[0],
    "cross_entropy_step": lambda x, w, b, ids, labels: torch.autograd.grad(functional.cross_entropy(x, labels, reduction="sum"), x)[0],
    "layer_norm_step": lambda x, w, b, ids, labels: torch.autograd.grad(layer_norm(x, w, b), (x, w, b), x.detach())[0],
    "rms_norm_step": lambda x, w, b, ids, labels: torch.autograd.grad(rms_norm(x, w, b), (x, w), x.detach())[0],
}
SQUARE, VOCABULARY, FLAT = (4096, 4096), (64, 50257), (16384, 768)
SHAPES = {
    **dict.fromkeys(("softmax", "log_softmax"), (SQUARE, VOCABULARY, FLAT)),
    **dict.fromkeys(("layer_norm", "rms_norm"), (SQUARE, FLAT)),
    **dict.fromkeys(("embedding", "embedding_step", "layer_norm_step", "rms_norm_step"), (FLAT,)),
    **dict.fromkeys(("cross_entropy", "cross_entropy_step"), (SQUARE, VOCABULARY)),
}
LONG = [("softmax", (1, 151936)), ("log_softmax", (16, 262144)), ("layer_norm", (4, 262144))]  # in f32 alone
CASES = [(name, dtype, shape) for name, shapes in SHAPES.items() for shape in shapes for dtype in MOST_ERROR] + [(name, torch.float32, shape) for name, shape in LONG]


def given(name: str, dtype: torch.dtype, shape: tuple[int, int], device: str) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The tensors of a case on the device, and those of its first rows in float64."""
    torch.manual_seed(0)
    made = [torch.randn(one).to(dtype) for one in (shape, shape[1:], shape[1:])] + [torch.randint(0, most, shape[:1]) for most in shape]
    few = shape[0] if name == "embedding_step" else min(shape[0], 64)
    first = [made[0] if name.startswith("embedding") else made[0][:few], *made[1:3], *(one[:few] for one in made[3:])]
    isStep = name.endswith("step")
    ours = [one.to(device).requires_grad_(isStep and one.is_floating_point()) for one in made]
    return ours, [one.double().requires_grad_(isStep) if one.is_floating_point() else one for one in first]


Case = tuple[str, torch.dtype, tuple[int, int]]


def name_of(case: Case) -> str:
    operator, dtype, shape = case
    return f"{operator}_{'f16' if dtype == torch.float16 else 'f32'}_{shape[0]}x{shape[1]}"


class Way:
    """A case on a device by one way, ready to be called."""

    def __init__(self, name: str, case: Case, device: str, rows: int):
        operator, dtype, shape = case
        self.name, self.device = name, device
        self.case = name_of(case)
        self.tensors, first = given(operator, dtype, (max(shape[0] // rows, 1), shape[1]), device)
        self.function = OPERATORS[operator]
        if name == "composed":
            self.function = lambda x, w, b, ids, labels: composed(operator, x, w, b)
        self.saved: dict[Any, Any] = {}
        self.enter()
        result = self.call()
        expected = OPERATORS[operator](*first)
        self.error = error_of(result[: expected.shape[0]], expected)
        self.isRight = self.error <= MOST_ERROR[dtype]
        for _ in range(2):
            self.call()
        if device == "rdna":
            from greta.torch import _eager

            self.saved = dict(_eager._operators)

    def enter(self) -> None:
        """Makes this the way that calls take, compiled for these sizes alone."""
        if self.device == "rdna":
            from greta import _torch
            from greta.torch import _eager, _operators, _row_packages  # noqa: F401 -- fills the table

            for op, function in packages().items():
                _operators.table.pop(op, None)
                if self.name == "package":
                    _operators.table[op] = function
            _eager._operators.clear()
            _eager._operators.update(self.saved)
            _torch.forget_call_plans()

    def call(self) -> torch.Tensor:
        return self.function(*self.tensors)

    def measure(self, seconds: float = 0.02) -> tuple[float, float]:
        """Seconds of a call, and those until the host has asked for it."""
        self.enter()
        for _ in range(3):
            self.call()
        synchronize(self.device)
        begin = time.perf_counter()
        for _ in range(10):
            self.call()
        synchronize(self.device)
        count = max(5, min(1000, int(seconds * 10 / (time.perf_counter() - begin))))
        whole, asked = [], []
        for _ in range(5):
            begin = time.perf_counter()
            for _ in range(count):
                self.call()
            asked.append((time.perf_counter() - begin) / count)
            synchronize(self.device)
            whole.append((time.perf_counter() - begin) / count)
        return statistics.median(whole), statistics.median(asked)


def packages() -> dict[Any, Any]:
    from greta.torch import _lookups as lookups
    from greta.torch import _row_packages as rows

    aten = torch.ops.aten
    return {
        aten._softmax.out: rows._softmax_out,
        aten._log_softmax.out: rows._log_softmax_out,
        aten.native_layer_norm.default: rows._layer_norm,
        aten._fused_rms_norm.default: rows._rms_norm,
        aten.embedding.default: lookups._embedding,
        aten.nll_loss_forward.output: lookups._loss,
        aten.nll_loss_backward.grad_input: lookups._loss_gradient,
    }


def composed(operator: str, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """torch's own composition for devices that do not have the operator."""
    below = torch._C.DispatchKeySet(torch._C.DispatchKey.PrivateUse2)
    if operator == "rms_norm":
        return torch.ops.aten._fused_rms_norm.default.redispatch(below, x, x.shape[-1:], w, 1e-5)[0]
    return torch.ops.aten.native_layer_norm.default.redispatch(below, x, x.shape[-1:], w, b, 1e-5)[0]


def ways_of(operator: str, device: str) -> list[str]:
    if device != "rdna":
        return [device]
    return ["inductor", "package", *(["composed"] if operator in ("layer_norm", "rms_norm") else [])]


def run_on(device: str, only: str, rows: int) -> None:
    if device == "rdna":
        import greta.torch  # noqa: F401 -- the device
        from greta.torch import _row_packages

        torch.rdna.forbid_fallback(True)
        _row_packages.MOST_LENGTH = 1 << 30
    begin = time.perf_counter()
    made = []
    for case in CASES:
        for way in ways_of(case[0], device):
            if not re.search(only, name_of(case)):
                continue
            try:
                made.append(Way(way, case, device, rows))
            except Exception:
                print(case, way, flush=True)
                traceback.print_exc()
    print(f"{device}: compiled and checked in {time.perf_counter() - begin:.1f} s", flush=True)
    begin = time.perf_counter()
    while time.perf_counter() - begin < 1:  # of work, for the clock
        made[0].call()
        synchronize(device)
    for one in made:
        seconds, asked = one.measure()
        print("RESULT", json.dumps(dict(case=one.case, way=one.name, us=seconds * 1e6, host_us=asked * 1e6, error=one.error, isRight=one.isRight)), flush=True)
    print(f"{device}: measured in {time.perf_counter() - begin:.1f} s", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", default="torch_rows.csv")
    parser.add_argument("--devices", default="cuda,rdna")
    parser.add_argument("--only", default="", help="a regular expression for the names of cases")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--most", type=float, default=200, help="seconds for a device")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_on(options.child, options.only, 16 if options.tiny else 1)
        return 0
    results: list[dict[str, Any]] = []
    for device in options.devices.split(","):
        environment = dict(os.environ) | ({"CUDA_VISIBLE_DEVICES": ""} if device == "rdna" else {})
        with subprocess.Popen([sys.executable, "-u", __file__, f"--child={device}", f"--only={options.only}", *["--tiny"] * options.tiny], stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            timer = threading.Timer(options.most, process.kill)
            timer.start()
            for line in process.stdout:
                print(line, end="", flush=True)
                if line.startswith("RESULT "):
                    results.append(json.loads(line.removeprefix("RESULT ")))
            timer.cancel()
    theirs = {one["case"]: one["us"] for one in results if one["way"] == "cuda"}
    with table(options.csv, COLUMNS) as append:
        for one in results:
            of_cuda = theirs[one["case"]] / one["us"] if one["case"] in theirs else None
            append(digits=4, of_cuda=of_cuda, **{name: one[name] for name in ("case", "way", "us", "host_us", "error")})
    return int(not results or not all(one["isRight"] for one in results))


if __name__ == "__main__":
    raise SystemExit(main())
