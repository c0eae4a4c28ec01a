"""Launching what Triton compiled: arguments as Triton's frontend binds them, to the launcher in _runtime."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from triton.backends.compiler import GPUTarget

try:
    from numpy.lib.array_utils import byte_bounds
except ImportError:
    from numpy import byte_bounds  # NumPy 1

from .. import _runtime
from .._arrays import as_dtype, on_host
from .._devices import device as find_device
from .._devices import synchronize, targets
from .._runtime import Device, Error
from .._streams import Event
from .errors import ConfigurationError


def target_of(device: Device) -> GPUTarget:
    """What Triton is to compile for, so that it runs there."""
    arch = targets(device)
    if arch == "host":
        raise Error("Triton's kernels run on GPUs, on Vulkan and in the simulator, not on the device 'host'; for example greta.set_device('vulkan')")
    return GPUTarget("greta", arch, 32)


#
# Arguments
#


def _flat_types(signature: Iterable[Any]) -> Iterator[str]:
    for one in signature:
        if isinstance(one, tuple):
            yield from _flat_types(one)
        elif one.startswith("tensordesc"):
            element, shape = re.match(r"tensordesc<([^\[]*)\[([^\]]*)\]", one).groups()
            rank = shape.count(",") + 1
            yield from ("*" + element, *["i32"] * rank, *["i64"] * rank)
        else:
            yield one


def _flat_values(signature: Iterable[Any], values: Iterable[Any]) -> Iterator[Any]:
    for one, value in zip(signature, values):
        if isinstance(one, tuple):
            yield from _flat_values(one, value)
        elif one.startswith("tensordesc"):
            yield from (as_pointer(value.base), *value.shape, *value.strides)
        else:
            yield value


def _padded_with_nan(signature: Iterable[Any], values: Iterable[Any], path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yields the paths of the descriptors that pad with NaN."""
    for index, (one, value) in enumerate(zip(signature, values)):
        if isinstance(one, tuple):
            yield from _padded_with_nan(one, value, (*path, index))
        elif one.startswith("tensordesc") and value.padding == "nan":
            yield (*path, index)


def _compile_padded(source: Any, metadata: Any, paths: Iterable[tuple[int, ...]]) -> Any:
    """The function of a kernel whose descriptors at these places pad with NaN, which Triton's signatures do not say."""
    from triton.compiler import ASTSource, compile

    from .compiler import GretaOptions

    if not isinstance(source, ASTSource):
        raise Error("a kernel that is given as Triton IR takes descriptors that pad with zeros; make one that pads with nan in the kernel")
    attributes = dict(source.attrs)
    for path in paths:
        attributes[path] = [*attributes.get(path, []), ["tt.padding", 2]]
    options = {name: getattr(metadata, name) for name in GretaOptions.__dataclass_fields__ if hasattr(metadata, name)}
    compiled = compile(ASTSource(source.fn, source.signature, source.constants, attributes), target=metadata.target, options=options)
    compiled._init_handles()
    return compiled.function


def launcher(source: Any, metadata: Any, make: Callable[[list[str]], Any] = _runtime.Launcher) -> Callable[..., None]:
    """Called as Triton's drivers' are: grid, stream, function, metadata and hooks, then the kernel's arguments."""
    signature = list(source.signature.values())
    launch = make(list(_flat_types(signature)))
    if not any(isinstance(one, tuple) or one.startswith("tensordesc") for one in signature):
        return launch
    padded: dict[tuple[tuple[int, ...], ...], Any] = {}

    def launch_flat(*args: Any) -> None:
        """Tuples and descriptors are several arguments."""
        function = args[4]
        if paths := tuple(_padded_with_nan(signature, args[9:])):
            function = padded.get(paths) or padded.setdefault(paths, _compile_padded(source, metadata, paths))
        launch(*args[:4], function, *args[5:9], *_flat_values(signature, args[9:]))

    return launch_flat


def as_pointer(value: Any) -> Any:
    """What Triton takes for a pointer: arrays that have no data_ptr() are wrapped, NumPy's scalars become Python's."""
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "data_ptr") or not (isinstance(value, np.ndarray) or hasattr(value, "__dlpack__")):
        return value
    array = on_host(value)
    if not array.dtype.isnative:
        raise Error(f"an array of '{array.dtype.str}' has its bytes in the other order than this machine; pass x.astype(x.dtype.newbyteorder('='))")
    if not array.flags.aligned:
        raise Error(f"an array's elements of {array.itemsize} bytes do not lie at multiples of {array.itemsize} bytes (strides {array.strides}); pass a copy, x.copy()")
    whole = array
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    begin, end = byte_bounds(whole)
    low, reach = byte_bounds(array)
    return _runtime.HostView(array.__array_interface__["data"][0], begin, end, low, reach, not array.flags.writeable, as_dtype(array.dtype), array)


def binder_of_arrays(bind: Callable[..., Any]) -> Callable[..., Any]:
    """Triton's binder refuses NumPy's arrays and others that only have DLPack; then they are wrapped."""

    def bind_arrays(*args: Any, **kwargs: Any) -> Any:
        try:
            return bind(*args, **kwargs)
        except TypeError:
            wrapped = [as_pointer(value) for value in args]
            named = {name: as_pointer(value) for name, value in kwargs.items()}
            if all(a is b for a, b in zip((*args, *kwargs.values()), (*wrapped, *named.values()))):
                raise
            return bind(*wrapped, **named)

    return bind_arrays


def take_arrays() -> None:
    """Has Triton's kernels take such arrays where GRETA compiles them."""
    from triton.runtime import jit

    from .compiler import GretaBackend

    make = jit.create_function_from_signature
    if getattr(make, "takes_arrays", False):
        return

    def make_binder(signature: Any, params: Any, backend: Any) -> Callable[..., Any]:
        bind = make(signature, params, backend)
        return binder_of_arrays(bind) if isinstance(backend, GretaBackend) else bind

    make_binder.takes_arrays = True
    jit.create_function_from_signature = make_binder


#
# The functions that Triton asks of a driver
#


def load_kernel(name: str, data: bytes, device: Device) -> _runtime.Function:
    """The kernel in this package, loaded on the device; what it refuses is a configuration to pass over."""
    package = _runtime.Package(data)
    function = _runtime.Function(package, name)
    function.addresses = [i for i, argument in enumerate(json.loads(package.manifest)["functions"][0]["args"]) if argument.get("addresses")]
    try:
        function.variant(device)
    except Error as error:
        raise ConfigurationError(str(error)) from None
    return function


class Utils:
    """`driver.utils`."""

    def get_device_properties(self, device: str) -> dict[str, int]:
        return {"max_shared_mem": 65536, "multiprocessor_count": 64, "warpSize": 32, "max_num_regs": 65536, "sm_clock_rate": 0, "mem_clock_rate": 0, "mem_bus_width": 0}

    def load_binary(self, name: str, kernel: bytes, shared: int, device: str) -> tuple[Any, ...]:
        function = load_kernel(name, kernel, find_device(device))
        registers, spills = _registers(kernel)
        return function, function, registers, spills, 1 << 20  # what does not fit was an error of the compiler

    def unload_module(self, module: Any) -> None:
        pass


def _registers(package: bytes) -> tuple[int, int]:
    """Registers and spills, where the code object says; kernels divide by registers, so one where it does not."""
    manifest = json.loads(_runtime.Package(package).manifest)
    stats = manifest["functions"][0]["variants"][0]["kernels"][0].get("stats", {})
    return stats.get("vgprs") or 1, stats.get("vgpr_spills", 0)


class DeviceInterface:
    """Stands for torch.cuda in Triton's testing."""

    Event = Event

    @staticmethod
    def synchronize(device: Any = None) -> None:
        synchronize()

    @staticmethod
    def current_device() -> str:
        return find_device().spec
