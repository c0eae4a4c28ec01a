"""Triton's driver for torch's tensors on rdna: kernels decorated with @triton.jit, and those that Inductor writes."""

from __future__ import annotations

import functools
from typing import Any

import torch
from triton.backends.compiler import GPUTarget

from .. import _torch
from .._runtime import Error
from ..triton import launch
from ..triton.driver import GretaDriver
from ..triton.errors import ConfigurationError
from ._device import NAME, target_of


class Utils(launch.Utils):
    """`driver.utils`."""

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, ...]:
        function = _torch.Kernel(kernel, name)
        try:
            function.load(device)
        except RuntimeError as error:
            raise ConfigurationError(str(error)) from None
        registers, spills = launch._registers(kernel)
        return function, function, registers, spills, 1 << 20


class TorchDriver(GretaDriver):
    """The device is torch's in use, by its index, and streams are torch's, by their numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.utils = Utils()
        self.launcher_cls = functools.partial(launch.launcher, make=_torch.Launcher)

    def get_current_target(self) -> GPUTarget:
        target = target_of(_torch.current_device())
        if target == "host":
            raise Error("Triton's kernels run on GPUs, on Vulkan and in the simulator, not on the device 'host'")
        return GPUTarget("greta", target, 32)

    def get_current_device(self) -> int:
        return _torch.current_device()

    def set_current_device(self, device: int) -> None:
        _torch.set_device(device)

    def get_current_stream(self, device: int | None = None) -> int:
        return _torch.raw_stream(-1 if device is None else device)

    def get_active_torch_device(self) -> torch.device:
        return torch.device(NAME, _torch.current_device())

    def get_device_interface(self) -> Any:
        return torch.rdna

    def get_benchmarker(self) -> Any:
        from triton.testing import do_bench

        return functools.partial(do_bench, warmup=1, rep=5)

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(1 << 20, dtype=torch.int32, device=NAME)

    def clear_cache(self, cache: torch.Tensor) -> None:
        cache.zero_()


@functools.lru_cache(None)
def activate() -> None:
    """Makes it Triton's driver. Inductor takes a driver only of a back end that says it is active."""
    import triton

    GretaDriver.torchs = TorchDriver()
    triton.runtime.driver.set_active(GretaDriver.torchs)
