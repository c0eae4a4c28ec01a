"""`python -m greta.diagnose`: which versions and devices there are, why others are not, what to install or change for more, or faster, ones (`->`), and whether torch's
device rdna computes right in each type.

Exits 1 where a result is wrong.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from . import __version__, _runtime
from ._devices import _probed
from ._runtime import Error

TYPES = ("float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8")


def versions() -> str:
    found = [f"greta {__version__}", f"Python {platform.python_version()}"]
    for name in ("numpy", "torch", "triton"):
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def devices() -> Iterator[str]:
    for entry in _probed():
        if "chips" in entry:
            yield f"sim       simulated {', '.join(entry['chips'])}"
        elif entry["available"]:
            yield f"{entry['spec']:9} {entry.get('name', '')}, {entry.get('driver') or 'no driver needed'}"
        else:
            yield f"{entry['spec']:9} cannot be used: {entry['reason']}"


def advice() -> list[str]:
    """A sentence for each thing to install or change."""
    return _runtime.advice(json.dumps(_probed()))


def check(torch: Any, kind: str) -> str:
    """Computes a sum and a product of matrices of small integers, which every type holds exactly."""
    dtype = getattr(torch, kind)
    numbers = torch.arange(48).reshape(6, 8) % 4
    there = numbers.to(dtype).to("rdna")
    try:
        got = (there + there).cpu(), (there @ there.t()).cpu()
    except RuntimeError as error:
        return f"error: {(str(error).splitlines() or ['no reason'])[0]}"
    expected = numbers + numbers, numbers @ numbers.t()
    wrong = [name for name, one, other in zip(("sum", "product"), got, expected) if not torch.equal(one, other.to(dtype))]
    return f"wrong: {' and '.join(wrong)}" if wrong else "right"


def main(types: Sequence[str] = TYPES) -> int:
    print(versions())
    print(*devices(), *(f"-> {one}" for one in advice()), sep="\n")
    try:
        import torch

        import greta.torch  # noqa: F401
    except ImportError as error:
        print(f"torch's device rdna: {error}\n-> torch: install torch, and then greta again, for it")
        return 0
    except Error as error:
        print(f"torch's device rdna: {error}")
        return 0
    if not torch.rdna.is_available():
        print("torch's device rdna: there is no device; GRETA_TORCH_DEVICES=sim:gfx1100 simulates one")
        return 0
    print(f"torch's device rdna is {torch.rdna.get_device_properties().spec}, {torch.rdna.get_device_name()}:")
    torch.rdna.fallbacks(True)
    results = {kind: check(torch, kind) for kind in types}
    for kind, result in results.items():
        print(f"  {kind:9} {result}")
    if onCpu := torch.rdna.fallbacks():
        print(f"  on the CPU ran {', '.join(onCpu)}")
    return int(any(not result.startswith("right") for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
