"""Public libraries of Triton kernels on a device of GRETA, against torch: what scripts/triton-libraries runs.

usage: triton_libraries.py [--device=vulkan] [--library=NAME] [--only=REGEX] [--dtypes=f16,bf16,f32] [--record=FILE]

In: the packages as they are, with tensors of the CPU. Out: a line for each operator and type that fails, and a table. Cases are functions of a type that return pairs
of a result and what torch has for it.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import math
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable

import torch
import triton

import cuda_on_cpu
import greta

LIBRARIES = {
    "liger-kernel": "triton_libraries_liger",
    "flag-gems": "triton_libraries_gems",
    "fla-core": "triton_libraries_fla",
    "mamba-ssm": "triton_libraries_mamba",
    "torchao": "triton_libraries_torchao",
}
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
# Relative to the result as a whole, Euclidean, and to its largest number: both sides round once or twice, and add in orders of their own.
# The largest errors of right kernels: f16 4.4e-4 and 7.5e-4, bf16 4.3e-3 and 5.8e-3, f32 1e-6 and 2e-6.
LIMITS = {torch.float16: (1e-3, 2e-3), torch.bfloat16: (8e-3, 1.6e-2), torch.float32: (1e-5, 2e-5)}
# Cases that may have so many times more: liger's group_norm keeps means in the type of the elements and adds up its weights' gradients in bf16 (f16 1.7e-3
# and 2.2e-3, bf16 5.5e-3 and 7.8e-3).
TIMES = {"group_norm": 2.5}
LIMIT = 300  # seconds of a case

Pairs = Iterable[tuple[torch.Tensor, torch.Tensor]]


def differentiate(function: Callable, reference: Callable, inputs: list[torch.Tensor]) -> Pairs:
    """Results and gradients of `function`, beside those of `reference` in f32."""
    mine = [one.clone().requires_grad_(one.is_floating_point()) for one in inputs]
    wide = [(one.float() if one.is_floating_point() else one.clone()).requires_grad_(one.is_floating_point()) for one in inputs]
    got, expected = function(*mine), reference(*wide)
    got = got if isinstance(got, tuple) else (got,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    pairs = [(a.detach().clone(), e.detach()) for a, e in zip(got, expected, strict=True)]
    seeds = [torch.randn_like(e) for e in expected]
    torch.autograd.backward(expected, seeds)
    torch.autograd.backward(got, [seed.to(a.dtype) for seed, a in zip(seeds, got, strict=True)])
    return [*pairs, *((a.grad, e.grad) for a, e in zip(mine, wide, strict=True) if e.grad is not None)]


def errors(got: torch.Tensor, expected: torch.Tensor) -> tuple[float, float]:
    """How far a result is off, relative to what is expected: in the Euclidean norm of the whole, and its worst element of the largest one."""
    got, expected = got.double(), expected.double()
    finite = expected.isfinite()
    if not torch.equal(torch.where(finite, 0.0, got).nan_to_num(1), torch.where(finite, 0.0, expected).nan_to_num(1)) or not got[finite].isfinite().all():
        return math.inf, math.inf
    got, expected = got[finite], expected[finite]
    if torch.equal(got, expected):
        return 0.0, 0.0
    difference, least = got - expected, torch.finfo(torch.float64).tiny
    return (difference.norm() / max(expected.norm(), least)).item(), (difference.abs().max() / max(expected.abs().max(), least)).item()


def compare(dtype: torch.dtype, pairs: Pairs, times: float = 1) -> tuple[float, float]:
    """The largest errors of the results; raises where one is over its limit."""
    worst = 0.0, 0.0
    for number, (got, expected) in enumerate(pairs):
        if got.shape != expected.shape:
            raise AssertionError(f"result {number} is of shape {tuple(got.shape)}, not {tuple(expected.shape)}")
        if not expected.is_floating_point():
            if wrong := (got != expected).sum().item():
                raise AssertionError(f"{wrong} of {got.numel()} elements of result {number} are wrong")
            continue
        measured = errors(got, expected)
        worst = tuple(map(max, worst, measured))
        for error, limit, norm in zip(measured, LIMITS[dtype], ("Euclidean", "maximum"), strict=True):
            if not error <= times * limit:
                raise AssertionError(f"result {number} is off by {error:.3g} of what is expected, {norm}, more than {times * limit:.3g}")
    return worst


def take_smallest_configuration() -> None:
    """Autotuning compares times, which say nothing of a GPU here: the smallest blocks, which fit everywhere."""

    def size(config: triton.Config) -> tuple[int, int]:
        blocks = 1
        for value in config.kwargs.values():
            blocks *= value if isinstance(value, int) and value > 0 else 1
        return blocks, config.num_warps

    pruned = triton.runtime.Autotuner.prune_configs
    triton.runtime.Autotuner.prune_configs = lambda self, kwargs: [min(pruned(self, kwargs), key=size)]
    triton.runtime.Autotuner._bench = lambda self, *args, config, **kwargs: [0.0, 0.0, 0.0]


def prepare(device: str) -> None:
    greta.triton.activate(device)
    cuda_on_cpu.install(synchronize=greta.synchronize)
    take_smallest_configuration()


def cases(library: str) -> dict[str, Callable[[torch.dtype], Pairs]]:
    return importlib.import_module(LIBRARIES[library]).CASES


def run(function: Callable[[torch.dtype], Pairs], dtype: torch.dtype, times: float = 1) -> tuple[str | None, tuple[float, float] | None]:
    """Null where it is right, else the reason; and the errors of what is right."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"takes longer than {LIMIT} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    torch.manual_seed(0)
    try:
        return None, compare(dtype, function(dtype), times)
    except Exception as error:  # whatever a library raises is what the table says
        lines = [line for line in str(error).splitlines() if line.strip()] or [""]
        return f"{type(error).__name__}: {lines[0]}", None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--library", choices=LIBRARIES, action="append")
    parser.add_argument("--only", default="", help="cases whose names and types, such as 'sort f16', have this")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--record", help="a file that gets a line of JSON for each case")
    options = parser.parse_args()
    prepare(options.device)
    failures = 0
    table = []
    for library in options.library or LIBRARIES:
        passed, tried = collections.Counter(), collections.Counter()
        everywhere = 0
        for name, function in cases(library).items():
            words = [word for word in options.dtypes.split(",") if re.search(options.only, f"{name} {word}")]
            if not words:
                continue
            right = True
            for word in words:
                started = time.time()
                reason, measured = run(function, DTYPES[word], TIMES.get(name, 1))
                tried[word] += 1
                passed[word] += reason is None
                if reason:
                    right = False
                    print(f"{library} {name} {word}: {reason}", flush=True)
                if options.record:
                    with open(options.record, "a") as out:
                        print(json.dumps({"library": library, "case": name, "dtype": word, "reason": reason, "errors": measured, "seconds": round(time.time() - started, 1)}), file=out)
            everywhere += right
        failures += sum(tried.values()) - sum(passed.values())
        table.append((library, len({*tried.elements()}) and tried.most_common(1)[0][1], everywhere, *(f"{passed[word]}/{tried[word]}" for word in options.dtypes.split(","))))
    print("\n| library | operators | right in all types | " + " | ".join(options.dtypes.split(",")) + " |")
    print("|" + "---|" * (3 + len(options.dtypes.split(","))))
    for row in table:
        print("| " + " | ".join(map(str, row)) + " |")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
