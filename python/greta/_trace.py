"""Functions of the greta dialect, written by calling Python: values that stand for tensors, and what was computed of them."""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._arrays import package_type
from ._communicator import Communicator
from ._devices import is_checked
from ._runtime import Error

Shape = tuple[int | None, ...]  # None: any length


_PACKAGE_FOLDER = os.path.dirname(__file__) + os.sep


def _caller() -> tuple[str, int]:
    """The file and line that called into this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE_FOLDER):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def tensor_type(shape: Shape, type_: str) -> str:
    names = {"f8e4m3fn": "f8E4M3FN", "f8e4m3fnuz": "f8E4M3FNUZ", "f8e5m2": "f8E5M2", "f8e5m2fnuz": "f8E5M2FNUZ"}
    return f"tensor<{''.join(f'{extent}x' if extent is not None else '?x' for extent in shape)}{names.get(type_, type_)}>"


class Value:
    """A tensor in a function that is being written. Arithmetic is elementwise, between equal shapes and types or with numbers."""

    __array_priority__ = 1000  # NumPy leaves arithmetic to it

    def __init__(self, trace: Trace, name: str, shape: Shape, type_: str):
        self.trace, self.name, self.shape, self.type = trace, name, shape, type_

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def mlir(self) -> str:
        return tensor_type(self.shape, self.type)

    def _with(self, op: str, other: Any, swapped: bool = False) -> Value:
        if isinstance(other, (int, float, np.number)):
            literal = f"{float(other):.17e}" if self.type[0] in "fb" else str(int(other))
            other = self.trace.add(f"arith.constant dense<{literal}> : {self.mlir}", self.shape, self.type)
        if not isinstance(other, Value):
            other = self.trace.value(other)
        if (self.shape, self.type) != (other.shape, other.type):
            raise Error(f"{op} of {self.mlir} and {other.mlir}: elementwise arithmetic is between equal shapes and types")
        kind = {"div": "divf"}.get(op, op + "f") if self.type[0] in "fb" else {"div": "divsi"}.get(op, op + "i")
        first, second = (other, self) if swapped else (self, other)
        return self.trace.add(f"arith.{kind} {first.name}, {second.name} : {self.mlir}", self.shape, self.type)

    def __add__(self, other: Any) -> Value:
        return self._with("add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Value:
        return self._with("sub", other)

    def __rsub__(self, other: Any) -> Value:
        return self._with("sub", other, True)

    def __mul__(self, other: Any) -> Value:
        return self._with("mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Value:
        return self._with("div", other)

    def __rtruediv__(self, other: Any) -> Value:
        return self._with("div", other, True)

    def __neg__(self) -> Value:
        return self._with("mul", -1)


class Trace:
    """A function as far as it is written."""

    def __init__(self) -> None:
        self.arguments: list[Value] = []
        self.comm: Communicator | None = None  # that it sums over
        self._lines: list[str] = []
        self._callers: list[tuple[str, int]] = []  # that wrote each line

    def argument(self, shape: Shape, type_: str) -> Value:
        self.arguments.append(Value(self, f"%a{len(self.arguments)}", shape, type_))
        return self.arguments[-1]

    def value(self, of: Any) -> Value:
        """A value of this function."""
        if not isinstance(of, Value):
            raise Error(f"{type(of).__name__} is no argument of the function that is traced; pass it as one")
        if of.trace is not self:
            raise Error("a value of another function that is traced")
        return of

    def add(self, line: str, shape: Shape, type_: str) -> Value:
        value = Value(self, f"%{len(self._lines)}", shape, type_)
        self._lines.append(f"  {value.name} = {line}")
        self._callers.append(_caller())
        return value

    def op(self, name: str, operands: Sequence[Value], attributes: str, shape: Shape, type_: str, named: Sequence[tuple[str, int]] = ()) -> Value:
        """An op of the greta dialect; the last operands are those that its syntax names, one or several for a word."""
        (result,) = self.ops(name, operands, attributes, [(shape, type_)], named)
        return result

    def ops(self, name: str, operands: Sequence[Value], attributes: str, results: Sequence[tuple[Shape, str]], named: Sequence[tuple[str, int]] = ()) -> list[Value]:
        """An op of several results."""
        operands = [self.value(operand) for operand in operands]
        attributes = f" {{{attributes}}}" if attributes else ""
        texts, plain = [operand.name for operand in operands], len(operands) - sum(count for _, count in named)
        names = ", ".join(texts[:plain])
        for word, count in named:
            names += f" {word}({', '.join(texts[plain : plain + count])})"
            plain += count
        types = ", ".join(operand.mlir for operand in operands)
        made = [Value(self, f"%r{len(self._lines)}_{i}", *result) for i, result in enumerate(results)]
        self._lines.append(f"  {', '.join(one.name for one in made)} = greta.{name} {names}{attributes} : {types} -> {', '.join(one.mlir for one in made)}")
        self._callers.append(_caller())
        return made

    def located(self, message: str) -> str:
        """A compiler's message about `text`, at the line of Python that wrote the line it names."""
        found = re.match(r"source:(\d+):\d+: ", message)
        index = int(found[1]) - 2 if found else -1  # behind the line with the function's name
        if found is None or not 0 <= index < len(self._callers):
            return message
        file, line = self._callers[index]
        what, _, shown = message[found.end() :].partition("\n")
        source = linecache.getline(file, line).rstrip()
        return "\n".join(part for part in (f"{file}:{line}: {what}", source, shown) if part)

    def text(self, name: str, results: Sequence[Value]) -> str:
        arguments = ", ".join(f"{value.name}: {value.mlir}" for value in self.arguments)
        types = ", ".join(value.mlir for value in results)
        body = "\n".join(self._lines)
        checked = " attributes {greta.checked}" if is_checked() else ""
        return f"func.func @{name}({arguments}) -> ({types}){checked} {{\n{body}\n  return {', '.join(value.name for value in results)} : {types}\n}}\n"


def argument_of(trace: Trace, array: Any) -> Value:
    return trace.argument(tuple(array.shape), package_type(array.dtype))
