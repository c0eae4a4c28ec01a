"""The kernel that copies tensors with any strides and converts their types (python/src/torch/Copies.cpp launches it)."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .. import _torch
from .._compile import CompileError, compile_cached
from .._devices import is_checked
from .._runtime import Error
from ..triton.source import ahead_of_time
from ._device import target_of

# torch's names of the types that kernels compute with, as Triton spells them.
TYPES = {
    "Bool": "i1",
    "Byte": "u8",
    "Char": "i8",
    "Short": "i16",
    "Int": "i32",
    "Long": "i64",
    "Half": "fp16",
    "BFloat16": "bf16",
    "Float": "fp32",
    "Double": "fp64",
}
MOST_DIMS = 6


@triton.jit
def _by(rest, at, source_at, size, to, source):
    """One dim further: what is left of the number of an element, and its places so far."""
    index = rest % size
    return rest // size, at + index * to, source_at + index * source


@triton.jit
def copy_strided(
    to,
    source,
    n,
    size0,
    to0,
    source0,
    size1,
    to1,
    source1,
    size2,
    to2,
    source2,
    size3,
    to3,
    source3,
    size4,
    to4,
    source4,
    size5,
    to5,
    source5,
    RANK: tl.constexpr,
    NEGATES: tl.constexpr,
    FAR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """An element for each index of dims 0 (the slowest) to RANK - 1."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if FAR:
        i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
    mask = i < n
    rest = i
    at = i * 0
    source_at = i * 0
    if RANK > 5:
        rest, at, source_at = _by(rest, at, source_at, size5, to5, source5)
    if RANK > 4:
        rest, at, source_at = _by(rest, at, source_at, size4, to4, source4)
    if RANK > 3:
        rest, at, source_at = _by(rest, at, source_at, size3, to3, source3)
    if RANK > 2:
        rest, at, source_at = _by(rest, at, source_at, size2, to2, source2)
    if RANK > 1:
        rest, at, source_at = _by(rest, at, source_at, size1, to1, source1)
    at += rest * to0
    source_at += rest * source0
    value = tl.load(source + source_at, mask=mask)
    if to.dtype.element_ty == tl.int1:
        value = value != 0
    else:
        # As the CPU does: numbers become small integers by way of large ones.
        if value.dtype.is_floating() and to.dtype.element_ty.is_int():
            value = value.to(tl.int64)
        if NEGATES:
            value = -value
    tl.store(to + at, value.to(to.dtype.element_ty), mask=mask)


def find(to: str, source: str, rank: int, far: bool, negates: bool) -> Any:
    """The kernel for these of torch's types, or None."""
    if to not in TYPES or source not in TYPES:
        return None
    target = target_of(_torch.current_device())
    if target == "host":
        return None
    integer = "i64" if far else "i32"
    signature = {"to": f"*{TYPES[to]}", "source": f"*{TYPES[source]}", "n": integer}
    for dim in range(MOST_DIMS):
        for name in ("size", "to", "source"):
            signature[f"{name}{dim}"] = integer if dim < rank else "0"
    signature |= {"RANK": str(rank), "NEGATES": str(negates), "FAR": str(far), "BLOCK": "1024"}
    text, name, options, _ = ahead_of_time(copy_strided, signature, [target], {}, None, 64)
    try:
        return _torch.Kernel(compile_cached(text, target, name=f"{name}.ttir", triton=True, **options, line_tables=is_checked()), name)
    except (CompileError, Error):
        return None
