"""Checks and measures flash attention written as a block program against float64 and torch; called by scripts/bench-h200, which sets the library path.

usage: flash_attention.py DIR CSV [--package=flash_attention.greta,..] [--shapes=32x8192,..] [--reps-ms=50] [--rounds=7]
Shapes are heads x queries; there are as many keys, and heads have 128 elements of f16. Data are random normal. The result is poisoned, computed once and
compared with float64 before it is timed; a wrong one is not timed, and the run ends with status 1. Time is the GPU's, from events around batches of
launches; median, minimum and maximum of `rounds` batches. torch's scaled_dot_product_attention runs in the same way on the same data, with the back end
that it chooses and with FlashAttention-2.
"""

import statistics
import sys

import numpy as np

import row_ops  # puts the project's helpers on the path
import records
from greta_runtime import Package, tensors

torch = row_ops.torch if row_ops.torch and row_ops.torch.cuda.is_available() else None

DEPTH = 128
# Rounding of weights and result is 2^-11; errors of weights average out.
TOLERANCE = 1e-3
COLUMNS = ["date", "commit", "gpu", "driver", "program", "heads", "queries", "keys", "depth", "variant", "median_us", "min_us", "max_us", "tflop_per_s"]
COLUMNS += ["torch_tflop_per_s", "torch_flash_tflop_per_s", "error_euclidean"]


def reference(q, k, v):
    """Rows of one head in float64."""
    logits = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(DEPTH)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights @ v.astype(np.float64) / weights.sum(axis=1, keepdims=True)


def torch_tflop_per_s(inputs, flop, options, backends):
    q, k, v = (torch.from_numpy(x).cuda()[None] for x in inputs)
    with torch.nn.attention.sdpa_kernel(backends) if backends else torch.no_grad():
        work = lambda i: torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return round(flop / row_ops.torch_timed(work, options) / 1e6, 1)


def main():
    parser = row_ops.arguments("flash_attention.greta", reps_ms=50)
    parser.add_argument("--shapes", type=lambda shapes: [tuple(map(int, shape.split("x"))) for shape in shapes.split(",")], default=[(32, 8192), (32, 4096)])
    options = parser.parse_args()

    runtime, timer, common = row_ops.start(options)
    common["depth"] = DEPTH
    packages = [(name.removesuffix(".greta"), Package(runtime, options.directory / name)) for name in options.package]
    table, wrong = [], False
    for heads, length in options.shapes:
        rng = np.random.default_rng(1)
        inputs = [row_ops.random(rng, heads, length, DEPTH) for _ in range(3)]
        flop = 4 * heads * length * length * DEPTH
        beside = {}
        if torch:
            flash = [torch.nn.attention.SDPBackend.FLASH_ATTENTION]
            beside = dict(torch_tflop_per_s=torch_tflop_per_s(inputs, flop, options, None), torch_flash_tflop_per_s=torch_tflop_per_s(inputs, flop, options, flash))
        buffers = [runtime.buffer(x) for x in inputs]
        result = runtime.buffer(inputs[0].nbytes)
        operands, out = tensors((b, x.shape) for b, x in zip(buffers, inputs)), tensors([(result, inputs[0].shape)])
        # Some rows of the first and of the last head.
        rows = np.unique(np.linspace(0, length - 1, 64).astype(int))
        expected = np.stack([reference(inputs[0][h][rows], inputs[1][h], inputs[2][h]) for h in (0, heads - 1)])
        for name, package in packages:
            for function in package.manifest()["functions"]:
                compiled = package.function(function["name"])
                runtime.poison(result, inputs[0].nbytes)
                compiled.launch(operands, out)
                runtime.synchronize()
                got = runtime.read(result, inputs[0].shape, "f16")[[0, heads - 1]][:, rows].astype(np.float64)
                error = np.linalg.norm(got - expected) / np.linalg.norm(expected)
                label = name if function["name"] == "flash_attention" else f"{name}:{function['name']}"
                if not error <= TOLERANCE:
                    print(f"WRONG: {label} {heads}x{length}: error {error}", file=sys.stderr)
                    wrong = True
                    continue
                times = row_ops.timed(timer, lambda i: compiled.launch(operands, out), options)
                median = statistics.median(times)
                row = common | beside | dict(program=label, heads=heads, queries=length, keys=length, variant=compiled.variant, error_euclidean=f"{error:.2e}")
                row |= dict(median_us=round(median, 2), min_us=round(min(times), 2), max_us=round(max(times), 2), tflop_per_s=round(flop / median / 1e6, 1))
                table.append(row)
                print(f"{label:40} {heads}x{length} {row['median_us']:>9} us, {row['tflop_per_s']:>6} TFLOP/s, torch {beside.get('torch_tflop_per_s', '-')},", end="")
                print(f" FlashAttention-2 {beside.get('torch_flash_tflop_per_s', '-')}, error {row['error_euclidean']}", flush=True)
                compiled.destroy()
        for buffer in (*buffers, result):
            runtime.lib.greta_buffer_destroy(buffer)
    records.append(options.csv, COLUMNS, table)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
