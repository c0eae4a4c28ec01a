"""Checks and measures grouped GEMMs on a GPU against float64, the copy bandwidth and torch; called by scripts/bench-h200, which sets the library path.

usage: grouped_gemm_gpu.py DIR CSV [--package=grouped_gemm.greta,..] [--only=f16,q4_k] [--tokens=1,64,4096] [--reps-ms=20] [--rounds=7]
The functions are those of grouped_gemm.mlir: each token has 8 rows, one for each of 8 of 128 experts, of f16, of q4_k, and of q4_k with interleaved rows (q4_k_interleaved), as greta-llm keeps them; `any` is the function of a dynamic number of rows. Data are random
normal. The result is poisoned, computed once for the first and for the last routing and compared with float64 in up to 64 rows; a wrong one is not timed, and the run ends with status 1.
Time is the GPU's, from events around batches of launches; median, minimum and maximum of `rounds` batches. Launches rotate over routings, and those over several results may overlap (median_us);
into one result they run one after another (serial_us). With one token the routings have all experts in turn; weights are in as many copies as exceed any cache. gb_per_s counts the weights of
the experts that have rows once, with A and the result, of_copy is that over the copy bandwidth of the same run. A launch of one token takes the GPU less time
than the host, so graph_us, graph_serial_us and graph_of_copy are the same of graphs of 128 launches. empty_us and empty_serial_us are such graphs where no expert has rows, so that each workgroup
looks for its expert and reads no weights; plain_us and plain_serial_us a greta.matmul of one row that reads as many bytes of weights as one token does. torch multiplies weights of f16: each expert's rows by a GEMM (torch_us), and by
its grouped GEMM of bf16 where it has one (torch_grouped_us).
"""

import argparse
import statistics
import sys

import numpy as np

import row_ops  # puts the project's helpers on the path
import records
import weights as formats
from greta_runtime import Package, Tensor, tensor, tensors

torch = row_ops.torch if row_ops.torch and row_ops.torch.cuda.is_available() else None

EXPERTS, TOP, HIDDEN, FFN = 128, 8, 2048, 768
GROUP = 32
ROUTINGS, RESULTS, GRAPH = EXPERTS // TOP, 4, 128
TOLERANCE = {"f16": 1e-3, "q4_k": 1.25e-3, "q4_k_interleaved": 1.25e-3}  # Euclidean: of one rounding, and of sums of f16 (test/e2e/limits.py, packed sums)
COLUMNS = ["date", "commit", "gpu", "driver", "function", "tokens", "weights", "variant", "median_us", "min_us", "max_us", "serial_us", "gb_per_s", "of_copy", "copy_gb_per_s", "tflop_per_s"]
COLUMNS += ["torch_us", "torch_grouped_us", "error_euclidean", "graph_us", "graph_serial_us", "graph_of_copy", "empty_us", "empty_serial_us", "plain_us", "plain_serial_us"]


def counts_of(tokens, routing):
    """How many rows each expert has."""
    if tokens == 1:
        experts = np.random.default_rng(0).permutation(EXPERTS)[TOP * routing :][:TOP]
        return np.bincount(experts, minlength=EXPERTS)
    rng = np.random.default_rng(1 + routing)
    return sum(np.bincount(rng.choice(EXPERTS, TOP, replace=False), minlength=EXPERTS) for _ in range(tokens))


class Weights:
    """Weights of one format, in copies on the device."""

    def __init__(self, runtime, kind, scale):
        rng = np.random.default_rng(1)
        if kind == "f16":
            self.arrays = [(rng.standard_normal((EXPERTS, FFN, HIDDEN), np.float32) / np.sqrt(HIDDEN)).astype(np.float16)]
        else:
            groups = (EXPERTS * FFN, HIDDEN // GROUP)
            scales = (rng.uniform(0.5, 1.5, groups) / (4 * np.sqrt(HIDDEN))).astype(np.float16)
            self.arrays = [rng.integers(-(2**31), 2**31, (EXPERTS * FFN, HIDDEN // 8)).astype(np.int32), scales, (scales * rng.uniform(-15, 0, groups)).astype(np.float16)]
        self.isInterleaved = kind.endswith("interleaved")
        self.bytes = sum(x.nbytes for x in self.arrays)
        self.copies = [[runtime.buffer(x) for x in self.arrays] for _ in range(-(-row_ops.WORKING_SET // scale // self.bytes))]

    def of(self, expert):
        """[N, K] of float64."""
        if len(self.arrays) == 1:
            return self.arrays[0][expert].astype(np.float64)
        q, scales, minima = (x[expert * FFN :][:FFN] for x in self.arrays)
        if self.isInterleaved:
            q, scales, minima = (formats.apart(x, x.shape[1], HIDDEN) for x in (q, scales, minima))
        number = (formats.in_pairs if self.isInterleaved else formats.in_order)(q, 4)
        return number * scales.astype(np.float64).repeat(GROUP, axis=1) + minima.astype(np.float64).repeat(GROUP, axis=1)


def error_of(got, a, weights, offsets):
    rows = np.unique(np.linspace(0, len(a) - 1, 64).astype(int))
    experts = np.searchsorted(offsets, rows, side="right") - 1
    right = np.empty((len(rows), FFN))
    for expert in np.unique(experts):
        right[experts == expert] = a[rows[experts == expert]].astype(np.float64) @ weights.of(expert).T
    return np.linalg.norm(got[rows].astype(np.float64) - right) / np.linalg.norm(right)


def torch_times(a, tables, options):
    """GEMMs of f16, one after another, of the experts with rows; and torch's grouped GEMM."""
    if not torch:
        return {}
    x = torch.from_numpy(a).cuda()
    w = torch.randn(EXPERTS, FFN, HIDDEN, device="cuda", dtype=torch.float16) / HIDDEN**0.5
    y = torch.empty(len(a), FFN, device="cuda", dtype=torch.float16)

    def each(i):
        offsets = tables[i % len(tables)]
        for e in np.flatnonzero(np.diff(offsets)):
            part = slice(int(offsets[e]), int(offsets[e + 1]))
            torch.mm(x[part], w[e].T, out=y[part])

    found = dict(torch_us=round(row_ops.torch_timed(each, options), 2))
    try:
        x, w = x.bfloat16(), w.bfloat16()
        ends = [torch.from_numpy(table[1:]).cuda() for table in tables]
        grouped = lambda i: torch._grouped_mm(x, w.transpose(1, 2), offs=ends[i % len(ends)])
        found["torch_grouped_us"] = round(row_ops.torch_timed(grouped, options), 2)
    except (AttributeError, RuntimeError) as error:
        print(f"torch._grouped_mm: {str(error).splitlines()[0]}", file=sys.stderr)
    return found


def graph_times(runtime, timer, function, arguments, outs, options):
    """Microseconds of a launch in a graph, over several results and into one."""
    found = []
    for results in (outs, outs[:1]):
        runtime.check(runtime.lib.greta_graph_begin(runtime.stream))
        for i in range(GRAPH):
            function.launch(arguments[i % len(arguments)], results[i % len(results)])
        graph = runtime.make("graph_end", runtime.stream)
        launch = lambda i: runtime.check(runtime.lib.greta_graph_launch(graph, runtime.stream))
        found.append(round(statistics.median(row_ops.timed(timer, launch, options)) / GRAPH, 3))
        runtime.lib.greta_graph_destroy(graph)
    return found


def plain_time(runtime, timer, weights, kind, options):
    """Microseconds of a GEMM of one row with the weights of as many experts as a token has."""
    package = Package(runtime, options.directory / options.package[0])
    if f"{kind}_plain" not in (function["name"] for function in package.manifest()["functions"]):
        return {}
    function, a = package.function(f"{kind}_plain"), runtime.buffer(row_ops.random(np.random.default_rng(2), 1, HIDDEN))
    results, arguments = [runtime.buffer(2 * TOP * FFN) for _ in range(RESULTS)], []
    for stored in weights.copies:
        for part in range(EXPERTS // TOP):
            given = [tensor(a, (1, HIDDEN))]
            for buffer, array in zip(stored, weights.arrays):
                given.append(tensor(buffer, (TOP * FFN, array.shape[-1])))
                given[-1].offset = part * array.nbytes * TOP // EXPERTS
            arguments.append((Tensor * len(given))(*given))
            arguments[-1].keep = given
    outs = [tensors([(result, (1, TOP * FFN))]) for result in results]
    found = graph_times(runtime, timer, function, arguments, outs, options)
    function.destroy()
    for buffer in (a, *results):
        runtime.lib.greta_buffer_destroy(buffer)
    return dict(zip(("plain_us", "plain_serial_us"), found))


def main():
    parser = row_ops.arguments("grouped_gemm.greta", reps_ms=20)
    parser.add_argument("--only", type=lambda names: names.split(","), default=list(TOLERANCE))
    parser.add_argument("--tokens", type=lambda names: list(map(int, names.split(","))), default=[1, 64, 4096])
    parser.add_argument("--scale", type=int, default=1, help="divides the bytes of the copy and of the weights together, for a try")
    options = parser.parse_args()

    runtime, timer, common = row_ops.start(options)
    copy = max([row_ops.runtime_copy(runtime, timer, options), *([row_ops.torch_copy(argparse.Namespace(rounds=options.rounds, reps=10))] if torch else [])])
    print(f"{common['gpu']}; copy {copy:.0f} GB/s", flush=True)
    wrong = False
    for kind in options.only:
        weights = Weights(runtime, kind, options.scale)
        for tokens in options.tokens:
            rows = TOP * tokens
            counts = [counts_of(tokens, routing) for routing in range(ROUTINGS)]
            tables = [np.concatenate([[0], np.cumsum(count)]).astype(np.int32) for count in counts]
            moved = weights.bytes / EXPERTS * np.mean([np.count_nonzero(count) for count in counts]) + 2 * rows * (HIDDEN + FFN)
            a = row_ops.random(np.random.default_rng(2), rows, HIDDEN)
            mine, places = runtime.buffer(a), [runtime.buffer(x) for x in tables]
            results = [runtime.buffer(2 * rows * FFN) for _ in range(RESULTS)]
            shapes = [a.shape, *(x.shape for x in weights.arrays), tables[0].shape]
            arguments = [tensors(zip([mine, *stored, place], shapes)) for place in places for stored in weights.copies]
            outs = [tensors([(result, (rows, FFN))]) for result in results]
            nothing = runtime.buffer(np.zeros(EXPERTS + 1, np.int32))
            idle = tensors(zip([mine, *weights.copies[0], nothing], shapes))
            beside = torch_times(a, tables, options) if kind == "f16" else {}
            if tokens == 1:
                beside |= plain_time(runtime, timer, weights, kind, options)
            for path in (options.directory / name for name in options.package):
                package = Package(runtime, path)
                for name in (function["name"] for function in package.manifest()["functions"]):
                    if name not in (f"{kind}_{tokens}", f"{kind}_any"):
                        continue
                    compiled, error = package.function(name), 0.0
                    for routing in (0, ROUTINGS - 1):
                        runtime.poison(results[0], 2 * rows * FFN)
                        compiled.launch(arguments[routing * len(weights.copies)], outs[0])
                        runtime.synchronize()
                        error = max(error, error_of(runtime.read(results[0], (rows, FFN), "f16"), a, weights, tables[routing]))
                    label = f"{path.stem} {name} of {tokens} tokens"
                    if not error <= TOLERANCE[kind]:
                        print(f"WRONG: {label}: error {error}", file=sys.stderr)
                        wrong = True
                        continue
                    times = row_ops.timed(timer, lambda i: compiled.launch(arguments[i % len(arguments)], outs[i % RESULTS]), options)
                    serial = statistics.median(row_ops.timed(timer, lambda i: compiled.launch(arguments[i % len(arguments)], outs[0]), options))
                    graphs = graph_times(runtime, timer, compiled, arguments, outs, options) + graph_times(runtime, timer, compiled, [idle], outs, options)
                    median = statistics.median(times)
                    row = common | dict(function=name, tokens=tokens, weights=kind, variant=compiled.variant, error_euclidean=f"{error:.2e}") | beside
                    row |= dict(median_us=round(median, 2), min_us=round(min(times), 2), max_us=round(max(times), 2), serial_us=round(serial, 2))
                    row |= dict(zip(("graph_us", "graph_serial_us", "empty_us", "empty_serial_us"), graphs)) | dict(graph_of_copy=round(moved / graphs[0] / 1e3 / copy, 3))
                    row |= dict(gb_per_s=round(moved / median / 1e3, 1), of_copy=round(moved / median / 1e3 / copy, 3), copy_gb_per_s=round(copy, 1))
                    row["tflop_per_s"] = round(2 * rows * FFN * HIDDEN / median / 1e6, 1)
                    records.append(options.csv, COLUMNS, [row])
                    print(f"{label:40} {row['variant']:24} {row['median_us']:>9} us (serial {row['serial_us']}) {row['gb_per_s']:>7} GB/s = {row['of_copy']} of copy, ", end="")
                    print(f"{row['tflop_per_s']} TFLOP/s, torch {beside.get('torch_us')} {beside.get('torch_grouped_us')} us, error {row['error_euclidean']}, ", end="")
                    print(f"graphs {graphs[0]} ({graphs[1]}) us = {row['graph_of_copy']}, empty {graphs[2]} ({graphs[3]}), plain {beside.get('plain_us')} ({beside.get('plain_serial_us')})", flush=True)
                    compiled.destroy()
            for buffer in (mine, nothing, *places, *results):
                runtime.lib.greta_buffer_destroy(buffer)
        for buffer in (buffer for stored in weights.copies for buffer in stored):
            runtime.lib.greta_buffer_destroy(buffer)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
