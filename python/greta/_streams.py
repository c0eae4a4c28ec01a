"""Streams and events of the device in use."""

from __future__ import annotations

from . import _runtime
from ._runtime import Device
from ._devices import device as find_device


class Event(_runtime.Event):
    """A point in a stream, with the device's time: `start.elapsed_time(end)` is in milliseconds."""

    def __init__(self, device: str | Device | None = None, enable_timing: bool = True):
        super().__init__(find_device(device))


class Stream(_runtime.Stream):
    """Work in order; `with greta.Stream():` makes it the one that launches and copies go to."""

    def __init__(self, device: str | Device | None = None):
        super().__init__(find_device(device))
