"""DLPack for tensors on rdna.

To torch they are kDLExtDev, and share memory with its tensors as those of other devices do. Other libraries get the device's memory by the name that the runtime
has for it: the host's where the host reaches it, else ROCm's or Vulkan's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.dlpack import DLDeviceType

from .. import _torch
from ._device import NAME, index_of

_HOST = (int(DLDeviceType.kDLCPU), 0)
_device_of_torch, _capsule_of_torch = torch.Tensor.__dlpack_device__, torch.Tensor.__dlpack__


_old_capsule_of_torch = torch.utils.dlpack.to_dlpack


def _old_capsule(tensor: torch.Tensor) -> Any:
    if tensor.device.type == NAME:
        _torch.move_away(tensor)
    return _old_capsule_of_torch(tensor)


def _device(self: torch.Tensor) -> tuple[Any, int]:
    return (DLDeviceType.kDLExtDev, self.device.index) if self.device.type == NAME else _device_of_torch(self)


def _capsule(self: torch.Tensor, *, stream: Any = -1, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
    if self.device.type == NAME:
        _torch.move_away(self)  # from memory of a graph, which its next replay writes
    if self.device.type != NAME or dl_device is None or dl_device[0] == DLDeviceType.kDLExtDev:
        return _capsule_of_torch(self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    wanted = int(dl_device[0]), dl_device[1]
    if copy is not False and wanted == _HOST and (copy or not self.is_contiguous()):
        return _capsule_of_torch(self.cpu(), max_version=max_version)
    try:
        capsule, *found = _torch.export_dlpack(self)
    except RuntimeError as error:
        raise BufferError(str(error)) from None
    if tuple(found) == wanted:
        return capsule
    if wanted == _HOST and copy is not False:
        return _capsule_of_torch(self.cpu(), max_version=max_version)
    raise BufferError(f"{self.device} is DLPack's device {found[0]}:{found[1]}; its memory cannot be given as {wanted[0]}:{wanted[1]}")


def from_dlpack(of: Any, device: Any = None) -> torch.Tensor:
    """The memory of another library's array, or of GRETA's, as a tensor on rdna, without a copy; BufferError where the device does not reach it.

    Who works on both sees to their order: GRETA's arrays are complete when they are given away, tensors behind torch.rdna.synchronize().
    """
    index = index_of(device)
    try:
        return _torch.import_dlpack(of.__dlpack__(), index)
    except RuntimeError as error:
        raise BufferError(f"rdna:{index} cannot use this memory as it lies; a tensor of the CPU is copied by .to('rdna'). {error}") from None


def register() -> None:
    torch.to_dlpack = torch.utils.dlpack.to_dlpack = _old_capsule
    torch.Tensor.__dlpack_device__ = _device  # type: ignore[method-assign]
    torch.Tensor.__dlpack__ = _capsule  # type: ignore[method-assign]
