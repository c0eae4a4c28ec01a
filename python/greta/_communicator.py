"""Communicators: collectives of ranks, each with its device, on arrays. docs/guide/python.md has an example."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from . import _runtime
from ._arrays import Array, empty, package_type
from ._devices import device as find_device
from ._runtime import Device, Error

_WAYS = {"nccl": 1, "host": 2, "kernel": 4}
_REDUCTIONS = {"sum": 0, "max": 1, "min": 2, "product": 3, "average": 4}


def unique_id() -> bytes:
    """A name for a communicator, which one rank makes and gives to the others."""
    return _runtime.unique_id()


class Communicator(_runtime.Communicator):
    """A rank among `size`; made when all ranks have come, by the same `id`, `path` or `address`.

    Ranks of one host have an id or a path; ranks of several have rank 0's address, host:port, and an id beside it keeps others out.
    Ranks of one process have a device each. All call the same collectives in the same order, and arrays lie on the rank's device. A collective
    is an operation of the stream in use. When a rank is gone, or does not come within `timeout` seconds, every rank's calls are greta.Error.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        *,
        id: bytes | None = None,
        path: str | os.PathLike[str] | None = None,
        address: str | None = None,
        device: str | Device | None = None,
        timeout: float = 120,
        staging_bytes: int = 0,
        ways: Iterable[str] | None = None,
    ):
        if (path is not None) == (id is not None or address is not None):
            raise Error("ranks find each other by an id or a path, or by an address if they are on several hosts: give one of them")
        if timeout <= 0 or rank < 0 or size < 0 or staging_bytes < 0:
            raise Error("a rank, a size, a time-out and staging are not negative")
        chosen = set(ways or _WAYS)
        if unknown := chosen - set(_WAYS):
            raise Error(f"no collectives go by '{min(unknown)}'; there are {', '.join(_WAYS)}")
        self.device, self.rank, self.size = find_device(device), rank, size
        flags = sum(_WAYS[way] for way in chosen)
        super().__init__(self.device, rank, size, id, os.fspath(path) if path else "", address or "", max(1, int(timeout * 1000)), staging_bytes, flags)

    @property
    def info(self) -> dict[str, Any]:
        """The way that is taken, and why others are not."""
        return json.loads(self._info())

    def all_reduce(self, array: Array, op: str = "sum", out: Array | None = None) -> Array:
        """Reduces over the ranks by "sum", "max", "min", "product" or "average"; `out` may be the array itself."""
        out = self._result(array, array.shape, out)
        self._all_reduce(out, array, *self._reduction(op, array))
        return out

    def reduce_scatter(self, array: Array, op: str = "sum", out: Array | None = None) -> Array:
        """Reduces like all_reduce and returns this rank's `size`-th of the rows."""
        out = self._result(array, (self._part(array), *array.shape[1:]), out)
        self._reduce_scatter(out, array, *self._reduction(op, array))
        return out

    def all_gather(self, array: Array, out: Array | None = None) -> Array:
        """The rows of all ranks, one behind the other."""
        rows, *rest = array.shape or (1,)
        out = self._result(array, (self.size * rows, *rest), out)
        self._all_gather(out, array)
        return out

    def broadcast(self, array: Array, root: int = 0) -> Array:
        """Every rank's array becomes the root's."""
        self._check(array)
        self._broadcast(array, root)
        return array

    def all_to_all(self, array: Array, out: Array | None = None) -> Array:
        """Gives each rank its `size`-th of the rows; returns this rank's parts in the order of the ranks."""
        self._part(array)
        out = self._result(array, array.shape, out)
        self._all_to_all(out, array, self.size)
        return out

    def send(self, array: Array, peer: int) -> None:
        """May end only when the peer receives; ranks that send to each other use exchange."""
        self.exchange(sends=[(array, peer)])

    def receive(self, array: Array, peer: int) -> Array:
        self.exchange(receives=[(array, peer)])
        return array

    def exchange(self, sends: Iterable[tuple[Array, int]] = (), receives: Iterable[tuple[Array, int]] = ()) -> None:
        """Arrays to ranks, and from ranks into arrays, all at once."""
        transfers = [(array, peer, False) for array, peer in sends] + [(array, peer, True) for array, peer in receives]
        for array, _, _ in transfers:
            self._check(array)
        self._exchange(transfers)

    def __enter__(self) -> Communicator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self, array: Array) -> None:
        if not array.lies_on(self.device):
            raise Error(f"the array lies on {array.device.spec}, rank {self.rank} on {self.device.spec}")

    def _part(self, array: Array) -> int:
        rows = array.shape[0] if array.shape else 1
        if rows % self.size:
            raise Error(f"{rows} rows are no multiple of {self.size} ranks")
        return rows // self.size

    def _result(self, array: Array, shape: tuple[int, ...], out: Array | None) -> Array:
        self._check(array)
        if out is None:
            return empty(shape, array.dtype, self.device)
        self._check(out)
        if out.shape != tuple(shape) or out.dtype != array.dtype:
            raise Error(f"`out` is {out.dtype} {out.shape}, the result {array.dtype} {tuple(shape)}")
        return out

    @staticmethod
    def _reduction(op: str, array: Array) -> tuple[str, int]:
        """The names of the type and the reduction to the runtime, which has one unsigned type; sums and products of the others wrap as those of signed ones do."""
        if op not in _REDUCTIONS:
            raise Error(f"no reduction is '{op}'; there are {', '.join(_REDUCTIONS)}")
        if array.dtype.kind == "b":
            raise Error("reductions are of numbers, not of bool")
        if array.dtype == "uint8":
            return "u8", _REDUCTIONS[op]
        if array.dtype.kind == "u" and op not in ("sum", "product"):
            raise Error(f"'{op}' is not of {array.dtype}; it is of signed types and uint8")
        return package_type(array.dtype), _REDUCTIONS[op]
