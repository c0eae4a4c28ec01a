"""Devices: what there is, the one in use, and what it runs.

A device is named as everywhere in GRETA: hip[:N], vulkan[:N], sim:<gfx>, host. The one in use is GRETA_DEVICE's, else the first that exists of
hip, vulkan and host.
"""

from __future__ import annotations

import functools
import json
import os
from typing import Any

from . import _runtime
from ._runtime import Device, Error

_opened: dict[str, Device] = {}
_current: Device | None = None


@functools.lru_cache(None)
def _probed() -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(_runtime.devices()))


def devices() -> list[str]:
    """The names of what can be used, each of which set_device takes."""
    usable = [entry for entry in _probed() if entry["available"]]
    return [name for entry in usable for name in ([f"sim:{chip}" for chip in entry["chips"]] if "chips" in entry else [entry["spec"]])]


def _default_spec() -> str:
    if spec := os.environ.get("GRETA_DEVICE"):
        return spec
    for backend in ("hip", "vulkan"):
        for entry in _probed():
            if entry["spec"].startswith(backend) and entry["available"]:
                return entry["spec"]
    return "host"


def device(spec: str | Device | None = None) -> Device:
    """The device of this name, or the one in use. It is opened when it is first used."""
    if isinstance(spec, Device):
        return spec
    if spec is None:
        return _current or set_device(_default_spec())
    # vulkan is vulkan:0; every name of a device is the same object.
    name = f"{spec}:0" if spec in ("hip", "vulkan") else spec
    if name not in _opened:
        _opened[name] = Device(name)
    return _opened[name]


def set_device(spec: str | Device) -> Device:
    """From now on arrays and kernels are on this device. One chip can be simulated at a time: another one is closed."""
    global _current
    chosen = device(spec)
    if chosen.spec.startswith("sim:"):
        for other in _opened.values():
            if other is not chosen and other.is_open and other.spec.startswith("sim:"):
                other.close()
    try:
        chosen.open()
    except Error as error:
        raise Error(f"device '{chosen.spec}' cannot be used: {error}; there are {', '.join(devices())}") from None
    _current = chosen
    return chosen


def targets(chosen: Device) -> str:
    """The target to compile for, so that it runs on this device."""
    kind, _, rest = chosen.spec.partition(":")
    if kind == "sim":
        return rest
    if kind == "host":
        return "host"
    for entry in _probed():
        if entry["spec"] == chosen.spec:
            if kind == "hip":
                return entry["arch"].partition(":")[0]
            # A family of its own, or whichever the runtime finds to fit.
            return entry["family"] if entry.get("family") in ("vulkan:nvidia", "vulkan:lavapipe") else "vulkan"
    raise Error(f"there is no device '{chosen.spec}'")


def is_checked() -> bool:
    """Whether GRETA_CHECK asks for checks: what is compiled then knows its lines, and simulated devices watch programs."""
    return os.environ.get("GRETA_CHECK", "0") not in ("", "0")


def synchronize() -> None:
    """Waits until the device in use has done everything."""
    device().synchronize()
