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


def register() -> None:
    """Groups that name no backend for rdna get this one."""
    if torch.distributed.is_available():
        torch.distributed.Backend.register_backend("greta", _make, devices=[NAME])
        atexit.register(_torch.end_collectives)
