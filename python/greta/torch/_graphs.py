"""torch.compile(mode="reduce-overhead"): a compiled function's calls become replays of a graph.

In: Inductor's callable of one compiled graph, and which of its arguments keep their memory, as parameters do. Out: a callable whose first call with some sizes computes, whose second is recorded (torch.accelerator.Graph), and whose later ones
copy the other arguments to where the recorded call read them, and replay. A replay's results lie in the graph's memory. Before the next replay writes there, results that somebody still has are copied to memory of their own, and its stream waits for others that read them, so nothing that
anybody has is written over. Arguments that are such results themselves, as backward has them, are read where they are; a call that has them elsewhere computes as the first one did.
"""

from __future__ import annotations

import functools
import threading
from typing import Any, Callable, Sequence

import torch

from .. import _torch
from . import _private
from ._device import NAME, _stream

_MOST_SIZES = 16  # recordings of one function: each has memory of its own
_MOST_TIMES = 8  # a recording is made again where what it reads lies elsewhere, so often
_MOST_MISSED = 3  # calls one after another that found results of another graph elsewhere


def register(compile_fx: Any, utils: Any) -> None:
    """Adds replays to Inductor, and our device to those whose graphs it would record."""
    recorded_elsewhere, reason_before = compile_fx.cudagraphify, utils.check_multiple_devices_or_any_cpu_nodes

    def cudagraphify(model: Callable[..., Any], static_input_idxs: Sequence[int] = (), **facts: Any) -> Callable[..., Any]:
        ours = GraphedFunction(model, static_input_idxs, facts["mutated_input_idxs"])
        theirs = None

        def run(arguments: list[Any]) -> Any:
            nonlocal theirs
            if not any(isinstance(one, torch.Tensor) and one.is_cuda for one in arguments):
                return ours(arguments)
            theirs = theirs or recorded_elsewhere(model, static_input_idxs, **facts)
            return theirs(arguments)

        return run

    def reason(nodes: dict[torch.device, Any]) -> str | None:
        found = reason_before(nodes)
        return None if len(nodes) == 1 and next(iter(nodes)).type == NAME else found

    compile_fx.cudagraphify = cudagraphify
    utils.check_multiple_devices_or_any_cpu_nodes = reason


class GraphedFunction:
    """The callable of one compiled graph. `static`: numbers of arguments that keep their memory; `mutated`: of those that are written."""

    def __init__(self, model: Callable[..., Any], static: Sequence[int], mutated: Sequence[int]):
        self.model, self.static = model, frozenset(static)
        self.recordings: dict[tuple[Any, ...], Recording | None] = {}
        self.times = 0
        # Arguments that are written have to be the caller's own.
        self.is_off = not self.static.issuperset(mutated)
        self.lock = threading.Lock()

    def __call__(self, arguments: list[Any]) -> Any:
        with self.lock:
            return self._call(arguments)

    def _call(self, arguments: list[Any]) -> Any:
        if self.is_off or not any(isinstance(one, torch.Tensor) for one in arguments):
            return self.model(arguments)
        sizes = tuple(one for one in arguments if not isinstance(one, torch.Tensor))
        if sizes not in self.recordings:
            if len(self.recordings) < _MOST_SIZES:
                self.recordings[sizes] = None
            return self.model(arguments)
        recording = self.recordings[sizes]
        if recording is not None and not recording.reads(arguments):
            if recording.may_read_again(arguments):
                return self.model(arguments)
            recording = self.recordings[sizes] = None
        if recording is None:
            if self.times == _MOST_TIMES:
                return self.model(arguments)
            self.times += 1
            try:
                recording = self.recordings[sizes] = Recording(self.model, self.static, arguments)
            except RuntimeError as error:
                self._give_up(f"skipping graphs of {NAME}: {error}")
                return self.model(arguments)
        results = recording.replay(arguments)
        arguments.clear()
        return results

    def _give_up(self, why: str) -> None:
        self.is_off = True
        self.recordings.clear()
        _private.cudagraph_utils.log_cudagraph_skip_and_bump_counter(why)


_recording = threading.RLock()  # recordings share a device's stream, so that threads make them one after another


@functools.cache
def _stream_of(device: torch.device) -> Any:
    """The stream that recordings are made from: none that torch.rdna.Stream gives, since a user's work on it would be recorded, too."""
    return _stream(_torch.reserve_stream(device.index), device.index)


class Recording:
    """A recorded call, and where it reads and writes."""

    def __init__(self, model: Callable[..., Any], static: frozenset[int], arguments: Sequence[Any]):
        compile_fx = _private.compile_fx
        self.copied: list[tuple[int, torch.Tensor, list[int]]] = []  # arguments: number, where they are read, dimensions that repeat
        self.fixed: list[tuple[int, int]] = []  # number, address: parameters
        self.lent: list[tuple[int, int]] = []  # results of another graph
        self.missed = 0
        self.copy = compile_fx.index_expanded_dims_and_copy_
        given = list(arguments)
        for number, one in enumerate(arguments):
            if not isinstance(one, torch.Tensor):
                continue
            if number in static or _torch.is_lent(one):
                (self.fixed if number in static else self.lent).append((number, one.data_ptr()))
            else:
                given[number] = compile_fx.static_input(one)
                self.copied.append((number, given[number], compile_fx.get_expanded_dims(one)))
        self.device = next(one.device for one in arguments if isinstance(one, torch.Tensor) and one.device.type == NAME)
        self.graph = torch.accelerator.Graph()
        # Not from the stream in use: what other threads ask of that would be recorded, too.
        with _recording, torch.rdna.device(self.device), torch.rdna.stream(_stream_of(self.device)), self.graph:
            results = model(list(given))
        self.is_single = isinstance(results, torch.Tensor)
        self.results = [results] if self.is_single else list(results)
        # Results that are arguments, or views of them, are those of each call.
        of = {one.untyped_storage()._cdata: number for number, one in enumerate(given) if isinstance(one, torch.Tensor)}
        self.passed: dict[int, tuple[int, torch.Size, tuple[int, ...], int]] = {}  # by place: argument, and how the result lies in it
        self.made = []
        for place, one in enumerate(self.results):
            if not isinstance(one, torch.Tensor):
                continue
            number = of.get(one.untyped_storage()._cdata)
            if number is None:
                self.made.append(place)
            else:
                self.passed[place] = number, one.size(), one.stride(), one.storage_offset() - given[number].storage_offset()
        self.lending = _torch.Lending([self.results[place] for place in self.made])
        self.results = [None if isinstance(one, torch.Tensor) else one for one in self.results]

    def reads(self, arguments: Sequence[Any]) -> bool:
        """Whether the arguments that are not copied are where the recorded call had them."""
        return all(arguments[number].data_ptr() == address for places in (self.fixed, self.lent) for number, address in places)

    def may_read_again(self, arguments: Sequence[Any]) -> bool:
        """Whether later calls may have them there, where they are not yet. Parameters that were moved stay where they are."""
        self.missed += 1
        return self.missed < _MOST_MISSED and all(arguments[number].data_ptr() == address for number, address in self.fixed)

    def replay(self, arguments: Sequence[Any]) -> Any:
        with torch.rdna.device(self.device):
            # Parameters may be results of another graph, too, now or later.
            self.lending.prepare_replay([arguments[number] for places in (self.fixed, self.lent) for number, _ in places])
            for number, place, expanded in self.copied:
                self.copy(place, arguments[number], expanded)
            self.graph.replay()
        self.missed = 0
        results = list(self.results)
        for place, one in zip(self.made, self.lending.lend()):
            results[place] = one
        for place, (number, size, stride, offset) in self.passed.items():
            results[place] = arguments[number].as_strided(size, stride, arguments[number].storage_offset() + offset)
        return results[0] if self.is_single else results
