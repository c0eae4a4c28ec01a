"""GRETA in Python: arrays on devices, collectives of them, packages, and Triton's kernels compiled ahead of time or where they are called.

`greta.jit`, `greta.autotune`, `greta.compile` and `greta.language` take Triton (pip install greta[triton]); the rest does not.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import _runtime
from ._runtime import Error
from ._arrays import Array, asarray, empty, empty_like, from_dlpack, to_numpy, zeros
from ._communicator import Communicator, unique_id
from ._devices import device, devices, set_device, synchronize
from ._package import Function, Package, load
from ._streams import Event, Stream

__version__ = _runtime.version()
__all__ = ["Array", "Communicator", "Error", "Event", "Function", "Package", "Stream", "asarray", "device", "devices", "empty", "empty_like", "from_dlpack", "load", "set_device"]
__all__ += ["synchronize", "to_numpy", "unique_id", "zeros"]

# Names that are imported when first asked for: name, and the module it is in.
_LATER = {
    **dict.fromkeys(("jit", "autotune", "heuristics", "Config", "JITFunction"), "_jit"),
    **dict.fromkeys(("compile", "Compiled", "CompileError"), "_compile"),
    "function": "ops",
    **{module: module for module in ("language", "ops", "testing", "triton")},
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'greta' has no attribute '{name}'")
    module = importlib.import_module(f".{_LATER[name]}", __name__)
    value = module if _LATER[name] == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
