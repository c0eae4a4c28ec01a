"""TorchInductor for rdna: what it asks of a device, and Triton's kernels for our back end.

Registered by torch's own hooks: the device's interface, its lines in generated code, and its code generation with a pass over graphs (_fusion.py). What has no promise is taken from _private.py. Three places of torch have lists of
devices without a hook, and are changed here: GPU_TYPES (what is_gpu and get_gpu_type say), has_triton, and the benchmarker. A grid is added to Inductor's, and two functions that record CUDA's graphs are changed, too (_graphs.py), and torch's fake convolutions (_layouts.py).
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

from .. import _torch
from .._compile import build_key, user_cache
from .._runtime import Error
from . import _dispatch, _graphs, _layouts, _private, ops
from ._device import NAME, target_of
from ._imports import after_import

# The least sizes that blocks are chosen for where a dim may have any size: of pointwise work, of the results of reductions whose rows are in registers, of longer ones', and of their rows.
_LEAST = (1 << 17, 1 << 17, 1 << 15, 1 << 8)
_LEAST_OF_LAVAPIPE = (1 << 9, 1 << 5, 1 << 5, 1 << 5)  # which takes longer to compile a larger block


def register() -> None:
    """Registers the device with Triton, Dynamo and Inductor, as soon as they are imported: who compiles nothing need not import them."""
    _use_own_cache()
    after_import("triton", _activate)
    for place, then in ("device_interface", _register_interface_later), ("eval_frame", _skip_operators), ("fake_impls", _layouts.tell), ("triton_heuristics", _add_grid), ("compile_fx", _register_code_generation):
        after_import(_private.PLACES[place], then)


def _activate(_: Any) -> None:
    from . import _driver

    _driver.activate()


def _skip_operators(_: Any) -> None:
    """Keeps Dynamo from compiling the functions that carry out operators: after a graph break it looks at every frame, unless it is told to run a function and all below as they are."""
    from ._private import strategies

    skip = strategies._FrameExecStrategy(strategies._FrameAction.SKIP, strategies._FrameAction.SKIP)
    for function in _dispatch.implementations:
        strategies.set_code_exec_strategy(function.__code__, skip)


def _register_interface_later(module: Any) -> None:
    """With torch's own devices, at the first question: modules that import each other are complete then."""
    initialise = module.init_device_reg

    def initialise_and_register() -> None:
        initialise()
        _register_interface()

    module.init_device_reg = initialise_and_register
    if module._device_initialized:
        _register_interface()


def _use_own_cache() -> None:
    """Inductor's cache is of one compiler of ours, one text of this package, which changes Inductor's graphs and kernels, and the kinds of devices."""
    targets = ",".join(sorted({target_of(index) for index in range(_torch.device_count())}))
    name = hashlib.sha256(f"{build_key()} {targets} {torch.__version__}".encode()).hexdigest()[:16]
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(user_cache() / "inductor" / name))


def _register_interface() -> None:
    from ._private import device_interface

    rdna = torch.rdna

    class Interface(device_interface.DeviceInterface):
        device = rdna.device
        Event = torch.Event
        Stream = torch.Stream

        class Worker:
            @staticmethod
            def set_device(device: int) -> None:
                device_interface.caching_worker_current_devices[NAME] = device

            @staticmethod
            def current_device() -> int:
                return device_interface.caching_worker_current_devices.get(NAME, _torch.current_device())

            @staticmethod
            def get_device_properties(device: Any = None) -> Any:
                return rdna.get_device_properties(device)._replace(warp_size=32)  # as Triton's driver says; num_warps is in these

        current_device = staticmethod(_torch.current_device)
        set_device = staticmethod(rdna.set_device)
        exchange_device = staticmethod(_torch.exchange_device)
        maybe_exchange_device = staticmethod(_torch.exchange_device)
        device_count = staticmethod(_torch.device_count)
        is_available = staticmethod(rdna.is_available)
        stream = staticmethod(rdna.stream)
        current_stream = staticmethod(rdna.current_stream)
        set_stream = staticmethod(rdna.set_stream)
        get_raw_stream = staticmethod(_torch.raw_stream)
        synchronize = staticmethod(rdna.synchronize)
        get_compute_capability = staticmethod(lambda device=None: rdna.get_device_properties(device).target)
        is_bf16_supported = staticmethod(lambda including_emulation=False: True)
        memory_allocated = staticmethod(rdna.memory_allocated)
        is_triton_capable = staticmethod(lambda device=None: True)
        raise_if_triton_unavailable = staticmethod(lambda device=None: None)

    device_interface.register_interface_for_device(NAME, Interface)
    for index in range(_torch.device_count()):
        device_interface.register_interface_for_device(f"{NAME}:{index}", Interface)


class _Refusal:
    """In the place of the device's code generation where that was not written for this torch: whatever Inductor asks of it is an error. An error while its modules are
    imported would be other devices', too."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(_private.refusal())

    def __call__(self, *_: Any, **named: Any) -> Any:
        raise RuntimeError(_private.refusal())


def _add_grid(heuristics: Any) -> None:
    """Adds a grid to Inductor's that has a second dim where it has more programs than every device allows in one. The text of a kernel names the grid, so it is added wherever such texts are loaded."""
    from ._operators import MOST_PROGRAMS

    class GretaGrid1D(heuristics.GridExpr):
        def generate(self, meta: dict[str, int], is_lazy: bool = False) -> None:
            self.prefix.append(self.assign_tmp("programs_", self.ceildiv("xnumel", meta.get("XBLOCK"))))
            self.prefix.append(self.assign_tmp("parts_", self.ceildiv("programs_", MOST_PROGRAMS)))
            each = self.ceildiv("programs_", "parts_")
            self.x_grid = f"(0 if parts_ == 0 else {each})" if self.mode == "python" else f"(parts_ == 0 ? 0 : {each})"
            self.y_grid = "parts_"

    heuristics.GretaGrid1D = GretaGrid1D


def _register_code_generation(compile_fx: Any) -> None:
    if not _private.is_checked():
        from ._private import register_device_op_overrides

        warnings.warn(f"{_private.refusal()}, so operators that Inductor would compile run on the CPU", stacklevel=2)
        register_device_op_overrides(NAME, _Refusal())
        torch.rdna.Scheduling = torch.rdna.PythonWrapperCodegen = torch.rdna.CppWrapperCodegen = torch.rdna.WrapperFxCodegen = _Refusal()
        return
    _change_lists()
    if hasattr(torch.accelerator, "Graph"):  # torch 2.11 has none
        _graphs.register(compile_fx, _private.cudagraph_utils)
    from . import _fusion
    from ._operators import MOST_PROGRAMS
    from ._private import DeviceOpOverrides, PythonWrapperCodegen, TritonKernel, TritonScheduling, V, WrapperFxCodegen, decompositions, register_backend_for_device
    from ._private import register_device_op_overrides, triton_heuristics

    class Overrides(DeviceOpOverrides):
        def import_get_raw_stream_as(self, name: str) -> str:
            return f"from greta._torch import raw_stream as {name}"

        def set_device(self, device_idx: int) -> str:
            return f"torch.rdna.set_device({device_idx})"

        def synchronize(self) -> str:
            return "torch.rdna.synchronize()"

        def device_guard(self, device_idx: int) -> str:
            return f"torch.rdna.device({device_idx})"

        def current_stream(self) -> str:
            return "torch.rdna.current_stream()"

    class Kernel(TritonKernel):
        def codegen_kernel(self, name: str | None = None) -> str:
            return _for_any_sizes(super().codegen_kernel(name), self)

        def _get_grid_type(self) -> Any:
            grid = super()._get_grid_type()
            return triton_heuristics.GretaGrid1D if grid is triton_heuristics.Grid1D and self._may_pass_a_dim(self.range_trees[0]) else grid

        def iteration_ranges_get_pid(self, entry: Any) -> str:
            program = super().iteration_ranges_get_pid(entry)
            return program.replace("tl.program_id(0)", "(tl.program_id(0) + tl.program_id(1) * tl.num_programs(0))") if self._may_pass_a_dim(entry) else program

        def want_no_x_dim(self) -> bool:
            return False  # such a kernel has no mask of rows

        def _has_constant_mask(self, tree: Any) -> bool:
            return not self._may_pass_a_dim(tree) and super()._has_constant_mask(tree)

        def _may_pass_a_dim(self, tree: Any) -> bool:
            """Whether a grid of one dim may have more programs than every device allows. It then has a second dim, and the last programs along it are masked."""
            roots = [root for root in self.range_trees if not root.is_reduction]
            return roots == [tree] and not V.graph.sizevars.statically_known_leq(tree.numel, MOST_PROGRAMS)

        def indirect_assert(self, var: Any, lower: str | None, upper: str | None, mask: Any = None) -> str:
            """The assertion of an index, behind which one that is out of range is 0: a kernel goes on, and nobody is told before it has read or written there."""
            line = super().indirect_assert(var, lower, upper, mask)
            bounds = [f"({bound})" for bound in (lower and f"{lower} <= {var}", upper and f"{var} < {upper}") if bound]
            return f"{line}; {var} = tl.where({' & '.join(bounds)}, {var}, 0)" if str(var).isidentifier() else line

    class Scheduling(TritonScheduling):
        kernel_type = Kernel

    register_device_op_overrides(NAME, Overrides())
    decompositions.update({op: function for op, function in ops.references.items() if op._opname in ops.IN_GRAPHS})
    register_backend_for_device(NAME, Scheduling, PythonWrapperCodegen, PythonWrapperCodegen, WrapperFxCodegen, _fusion.Fusion())


def _for_any_sizes(text: str, kernel: Any) -> str:
    """A kernel's text with blocks for large sizes where a dim may have any size. Inductor chooses them for the sizes of the first call: for 10 elements blocks of 4, of which a
    million would be slow, and more than some drivers have workgroups. Of small sizes a larger block is one workgroup all the same."""
    from ._private import V

    found = re.search(r"size_hints=(\{[^}]*\})", text)
    if found is None:
        return text
    sizes = ast.literal_eval(found[1])
    index = V.graph.get_current_device_or_throw().index or 0
    pointwise, kept, long, rows = _LEAST_OF_LAVAPIPE if target_of(index) == "vulkan:lavapipe" else _LEAST
    results = pointwise if not kernel.inside_reduction else kept if kernel.persistent_reduction else long
    for dim, size in kernel.numels.items():
        if dim in sizes and getattr(V.graph.sizevars.simplify(size), "free_symbols", None):
            sizes[dim] = max(sizes[dim], rows if dim.startswith("r") else results)
    return text[: found.start(1)] + repr(sizes) + text[found.end(1) :]


def _replace(before: Callable[..., Any], function: Callable[..., Any]) -> None:
    """Puts a function in the place of one of torch's, also in modules that imported that by its name."""
    name = before.__name__
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(name) is before:
            setattr(module, name, function)


def _change_lists() -> None:
    from ._private import benchmarking, config, triton_utils, utils

    if NAME not in utils.GPU_TYPES:
        utils.GPU_TYPES.append(NAME)
    _replace(utils.get_gpu_type, lambda: NAME)  # torch's own fails where there is a second kind of GPU, as CUDA's
    _replace(triton_utils.has_triton, lambda: True)

    def benchmark(self: Any, fn: Any, *, warmup: int = 1, rep: int = 1, **_: Any) -> float:
        begin, end = (torch.Event(NAME, enable_timing=True) for _ in range(2))
        try:
            fn()
        except Error:  # kernels of two dims: a device may allow 65,535 workgroups in one; if all blocks are too small for that, the launch says so
            return float("inf")
        begin.record()
        fn()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    if hasattr(benchmarking, "register_benchmarker"):
        benchmarking.register_benchmarker(NAME, benchmark, override=True)
    else:  # torch 2.11 measures every device but the CPU by one method
        type(benchmarking.benchmarker).benchmark_gpu = benchmark
    # Settings are a thread's own; the defaults are those of the threads of backward, too.
    if "TORCHINDUCTOR_COMPILE_THREADS" not in os.environ:
        config._config["compile_threads"].default = 1  # our compiler is in this process
    config._config["triton.autotune_pointwise"].default = False
