"""Checks and measures new rows of a KV cache, alone and behind the projection of a layer beside the product alone; called by scripts/bench-h200, which sets the
library path.

usage: kv_update.py DIR CSV [--package=kv_update.greta] [--reps-ms=20] [--rounds=7] [--only=NAME,..] [--tokens=16,32,..]
The functions are those of kv_update.mlir; data are random normal. Caches are written in place. Results are poisoned, computed once and compared with float64 in
some rows; a wrong one is not timed, and the run ends with status 1. Time is the GPU's, from events around batches of launches; median, minimum and maximum of
`rounds` batches, over weights of more than any cache holds; these launches may overlap, as layers of several sequences do, and those of serial_us, over one set of buffers, may not. added_us is what
the projection with rope and both updates takes longer than the product of that run. --tokens: `product` and `fused` alone, of so many tokens each.
"""

import statistics
import sys

import numpy as np

import row_ops  # puts the project's helpers on the path
import records
from greta_runtime import Package, tensors

PAGE, HEADS, SIZE, PAGES = 16, 8, 128, 2048
COLUMNS = ["date", "commit", "gpu", "driver", "function", "tokens", "variant", "median_us", "min_us", "max_us", "added_us", "error_euclidean", "serial_us"]
# Name, tokens: kv_update of so many sequences, one token each; the others of tokens in pages.
RUNS = [("rows", 32), ("pages", 32), ("pages", 512), ("product_8", 8), ("fused_8", 8), ("product", 512), ("fused", 512), ("product", 2048), ("fused", 2048)]


def angles(tokens):
    angle = np.arange(tokens)[:, None] * 10000.0 ** (-np.arange(64) / 64)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def roped(x, cos, sin):
    """[T, H, D], in halves."""
    a, b = np.split(x, 2, axis=-1)
    cos, sin = cos[:, None].astype(np.float64), sin[:, None].astype(np.float64)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def inputs(name, tokens, rng):
    """Arguments, and which of them, if any, a result is in place of."""
    slots = rng.permutation(PAGES * PAGE)[:tokens].astype(np.int32)
    cache = lambda: row_ops.random(rng, PAGES, PAGE, HEADS, SIZE)
    if name == "rows":
        return [row_ops.random(rng, tokens, HEADS, 256, SIZE), row_ops.random(rng, tokens, HEADS, 1, SIZE), rng.integers(0, 256, tokens, np.int32)], [0]
    if name == "pages":
        return [cache(), row_ops.random(rng, tokens, HEADS, SIZE), slots], [0]
    x, weights = row_ops.random(rng, tokens, 4096), (rng.standard_normal((6144, 4096), np.float32) / 64).astype(np.float16)
    if name.startswith("product"):
        return [x, weights], [None]
    return [x, weights, *angles(tokens), cache(), cache(), slots], [None, 4, 5]


def expected(name, arguments):
    """Some rows of each result: functions of the result, and the rows in float64."""
    if name == "rows":
        _, new, pos = arguments
        return [(lambda y: y[np.arange(len(pos)), :, pos], new[:, :, 0])]
    if name == "pages":
        _, new, slots = arguments
        return [(lambda y: y.reshape(-1, HEADS, SIZE)[slots], new)]
    rows = np.unique(np.linspace(0, len(arguments[0]) - 1, 4).astype(int))
    product = arguments[0][rows].astype(np.float64) @ arguments[1].astype(np.float64).T
    if name.startswith("product"):
        return [(lambda y: y[rows], product)]
    cos, sin, slots = arguments[2][rows], arguments[3][rows], arguments[6][rows]
    q, k, v = (part.astype(np.float16).astype(np.float64).reshape(len(rows), -1, SIZE) for part in np.split(product, [4096, 5120], axis=1))
    in_slots = lambda y: y.reshape(-1, HEADS, SIZE)[slots]
    return [(lambda y: y[rows], roped(q, cos, sin)), (in_slots, roped(k, cos, sin)), (in_slots, v)]


def main():
    parser = row_ops.arguments("kv_update.greta", reps_ms=20)
    parser.add_argument("--only", type=lambda names: names.split(","), default=[name for name, _ in RUNS])
    parser.add_argument("--sets", type=int, default=4)
    parser.add_argument("--tokens", type=lambda counts: [(name, int(count)) for count in counts.split(",") for name in ("product", "fused")], default=RUNS)
    options = parser.parse_args()

    runtime, timer, common = row_ops.start(options)
    packages = [Package(runtime, options.directory / name) for name in options.package]
    functions = {function["name"]: package for package in packages for function in package.manifest()["functions"]}
    table, wrong, products = [], False, {}
    for name, tokens in options.tokens:
        if name not in options.only or name not in functions:
            continue
        rng = np.random.default_rng(1)
        arguments, places = inputs(name, tokens, rng)
        shapes = {None: (tokens, 6144) if name.startswith("product") else (tokens, 32, SIZE)} | {i: x.shape for i, x in enumerate(arguments)}
        sets, buffers = [], []
        for _ in range(options.sets):
            mine = [runtime.buffer(x) for x in arguments]
            made = [mine[place] if place is not None else runtime.buffer(2 * int(np.prod(shapes[None]))) for place in places]
            if None in places:
                runtime.poison(made[places.index(None)], 2 * int(np.prod(shapes[None])))
            sets.append((tensors((b, x.shape) for b, x in zip(mine, arguments)), tensors((b, shapes[place]) for b, place in zip(made, places))))
            buffers += [*mine, *(b for b, place in zip(made, places) if place is None)]
            results = made
        compiled = functions[name].function(name)
        compiled.launch(*sets[-1])
        runtime.synchronize()
        error = 0.0
        for buffer, place, (take, right) in zip(results, places, expected(name, arguments)):
            got = take(runtime.read(buffer, shapes[place], "f16")).astype(np.float64)
            error = max(error, np.linalg.norm(got - right) / np.linalg.norm(right.astype(np.float64)))
        label = f"{name} of {tokens} tokens"
        if not error <= (0 if name in ("rows", "pages") else 1e-3):
            print(f"WRONG: {label}: error {error}", file=sys.stderr)
            wrong = True
            continue
        times = row_ops.timed(timer, lambda i: compiled.launch(*sets[i % len(sets)]), options)
        median, serial = statistics.median(times), statistics.median(row_ops.timed(timer, lambda i: compiled.launch(*sets[0]), options))
        row = common | dict(function=name, tokens=tokens, variant=compiled.variant, error_euclidean=f"{error:.2e}")
        row |= dict(median_us=round(median, 2), min_us=round(min(times), 2), max_us=round(max(times), 2), serial_us=round(serial, 2))
        if name.startswith("product"):
            products[tokens] = median
        added = ""
        if name.startswith("fused") and tokens in products:
            row["added_us"] = round(median - products[tokens], 2)
            added = f", {row['added_us']} us more than the product"
        table.append(row)
        print(f"{label:28} {row['median_us']:>9} us, one after another {row['serial_us']:>9} us{added}, error {row['error_euclidean']}", flush=True)
        compiled.destroy()
        for buffer in buffers:
            runtime.lib.greta_buffer_destroy(buffer)
    records.append(options.csv, COLUMNS, table)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
