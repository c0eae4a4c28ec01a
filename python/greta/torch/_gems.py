"""Operators that neither this package nor Inductor has kernels for, by flag-gems' kernels in Triton, where that library is installed.

`TAKEN` is the list of these operators; test/torch/test_torch_gems.py has each beside the CPU. The library is imported by the first call of one of them. Its functions trust their callers, so what they get wrong, or would write out of bounds, is sent elsewhere: NotImplemented.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import pathlib
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from ._device import NAME
from ._operators import reaches_far

VERSION = "5.0.2"  # the tests' (test/requirements-libraries.txt): what is sent elsewhere below is what this one gets wrong
aten = torch.ops.aten
_lock = threading.RLock()


@functools.lru_cache(None)
def _library() -> Any:
    """The library's operators, made for this device; None where it cannot be had."""
    try:
        found = importlib.metadata.version("flag-gems")
    except importlib.metadata.PackageNotFoundError:
        return None
    if found != VERSION or "flag_gems" in sys.modules:
        warnings.warn(f"operators of flag-gems run on the CPU: greta.torch takes version {VERSION}, which the program does not import itself, and this is {found}", stacklevel=2)
        return None
    before = os.environ.get("GEMS_VENDOR")
    try:
        _prepare()
        from flag_gems import ops
        from flag_gems.utils.libentry import LibEntry
    except ImportError as error:
        warnings.warn(f"operators of flag-gems run on the CPU: {error}", stacklevel=2)
        return None
    finally:
        os.environ.pop("GEMS_VENDOR", None)
        if before is not None:
            os.environ["GEMS_VENDOR"] = before
    # Its own cache of launches leaves constexprs out, which Triton from 3.7 on takes as arguments; Triton has a cache, too.
    LibEntry.run = lambda self, *args, **kwargs: (self.fn.run(*args, **kwargs), {})
    return ops


def _prepare() -> None:
    """The library knows vendors by name and has no hook for others: this device is that vendor whose kernels are all in plain Triton."""
    (folder,) = importlib.util.find_spec("flag_gems").submodule_search_locations
    sys.path.append(str(pathlib.Path(folder) / "runtime" / "backend"))  # as it does itself
    os.environ["GEMS_VENDOR"] = "nvidia"
    vendor = importlib.import_module("_nvidia")
    vendor.vendor_info.device_name, vendor.vendor_info.dispatch_key, vendor.vendor_info.triton_extra_name = NAME, "PrivateUse1", "cuda"
    del vendor.ARCH_MAP  # kernels of single chips
    sys.modules[f"torch.backends.{NAME}"] = types.ModuleType(f"torch.backends.{NAME}")


def run(op: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The operator's result, or NotImplemented."""
    function = TAKEN.get(op)
    # Atomics come in any order, and the library counts places in 32 bits.
    if function is None or torch.are_deterministic_algorithms_enabled() or reaches_far(*_tensors(args), *_tensors(kwargs.values())):
        return NotImplemented
    with _lock:
        ops = _library()
    if ops is None:
        return NotImplemented
    with torch.rdna.device(next(one.device for one in _tensors(args) if one.device.type == NAME)):  # it launches on the current one
        return function(ops, *args, **kwargs)


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for one in values:
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, (list, tuple)):
            yield from _tensors(one)


def _are_within(index: torch.Tensor, least: int, end: int) -> bool:
    index = index.long()  # narrower types have not all numbers
    return index.numel() == 0 or bool(((index >= least) & (index < end)).all().item())


def _repeat(ops: Any, repeats: torch.Tensor, *, output_size: int | None = None) -> Any:
    if repeats.dim() != 1 or repeats.numel() == 0 or repeats.dtype not in (torch.int32, torch.int64) or not _are_within(repeats, 0, 1 << 31):
        return NotImplemented
    if output_size is not None and output_size != repeats.sum().item():
        return NotImplemented
    return ops.repeat_interleave_tensor(repeats.contiguous())


def _shrink(ops: Any, self: torch.Tensor, size: Any, align_corners: bool, scales_h: float | None = None, scales_w: float | None = None, *, out: torch.Tensor) -> Any:
    """Images become smaller; the library's kernel for larger ones takes ten seconds to compile for lavapipe."""
    if self.dim() != 4 or self.dtype != torch.float32 or self.numel() == 0 or not (0 < size[0] <= self.shape[2] and 0 < size[1] <= self.shape[3]):
        return NotImplemented
    result = ops._upsample_bicubic2d_aa(self.contiguous(), size, align_corners, scales_h, scales_w)
    return out.resize_(result.shape).copy_(result)


TAKEN: dict[Any, Callable[..., Any]] = {
    aten.repeat_interleave.Tensor: _repeat,
    aten._upsample_bicubic2d_aa.out: _shrink,
}
