"""torch.rdna: what torch's other devices have as torch.cuda or torch.xpu."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import types
from typing import Any, NamedTuple

import torch

from .. import _torch
from .._devices import device as greta_device
from .._devices import targets

NAME = "rdna"


class Properties(NamedTuple):
    """As torch.cuda's, with GRETA's name of the device and of what is compiled for it."""

    name: str
    spec: str
    target: str
    driver: str
    gcnArchName: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    shared_memory_per_block: int
    regs_per_multiprocessor: int
    max_threads_per_multi_processor: int
    max_threads_per_block: int
    uuid: str


def index_of(device: Any = None) -> int:
    """The index of a device: of its name, its index or a tensor's device; None is the one in use."""
    if device is None:
        return _torch.current_device()
    if isinstance(device, int):
        return device
    device = torch.device(device)
    if device.type != NAME:
        raise ValueError(f"{device} is no device {NAME}")
    return _torch.current_device() if device.index is None else device.index


@functools.lru_cache(None)
def target_of(index: int) -> str:
    """The target of kernels for the device."""
    return targets(greta_device(_torch.spec(index)))


def block_of(extent: int, most: int) -> int:
    """The block of a GEMM's dim on the device in use, 16 or a power of two up to `most`. lavapipe compiles kernels with barriers in minutes where a lane holds much."""
    if target_of(_torch.current_device()) == "vulkan:lavapipe":
        most = 16
    block = 16
    while block < most and block < extent:
        block *= 2
    return block


def dot_tile(rows: int, columns: int, depth: int, isNarrow: bool, count: int = 1) -> dict[str, int]:
    """The blocks of a product and the warps that compute one, `count` products at once; isNarrow: of types of 16 bits.

    Matrix units want large blocks, of which there have to be enough for every unit of the device. Long sums take four warps on an H100."""
    most = 64, 64, 32
    if isNarrow and min(rows, columns) >= 128 and -(-rows // 128) * -(-columns // 128) * count * 2 >= _properties(_torch.current_device()).multi_processor_count:
        most = 128, 128, 64
    m, n, k = (block_of(extent, one) for extent, one in zip((rows, columns, depth), most))
    return dict(BLOCK_M=m, BLOCK_N=n, BLOCK_K=k, num_warps=8 if m * n >= 128 * 128 and depth < 2048 else 4)


@functools.lru_cache(None)
def _properties(index: int) -> Properties:
    info = json.loads(_torch.info(index))
    arch = info.get("arch", "").partition(":")[0]
    digits = arch.removeprefix("gfx")
    total = torch.accelerator.get_memory_info(index)[1]
    subgroup = info.get("subgroup_size", {}).get("default") or (64 if arch.startswith("gfx9") else 32)
    return Properties(
        name=info["name"],
        spec=info["spec"],
        target=target_of(index),
        driver=info.get("driver", ""),
        gcnArchName=arch,
        major=int(digits[:-2]) if digits else 0,
        minor=int(digits[-2]) if digits else 0,
        total_memory=total,
        multi_processor_count=info.get("compute_units", 64),
        warp_size=subgroup,
        shared_memory_per_block=info.get("shared_bytes", 65536),
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048,
        max_threads_per_block=1024,
        uuid=info.get("uuid", ""),
    )


class device:
    """`with torch.rdna.device(1):` makes it the one in use."""

    def __init__(self, device: Any):
        self.idx = index_of(device)

    def __enter__(self) -> None:
        self.prev_idx = _torch.exchange_device(self.idx)

    def __exit__(self, *_: Any) -> None:
        _torch.exchange_device(self.prev_idx)


def _stream(number: int, index: int) -> torch.Stream:
    return torch.Stream(stream_id=number, device_index=index, device_type=int(torch._C._autograd.DeviceType.PrivateUse1))


@contextlib.contextmanager
def made_for_all_streams(index: int) -> Any:
    """Tensors that are made in here are complete behind it, also where a graph is being recorded: a stream of our own makes them."""
    own = _stream(_torch.own_stream, index)
    with _torch.PauseOfRecorders(), own:
        yield
    own.synchronize()


class Stream(torch.Stream):
    """A stream of a device; `with` makes it the one in use."""

    def __new__(cls, device: Any = None, priority: int = 0, **of: Any) -> Any:
        if of:
            return super().__new__(cls, priority=priority, **of)
        return super().__new__(cls, device=torch.device(NAME, index_of(device)), priority=priority)


class Event:
    """torch.Event of this device: torch measures only between events of exactly that class."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Any:
        return torch.Event(NAME, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)


def _seed_all(seed: int) -> None:
    for index in range(_torch.device_count()):
        _torch.default_generator(index).manual_seed(int(seed))


def forbid_fallback(forbidden: bool = True) -> bool:
    """Whether operators without a kernel are errors in place of running on the CPU; returns whether they were before."""
    return not _torch.allow_fallback(not forbidden)


def allow_quadratic_attention(allowed: bool = True) -> bool:
    """Whether attention without a kernel may be torch's own, whose memory grows with queries times keys; returns whether it might before."""
    return _torch.allow_quadratic_attention(bool(allowed))


def fallbacks(reset: bool = False) -> dict[str, int]:
    """The operators that ran on the CPU, with how often."""
    return _torch.fallbacks(reset)


def memory_stats(device: Any = None) -> dict[str, Any]:
    """torch.accelerator's, the bytes that the driver gave and nobody uses, the largest piece of them, and `fragmentation`, the share of the other pieces."""
    index = index_of(device)
    unused, largest = _torch.memory(index)
    stats = dict(torch.accelerator.memory_stats(index))
    return {**stats, "unused_bytes": unused, "largest_unused_bytes": largest, "fragmentation": 1 - min(largest, unused) / unused if unused else 0.0}


def memory_snapshot() -> list[dict[str, Any]]:
    """The memory of all devices in torch.cuda's words. Each segment is a buffer of the runtime with one block, a tensor's (active_allocated) or one that waits for the
    next tensor of its size (inactive), in its stream or, with a number in segment_pool_id, in its graph, where the stream is None."""
    segments = []
    for index in range(_torch.device_count()):
        for address, size, requested, stream, graph, isUsed in _torch.memory_pieces(index):
            used = size if isUsed else 0
            block = {"address": address, "size": size, "requested_size": requested, "state": "active_allocated" if isUsed else "inactive", "frames": []}
            segment = {"device": index, "address": address, "total_size": size, "allocated_size": used, "active_size": used, "requested_size": requested}
            segments.append({**segment, "stream": None if stream < 0 else stream, "segment_type": "large", "segment_pool_id": (graph, 0), "is_expandable": False, "frames": [], "blocks": [block]})
    return sorted(segments, key=lambda one: (one["device"], one["address"]))


def _functions() -> dict[str, Any]:
    accelerator = torch.accelerator
    generators = tuple(_torch.default_generator(index) for index in range(_torch.device_count()))

    def set_device(device: Any) -> None:
        _torch.set_device(index_of(device))

    def manual_seed(seed: int) -> None:
        generators[_torch.current_device()].manual_seed(int(seed))

    def of_memory(name: str) -> Any:
        return lambda device=None: getattr(accelerator, name)(index_of(device))

    def default_stream(device: Any = None) -> torch.Stream:
        return _stream(0, index_of(device))

    memory = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "reset_peak_memory_stats", "reset_accumulated_memory_stats")
    return {
        **{name: of_memory(name) for name in memory},
        "device": device,
        "Stream": Stream,
        "Event": Event,
        "default_generators": generators,
        "is_available": lambda: _torch.device_count() > 0,
        "is_initialized": lambda: True,
        "_initialized": True,  # torch.utils.checkpoint keeps the state of generators where this holds
        "init": lambda: None,
        "_lazy_init": lambda: None,
        "_is_in_bad_fork": lambda: bool(_forked),
        "device_count": _torch.device_count,
        "current_device": _torch.current_device,
        "set_device": set_device,
        "_exchange_device": _torch.exchange_device,
        "_maybe_exchange_device": _torch.exchange_device,
        "get_device_properties": lambda device=None: _properties(index_of(device)),
        "get_device_name": lambda device=None: _properties(index_of(device)).name,
        "get_device_capability": lambda device=None: (_properties(index_of(device)).major, _properties(index_of(device)).minor),
        "synchronize": lambda device=None: _torch.synchronize(index_of(device)),
        "current_stream": lambda device=None: accelerator.current_stream(index_of(device)),
        "default_stream": default_stream,
        "set_stream": accelerator.set_stream,
        "stream": lambda stream: contextlib.nullcontext() if stream is None else stream,
        "memory_stats": memory_stats,
        "memory_snapshot": memory_snapshot,
        "memory_summary": lambda device=None: _torch.memory_summary(index_of(device)),
        "mem_get_info": lambda device=None: accelerator.get_memory_info(index_of(device)),
        "empty_cache": accelerator.empty_cache,
        "manual_seed": manual_seed,
        "manual_seed_all": _seed_all,
        "seed": lambda: generators[_torch.current_device()].seed(),
        "initial_seed": lambda: generators[_torch.current_device()].initial_seed(),
        "get_rng_state": lambda device=NAME: generators[index_of(device)].get_state(),
        "set_rng_state": lambda state, device=NAME: generators[index_of(device)].set_state(state),
        "_get_rng_state_offset": lambda device=NAME: generators[index_of(device)].get_offset(),
        "_set_rng_state_offset": lambda offset, device=NAME: generators[index_of(device)].set_offset(offset),
        "get_amp_supported_dtype": lambda: [torch.float16, torch.bfloat16],
        "is_bf16_supported": lambda including_emulation=True: True,
        "fallbacks": fallbacks,
        "forbid_fallback": forbid_fallback,
        "allow_quadratic_attention": allow_quadratic_attention,
    }


_forked: list[bool] = []  # not empty in a process that was forked from one that had imported this
os.register_at_fork(after_in_child=lambda: _forked.append(True))


def register() -> None:
    """Gives PrivateUse1 its name, torch.rdna, and the methods that tensors and modules have of a device."""
    torch.utils.rename_privateuse1_backend(NAME)
    _torch.register_graphs(NAME.upper())
    module = types.ModuleType("torch.rdna", __doc__)
    module.__dict__.update(_functions())
    torch._register_device_module(NAME, module)
    sys.modules["torch.rdna"] = module
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_storage=True, for_packed_sequence=True)
