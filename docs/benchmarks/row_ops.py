"""Checks and measures row_ops.greta on a GPU; called by scripts/bench-h200, which sets the library path.

usage: row_ops.py DIR CSV [--package=row_ops.greta] [--device=vulkan] [--reps=50] [--rounds=7] [--scale=1] [--variants] [--only=NAME,..]
Data are random normal f16. A function runs once over poisoned results and is compared with float64; one that is wrong is not timed, and the
run ends with status 1. Then it runs over several sets of buffers that together are larger than any cache. Time is the GPU's, from events
around `reps` launches; median, minimum and maximum of `rounds` such batches. Launches of different sets may overlap (median_us); all
into the results of one set they run one after another (serial_us), as torch's on one stream do (torch_us, over as many sets of operands).
of_torch compares the two serial ones. The copy is measured twice in the same run, by the runtime's own buffer copy and by torch, and the
faster one is the yardstick. --scale divides the number of rows, for a try on a small machine; --variants measures every variant that runs,
not only the one the runtime chooses. Functions of row_ops_tuned.greta are called linear_tuned and so on.
"""

import argparse
import ctypes
import dataclasses
import datetime
import pathlib
import statistics
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test" / "e2e"), str(ROOT / "scripts" / "lib")]
import cases  # noqa: E402
import limits  # noqa: E402
import gemms  # noqa: E402
import records  # noqa: E402
from case import Rounding  # noqa: E402
from greta_runtime import Package, Runtime, tensors  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

WORKING_SET = 1 << 30  # bytes; the H200's L2 is 60 MB
COPY_BYTES = 1 << 30
COLUMNS = ["date", "commit", "gpu", "driver", "function", "shape", "dtype", "variant", "bytes", "median_us", "min_us", "max_us", "gb_per_s"]
COLUMNS += ["copy_gb_per_s", "of_copy", "serial_us", "torch_us", "of_torch", "error_euclidean", "error_maximum"]


def random(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32).astype(np.float16)


def rope_inputs(rng, rows):
    angle = np.arange(rows)[:, None] * 10000.0 ** (-np.arange(64) / 64)
    return [random(rng, rows, 32, 128), np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)]


def residual_reference(x, r, w):
    total = (x + r).astype(np.float16).astype(np.float64)
    return [total, cases.rms_norm(total, w)]


def torch_residual(x, r, w):
    total = x + r
    return total, torch.nn.functional.rms_norm(total, (8192,), w, 1e-5)


def torch_rope(x, cos, sin):
    a, b = x[..., :64], x[..., 64:]
    cos, sin = cos[:, None], sin[:, None]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).half()


LINEAR_W4 = gemms.Product("w4128", "nt", 1, 57344, 4096, "f16")


def linear_w4_inputs(rng, rows):
    kinds = {"f16": np.float16, "i32": np.int32}
    return [random(rng, 1, LINEAR_W4.k), *(a.astype(kinds[kind]) for a, kind in gemms.packed_inputs(LINEAR_W4, rng, 128))]


def linear_w4(x, *packed):
    """In pieces: the weights are 2 GB in float64."""
    parts = zip(*(np.array_split(a, 16) for a in packed))
    return np.concatenate([gemms.w4(dataclasses.replace(LINEAR_W4, n=len(part[0])), Rounding("f16", "packed sums"), x, *part) for part in parts], axis=1)


def torch_linear_w4(x, q, scales, zeros):
    """cuBLAS on weights of f16 beside it: four times the bytes; torch has no product with these weights."""
    if not hasattr(torch_linear_w4, "w"):
        torch_linear_w4.w = torch.randn(LINEAR_W4.n, LINEAR_W4.k, device="cuda", dtype=torch.float16)
    return x @ torch_linear_w4.w.T


# function: (rows, inputs, float64 definition, the same in torch, its limit)
FUNCTIONS = {
    "rms_norm": (16384, lambda g, n: [random(g, n, 8192), random(g, 8192)], cases.rms_norm, lambda x, w: torch.nn.functional.rms_norm(x, (8192,), w, 1e-5), "row op"),
    "residual_rms_norm": (16384, lambda g, n: [random(g, n, 8192), random(g, n, 8192), random(g, 8192)], residual_reference, torch_residual, "chain"),
    "softmax": (16384, lambda g, n: [random(g, n, 8192)], cases.softmax, lambda x: torch.softmax(x, -1), "row op"),
    "swiglu": (8192, lambda g, n: [random(g, n, 14336), random(g, n, 14336)], cases.swiglu, lambda gate, up: torch.nn.functional.silu(gate) * up, "row op"),
    "linear": (1, lambda g, n: [random(g, 1, 4096), random(g, 14336, 4096) / np.float16(64)], lambda x, w: x @ w.T, lambda x, w: x @ w.T, "gemm"),
    "linear_w4": (1, linear_w4_inputs, linear_w4, torch_linear_w4, "packed sums"),
    "rope": (8192, rope_inputs, cases.rope_neox, torch_rope, "row op"),
}


# The clocks of a GPU that idles fall, and take half a second of work to come back (H200: a GEMM of 109 us took 800 at first).
IDLE_SECONDS, WAKING_SECONDS = 0.02, 0.6
last_work = 0.0


def awake(work):
    """work(), which ends when the GPU has done it; if the GPU has idled, after as much of the same as wakes it."""
    global last_work
    begin = time.perf_counter()
    if begin - last_work > IDLE_SECONDS:
        while time.perf_counter() - begin < WAKING_SECONDS:
            work()
    result = work()
    last_work = time.perf_counter()
    return result


class Timer:
    def __init__(self, runtime):
        self.runtime = runtime
        self.start, self.end = (runtime.make("event_create", runtime.device) for _ in range(2))

    def microseconds(self, work):
        """GPU time of what `work` queues, on a GPU that is awake."""
        return awake(lambda: self.measure(work))

    def measure(self, work):
        lib, check = self.runtime.lib, self.runtime.check
        check(lib.greta_event_record(self.start, self.runtime.stream))
        work()
        check(lib.greta_event_record(self.end, self.runtime.stream))
        self.runtime.synchronize()
        elapsed = ctypes.c_double()
        check(lib.greta_event_elapsed(self.start, self.end, ctypes.byref(elapsed)))
        return elapsed.value


def batches(timer, launch, reps, rounds):
    """Microseconds of one launch(i), one figure per batch of `reps`."""

    def batch():
        for i in range(reps):
            launch(i)

    timer.microseconds(batch)  # warm up
    return [timer.microseconds(batch) / reps for _ in range(rounds)]


def repetitions(once, options):
    """How many launches of `once` microseconds make a batch of options.reps_ms milliseconds."""
    return max(3, int(options.reps_ms * 1e3 / once))


def timed(timer, launch, options):
    """batches() of options.reps_ms milliseconds each."""
    return batches(timer, launch, repetitions(batches(timer, launch, 2, 1)[0], options), options.rounds)


def torch_timed(work, options):
    """torch_microseconds() in batches of options.reps_ms milliseconds."""
    once = torch_microseconds(work, argparse.Namespace(rounds=2, reps=2))
    return torch_microseconds(work, argparse.Namespace(rounds=options.rounds, reps=repetitions(once, options)))


def runtime_copy(runtime, timer, options):
    size = COPY_BYTES // options.scale
    a, b = runtime.buffer(np.random.default_rng(0).integers(0, 255, size, np.uint8)), runtime.buffer(size)
    zero, length = ctypes.c_size_t(0), ctypes.c_size_t(size)
    copy = lambda i: runtime.check(runtime.lib.greta_buffer_copy(runtime.stream, b, zero, a, zero, length))
    best = min(batches(timer, copy, 10, options.rounds))
    for buffer in (a, b):
        runtime.lib.greta_buffer_destroy(buffer)
    return 2 * size / best / 1e3


def torch_batch(work, reps):
    """Microseconds of one work(i) of `reps`, all on one stream, on a GPU that is awake."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def batch():
        start.record()
        for i in range(reps):
            work(i)
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) * 1e3 / reps

    return awake(batch)


def torch_microseconds(work, options):
    return statistics.median([torch_batch(work, options.reps) for _ in range(options.rounds + 1)][1:])


def torch_copy(options):
    a = torch.randn(COPY_BYTES // 4, device="cuda")
    b = torch.empty_like(a)
    return 2 * COPY_BYTES / torch_microseconds(lambda i: b.copy_(a), options) / 1e3


def measure(runtime, timer, package, name, variant, options):
    """One CSV row without the columns that are the same for the whole run."""
    rows, make, define, in_torch, limit = FUNCTIONS[name]
    rows = max(rows // options.scale, 1)
    inputs = make(np.random.default_rng(1), rows)
    function = package.function(name, variant)
    shapes = [a.shape for a in inputs]
    first = [runtime.buffer(a) for a in inputs]
    described = function.results(tensors(zip(first, shapes)))
    moved = sum(a.nbytes for a in inputs) + sum(size for _, _, size in described)
    count = 1 + (WORKING_SET // options.scale) // moved
    sets = []
    for i in range(count):
        arguments = first if i == 0 else [runtime.buffer(a) for a in inputs]
        results = [runtime.buffer(size) for _, _, size in described]
        for buffer, (_, _, size) in zip(results, described):
            runtime.poison(buffer, size)
        sets.append((tensors(zip(arguments, shapes)), tensors(zip(results, (shape for shape, _, _ in described))), arguments + results))
    function.launch(*sets[0][:2])
    expected = define(*(a if a.dtype == np.int32 else a.astype(np.float64) for a in inputs))
    expected = expected if isinstance(expected, list) else [expected]
    measured = [limits.measure(runtime.read(b, shape, dtype), e, "f16") for b, (shape, dtype, _), e in zip(sets[0][2][len(inputs) :], described, expected)]
    row = dict(function=name, shape="x".join(map(str, max(shapes, key=np.prod))), dtype="f16", variant=function.variant, bytes=moved)
    row |= {f"error_{norm}": f"{max(m.get(norm, np.inf) for m in measured):.2e}" for norm in ("euclidean", "maximum")}
    problems = [m.get("problem") or limits.over(m, limits.LIMITS[limit], "f16", 0) for m in measured]
    if any(problems):
        print(f"WRONG: {name} {row['variant']}: {problems}", file=sys.stderr)
        row["wrong"] = True
    else:
        times = batches(timer, lambda i: function.launch(*sets[i % count][:2]), options.reps, options.rounds)
        serial = batches(timer, lambda i: function.launch(sets[i % count][0], sets[0][1]), options.reps, options.rounds)
        row |= dict(median_us=round(statistics.median(times), 2), min_us=round(min(times), 2), max_us=round(max(times), 2))
        row |= dict(gb_per_s=round(moved / statistics.median(times) / 1e3, 1), serial_us=round(statistics.median(serial), 2))
    for _, _, buffers in sets:
        for buffer in buffers:
            runtime.lib.greta_buffer_destroy(buffer)
    function.destroy()
    if torch and torch.cuda.is_available() and not row.get("wrong"):
        on_gpu = [[torch.from_numpy(a).cuda() for a in inputs] for _ in range(count)]
        row["torch_us"] = round(torch_microseconds(lambda i: in_torch(*on_gpu[i % count]), options), 2)
        row["of_torch"] = round(row["torch_us"] / row["serial_us"], 3)
    return row


def arguments(package, reps_ms):
    """A parser of what benchmarks take that measure batches of milliseconds: packages in a directory, to a CSV file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("csv", type=pathlib.Path)
    parser.add_argument("--package", type=lambda names: names.split(","), default=[package])
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--reps-ms", type=float, default=reps_ms)
    parser.add_argument("--rounds", type=int, default=7)
    return parser


def start(options):
    """The device, what times it, and the columns that are the same for the whole run."""
    runtime = Runtime(options.device)
    info = runtime.info()
    commit = (options.directory / "commit").read_text().strip()
    return runtime, Timer(runtime), dict(date=datetime.date.today().isoformat(), commit=commit, gpu=info.get("name"), driver=info.get("driver"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("csv", type=pathlib.Path)
    parser.add_argument("--package", default="row_ops.greta")
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--reps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--only", type=lambda names: names.split(","), help="these functions alone")
    parser.add_argument("--variants", action="store_true")
    options = parser.parse_args()

    runtime, timer, common = start(options)
    package = Package(runtime, options.directory / options.package)
    label = options.package.removesuffix(".greta").removeprefix("row_ops")
    copies = [runtime_copy(runtime, timer, options)]
    if torch and torch.cuda.is_available():
        copies.append(torch_copy(options))
    copy = max(copies)
    print(f"{common['gpu']}; copy {', '.join(f'{c:.0f}' for c in copies)} GB/s")
    table = []
    for name in options.only or FUNCTIONS:
        runnable = [v["id"] for v in package.variants(name) if v["runnable"]]
        for variant in runnable if options.variants else [None]:
            began = time.monotonic()
            row = common | dict(copy_gb_per_s=round(copy, 1)) | measure(runtime, timer, package, name, variant, options)
            row["function"] += label
            table.append(row)
            if row.get("wrong"):
                continue
            row["of_copy"] = round(row["gb_per_s"] / copy, 3)
            print(f"{row['function']:18} {row['shape']:14} {row['variant']:18} {row['median_us']:9.1f} us {row['gb_per_s']:7.0f} GB/s = {row['of_copy']:.3f} of copy", end="")
            print(f", serial {row['serial_us']} us = {row.get('of_torch', '-')} of torch {row.get('torch_us', '-')} us", end="")
            print(f", error {row['error_euclidean']} {row['error_maximum']} ({time.monotonic() - began:.0f} s)", flush=True)
    right = [row for row in table if not row.get("wrong")]
    records.append(options.csv, COLUMNS, right)
    return 0 if right == table else 1


if __name__ == "__main__":
    sys.exit(main())
