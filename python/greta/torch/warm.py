"""Compiles common operators for torch's device rdna before a program calls them: `python -m greta.torch.warm [--device=rdna:0] [--dtypes=float32,float16] [--only=REGEX]`.

In: the table below, and types. Out: a function for all sizes of each, in the user's cache, where every process finds it at its first call; a line per operator. Products get
packages of any extents; those with a weight's extents in their types are compiled when a model calls them. The exit status is 1 where an operator ran on the CPU or failed.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

import greta.torch  # noqa: F401 -- registers the device

from . import _eager

F = torch.nn.functional
NUMBERS = (2, 3, 4)  # of dims that pointwise operators are compiled for
Make = Callable[..., torch.Tensor]


def _pointwise() -> dict[str, Callable[[Make], Any]]:
    """Operators on tensors whose dims have the same order."""
    unary = ("relu", "sigmoid", "tanh", "exp", "sqrt", "rsqrt", "neg", "abs", "square", "log")
    table: dict[str, Callable[[torch.Tensor], Any]] = {name: getattr(torch, name) for name in unary}
    table |= {"silu": F.silu, "gelu": F.gelu, "x + 1": lambda x: x + 1, "x * 0.5": lambda x: x * 0.5, "x ** 2": lambda x: x**2, "clamp": lambda x: x.clamp(-1, 1)}
    table |= {name: (lambda x, op=getattr(torch, name): op(x, x + 1)) for name in ("add", "sub", "mul", "div", "maximum", "minimum")}
    table |= {"x == y": lambda x: x == x + 1, "x > 0": lambda x: x > 0, "where": lambda x: torch.where(x > 0, x, x + 1), "masked_fill": lambda x: x.masked_fill(x > 0, 0)}
    table |= {"softmax": lambda x: x.softmax(-1), "log_softmax": lambda x: x.log_softmax(-1), "sum": lambda x: x.sum(-1), "mean": lambda x: x.mean(-1), "amax": lambda x: x.amax(-1)}
    table |= {"sum of all": torch.sum, "argmax": lambda x: x.argmax(-1), "cat": lambda x: torch.cat((x, x), -1), "transpose": lambda x: x.transpose(-1, -2).contiguous()}
    return {f"{name}, {dims} dims": (lambda make, function=function, dims=dims: function(make(dims))) for name, function in table.items() for dims in NUMBERS}


def _layers() -> dict[str, Callable[[Make], Any]]:
    def with_row(function: Callable[..., Any]) -> Callable[[Make], Any]:
        return lambda make: function(make(3), make(1))

    return {
        "x + row": with_row(torch.add),
        "x * row": with_row(torch.mul),
        "layer_norm": with_row(lambda x, w: F.layer_norm(x, x.shape[-1:], w, w)),
        "rms_norm": with_row(lambda x, w: F.rms_norm(x, x.shape[-1:], w)),
        "embedding": lambda make: F.embedding(make(2).abs().long() % 8, make(2)),
        "cross_entropy": lambda make: F.cross_entropy(make(2), make(2).argmax(-1)),
        "linear": lambda make: F.linear(make(3), make(1).expand(24, -1).contiguous(), make(1)[:1].expand(24).contiguous()),
        "product": lambda make: make(2) @ make(2).t(),
        "products of a batch": lambda make: make(3) @ make(3).mT,
    }


TABLE: dict[str, Callable[[Make], Any]] = {**_pointwise(), **_layers()}
SIZES = {1: (320,), 2: (448, 320), 3: (8, 56, 320), 4: (4, 6, 48, 320)}  # no function is compiled for these alone; blocks are those of large tensors (_eager._is_large)


def run(device: str, types: Sequence[torch.dtype], only: str = "") -> int:
    """Compiles the operators that `only` finds for each type on a device; the number of those that have no kernel."""
    isForbidden = torch.rdna.forbid_fallback(True)
    failures = 0
    try:
        for type_ in types:
            for name, function in TABLE.items():
                if not re.search(only, name):
                    continue
                begin = time.monotonic()
                said = ""
                try:
                    with _eager.for_all_sizes():
                        function(lambda dims, type_=type_: torch.ones(SIZES[dims], device=device).to(type_))
                    torch.rdna.synchronize(device)
                except Exception as error:
                    failures += 1
                    said = f": {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
                print(f"{str(type_).removeprefix('torch.')} {name}: {time.monotonic() - begin:.1f} s{said}", flush=True)
    finally:
        torch.rdna.forbid_fallback(isForbidden)
    return failures


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m greta.torch.warm", description="Compiles common operators into the user's cache.")
    parser.add_argument("--device", default="rdna", help="rdna:N; other devices of the same kind find the same kernels")
    parser.add_argument("--dtypes", default="float32,float16", help="types of tensors by torch's names, of floats")
    parser.add_argument("--only", default="", help="a regular expression for operators' names")
    options = parser.parse_args(arguments)
    types = [getattr(torch, name, None) for name in options.dtypes.split(",")]
    if not all(isinstance(one, torch.dtype) and one.is_floating_point for one in types):
        parser.error(f"--dtypes={options.dtypes}: these are no types of floats of torch")
    try:
        hasOperators = any(re.search(options.only, name) for name in TABLE)
    except re.error as error:
        parser.error(f"--only={options.only}: this is no regular expression: {error}")
    if not hasOperators:
        parser.error(f"--only={options.only}: no operator has such a name")
    try:
        if torch.device(options.device).type != "rdna":
            raise RuntimeError("this is no device of rdna")
        torch.empty(1, device=options.device)
    except RuntimeError as error:
        parser.error(f"--device={options.device}: {str(error).splitlines()[0]}")
    return 1 if run(options.device, types, options.only) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
