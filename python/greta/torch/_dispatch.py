"""Takes operators that the device does not have by itself (python/src/torch/Operators.cpp has a few).

A call whose launches were recorded is launched again from C++ (python/src/torch/Dispatch.cpp); all others come here by the key PrivateUse3. First comes a kernel of our own (`_operators.py`), then what Inductor makes of the operator (`_eager.py`), then a kernel of flag-gems (`_gems.py`), then the CPU, counted, unless that is forbidden.
GRETA_TORCH_EAGER=cpu leaves the first three out.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import torch

from .. import _torch
from ._device import NAME, made_for_all_streams, target_of

_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.PrivateUse2)
_compiles = os.environ.get("GRETA_TORCH_EAGER", "compile") != "cpu"


@functools.lru_cache(None)
def _tensor_places(op: Any) -> tuple[int, ...]:
    return tuple(index for index, argument in enumerate(op._schema.arguments) if str(argument.type) in ("Tensor", "Optional[Tensor]"))


# Operators that take tensors of the CPU beside the device's.
_TAKES_CPU = {"aten::index", "aten::_unsafe_index", "aten::index_put", "aten::index_put_", "aten::_unsafe_index_put", "aten::_index_put_impl_", "aten::_pack_padded_sequence", "aten::_ctc_loss", "aten::_ctc_loss_backward"}


def _two_devices(op: Any, first: Any, other: Any) -> RuntimeError:
    return RuntimeError(f"Expected all tensors to be on the same device, but {op} got tensors on two devices, {first} and {other}")


def _check_devices(op: Any, args: Any, first: Any = None) -> Any:
    """The device of the tensors in a call, which is one but for numbers of the CPU."""
    for one in args:
        if isinstance(one, torch.Tensor):
            device = one.device
            if first is None and (device.type == NAME or one.dim()):
                first = device
            elif device != first and (one.dim() or device.type == NAME) and op._schema.name not in _TAKES_CPU:
                raise _two_devices(op, first, device)
        elif isinstance(one, (list, tuple)) and one:
            first = _check_devices(op, one, first)
    return first


@functools.lru_cache(None)
def _targets(op: Any) -> tuple[str, ...]:
    """The arguments by name that an operator writes."""
    return tuple(one.name for one in op._schema.arguments if one.kwarg_only and one.alias_info is not None and one.alias_info.is_write)


@functools.lru_cache(4096)
def _number(word: str, value: Any, kind: torch.dtype, index: int, stream: int) -> torch.Tensor:
    """A number on a device; `word` tells 0.0 from -0.0, and the stream is the one that has written it."""
    return torch.full((), value, dtype=kind, device=torch.device(NAME, index))


@functools.lru_cache(4096)  # plans and graphs keep what they read
def _number_for_all(word: str, value: Any, kind: torch.dtype, index: int) -> torch.Tensor:
    """A number that replays of graphs and calls that are launched again read: it is written before, and stays."""
    with made_for_all_streams(index):
        return torch.full((), value, dtype=kind, device=torch.device(NAME, index))


def number_on(index: int, value: Any, kind: torch.dtype) -> torch.Tensor:
    """A number on a device, for the stream in use."""
    key = repr(value), value, kind, index
    if not _torch.is_capturing(index) and not _torch.is_recording():
        return _number(*key, _torch.raw_stream(index))
    number = _number_for_all(*key)
    _torch.reads_constant(number)
    return number


def _with_tensors(op: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Numbers that stand for tensors, as in x + 1, as tensors of the type that they are computed in: beside tensors of 16 bits in f32, since 1e5 or 1/9 is no number of theirs."""
    places = [index for index in _tensor_places(op) if index < len(args) and isinstance(args[index], (int, float, complex))]
    if not places:
        return args
    others = [one for one in args if isinstance(one, torch.Tensor)]
    typed = [one for one in others if one.dtype != torch.bool] or others
    full = list(args)
    device = next((one.device.index for one in others if one.device.type == NAME), _torch.current_device())
    for index in places:
        kind = torch.result_type(typed[0], args[index]) if typed else torch.result_type(torch.empty(0, dtype=torch.bool), args[index])
        if kind in (torch.float16, torch.bfloat16) and typed[0].dim():  # beside dims a tensor without any does not widen the result
            kind = torch.float32
        full[index] = number_on(device, args[index], kind)
    return tuple(full)


def _fallback(op: Any, *args: Any, **kwargs: Any) -> Any:
    device = _check_devices(op, kwargs.values(), _check_devices(op, args))
    for name in _targets(op) if kwargs else ():
        target = kwargs.get(name)
        if isinstance(target, torch.Tensor) and target.device != device:
            raise _two_devices(op, device, target.device)
    args = _with_tensors(op, args)
    if _compiles and target_of(_torch.current_device()) != "host":
        from . import _attention, _batch_norm, _complex, _complex_views, _convolution_packages, _eager, _fused, _gems, _indices, _lookups, _operators, _optimizers, _paged_attention, _pooling, _products, _random, _recurrent, _resize, _row_packages, _sets, _sorts  # noqa: F401 -- some add to the table

        with torch._C._AutoDispatchBelowAutograd():
            own = _operators.table.get(op)
            result = NotImplemented if own is None else own(*args, **kwargs)
            if result is NotImplemented:
                result = _complex_views.run(op, args, kwargs)
            if result is NotImplemented:
                result = _eager.run(op, args, kwargs)
            if result is NotImplemented:
                result = _gems.run(op, args, kwargs)
        if result is not NotImplemented:
            return result
    return op.redispatch(_CPU, *args, **kwargs)


def run_on_cpu(op: Any, *args: Any) -> Any:
    """An operator that torch composes of others, on the CPU; counted."""
    from torch.utils import _pytree as pytree

    _torch.count_fallback(op._schema.name)
    result = op(*pytree.tree_map_only(torch.Tensor, lambda one: one.cpu(), args))
    return pytree.tree_map_only(torch.Tensor, lambda one: one.to(NAME), result)


def _convolution(*args: Any) -> Any:
    from . import _convolution

    return _convolution.convolution(*args)


def _convolution_backward(*args: Any) -> Any:
    from . import _convolution

    return _convolution.convolution_backward(*args)


def _attention(*args: Any, **kwargs: Any) -> Any:
    from . import _attention

    return _attention.attention(*args, **kwargs)


def _attention_backward(*args: Any, **kwargs: Any) -> Any:
    from . import _attention

    return _attention.attention_backward(*args, **kwargs)


def _group_norm(*args: Any) -> Any:
    from . import _operators

    return _operators.group_norm(*args)


def _embedding(*args: Any) -> Any:
    return _fallback(torch.ops.aten.embedding.default, *args)


def _layer_norm(*args: Any) -> Any:
    return _fallback(torch.ops.aten.native_layer_norm.default, *args)


def _rms_norm(*args: Any) -> Any:
    return _fallback(torch.ops.aten._fused_rms_norm.default, *args)


def _find_copy_kernel(*key: Any) -> Any:
    from . import _copy

    return _copy.find(*key)


_own = {
    "convolution_overrideable": _convolution,
    "convolution_backward_overrideable": _convolution_backward,
    "embedding": _embedding,
    "native_group_norm": _group_norm,
    "native_layer_norm": _layer_norm,
    "_fused_rms_norm": _rms_norm,
    "_scaled_dot_product_fused_attention_overrideable": _attention,
    "_scaled_dot_product_fused_attention_overrideable_backward": _attention_backward,
}
implementations = (_fallback, *_own.values(), _find_copy_kernel)  # what torch's dispatcher and copies call


def register() -> None:
    """Registers the fallback of the device, and the operators that no fallback is asked for."""
    global _libraries
    _libraries = [torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")]
    _libraries[0].fallback(_fallback, "PrivateUse3")
    for name, function in _own.items():
        _libraries[1].impl(name, function, "PrivateUse3")
    _torch.find_copy_kernel(_find_copy_kernel)
