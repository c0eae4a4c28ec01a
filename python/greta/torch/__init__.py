"""GRETA's devices in torch: `import greta.torch`, then torch.device("rdna").

The indices of `rdna` are devices of GRETA: those that GRETA_TORCH_DEVICES names ("vulkan:0,sim:gfx1100"), else the one of GRETA_DEVICE, else what there is
of hip, else of vulkan. Operators are compiled for the device when they are first called (`_dispatch.py`); torch.compile takes it, too.
"""

from __future__ import annotations

import os

from .._devices import _probed
from .._devices import device as find_device
from .._runtime import Error


def _specs() -> list[str]:
    for variable in ("GRETA_TORCH_DEVICES", "GRETA_DEVICE"):
        if named := [one.strip() for one in os.environ.get(variable, "").split(",") if one.strip()]:
            return [f"{one}:0" if one in ("hip", "vulkan") else one for one in named]
    for backend in ("hip", "vulkan"):
        if found := [entry["spec"] for entry in _probed() if entry["available"] and entry["spec"].startswith(backend)]:
            return found
    return []


def _load() -> None:
    import torch

    try:
        from .. import _torch
    except ImportError as error:
        raise Error(
            f"greta was built without torch, or for another version than {torch.__version__} ({error}); install torch, then greta with pip install --no-build-isolation"
        ) from None
    built = ".".join(_torch.torch_version.split(".")[:2])
    if not torch.__version__.startswith(built + "."):
        raise Error(f"greta was built for torch {built}, this is {torch.__version__}; build it again with pip install --no-build-isolation")
    if torch._C._get_privateuse1_backend_name() == "rdna":
        return
    _torch.configure(_specs(), find_device)

    from . import _device

    _device.register()

    from . import _dispatch, _distributed, _dlpack, _inductor

    _dispatch.register()
    _distributed.register()
    _dlpack.register()
    _inductor.register()


_load()

from . import ops  # noqa: E402, F401 -- needs the device, as the rest
from ._dlpack import from_dlpack  # noqa: E402, F401
from ._swap import optimize  # noqa: E402, F401
