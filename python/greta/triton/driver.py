"""The driver that Triton finds: devices, launches and timing of @triton.jit kernels on GRETA.

Triton imports this module with itself, whatever is used: what fails here would break Triton.
"""

from __future__ import annotations

import os
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from . import check_version


class GretaDriver(DriverBase):
    """The device is the one in use in greta. Streams are its: what Triton passes on as a stream is the device."""

    torchs: GretaDriver | None = None  # the driver of torch's device rdna, where that is used: Triton's, unless another is activated

    def __init__(self) -> None:
        super().__init__()
        check_version()
        from . import launch

        launch.take_arrays()
        self.utils = launch.Utils()
        self.launcher_cls = launch.launcher

    @classmethod
    def is_active(cls) -> bool:
        return cls.torchs is not None or os.environ.get("GRETA_TRITON", "0") not in ("", "0")

    def map_python_to_cpp_type(self, ty: str) -> str:
        return {"i1": "int8_t", "fp16": "float", "bf16": "float", "fp32": "float", "fp64": "double"}.get(ty, f"int{ty[1:]}_t")

    def get_current_target(self) -> GPUTarget:
        from .._devices import device
        from .launch import target_of

        return target_of(device())

    def get_current_device(self) -> str:
        from .._devices import device

        return device().spec

    def set_current_device(self, spec: str) -> None:
        from .._devices import set_device

        set_device(spec)

    def get_current_stream(self, spec: str | None = None) -> Any:
        from .._devices import device

        return device(spec)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        from . import launch

        return launch.DeviceInterface

    def get_benchmarker(self) -> Any:
        from ..testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        import torch

        return torch.empty(0)

    def clear_cache(self, cache: Any) -> None:
        pass
