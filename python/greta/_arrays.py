"""Arrays on devices, and what comes in from the host: NumPy arrays, torch's CPU tensors, everything with DLPack.

Types are NumPy's, with those of ml_dtypes for bfloat16 and 8-bit floats.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from ._runtime import Array as _DeviceArray
from ._runtime import Device, Error
from ._devices import device as find_device

# NumPy's type: its name in packages, and in Triton's signatures.
_NAMES = {
    "float32": ("f32", "fp32"),
    "float16": ("f16", "fp16"),
    "bfloat16": ("bf16", "bf16"),
    "float64": ("f64", "fp64"),
    "int8": ("i8", "i8"),
    "int16": ("i16", "i16"),
    "int32": ("i32", "i32"),
    "int64": ("i64", "i64"),
    "uint8": ("i8", "u8"),
    "uint16": ("i16", "u16"),
    "uint32": ("i32", "u32"),
    "uint64": ("i64", "u64"),
    "bool": ("i8", "i1"),
    "float8_e4m3fn": ("f8e4m3fn", "fp8e4nv"),
    "float8_e4m3fnuz": ("f8e4m3fnuz", "fp8e4b8"),
    "float8_e5m2": ("f8e5m2", "fp8e5"),
    "float8_e5m2fnuz": ("f8e5m2fnuz", "fp8e5b16"),
}


def _numpy_type(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


_PACKAGE = {_numpy_type(name): package for name, (package, _) in _NAMES.items()}
# A name in a package stands for the first type above that has it.
_BY_NAME = {alias: _numpy_type(name) for name, aliases in reversed(_NAMES.items()) for alias in (name, *aliases)}


def as_dtype(of: Any) -> np.dtype[Any]:
    """NumPy's type of a name ("f16", "fp16", "float16"), of NumPy's or torch's types."""
    name = np.dtype(of).name if isinstance(of, (np.dtype, type)) else str(of).removeprefix("torch.")
    if name not in _BY_NAME:
        raise Error(f"no array has elements of type '{name}'; there are {', '.join(_NAMES)}")
    return _BY_NAME[name]


def package_type(kind: Any) -> str:
    """The name in packages of NumPy's type."""
    return _PACKAGE[as_dtype(kind)]


class Array(_DeviceArray):
    """A contiguous array on a device; made by empty, zeros, asarray and functions. Indices and reshape give the same memory."""

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy on the host, after everything before it is done."""
        host = np.empty(self.shape, self.dtype)
        self.read(_bytes(host))
        return host

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        host = self.numpy()
        return host if dtype is None else host.astype(dtype)

    def astype(self, dtype: Any) -> Array:
        return asarray(self.numpy().astype(as_dtype(dtype)), device=self.device)

    def copy(self) -> Array:
        """A copy on the device."""
        fresh = empty(self.shape, self.dtype, self.device)
        fresh.copy_from(self)
        return fresh

    clone = copy

    def copy_(self, of: Any) -> Array:
        """Takes what is in an array of this size and type, on the device or on the host."""
        if isinstance(of, Array) and of.lies_on(self.device):
            self.copy_from(of)
        else:
            self.write(_bytes(np.ascontiguousarray(on_host(of), self.dtype)))
        return self

    def zero_(self) -> Array:
        return self.copy_(np.zeros(self.shape, self.dtype))

    def stride(self, dim: int | None = None) -> Any:
        """Elements from one index of `dim` to the next; of every dim without one."""
        strides = tuple(math.prod(self.shape[axis + 1 :]) for axis in range(self.ndim))
        return strides if dim is None else strides[dim]

    def element_size(self) -> int:
        return self.itemsize

    def numel(self) -> int:
        return self.size

    def dim(self) -> int:
        return self.ndim

    def is_contiguous(self) -> bool:
        return True

    def reshape(self, *shape: Any) -> Array:
        extents = list(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else list(shape)
        if extents.count(-1) == 1:
            rest = -math.prod(extents)
            extents[extents.index(-1)] = self.size // rest if rest else 0
        if math.prod(extents) != self.size:
            raise Error(f"an array of shape {self.shape} has no shape {tuple(extents)}")
        return Array(self, extents)

    def __getitem__(self, index: Any) -> Array:
        """A row, or a range of rows: integers, and behind them one slice with step 1."""
        places = index if isinstance(index, tuple) else (index,)
        if len(places) > self.ndim:
            raise IndexError(f"{len(places)} indices of an array of shape {self.shape}")
        offset, kept = 0, list(self.shape)
        for axis, place in enumerate(places):
            extent = self.shape[axis]
            if isinstance(place, slice):
                start, stop, step = place.indices(extent)
                if step != 1 or axis + 1 < len(places):
                    raise IndexError("an index ends with one slice with step 1; take more from numpy()")
                kept[0] = max(stop - start, 0)
            else:
                if not -extent <= place < extent:
                    raise IndexError(f"index {place} of axis {axis} with {extent} elements")
                start = place % extent
                kept.pop(0)
            offset += start * self.stride(axis)
        return Array(self, kept, offset * self.itemsize)

    def _has_no_arithmetic(self, *_: Any) -> Any:
        raise TypeError("arrays have no arithmetic of their own: write a function of arrays, decorate it with @greta.function, which compiles it for the device, and call it")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __matmul__ = __rmatmul__ = __neg__ = __pow__ = _has_no_arithmetic

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"greta.{self.numpy()!r} on {self.device.spec}"


def empty(shape: int | tuple[int, ...], dtype: Any = np.float32, device: str | Device | None = None) -> Array:
    """An array on the device (the one in use unless named) that holds anything."""
    kind = as_dtype(dtype)
    extents = [shape] if isinstance(shape, int) else list(shape)
    return Array(find_device(device), extents, kind, _PACKAGE[kind], kind.itemsize)


def empty_like(of: Any) -> Array:
    """An array of this one's shape and type, on its device if it has one of ours."""
    return empty(tuple(of.shape), of.dtype, of.device if isinstance(of, Array) else None)


def zeros(shape: int | tuple[int, ...], dtype: Any = np.float32, device: str | Device | None = None) -> Array:
    """An array on the device that holds zeros."""
    return asarray(np.zeros(shape, as_dtype(dtype)), device=device)


def on_host(of: Any) -> np.ndarray[Any, Any]:
    """The same memory as a NumPy array where it lies on the host, else a copy."""
    if isinstance(of, np.ndarray):
        return of
    if isinstance(of, Array):
        return of.numpy()
    if type(of).__module__.partition(".")[0] == "torch":
        if of.device.type == "rdna":
            of = of.cpu()
        if of.device.type != "cpu":
            raise Error(f"a torch tensor on '{of.device}' is not memory of the host; move it with .cpu()")
        return _of_torch(of.detach().resolve_conj().resolve_neg())
    if hasattr(of, "__dlpack__"):
        try:
            return np.from_dlpack(of)
        except (BufferError, RuntimeError, TypeError):
            if not hasattr(of, "__array__"):
                raise
    return np.asarray(of)


def _of_torch(tensor: Any) -> np.ndarray[Any, Any]:
    name = str(tensor.dtype).removeprefix("torch.")
    if not hasattr(ml_dtypes, name):
        return tensor.numpy()
    import torch  # NumPy lacks the type: its bits pass through an integer's

    return tensor.view(torch.int16 if tensor.element_size() == 2 else torch.uint8).numpy().view(_numpy_type(name))


def _bytes(of: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return of.reshape(-1).view(np.uint8)


def asarray(of: Any, dtype: Any = None, device: str | Device | None = None) -> Array:
    """A copy on the device, of this type if one is named; an array that lies there already stays as it is."""
    place = find_device(device)
    kind = None if dtype is None else as_dtype(dtype)
    if isinstance(of, Array) and of.lies_on(place) and kind in (None, of.dtype):
        return of
    host = on_host(of)
    kind = as_dtype(host.dtype) if kind is None else kind
    array = empty(host.shape, kind, place)
    array.write(_bytes(np.ascontiguousarray(host, kind)))
    return array


def from_dlpack(of: Any, device: str | Device | None = None) -> Array:
    """The memory of another library's contiguous array as one of this device, without a copy; an Error where the device does not reach it."""
    kind = as_dtype(of.dtype)
    if str(getattr(of, "device", "")).startswith("rdna"):
        from . import _torch

        capsule = _torch.export_dlpack(of)[0]
    else:
        capsule = of.__dlpack__()
    return Array(find_device(device), capsule, tuple(of.shape), kind, _PACKAGE[kind], kind.itemsize)


def to_numpy(array: Any) -> np.ndarray[Any, Any]:
    """A NumPy array of what is in this one, after everything before it is done."""
    return on_host(array)
