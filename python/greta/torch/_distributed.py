"""The backend greta of torch.distributed, for tensors on rdna."""

from __future__ import annotations

import atexit
from datetime import timedelta
from typing import Any

import torch

from .. import _torch
from ._device import NAME


def _make(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    return _torch.make_collectives(store, rank, size, timeout.total_seconds())


def _give_cpu_gloo() -> None:
    """Groups that name no backend have Gloo for tensors of the CPU beside ours. torch takes Gloo for such a group's default, which DistributedDataParallel and barriers ask, but makes the accelerator's backend alone, and has no hook for it."""
    from torch.distributed import distributed_c10d

    config = distributed_c10d.BackendConfig
    make = config.__init__

    def make_with_gloo(self: Any, backend: Any) -> None:
        make(self, backend)
        if backend == "undefined" and self.device_backend_map == {NAME: "greta"} and torch.distributed.is_gloo_available():
            self.device_backend_map = {"cpu": distributed_c10d.Backend.GLOO, **self.device_backend_map}

    config.__init__ = make_with_gloo


def register() -> None:
    """Groups that name no backend for rdna get this one."""
    if torch.distributed.is_available():
        torch.distributed.Backend.register_backend("greta", _make, devices=[NAME])
        _give_cpu_gloo()
        atexit.register(_torch.end_collectives)
