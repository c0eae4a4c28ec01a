"""GRETA as a back end of Triton: kernels decorated with @triton.jit run on GRETA's devices.

`GRETA_TRITON=1` in the environment, or `greta.triton.activate("vulkan")`, makes it Triton's active driver; else nothing changes for Triton.
"""

from __future__ import annotations

import functools

from .._devices import set_device
from .._runtime import Device, Error

SUPPORTED = ((3, 6), (3, 9))  # the first and the last version


@functools.lru_cache(None)
def check_version() -> None:
    """Fails unless the installed Triton is one that GRETA takes."""
    try:
        from triton import __version__ as version
    except ImportError as error:
        raise Error(f"Triton is not installed ({error}); pip install greta[triton]") from None
    major, minor = (int(part) for part in version.split(".")[:2])
    if not SUPPORTED[0] <= (major, minor) <= SUPPORTED[1]:
        first, last = (".".join(map(str, one)) for one in SUPPORTED)
        raise Error(f"Triton {version} is not supported: its IR may differ from that of {first} to {last}, which GRETA takes; pip install greta[triton]")


def activate(device: str | Device | None = None) -> Device | None:
    """Makes GRETA Triton's active driver, on this device if one is named."""
    check_version()
    import triton

    from .driver import GretaDriver

    chosen = set_device(device) if device is not None else None
    triton.runtime.driver.set_active(GretaDriver())
    return chosen


def deactivate() -> None:
    """Leaves Triton with the driver that it chooses itself, or with that of torch's device rdna where it is used."""
    import triton

    from .driver import GretaDriver

    triton.runtime.driver.set_active(GretaDriver.torchs)
