"""Packages in Python: load one and call its functions on arrays."""

from __future__ import annotations

import json
import os
import pathlib
import threading
from typing import Any

import numpy as np

from . import _runtime
from ._runtime import Error
from ._arrays import Array, as_dtype, asarray, empty
from ._communicator import Communicator
from ._devices import device as find_device


class Function:
    """A function of a package. Called with arrays, of the host or of the device in use, it returns arrays on the device.

    A scalar argument takes a number. A result that begins as an argument is that argument in another array, or in the one given as `out`,
    which may be the argument itself; kernels of Triton change their arguments in place and return them. A function of greta.all_reduce sums
    over the ranks of `comm`, on its device; the other ranks call it, too.
    """

    def __init__(self, package: Package, description: dict[str, Any]):
        self.package = package
        self.__name__ = self.name = description["name"]
        self._description = description
        self._in_place = description.get("in_place", False)
        self._function = _runtime.Function(package._package, self.name)

    def variant(self) -> str:
        """The name of the variant that runs on the device in use."""
        return self._function.variant(find_device())

    def __call__(self, *arguments: Any, out: Any = None, comm: Communicator | None = None) -> Any:
        place = find_device() if comm is None else comm.device
        declared = self._description["args"]
        if len(arguments) != len(declared):
            names = ", ".join(one["name"] for one in declared)
            raise Error(f"'{self.name}' takes {len(declared)} arguments ({names}), {len(arguments)} given")
        given = [self._argument(index, value, place) for index, value in enumerate(arguments)]
        results = [self._result(index, given, arguments, out, place) for index in range(len(self._description["results"]))]
        self._function.launch(place, given, results, comm)
        return results[0] if len(results) == 1 else tuple(results)

    def _argument(self, index: int, value: Any, place: _runtime.Device) -> Any:
        declared = self._description["args"][index]
        name, type_ = declared["name"], declared["dtype"]
        if declared.get("kind") == "scalar":
            return _number(f"argument {index} '{name}' of '{self.name}'", type_, value)
        if not hasattr(value, "dtype"):
            value = np.asarray(value, as_dtype(type_))
        array = asarray(value, device=place)
        if array.type != type_:
            raise Error(
                f"argument {index} '{name}' of '{self.name}' is of type {array.dtype.name}, the function takes {as_dtype(type_).name}; convert it, "
                f"for example with astype"
            )
        # Tensors begin at multiples of 16 bytes, unless the function says otherwise.
        return array if array.offset % declared.get("align", 16) == 0 else array.copy()

    def _result(self, index: int, given: list[Any], arguments: tuple[Any, ...], out: Any, place: _runtime.Device) -> Array:
        declared = self._description["results"][index]
        tied = declared.get("tied")
        if out is not None:
            outs = out if isinstance(out, (tuple, list)) else (out,)
            if len(outs) != len(self._description["results"]) or not all(isinstance(one, Array) and one.lies_on(place) for one in outs):
                raise Error(f"out of '{self.name}' is {len(self._description['results'])} arrays on {place.spec}")
            return outs[index]
        # An array from the host is a copy already.
        if tied is not None and (self._in_place or given[tied] is not arguments[tied]):
            return given[tied]
        return empty(tuple(self._function.result_shape(place, given, index)), declared["dtype"], place)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{one['name']}: {one['dtype']}" for one in self._description["args"])
        return f"<greta function {self.name}({arguments})>"


def _number(what: str, type_: str, value: Any) -> int | float:
    number = value.item() if hasattr(value, "item") else value
    if type_[0] != "i" and isinstance(number, (int, float)):
        return float(number)
    if isinstance(number, int):
        if type_ == "i1" and number in (0, 1):
            return int(number)
        bits = int(type_[1:])
        if -(1 << bits - 1) <= number < 1 << bits:
            # Unsigned ones have the same bits.
            return number - (1 << bits) if number >= 1 << bits - 1 else number
        raise Error(f"{what} is {number}, which no {type_} holds")
    raise Error(f"{what} is a scalar of type {type_}; {value!r} is none")


class Package:
    """Functions compiled for some targets: `package.name(...)` calls one on the device in use."""

    def __init__(self, data: bytes):
        self.data = data
        self._package = _runtime.Package(data)
        self.manifest = json.loads(self._package.manifest)
        self.functions = {one["name"]: Function(self, one) for one in self.manifest["functions"]}

    def __getattr__(self, name: str) -> Function:
        functions = self.__dict__.get("functions", {})
        if name in functions:
            return functions[name]
        raise AttributeError(f"the package has no function '{name}'; it has {', '.join(functions)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.functions]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the package: all of it or nothing. A device or a link stays what it is, and is written through."""
        to = pathlib.Path(path)
        partial = to.with_name(f".{to.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            if to.is_symlink() or (to.exists() and not to.is_file()):
                to.write_bytes(self.data)
                return
            partial.write_bytes(self.data)
            partial.replace(to)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        finally:
            partial.unlink(missing_ok=True)

    def __repr__(self) -> str:
        return f"<greta package of {', '.join(self.functions)}>"


def load(path: str | os.PathLike[str]) -> Package:
    """The package in this file, checked."""
    try:
        data = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise Error(f"cannot read the package {os.fspath(path)!r}: {error.strerror}") from None
    try:
        return Package(data)
    except Error as error:
        raise Error(f"{path}: {str(error).removeprefix('package in memory: ')}") from None
