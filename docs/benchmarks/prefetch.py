"""Weights read into the L2 cache ahead of the kernels of a step that need them; called by scripts/bench-h200, which sets the library path.

usage: prefetch.py DIR CSV [--device=vulkan] [--rounds=30] [--layers=32] [--only=FORM,..]
Steps of prefetch.mlir's kernels, in a graph: `chain` is 216 products of 17.7 MB, `layers` is 32 layers of Llama 3 8B. Each kernel waits for the one before
it. Forms: `plain`; `beside`: behind each kernel, without a barrier between, a launch of `workgroups` that reads the first `mb` megabytes of what the next
kernel with weights reads; `before`: the same recorded in front of the kernel; `idle`: as `beside`, but only where the kernel has no weights of its own;
`queue`: one launch on another queue reads all weights, at most `ahead` kernels before the step's next, which it counts in memory; `count`: the step counts
and nobody looks; `cached`: all kernels have the first one's weights, which is what a perfect prefetch would give but for its own work. Each other step's
result has to have the bits that it has as `plain`, else the run ends with status 1. Time is the GPU's, from events around one step; median, minimum and
maximum of `rounds` steps.
"""

import ctypes
import statistics
import sys

import numpy as np

import row_ops  # puts the project's helpers on the path
import records
from greta_runtime import Package, Tensor, tensor, tensors

COLUMNS = ["date", "commit", "gpu", "driver", "step", "form", "mb", "workgroups", "ahead", "kernels", "weight_mb", "median_us", "min_us", "max_us", "of_plain"]
BLOCK = 4096 * 4  # bytes that a program of prefetch_kernels.py reads at a time
MB = 1e6
WORKGROUPS = (16, 64, 132, 264)
MOST_WORKGROUPS = 1024


class Step:
    """A step's kernels, in the order in which they run, with weights in one buffer."""

    def __init__(self, runtime, directory):
        self.runtime, self.kernels, self.parts, self.used, self.keep = runtime, [], [], 0, []
        self.functions = {}
        self.package = Package(runtime, directory / "prefetch.greta")
        self.ahead_of = Package(runtime, directory / "prefetch_part.greta").function("prefetch")
        self.follow = Package(runtime, directory / "prefetch_follow.greta").function("follow")
        self.seen = runtime.buffer(4 * MOST_WORKGROUPS)
        self.numbers = runtime.buffer(np.arange(1024, dtype=np.int32).repeat(4))  # 16 bytes apart, as tensors begin
        self.progress = runtime.buffer(4)

    def add(self, name, arguments, shapes, result, rows=0, columns=0, matrices=0, behind=()):
        """A kernel: its arguments, then as many matrices of weights, then those behind them."""
        sizes = [rows * columns // 2, rows * columns // 16] * matrices
        kinds = [(rows, columns // 8), (rows, columns // 32)] * matrices
        begin, weights = self.used, []
        for size, shape in zip(sizes, kinds):
            weights.append((self.used, size, shape))
            self.used += size
        self.used = -(-self.used // BLOCK) * BLOCK
        self.parts.append((begin // BLOCK, (self.used - begin) // BLOCK))
        self.kernels.append((name, list(zip(arguments, shapes)), weights, list(behind), result))

    def fill(self):
        """Random numbers of 4 bits, and scales that keep a product's rows as large as they were."""
        runtime, size = self.runtime, self.used
        # No numbers of 0: the others have the mean 8, which stands for a weight of 0, so that no row grows by a mean of its weights.
        digits = np.random.default_rng(1).integers(1, 16, (8, min(size, 1 << 26) // 4), np.uint32)
        some = (digits << np.arange(0, 32, 4, dtype=np.uint32)[:, None]).sum(0, dtype=np.uint32)
        self.weights = runtime.repeated(some, size)
        for _, _, weights, _, _ in self.kernels:
            for at, length, (_, columns) in weights[1::2]:
                scale = np.full(2, 1 / (4.6 * np.sqrt(32 * columns)), np.float16).view(np.uint32)[0]
                runtime.check(runtime.lib.greta_buffer_fill(runtime.stream, self.weights, ctypes.c_size_t(at), ctypes.c_size_t(length), ctypes.c_uint32(scale)))
        runtime.synchronize()

    def at(self, buffer, offset, shape):
        made = tensor(buffer, shape)
        made.offset = offset
        self.keep.append(made)
        return made

    def launch(self, number, weights=None):
        name, arguments, own, behind, result = self.kernels[number]
        if name not in self.functions:
            self.functions[name] = self.package.function(name)
        given = [self.at(b, 0, s) for b, s in arguments] + [self.at(self.weights, at, s) for at, _, s in weights or own] + [self.at(b, 0, s) for b, s in behind]
        self.functions[name].launch((Tensor * len(given))(*given), tensors([result]))

    def read_ahead(self, number, megabytes, workgroups):
        """The first part of the weights of the next kernel that has some."""
        parts = self.parts[number + 1 :] + self.parts
        first, count = next(part for part in parts if part[1])
        count = min(count, -(-int(megabytes * MB) // BLOCK))
        seen = (self.seen, (MOST_WORKGROUPS,))
        scalars = [(None, np.int32(n)) for n in (first, count, workgroups, 1, 1)]
        self.ahead_of.launch(tensors([(self.weights, (self.used // 4,)), seen, *scalars]), tensors([seen]))

    def count(self, number):
        if "bump" not in self.functions:
            self.functions["bump"] = self.package.function("bump")
        one = self.at(self.numbers, 16 * number, (1,))
        self.functions["bump"].launch((Tensor * 1)(one), tensors([(self.progress, (1,))]))

    def graph(self, form, megabytes, workgroups):
        runtime, last = self.runtime, len(self.kernels) - 1
        runtime.check(runtime.lib.greta_graph_begin(runtime.stream))
        for number in range(len(self.kernels)):
            helps = form in ("beside", "before") or form == "idle" and not self.parts[number][1]
            if helps and form == "before":
                self.read_ahead(number, megabytes, workgroups)
            self.launch(number, self.kernels[0][2] if form == "cached" else None)
            if helps and form != "before" and number < last:
                self.read_ahead(number, megabytes, workgroups)
            if form in ("queue", "count"):
                self.count(number)
        return runtime.make("graph_end", runtime.stream)

    def queue_ahead(self, stream, ahead, workgroups):
        runtime = self.runtime
        if not hasattr(self, "table"):
            self.table = runtime.buffer(np.array(self.parts, np.int32))
        changed = [(self.seen, (MOST_WORKGROUPS,)), (self.progress, (1,))]
        scalars = [(None, np.int32(n)) for n in (len(self.parts), ahead, workgroups, 1, 1)]
        arguments = tensors([(self.weights, (self.used // 4,)), *changed, (self.table, (2 * len(self.parts),)), *scalars])
        results = tensors(changed)
        runtime.check(runtime.lib.greta_function_launch(self.follow.handle, stream, arguments, ctypes.c_size_t(len(arguments)), results, ctypes.c_size_t(2)))
        runtime.check(runtime.lib.greta_stream_flush(stream))


def chain(runtime, directory, kernels):
    step = Step(runtime, directory)
    step.input = np.random.default_rng(2).standard_normal((1, 7680)).astype(np.float16)
    rows = [runtime.buffer(step.input), runtime.buffer(2 * 7680)]
    for i in range(kernels):
        step.add("product", [rows[i % 2]], [(1, 4096)], (rows[1 - i % 2], (1, 7680)), 7680, 4096, 1)
    step.first, step.result = rows[0], (rows[kernels % 2], (1, 7680), "f16")
    step.fill()
    return step


def layers(runtime, directory, count):
    step = Step(runtime, directory)
    step.input = np.random.default_rng(2).standard_normal((1, 4096)).astype(np.float32)
    wide, narrow, long = (1, 4096), (1, 6144), (1, 14336)
    x, y, z = (runtime.buffer(step.input) for _ in range(3))
    h, a = (runtime.buffer(2 * 4096) for _ in range(2))
    qkv, g = runtime.buffer(2 * 6144), runtime.buffer(2 * 14336)
    ones, halves = runtime.buffer(np.ones(4096, np.float32)), runtime.buffer(np.ones(4096, np.float16))
    for _ in range(count):
        step.add("norm", [x, ones], [wide, (4096,)], (h, wide))
        step.add("qkv", [h], [wide], (qkv, narrow), 6144, 4096, 1)
        step.add("attention", [qkv, halves], [wide, (4096,)], (a, wide))
        step.add("out", [a], [wide], (y, wide), 4096, 4096, 1, [(x, wide)])
        step.add("norm", [y, ones], [wide, (4096,)], (h, wide))
        step.add("gate_up", [h], [wide], (g, long), 14336, 4096, 2)
        step.add("down", [g], [long], (z, wide), 4096, 14336, 1, [(y, wide)])
        x, z = z, x
    step.first, step.result = None, (x, wide, "f32")
    step.buffers = (x, z)
    step.fill()
    return step


def restart(runtime, step):
    """The input of the first kernel, and the count of kernels."""
    data = np.ascontiguousarray(step.input)
    for buffer in [step.first] if step.first else step.buffers:
        runtime.check(runtime.lib.greta_buffer_write(runtime.stream, buffer, ctypes.c_size_t(0), data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(data.nbytes)))
    runtime.check(runtime.lib.greta_buffer_fill(runtime.stream, step.progress, ctypes.c_size_t(0), ctypes.c_size_t(4), ctypes.c_uint32(0)))
    runtime.synchronize()


def forms(kind, workgroups=WORKGROUPS):
    yield "plain", 0, 0, 0
    yield "count", 0, 0, 0
    if kind == "chain":
        yield "cached", 0, 0, 0
    sizes = (2, 4, 8, 17.7) if kind == "chain" else (4, 8, 17.7, 33)
    for form in ("beside", "before") if kind == "chain" else ("idle", "beside"):
        for megabytes in sizes:
            for groups in workgroups:
                yield form, megabytes, groups, 0
    for ahead in (0, 1, 2, 3):
        for groups in (8, *workgroups):
            yield "queue", 0, groups, ahead
    yield "plain", 0, 0, 0  # whether the card is as it was


def measure(step, timer, stream, form, megabytes, workgroups, ahead, rounds):
    """Microseconds of steps, and the result of the last."""
    runtime = step.runtime
    graph = step.graph(form, megabytes, workgroups)

    def work():
        runtime.check(runtime.lib.greta_graph_launch(graph, runtime.stream))
        if form == "queue":
            runtime.check(runtime.lib.greta_stream_flush(runtime.stream))
            step.queue_ahead(stream, ahead, workgroups)

    times = []
    for _ in range(rounds):
        restart(runtime, step)
        times.append(timer.microseconds(work))
        runtime.check(runtime.lib.greta_stream_synchronize(stream))
    restart(runtime, step)
    work()
    runtime.synchronize()
    runtime.check(runtime.lib.greta_stream_synchronize(stream))
    runtime.lib.greta_graph_destroy(graph)
    return times, runtime.read(*step.result)


def main():
    parser = row_ops.arguments("prefetch.greta", reps_ms=0)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--only", type=lambda names: names.split(","))
    parser.add_argument("--workgroups", type=lambda numbers: tuple(map(int, numbers.split(","))), default=WORKGROUPS)
    options = parser.parse_args()
    runtime, timer, common = row_ops.start(options)
    stream = runtime.make("stream_create", runtime.device)
    wrong = False
    for kind, make, count in (("layers", layers, options.layers), ("chain", chain, 27 * options.layers // 4)):
        step = make(runtime, options.directory, count)
        plain, right = 0, None
        for form, megabytes, workgroups, ahead in forms(kind, options.workgroups):
            if options.only and form not in (*options.only, "plain"):
                continue
            times, result = measure(step, timer, stream, form, megabytes, workgroups, ahead, options.rounds)
            median = statistics.median(times)
            plain, right = plain or median, result if right is None else right
            row = common | dict(step=kind, form=form, mb=megabytes, workgroups=workgroups, ahead=ahead, kernels=len(step.kernels), weight_mb=round(step.used / MB))
            row |= dict(median_us=round(median, 1), min_us=round(min(times), 1), max_us=round(max(times), 1), of_plain=round(median / plain, 4))
            if not (np.isfinite(result).all() and result.any() and (form == "cached" or (result == right).all())):
                print(f"WRONG: {row}", file=sys.stderr)
                wrong = True
                continue
            print(*(f"{row[name]:>9}" for name in COLUMNS[4:]), flush=True)
            records.append(options.csv, COLUMNS, [row])
        runtime.lib.greta_buffer_destroy(step.weights)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
