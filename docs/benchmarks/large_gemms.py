"""Checks and measures large GEMMs on a GPU against float64 and cuBLAS; called by scripts/bench-h200, which sets the library path.

usage: large_gemms.py DIR CSV [--package=large_gemms.greta,..] [--reps-ms=10] [--rounds=7] [--only=PREFIX,..]
       large_gemms.py --candidates SHAPE:TILE:WAVES:INSTRUCTION:GROUP... >FILE.mlir    e.g. f16_8192x8192x8192:128x192x64:8:16x16x16:64
Every function of a package is a GEMM named TYPE_MxNxK, TYPE f16, bf16 or w4 (A of f16, B of 4 bits in groups of 128; torch multiplies weights of f16), with `__` and its configuration behind where it is a candidate. Data are random
normal. The result is poisoned, computed once and compared with float64 (whole, by torch, where it has a GPU; 16 rows on the CPU where not)
before it is timed; a wrong one is not timed, and the run ends with status 1. Time is the GPU's, from events around batches of launches into one result
(so no launch overlaps the next; overlapping_us: into one for each set of operands) over as many pairs of operands as together exceed the L2 cache; median, minimum and maximum of `rounds`
batches. torch's GEMM runs in the same way on the same operands. A function of large_gemms_NAME.greta is called NAME where a function's name does not say more.
"""

import argparse
import pathlib
import statistics
import sys
import time

import numpy as np

import row_ops  # puts the project's helpers on the path
import records
from greta_runtime import Package, tensors

torch = row_ops.torch if row_ops.torch and row_ops.torch.cuda.is_available() else None

L2_BYTES = 60 << 20
COLUMNS = ["date", "commit", "gpu", "driver", "function", "m", "n", "k", "dtype", "variant", "config", "batch_ms", "median_us", "min_us", "max_us"]
COLUMNS += ["overlapping_us", "tflop_per_s", "torch_us", "torch_tflop_per_s", "of_torch", "error_euclidean", "error_maximum"]
# Rounding of the result is 2^-11 in f16 and 2^-8 in bf16; sums are f32.
TOLERANCE = {"f16": 1e-3, "bf16": 8e-3, "w4": 1e-3}
GROUP = 128


def candidates(descriptions):
    """MLIR with one function per description."""
    for description in descriptions:
        shape, tile, waves, instruction, group = description.split(":")
        dtype, sizes = shape.split("_")
        m, n, k = sizes.split("x")
        config = f"tile = [{tile.replace('x', ', ')}], waves = {waves}, instruction = [{instruction.replace('x', ', ')}], group = {group}"
        a, b, y = (f"tensor<{rows}x{columns}x{dtype}>" for rows, columns in ((m, k), (n, k), (m, n)))
        print(f"func.func @{shape}__{tile}_w{waves}_i{instruction}_g{group}(%a: {a}, %b: {b}) -> {y} {{")
        print(f"  %0 = greta.matmul %a, %b {{transpose_b, greta.config = {{{config}}}}} : {a}, {b} -> {y}")
        print(f"  return %0 : {y}\n}}")


class Problem:
    """Operands of one type and size on the device, and what is the same for all kernels that multiply them."""

    def __init__(self, runtime, dtype, m, n, k, options):
        self.runtime, self.dtype, self.sizes = runtime, dtype, (m, n, k)
        rng = np.random.default_rng(1)
        a = self.store(rng.standard_normal((m, k), dtype=np.float32))
        if dtype == "w4":
            stored, b = self.packed(rng, n, k)
        else:
            b = self.store(rng.standard_normal((n, k), dtype=np.float32))
            stored = [b]
        self.shapes = [x.shape for x in (a, *stored)]
        moved = sum(x.nbytes for x in (a, *stored))
        self.pairs = [[runtime.buffer(x) for x in (a, *stored)] for _ in range(1 + 2 * L2_BYTES // moved)]
        self.results = [runtime.buffer(2 * m * n) for _ in self.pairs]
        self.result = self.results[0]
        self.torch_us = None
        if torch:
            kind = torch.bfloat16 if dtype == "bf16" else torch.float16
            pairs = [[torch.from_numpy(x).cuda().view(kind) for x in (a, b)] for _ in self.pairs]
            self.rows = slice(0, m)
            self.expected = pairs[0][0].double() @ pairs[0][1].double().T
            out = torch.empty(m, n, dtype=kind, device="cuda")
            once = row_ops.torch_batch(lambda i: torch.mm(pairs[0][0], pairs[0][1].T, out=out), 2)
            reps = row_ops.repetitions(once, options)
            self.torch_us = statistics.median([row_ops.torch_batch(lambda i: torch.mm(*(pairs[i % len(pairs)][0], pairs[i % len(pairs)][1].T), out=out), reps) for _ in range(options.rounds)])
        else:
            self.rows = slice(0, m, max(1, m // 16))
            self.expected = self.load(a[self.rows]).astype(np.float64) @ self.load(b).astype(np.float64).T

    def packed(self, rng, n, k):
        """Words, scales and zeros, and what they stand for in f16."""
        words = lambda count: rng.integers(-(2**31), 2**31, (n, count)).astype(np.int32)
        q, zeros = words(k // 8), words(-(-k // GROUP // 8))
        scales = (rng.uniform(0.5, 1.5, (n, k // GROUP)) / (4 * np.sqrt(k))).astype(np.float16)
        nibbles = lambda packed: ((packed[:, :, None] >> np.arange(0, 32, 4, dtype=np.int32)) & 15).reshape(n, -1)
        each = lambda x: x[:, : k // GROUP].astype(np.float32).repeat(GROUP, axis=1)
        return [q, scales, zeros], ((nibbles(q) - each(nibbles(zeros))) * each(scales)).astype(np.float16)

    def store(self, values):
        """As the operands' bits."""
        if self.dtype != "bf16":
            return values.astype(np.float16)
        bits = values.view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)

    def load(self, bits):
        return bits.astype(np.float32) if self.dtype != "bf16" else (bits.astype(np.uint32) << 16).view(np.float32)

    def errors(self):
        """Errors of the result on the device: over the whole, and the largest over the root of the mean square."""
        m, n, k = self.sizes
        bits = self.runtime.read(self.result, (m, n), "f16").view(np.uint16 if self.dtype == "bf16" else np.float16)
        if torch:
            kind = torch.bfloat16 if self.dtype == "bf16" else torch.float16
            difference = torch.from_numpy(bits).cuda().view(kind).double() - self.expected
            worst, length, reference = (float(x) for x in (difference.abs().max(), difference.norm(), self.expected.norm()))
        else:
            difference = self.load(bits[self.rows]).astype(np.float64) - self.expected
            worst, length, reference = np.abs(difference).max(), np.linalg.norm(difference), np.linalg.norm(self.expected)
        return length / reference, worst * self.expected.shape[0] ** 0.5 * n**0.5 / reference

    def destroy(self):
        for buffer in sum(self.pairs, self.results):
            self.runtime.lib.greta_buffer_destroy(buffer)


def measure(problem, timer, package, config, name, options):
    """One CSV row without the columns that are the same for the whole run."""
    runtime, (m, n, k) = problem.runtime, problem.sizes
    function = package.function(name)
    sets = [tensors(zip(pair, problem.shapes)) for pair in problem.pairs]
    results = [tensors([(buffer, (m, n))]) for buffer in problem.results]
    result = results[0]
    runtime.poison(problem.result, 2 * m * n)
    function.launch(sets[0], result)
    runtime.synchronize()
    euclidean, maximum = problem.errors()
    row = dict(function=name.split("__")[0], config=(name.split("__") + [config])[1], m=m, n=n, k=k, dtype=problem.dtype, variant=function.variant)
    row |= dict(error_euclidean=f"{euclidean:.2e}", error_maximum=f"{maximum:.2e}")
    # The largest of some 10^7 errors of a rounding lies at about four times its root mean square of a value as large.
    if not (euclidean <= TOLERANCE[problem.dtype] and maximum <= 8 * TOLERANCE[problem.dtype]):
        print(f"WRONG: {name}: errors {euclidean} {maximum}", file=sys.stderr)
        return row | dict(wrong=True)
    once = row_ops.batches(timer, lambda i: function.launch(sets[i % len(sets)], result), 2, 1)[0]
    reps = row_ops.repetitions(once, options)
    times = row_ops.batches(timer, lambda i: function.launch(sets[i % len(sets)], result), reps, options.rounds)
    apart = row_ops.batches(timer, lambda i: function.launch(sets[i % len(sets)], results[i % len(sets)]), reps, options.rounds)
    function.destroy()
    median = statistics.median(times)
    row |= dict(overlapping_us=round(statistics.median(apart), 2))
    row |= dict(median_us=round(median, 2), min_us=round(min(times), 2), max_us=round(max(times), 2), tflop_per_s=round(2 * m * n * k / median / 1e6, 1))
    if problem.torch_us:
        row |= dict(torch_us=round(problem.torch_us, 2), torch_tflop_per_s=round(2 * m * n * k / problem.torch_us / 1e6, 1))
        row["of_torch"] = round(problem.torch_us / median, 3)
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--candidates", nargs="+")
    parser.add_argument("directory", type=pathlib.Path, nargs="?")
    parser.add_argument("csv", type=pathlib.Path, nargs="?")
    parser.add_argument("--package", type=lambda names: names.split(","), default=["large_gemms.greta"])
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--reps-ms", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", type=lambda names: tuple(names.split(",")), default=("",))
    options = parser.parse_args()
    if options.candidates:
        return candidates(options.candidates)

    runtime, timer, common = row_ops.start(options)
    common["batch_ms"] = f"{options.reps_ms:g}"
    packages = {name.removesuffix(".greta").removeprefix("large_gemms").strip("_") or "default": Package(runtime, options.directory / name) for name in options.package}
    functions = [(f["name"], config) for config, package in packages.items() for f in package.manifest()["functions"] if f["name"].startswith(options.only)]
    table, problem, key = [], None, None
    for name, config in sorted(functions, key=lambda function: function[0].split("__")[0]):
        began = time.monotonic()
        if name.split("__")[0] != key:
            if problem:
                problem.destroy()
            key = name.split("__")[0]
            dtype, sizes = key.split("_")
            problem = Problem(runtime, dtype, *map(int, sizes.split("x")), options)
        row = common | measure(problem, timer, packages[config], config, name, options)
        table.append(row)
        print(f"{row['function'] + ' ' + row['config']:52} {row['variant']:22} {row.get('median_us', '-'):>9} us, overlapping {row.get('overlapping_us', '-'):>9}, {row.get('tflop_per_s', '-'):>6} TFLOP/s", end="")
        print(f" = {row.get('of_torch', '-')} of torch {row.get('torch_tflop_per_s', '-')}, error {row['error_euclidean']} {row['error_maximum']} ({time.monotonic() - began:.0f} s)", flush=True)
    right = [row for row in table if not row.get("wrong")]
    records.append(options.csv, COLUMNS, right)
    return 0 if right == table else 1


if __name__ == "__main__":
    sys.exit(main())
