"""Kernels of an older compiler in turn with this one's, on one card in one run; called by scripts/bench-h200, which sets the library path.

usage: beside.py DIR CSV [--old=NAME] [--only=row_ops,attention,large_gemms] [--functions=softmax,decode,..] [--reps-ms=10] [--rounds=5] [--repeats=3] [--scale=1]
DIR has row_ops.greta, attention.greta and large_gemms.greta, and beside each of them PACKAGE_NAME.greta, the same functions by the older compiler (its greta-translate writes them; any
runtime reads the packages of older ones). Without --old every PACKAGE_*.greta takes part. Operands are random normal and repeat themselves where they are large, so that a function costs the
host about a second; some rows of each kernel's result are compared with float64 first, and the run ends with status 1 if one is wrong. Time is the GPU's, from events around batches of
launches; a row of the CSV is the median of `rounds` batches, and the packages take turns `repeats` times. Launches of row operators go to results in turn and may overlap, all others go into one.
"""

import dataclasses
import statistics
import sys

import numpy as np

import attention
import large_gemms
import row_ops  # puts the project's helpers on the path
import records
from greta_runtime import Package, tensors

COLUMNS = ["date", "commit", "gpu", "driver", "function", "kernels", "repeat", "median_us"]
TOLERANCE = 1e-3  # of the Euclidean norm; results are f16
ATTENTION = ["full", "causal", "chunk", "decode", "paged"]


def half(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32).astype(np.float16)


class Race:
    """Functions of the same name in several packages, with buffers that they share."""

    def __init__(self, options):
        self.options = options
        self.runtime, self.timer, self.common = row_ops.start(options)
        self.table, self.wrong = [], False

    def functions(self, stem, name):
        """{tag: function}; the tag of this compiler's is its commit."""
        paths = sorted(self.options.directory.glob(f"{stem}_{self.options.old}.greta"))
        tags = {self.common["commit"]: self.options.directory / f"{stem}.greta"} | {path.stem.removeprefix(f"{stem}_"): path for path in paths}
        return {tag: Package(self.runtime, path).function(name) for tag, path in tags.items()}

    def run(self, label, stem, name, sets, results, check):
        """Times launches of sets[i] into results[i], in turn, where `check` of the first result finds no error."""
        right = {}
        for tag, function in self.functions(stem, name).items():
            for buffer, size in results[0].poisoned:
                self.runtime.poison(buffer, size)
            function.launch(sets[0], results[0].tensors)
            self.runtime.synchronize()
            if (error := check()) <= TOLERANCE:
                right[tag] = function
            else:
                print(f"WRONG: {label} of {tag}: error {error}", file=sys.stderr)
                self.wrong = True
        for repeat in range(self.options.repeats):
            for tag, function in right.items():
                launch = lambda i: function.launch(sets[i % len(sets)], results[i % len(results)].tensors)
                median = statistics.median(row_ops.timed(self.timer, launch, self.options))
                self.table.append(self.common | dict(function=label, kernels=tag, repeat=repeat, median_us=round(median, 2)))
                print(f"{label:32} {tag:20} {median:10.2f} us", flush=True)
        for function in right.values():
            function.destroy()


@dataclasses.dataclass
class Results:
    tensors: object
    poisoned: list  # (buffer, bytes)


def difference(got, expected):
    return np.linalg.norm(got.astype(np.float64) - expected) / np.linalg.norm(expected)


def rows(race, name):
    count, make, define, _, _ = row_ops.FUNCTIONS[name]
    count = max(count // race.options.scale, 1)
    few = min(count, 64)
    parts = make(np.random.default_rng(1), few)
    repeated = lambda a: np.tile(a, (count // few,) + (1,) * (a.ndim - 1)) if few > 1 and len(a) == few else a
    inputs = [np.ascontiguousarray(repeated(a)) for a in parts]
    expected = define(*(a if a.dtype == np.int32 else a.astype(np.float64) for a in parts))
    expected = expected if isinstance(expected, list) else [expected]
    runtime, shapes, sets, results = race.runtime, [a.shape for a in inputs], [], []
    used = [runtime.buffer(a) for a in inputs]
    described = next(iter(race.functions("row_ops", name).values())).results(tensors(zip(used, shapes)))
    moved = sum(a.nbytes for a in inputs) + sum(size for _, _, size in described)
    for _ in range(1 + row_ops.WORKING_SET // race.options.scale // moved):
        arguments, out = [runtime.buffer(a) for a in inputs], [runtime.buffer(size) for _, _, size in described]
        used += arguments + out
        sets.append(tensors(zip(arguments, shapes)))
        results.append(Results(tensors(zip(out, (shape for shape, _, _ in described))), [(b, size) for b, (_, _, size) in zip(out, described)]))

    def check():
        read = [runtime.read(b, shape, dtype) for (b, _), (shape, dtype, _) in zip(results[0].poisoned, described)]
        return max(difference(x[: len(e)], e) for x, e in zip(read, expected))

    race.run(name, "row_ops", name, sets, results, check)
    return used


def attend(race, name):
    used, scale, runtime = [], race.options.scale, race.runtime
    for shape in attention.SHAPES[name]:
        shape = dataclasses.replace(shape, keys=max(64, shape.keys // scale), queries=-(-shape.queries // scale))
        rng = np.random.default_rng(1)
        q, k = half(rng, shape.batch, shape.heads, shape.queries, shape.depth), half(rng, shape.batch, shape.key_heads, shape.keys, shape.depth)
        v = np.ascontiguousarray(k[:, :, ::-1])
        arrays = [q, k, v]
        if shape.paged:
            (keys, table), (values, _) = (attention.paged_cache(rng, shape, x) for x in (k, v))
            arrays = [q, keys, values, table]
        if shape.is_decode or shape.paged:
            arrays.append(np.full(shape.batch, shape.keys, np.int32))
        count = min(8, max(1, -(-row_ops.WORKING_SET // scale // shape.bytes))) if shape.is_decode else 1
        buffers, result = [[runtime.buffer(x) for x in arrays] for _ in range(count)], runtime.buffer(q.nbytes)
        places = np.unique(np.linspace(0, shape.queries - 1, 16).astype(int))
        expected = attention.reference(shape, *(x[0, 0].astype(np.float64) for x in (q, k, v)), places)
        sets = [tensors(zip(b, (x.shape for x in arrays))) for b in buffers]
        label = f"{name} {shape.batch}x{shape.queries}x{shape.keys}"
        check = lambda: difference(runtime.read(result, q.shape, "f16")[0, 0][places], expected)
        race.run(label, "attention", name, sets, [Results(tensors([(result, q.shape)]), [(result, q.nbytes)])], check)
        used += [result, *sum(buffers, [])]
    return used


def multiply(race, name):
    m, n, k = map(int, name.split("_")[1].split("x"))
    rng, runtime = np.random.default_rng(1), race.runtime
    a, b = half(rng, m, k), half(rng, n, k)
    buffers = [[runtime.buffer(x) for x in (a, b)] for _ in range(1 + 2 * large_gemms.L2_BYTES // (a.nbytes + b.nbytes))]
    result, sets = runtime.buffer(2 * m * n), [tensors(zip(pair, (a.shape, b.shape))) for pair in buffers]
    expected = a[:4].astype(np.float64) @ b[:512].astype(np.float64).T
    check = lambda: difference(runtime.read(result, (m, n), "f16")[:4, :512], expected)
    race.run(name, "large_gemms", name, sets, [Results(tensors([(result, (m, n))]), [(result, 2 * m * n)])], check)
    return [result, *sum(buffers, [])]


GEMMS = ["f16_4x14336x4096", "f16_1024x1024x1024", "f16_2048x2048x2048", "f16_4096x4096x4096", "f16_8192x8192x8192"]
STEPS = {"row_ops": (rows, list(row_ops.FUNCTIONS)), "attention": (attend, ATTENTION), "large_gemms": (multiply, GEMMS)}


def main():
    parser = row_ops.arguments(None, reps_ms=10)
    parser.set_defaults(rounds=5)
    parser.add_argument("--old", default="*")
    parser.add_argument("--only", type=lambda names: names.split(","), default=list(STEPS))
    parser.add_argument("--functions", type=lambda names: names.split(","), default=[])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=int, default=1)
    race = Race(parser.parse_args())
    for step in race.options.only:
        measure, names = STEPS[step]
        for name in names:
            if not race.options.functions or name in race.options.functions:
                for buffer in measure(race, name):
                    race.runtime.lib.greta_buffer_destroy(buffer)
    records.append(race.options.csv, COLUMNS, race.table)
    return 1 if race.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
