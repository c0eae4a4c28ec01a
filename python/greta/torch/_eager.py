"""Operators that are called one by one, compiled by Inductor for the kind of their arguments.

An operator's call becomes a graph of one operator (`make_fx`, after Inductor's decompositions), and the graph a function by `compile_fx_inner`, without Dynamo.
Which arguments share a function: those of equal types, sizes, strides and numbers. If an operator comes with a second set of sizes, a function for all sizes
with such an order of strides is made, and its guards are asked each time; greta.torch.warm makes those of common operators beforehand. An operator in place, or with `out`, is the functional one and a copy into the argument,
which Inductor makes one kernel.

An operator that Inductor has no lowering for, or would hand back to itself, is left to others: NotImplemented.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import math
import os
import pathlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from .. import _torch
from . import ops
from ._device import NAME
from ._dispatch import number_on

TYPES = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64}
# Operators that _operators.py has: Inductor's graphs may call them.
EXTERN = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::convolution", "aten::convolution_backward"}
# Results depend on the values in a tensor, or the operator is a question that the host asks.
_REFUSED = {"aten::nonzero", "aten::masked_select", "aten::equal", "aten::_local_scalar_dense", "aten::item", "aten::unique_dim", "aten::_unique2", "aten::unique_consecutive", "aten::bincount", "aten::repeat_interleave"}
# Inductor of torch 2.13 has these wrong: the gradient divides by the whole window where the last one reaches over the padding's end.
_WRONG = {"aten::avg_pool2d_backward": lambda args: args[5], "aten::avg_pool3d_backward": lambda args: args[5]}
_MOST_KINDS = 1024  # of one operator: another one takes the place of the oldest
_ABSENT = object()

_running = threading.local()
_lock = threading.RLock()


class Unsupported(Exception):
    """Inductor has no lowering of its own."""


class OtherShapes(Exception):
    """Some memory that is written has another shape than these, the results'."""

    def __init__(self, shapes: list[tuple[int, ...]]):
        super().__init__(f"results have shapes {shapes}")
        self.shapes = shapes


def _explain(what: str, error: BaseException) -> None:
    if os.environ.get("GRETA_TORCH_EXPLAIN"):
        words = str(error).strip().splitlines() or [""]
        print(f"[greta.torch] {what} runs on the CPU: {type(error).__name__}: {words[0][:300]}", file=sys.stderr)


#
# From an operator to one without changes to its arguments
#


def _functional(op: Any) -> tuple[Any, list[str]] | None:
    """The operator that returns what this one writes, and the names of the arguments that are written."""
    schema = op._schema
    written = [argument.name for argument in schema.arguments if argument.alias_info is not None and argument.alias_info.is_write]
    if any(argument.name in written and str(argument.type) != "Tensor" for argument in schema.arguments):
        return None  # a list of tensors
    if not written:
        if any(value.alias_info is not None for value in schema.returns):
            return None  # a view
        return op, []
    namespace, _, name = schema.name.partition("::")
    isOut = any(argument.is_out for argument in schema.arguments)
    if not isOut and not name.endswith("_"):
        return None
    packet = getattr(getattr(torch.ops, namespace), name if isOut else name.removesuffix("_"), None)
    kept = [(argument.name, str(argument.type)) for argument in schema.arguments if not argument.is_out]
    for overload in packet.overloads() if packet is not None else ():
        other = getattr(packet, overload)
        if [(argument.name, str(argument.type)) for argument in other._schema.arguments] == kept and not other._schema.is_mutable:
            if len(other._schema.returns) == len(written) and all(value.alias_info is None for value in other._schema.returns):
                return other, written
    return None


#
# The arguments of a call
#


class Arguments:
    """A call's tensors, each once, and the rest as a key."""

    def __init__(self, op: Any, args: Sequence[Any], kwargs: dict[str, Any]):
        self.tensors: list[torch.Tensor] = []
        self.places: dict[Any, int] = {}
        self.template = (self._strip(tuple(args)), {name: self._strip(value) for name, value in kwargs.items()})
        settings = torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled()
        self.key = (op, settings, _frozen(self.template[0]), tuple((name, _frozen(value)) for name, value in self.template[1].items()))

    def _strip(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return _Slot(self._place(value))
        if isinstance(value, (list, tuple)):
            return tuple(self._strip(one) for one in value)
        if isinstance(value, (torch.Generator, torch.SymInt, torch.SymFloat)):
            raise Unsupported(f"{type(value).__name__} as an argument")
        return value

    def _place(self, tensor: torch.Tensor) -> int:
        if tensor.layout != torch.strided or tensor.dtype not in TYPES or tensor.is_quantized or tensor.is_neg():
            raise Unsupported(f"a tensor of {tensor.dtype}, {tensor.layout}")
        if tensor.device.type == "cpu":
            tensor = tensor.to(NAME)
        same = (tensor.device, tensor.dtype, tensor.data_ptr(), tensor.shape, tensor.stride()) if tensor.numel() else id(tensor)
        if same not in self.places:
            self.places[same] = len(self.tensors)
            self.tensors.append(tensor)
        return self.places[same]

    def separate(self, targets: Sequence[torch.Tensor]) -> None:
        """Tensors that are read become copies where they are other views of what is written."""
        for target in targets:
            storage = target.untyped_storage().data_ptr()
            for index, tensor in enumerate(self.tensors):
                if tensor.untyped_storage().data_ptr() == storage and tensor.numel() and not _is_same(tensor, target):
                    self.tensors[index] = tensor.clone()

    def with_tensors(self, tensors: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        def fill(value: Any) -> Any:
            if isinstance(value, _Slot):
                return tensors[value.index]
            return [fill(one) for one in value] if isinstance(value, tuple) else value

        return [fill(value) for value in self.template[0]], {name: fill(value) for name, value in self.template[1].items()}


class _Slot:
    """The place of a tensor among the call's tensors."""

    def __init__(self, index: int):
        self.index = index


def _frozen(value: Any) -> Any:
    if isinstance(value, _Slot):
        return ("tensor", value.index)
    if isinstance(value, tuple):
        return tuple(_frozen(one) for one in value)
    return (type(value), repr(value) if isinstance(value, float) else value)


def _kind(tensor: torch.Tensor) -> Any:
    return (tensor.dtype, tensor.device, tensor.shape, tensor.stride(), tensor.data_ptr() % 16 == 0)


def _loose_kind(tensor: torch.Tensor) -> Any:
    """The properties that tensors of other sizes share; None where strides do not follow from sizes."""
    if any(size == 0 for size in tensor.shape):
        return None
    order = sorted(range(tensor.dim()), key=lambda dim: (-tensor.stride(dim), dim))
    expected = 1
    for dim in reversed(order):
        if tensor.shape[dim] != 1 and tensor.stride(dim) != expected:
            return None
        expected *= tensor.shape[dim]
    return (tensor.dtype, tensor.device, tuple(order), tuple(size == 1 for size in tensor.shape), tensor.data_ptr() % 16 == 0)


def _is_large(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether the tensors, broadcast to each other, have more than 2^17 elements.

    Inductor divides a sum among workgroups by the sizes that a function for all sizes is compiled with: the sum of 10 elements is the work of one, and so would be that of
    a million. So large tensors have functions of their own."""
    sizes = itertools.zip_longest(*(reversed(tensor.shape) for tensor in tensors), fillvalue=1)
    return math.prod(max(size) for size in sizes) > 1 << 17


#
# Compilation
#


def _check_graph(graph: Any) -> None:
    from ._private import lowering

    for node in graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            continue
        name = node.target._schema.name
        if name in EXTERN:
            continue
        lowered = lowering.lowerings.get(node.target)
        if name in _REFUSED or lowered is None or getattr(lowered, "_is_fallback_handler", False):
            raise Unsupported(f"Inductor has no lowering of {node.target}")
        for value in (node.meta.get("val"),):
            if isinstance(value, torch.Tensor) and value.dtype not in TYPES:
                raise Unsupported(f"{node.target} in {value.dtype}")


@functools.lru_cache(None)
def _decompositions() -> dict[Any, Any]:
    """Inductor's, and torch's others of operators that Inductor has no lowering of."""
    from ._private import decomposition_table, lowering, select_decomp_table

    def is_lowered(op: Any) -> bool:
        return op in lowering.lowerings and not getattr(lowering.lowerings[op], "_is_fallback_handler", False)

    others = {op: function for op, function in decomposition_table.items() if isinstance(op, torch._ops.OpOverload) and not is_lowered(op) and op._schema.name not in EXTERN}
    return {**others, **select_decomp_table(), **ops.references}


def _compile(functional: Any, outs: list[str], written: list[int], arguments: Arguments, sizes: str) -> Callable[[list[Any]], Any]:
    """`sizes`: those of the arguments alone where it is empty; all sizes otherwise, and functions of another word divide sums otherwise."""
    from ._private import ConstantSource, DimDynamic, FakeTensorMode, ShapeEnv, StatelessSymbolicContext, TracingContext, compile_fx, config, make_fx, tracing

    shapes = ShapeEnv() if sizes else None
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=shapes)

    def fake_of(index: int, tensor: torch.Tensor) -> Any:
        if not sizes:
            return mode.from_tensor(tensor, static_shapes=True)
        dynamic = [DimDynamic.STATIC if size == 1 else DimDynamic.DYNAMIC for size in tensor.shape]
        # Sizes are named by the source, so that the graph of another process has the same names, and is found in Inductor's cache.
        return mode.from_tensor(tensor, source=ConstantSource(f"{sizes}{index}"), symbolic_context=StatelessSymbolicContext(dynamic_sizes=dynamic))

    def call(*tensors: Any) -> list[Any]:
        args, kwargs = arguments.with_tensors(tensors)
        targets = [kwargs.pop(name) for name in outs]
        results = functional(*args, **kwargs)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        if not written:
            return results
        targets = targets or [tensors[index] for index in written]
        if any(target.shape != result.shape for target, result in zip(targets, results)):
            raise OtherShapes([tuple(result.shape) for result in results])
        for target, result in zip(targets, results):
            if not torch.can_cast(result.dtype, target.dtype):
                raise Unsupported(f"{result.dtype} is not written to {target.dtype}")
            target.copy_(result)
        return []

    # Inductor caches graphs of a context with an environment of shapes.
    context = tracing(TracingContext(mode)) if sizes else contextlib.nullcontext()
    with context, mode, torch._C._AutoDispatchBelowAutograd(), config.patch({"triton.autotune_pointwise": False}):
        fakes = [fake_of(index, tensor) for index, tensor in enumerate(arguments.tensors)]
        module = make_fx(call, decomposition_table=_decompositions(), tracing_mode="real")(*fakes)
        _check_graph(module.graph)
        compile_fx.record_original_output_strides(module)
        output = module.graph.output_node()
        output.meta["user_visible_output_idxs"] = [index for index, one in enumerate(output.args[0]) if isinstance(one, torch.fx.Node)]
        compiled = compile_fx.compile_fx_inner(module, fakes, is_inference=True)
    if not sizes:
        return compiled
    return _Guarded(compiled, shapes, fakes)


class _Resized:
    """A function whose results are resized first: those that the caller gave with other sizes."""

    def __init__(self, compiled: Any, places: Sequence[int], shapes: Sequence[tuple[int, ...]]):
        self.compiled = compiled
        self.sizes = list(zip(places, shapes))

    def __call__(self, tensors: list[Any]) -> Any:
        for place, shape in self.sizes:
            tensors[place].resize_(shape)
        return self.compiled(tensors)


class _Guarded:
    """A function for many sizes, called where its guards hold."""

    def __init__(self, compiled: Any, shapes: Any, fakes: Sequence[Any]):
        self.compiled = compiled
        self.shapes = shapes
        self.dims = [(index, dim) for index, fake in enumerate(fakes) for dim, size in enumerate(fake.shape) if isinstance(size, torch.SymInt)]
        self.guards = shapes.produce_guards_expression([fakes[index].shape[dim] for index, dim in self.dims])

    def fits(self, tensors: Sequence[torch.Tensor]) -> bool:
        return not self.guards or self.shapes.evaluate_guards_expression(self.guards, [tensors[index].shape[dim] for index, dim in self.dims])

    def __call__(self, tensors: list[Any]) -> Any:
        return self.compiled(tensors)


#
# Calls
#


# Kinds of calls that greta.torch.warm has compiled for all sizes, by a hash: a process takes that function from its first call on.


def _warm_path() -> pathlib.Path:
    return pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]) / "greta-warm"


@functools.lru_cache(None)
def _warm() -> set[str]:
    try:
        return set(_warm_path().read_text().split())
    except OSError:
        return set()


def _name_of(kind: Any) -> str:
    return hashlib.sha256(repr(kind).encode()).hexdigest()[:32]


def _note_warm(kind: Any) -> None:
    if is_for_all_sizes() and _name_of(kind) not in _warm():
        _warm().add(_name_of(kind))
        _warm_path().parent.mkdir(parents=True, exist_ok=True)
        with _warm_path().open("a") as file:
            file.write(_name_of(kind) + "\n")


def is_for_all_sizes() -> bool:
    return bool(_running.__dict__.get("warms"))


@contextlib.contextmanager
def for_all_sizes() -> Iterator[None]:
    """Operators that are called first in here are compiled for all sizes at once, in this process and those that come."""
    _running.warms = True
    try:
        yield
    finally:
        _running.warms = False


class Operator:
    """An operator with what was compiled for it."""

    def __init__(self, op: Any, functional: Any = None):
        self.op = op
        name = op._schema.name
        found = None if name in _REFUSED or name in EXTERN else _functional(op)
        if functional is not None:
            found = functional, ["out"]
        self.functional, self.written = found or (None, [])
        self.outs = [argument.name for argument in op._schema.arguments if argument.is_out]
        self.positions = [index for index, argument in enumerate(op._schema.arguments) if argument.name in self.written and not argument.is_out]
        self.is_wrong = _WRONG.get(name)
        self.exact: dict[Any, Any] = {}
        self.loose: dict[Any, Any] = {}
        self.loose_seen: set[Any] = set()

    def __call__(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        active = _running.__dict__.setdefault("operators", [])
        if self.functional is None or self.functional in active:
            return NotImplemented
        if self.is_wrong is not None and self.is_wrong(args):
            return NotImplemented
        try:
            arguments = Arguments(self.op, args, kwargs)
        except Unsupported as error:
            _explain(str(self.op), error)
            return NotImplemented
        if not any(tensor.device.type == NAME for tensor in arguments.tensors):
            return NotImplemented
        outs = [kwargs[name] for name in self.outs]
        targets = outs or [args[position] for position in self.positions]
        arguments.separate(targets)
        run = self._find(arguments, targets)
        if run is None:
            return NotImplemented
        active.append(self.functional)
        try:
            with torch._C._AutoDispatchBelowAutograd():
                results = run(list(arguments.tensors))
        finally:
            active.pop()
        if targets:
            return targets[0] if len(targets) == 1 else tuple(targets)
        if len(self.op._schema.returns) == 1:
            is_list = isinstance(self.op._schema.returns[0].type, torch.ListType)
            return list(results) if is_list else results[0]
        return tuple(results)

    def _find(self, arguments: Arguments, targets: Sequence[torch.Tensor]) -> Any:
        storages = {target.untyped_storage().data_ptr() for target in targets if target.numel()}
        if len(storages) < sum(target.numel() > 0 for target in targets):
            return None  # they may overlap
        key = (arguments.key, tuple(_kind(tensor) for tensor in arguments.tensors))
        if (found := self.exact.get(key, _ABSENT)) is not _ABSENT:
            return found
        with _lock:
            kinds = [_loose_kind(tensor) for tensor in arguments.tensors]
            loose = None if None in kinds else (arguments.key, tuple(kinds))
            is_large = _is_large(arguments.tensors)
            for sizes in ("large", "large" if is_large else "small"):
                found = self.loose.get((loose, sizes))
                if found is not None and found.fits(arguments.tensors):
                    return found
            is_warm = loose is not None and (is_for_all_sizes() or _name_of(loose) in _warm())
            sizes = "large" if is_large or is_warm else "small"
            if loose is not None and (loose, sizes) not in self.loose and (is_warm or (loose, sizes) in self.loose_seen):
                run = self._try(arguments, targets, sizes)
                if run is not None:
                    self.loose[loose, sizes] = run
                    _note_warm(loose)
                    return run
            self.loose_seen.add((loose, sizes))
            run = self._try(arguments, targets, "")
            while len(self.exact) >= _MOST_KINDS:
                del self.exact[next(iter(self.exact))]
            self.exact[key] = run
            return run

    def _try(self, arguments: Arguments, targets: Sequence[torch.Tensor], sizes: str) -> Any:
        written = [next(index for index, tensor in enumerate(arguments.tensors) if _is_same(tensor, target)) for target in targets]
        try:
            return _compile(self.functional, self.outs, written, arguments, sizes)
        except OtherShapes as error:
            if not self.outs or sizes or any(target.numel() for target in targets):
                return None  # the CPU says what is wrong
            for target, shape in zip(targets, error.shapes):
                target.resize_(shape)
            run = self._try(arguments, targets, "")
            return run and _Resized(run, written, error.shapes)
        except Exception as error:
            _explain(f"{self.op}{' for any size' if sizes else ''}", error)
            return None


def _is_same(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    return tensor is other or bool(tensor.numel()) and tensor.data_ptr() == other.data_ptr() and tensor.shape == other.shape and tensor.stride() == other.stride()


_operators: dict[Any, Operator] = {}


# Numbers that change from step to step of an optimizer, in the operators that take them as constants: they become tensors, so that nothing is compiled again. By operator: the number's name or place, and the functional operator with the number as its last argument.
def _lerp(start: Any, end: Any, weight: Any) -> Any:
    return torch.where(weight < 0.5, start + weight * (end - start), end - (end - start) * (1 - weight))


_WITH_NUMBER: dict[Any, tuple[Any, Callable[..., Any]]] = {
    torch.ops.aten.add.out: ("alpha", lambda x, y, number: x + y * number),
    torch.ops.aten.sub.out: ("alpha", lambda x, y, number: x - y * number),
    torch.ops.aten.addcmul.out: ("value", lambda x, y, z, number: x + y * z * number),
    torch.ops.aten.addcdiv.out: ("value", lambda x, y, z, number: x + y / z * number),
    torch.ops.aten.lerp.Scalar_out: (2, _lerp),
}


def run(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The operator's result, or NotImplemented."""
    key, functional = op, None
    if op in _WITH_NUMBER:
        place, function = _WITH_NUMBER[op]
        number = args[place] if isinstance(place, int) else kwargs.get(place, 1)
        if number != 1 and args[0].is_floating_point() and kwargs["out"].dtype == args[0].dtype and not isinstance(number, complex):
            key, functional = (op, "number"), function
            kind = torch.float32 if args[0].dtype in (torch.float16, torch.bfloat16) else args[0].dtype  # the operator computes in f32
            args = (*(one for index, one in enumerate(args) if index != place), number_on(args[0].device.index, number, kind))
            kwargs = {name: value for name, value in kwargs.items() if name != place}
    found = _operators.get(key)
    if found is None:
        found = _operators[key] = Operator(op, functional)
    return found(args, kwargs)
