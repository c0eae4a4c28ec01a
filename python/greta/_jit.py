"""greta.jit and greta.autotune: Triton's frontend on GRETA's devices, whichever driver Triton itself uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .triton import check_version

check_version()

import triton  # noqa: E402
from triton import knobs  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402
from triton.runtime import jit as triton_jit  # noqa: E402

from ._devices import device as find_device  # noqa: E402
from ._runtime import Device  # noqa: E402
from .triton.compiler import GretaBackend  # noqa: E402
from .triton.launch import binder_of_arrays, launcher, load_kernel, target_of  # noqa: E402


class _Kernel:
    """A kernel compiled for one device."""

    def __init__(self, compiled: Any, device: Device):
        self.compiled = compiled
        self.function = load_kernel(compiled.name, compiled.kernel, device)
        self.launch = launcher(compiled.src, compiled.metadata)


class JITFunction(triton_jit.JITFunction):
    """A kernel that is launched on GRETA's device in use. Other kernels may call it, also those of Triton."""

    def __init__(self, fn: Callable[..., Any], **options: Any):
        super().__init__(fn, **options)
        self._devices: dict[str, tuple[Any, ...]] = {}

    def _on(self, device: Device) -> tuple[Any, ...]:
        if device.spec not in self._devices:
            target = target_of(device)
            backend = GretaBackend(target)
            binder = binder_of_arrays(triton_jit.create_function_from_signature(self.signature, self.params, backend))
            self._devices[device.spec] = ({}, {}, target, backend, binder)
        return self._devices[device.spec]

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        device = find_device()
        kwargs["debug"] = kwargs.get("debug", self.debug) or knobs.runtime.debug
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        kernels, keys, target, backend, binder = self._on(device)
        bound, specialization, options = binder(*args, **kwargs)
        key = triton_jit.compute_cache_key(keys, specialization, options)
        kernel = kernels.get(key)
        if kernel is None:
            parsed, signature, constants, attributes = self._pack_args(backend, kwargs, bound, specialization, options)
            source = ASTSource(self, signature, constants, attributes)
            kernel = kernels[key] = _Kernel(triton.compile(source, target=target, options=parsed.__dict__), device)
        for (name, _), (value, scope) in self.used_global_vals.items():
            if scope.get(name, self) != value:
                raise RuntimeError(f"global variable {name} was {value} when the kernel was compiled; make it an argument to change it")
        if not warmup:
            extents = (*(grid(bound) if callable(grid) else grid), 1, 1)
            kernel.launch(*extents[:3], device, kernel.function, None, None, None, None, *bound.values())
        return kernel.compiled


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """As triton.jit, for GRETA's device in use. The options are those of triton.jit."""
    return JITFunction(fn, **options) if fn is not None else lambda fn: JITFunction(fn, **options)


def autotune(configs: list[Any], key: list[str], **options: Any) -> Callable[[Any], Any]:
    """As triton.autotune, measured on GRETA's device in use, with a progress bar on a terminal where tqdm is installed."""
    from .testing import do_bench

    decorate = triton.autotune(configs, key, **{"do_bench": do_bench, **options})
    return lambda fn: _with_progress(decorate(fn))


def _with_progress(tuner: Any) -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return tuner
    prune, bench = tuner.prune_configs, tuner._bench
    bar = None

    def prune_and_begin(arguments: Any) -> Any:
        nonlocal bar
        left = prune(arguments)
        # Not where a search is over within a second or nobody looks.
        bar = tqdm(total=len(left), desc=f"autotuning {tuner.base_fn.__name__}", leave=False, delay=1, disable=None)
        return left

    def bench_and_advance(*args: Any, **kwargs: Any) -> Any:
        result = bench(*args, **kwargs)
        if bar is not None:
            bar.update()
            if bar.n == bar.total:
                bar.close()
        return result

    tuner.prune_configs, tuner._bench = prune_and_begin, bench_and_advance
    return tuner


heuristics = triton.heuristics
Config = triton.Config
cdiv = triton.cdiv
next_power_of_2 = triton.next_power_of_2
