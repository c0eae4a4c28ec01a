"""Measuring and checking kernels: do_bench, perf_report, assert_close."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._arrays import empty, on_host
from ._devices import synchronize
from ._streams import Event

_FLUSHED = 64 << 20  # bytes; as large as the caches of the GPUs that there are


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Any = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    flush: bool = False,
) -> Any:
    """Milliseconds of `fn` on the device in use: `quantiles` of its runs, or their "mean", "min", "max", "median" or "all".

    `warmup` and `rep` are milliseconds to run for before and while measuring; `flush` empties the device's caches before each run.
    """
    if return_mode not in ("min", "max", "mean", "median", "all"):
        raise ValueError(f"return_mode '{return_mode}' is none of min, max, mean, median and all")

    def run() -> float:
        if grad_to_none is not None:
            for tensor in grad_to_none:
                tensor.grad = None
        if flush:
            caches[0].copy_from(caches[1])
        start, end = Event(), Event()
        start.record()
        fn()
        end.record()
        end.synchronize()
        return start.elapsed_time(end)

    caches = [empty(_FLUSHED, np.int8) for _ in range(2)] if flush else []
    fn()  # what is compiled at first use
    synchronize()
    estimate = max(min(run(), run()), 1e-3)
    for _ in range(int(warmup / estimate)):
        run()
    times = [run() for _ in range(max(1, int(rep / estimate)))]
    if quantiles is not None:
        found = np.quantile(times, list(quantiles)).tolist()
        return found[0] if len(found) == 1 else found
    return times if return_mode == "all" else float(getattr(np, return_mode)(times))


def assert_close(x: Any, y: Any, atol: float | None = None, rtol: float | None = None, err_msg: str = "") -> None:
    """Fails unless |x - y| <= atol + rtol * |y| everywhere (0.01 and 0 without them); NaNs are equal."""
    x, y = (np.asarray(on_host(one)) for one in (x, y))
    if x.shape != y.shape:
        raise AssertionError(f"{err_msg + ': ' if err_msg else ''}shapes are {x.shape} and {y.shape}")
    wide = np.complex128 if np.iscomplexobj(x) or np.iscomplexobj(y) else np.float64
    np.testing.assert_allclose(x.astype(wide), y.astype(wide), atol=1e-2 if atol is None else atol, rtol=rtol or 0.0, equal_nan=True, err_msg=err_msg)


def perf_report(benchmarks: Any) -> Callable[[Callable[..., Any]], Any]:
    """As triton.testing.perf_report: marks a function to be measured over `benchmarks` (greta.testing.Benchmark), with .run(...)."""
    import triton.testing

    return triton.testing.perf_report(benchmarks)


def __getattr__(name: str) -> Any:
    if name == "Benchmark":
        from .triton import check_version

        check_version()
        import triton.testing

        return triton.testing.Benchmark
    raise AttributeError(f"module 'greta.testing' has no attribute '{name}'")
