"""GEMMs of few rows as a step of greta-llm has them: each waits for the one before and reads other weights. Every tile; called by scripts/bench-h200.

usage: skinny_chain.py --write DIR [--full] [--rows=1,8,32] [--only=REGEX]    on the build machine: DIR gets a package for each GEMM, format and number of rows
       skinny_chain.py DIR CSV [--device=vulkan] [--rounds=7] [--only=REGEX]

The GEMMs are those of Llama 3 8B, with residual or swiglu; --rows says how many rows they have (1). A function's name ends in its tile: columns, depth, waves, unroll and run of one row,
slice and split of more rows, whose tiles are those of matrix instructions; `chosen` has the compiler's. A graph launches each over as many
different weights as have 1 GB together, into one result, so that a barrier stands between; median_us is a launch of it, by the GPU's clock, median of `rounds` graphs, and cached_us the
same with the first weights alone. A result that differs from `chosen`'s by more than 1 % of its norm is not recorded, and the run ends with status 1.
"""

import argparse
import concurrent.futures
import itertools
import pathlib
import re
import statistics
import subprocess
import sys

import numpy as np

import row_ops  # puts the project's helpers on the path
import records
from greta_runtime import Package, Tensor, tensor, tensors

# The matrix's rows and columns, and how many of them.
SHAPES = {"qkv": (6144, 4096, 1), "out": (4096, 4096, 1), "gate_up": (14336, 4096, 2), "down": (4096, 14336, 1), "head": (128256, 4096, 1)}
# Words, or f16, of a row of 32 weights: (type, elements) of each part; bits of a weight as the compiler counts them; weights that a lane loads at once.
FORMATS = {
    "q4_0": ((("i32", 4), ("f16", 1)), 4, 32),
    "q4_0_interleaved": ((("i32", 4), ("f16", 1)), 4, 32),
    "q4_k": ((("i32", 4), ("f16", 1), ("f16", 1)), 4, 32),
    "q4_k_interleaved": ((("i32", 4), ("f16", 1), ("f16", 1)), 4, 32),
    "q8_0": ((("i32", 8), ("f16", 1)), 8, 16),
    "q6_k": ((("i32", 4), ("i32", 2), ("f16", 2)), 6, 32),
    "f16": ((("f16", 32),), 16, 8),
}
COLUMNS = ["date", "commit", "gpu", "driver", "gemm", "format", "rows", "columns", "depth", "waves", "unroll", "run", "slice", "split"]
COLUMNS += ["weight_mb", "median_us", "min_us", "cached_us", "of_chosen"]
WORKING_SET = 1 << 30
ROW_SIZE = {"i32": 4, "f16": 2}


def parts_of(gemm, kind):
    rows, columns, count = SHAPES[gemm]
    return [(element, (rows, columns // 32 * each)) for _ in range(count) for element, each in FORMATS[kind][0]]


def source(gemm, kind, rows_of_a, name, config):
    rows, columns, count = SHAPES[gemm]
    lines = []
    types = [f"tensor<{s[0]}x{s[1]}x{e}>" for e, s in parts_of(gemm, kind)]
    each = len(FORMATS[kind][0])
    arguments = [f"%x: tensor<{rows_of_a}x{columns}xf16>"] + [f"%p{i}: {t}" for i, t in enumerate(types)]
    for i in range(count):
        some = range(i * each, (i + 1) * each)
        weight = f"tensor<{rows}x{columns}xf16>"
        if kind == "f16":
            lines.append(f"%w{i} = tensor.cast %p{i} : {weight} to {weight}")
        else:
            group = 16 if kind == "q6_k" else 32
            form = "" if kind == "q4_k" else f'format = "{kind}", '
            lines.append(f"%w{i} = greta.dequant {', '.join(f'%p{n}' for n in some)} {{{form}group = {group}}} : {', '.join(types[n] for n in some)} -> {weight}")
        lines.append(f"%y{i} = greta.matmul %x, %w{i} {{transpose_b{config}}} : tensor<{rows_of_a}x{columns}xf16>, {weight} -> tensor<{rows_of_a}x{rows}xf16>")
    row = f"tensor<{rows_of_a}x{rows}x"
    if count == 2:
        lines.append(f"%r = greta.swiglu %y0, %y1 : {row}f16>, {row}f16> -> {row}f16>")
        result = "f16"
    elif gemm in ("qkv", "head"):
        return f"func.func @{name}({', '.join(arguments)}) -> {row}f16> {{\n  " + "\n  ".join(lines) + f"\n  return %y0 : {row}f16>\n}}\n"
    else:
        arguments.append(f"%residual: {row}f32>")
        lines += [f"%wide = arith.extf %y0 : {row}f16> to {row}f32>", f"%r = arith.addf %residual, %wide : {row}f32>"]
        result = "f32"
    return f"func.func @{name}({', '.join(arguments)}) -> {row}{result}> {{\n  " + "\n  ".join(lines) + f"\n  return %r : {row}{result}>\n}}\n"


def tiles(gemm, kind, full):
    """(columns, depth, waves, unroll, run)"""
    rows, columns, count = SHAPES[gemm]
    _, bits, widest = FORMATS[kind]
    runs = [run for run in (8, 16, 32) if run <= widest] if full else [widest]
    for waves, along, each, unroll, run in itertools.product((2, 4, 8, 16) if full else (4, 8), (32, 64, 128, 256, 512), (1, 2, 4, 8, 16), (1, 2, 4), runs):
        depth, n = along * run, each * waves * 32 // along
        registers = -(-run * (count * each * bits + 16) // 32)
        if along <= waves * 32 and n >= each and depth * unroll <= 1 << (columns - 1).bit_length() and registers * unroll <= 128 and n <= 64:
            yield n, depth, waves, unroll, run


def tiles_of_matrices(gemm):
    """(columns, depth, waves, slice, split) of tiles that go from memory to the registers of matrix instructions. Waves share K: along N or M they would unpack weights again."""
    columns, depth_of_all, count = SHAPES[gemm]
    for n, waves, piece, split in itertools.product((16, 32, 64), (2, 4, 8, 16), (64, 128), (1, 2, 4, 8)):
        depth, workgroups = waves * piece, columns // n * split
        is_whole = depth_of_all % (depth * split) == 0 and depth_of_all // (depth * split) > 1
        fills = split == 1 if gemm == "head" else 800 <= workgroups * waves <= 8000
        if is_whole and fills and depth <= 1024:
            yield n, depth, waves, piece, split


def configs(gemm, kind, rows, full):
    """(the function's name, its greta.config)"""
    if rows <= 4:
        for n, depth, waves, unroll, run in tiles(gemm, kind, full and kind == "q4_0"):
            yield f"t_{n}_{depth}_{waves}_{unroll}_{run}", f"tile = [{rows}, {n}, {depth}], waves = {waves}, run = {run}, unroll = {unroll}"
        return
    for n, depth, waves, piece, split in tiles_of_matrices(gemm):
        config = f"instruction = [8, 16, 16], tile = [{-(-rows // 8) * 8}, {n}, {depth}], slice = {piece}, stages = 0, waves = {waves}"
        yield f"t_{n}_{depth}_{waves}___{piece}_{split}", config + (f", split = {split}" if split > 1 else "")


def row_numbers(text):
    numbers = [int(number) for number in text.split(",")]
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"a GEMM has at least one row, not {min(numbers)}")
    return numbers


def translate(path, text):
    root = pathlib.Path(__file__).resolve().parents[2]
    command = [root / "build/bin/greta-translate", "--greta-to-package", "--targets=vulkan:nvidia", "-", "-o", path]
    return subprocess.run(command, input=text, capture_output=True, text=True)


def write(directory, options):
    for gemm, kind, rows in itertools.product(SHAPES, FORMATS, options.rows):
        path = directory / f"skinny_{gemm}_{kind}_{rows}.greta"
        if (gemm == "head") != (kind == "q6_k") or not re.search(options.only, path.stem):
            continue
        texts = [source(gemm, kind, rows, name, f", greta.config = {{{config}}}") for name, config in configs(gemm, kind, rows, options.full)]
        if rows > 4:
            # The compiler knows which tiles have enough registers and shared memory.
            with concurrent.futures.ThreadPoolExecutor() as pool:
                texts = [text for text, tried in zip(texts, pool.map(lambda text: translate("/dev/null", text), texts)) if tried.returncode == 0]
        tried = translate(path, source(gemm, kind, rows, "chosen", "") + "".join(texts))
        if tried.returncode:
            sys.exit(tried.stderr)
        print(path.stem, 1 + len(texts), flush=True)


class Weights:
    """Random bits; scales are small numbers."""

    def __init__(self, runtime):
        rng = np.random.default_rng(1)
        some = rng.integers(-(2**31), 2**31, 1 << 24).astype(np.int32)
        self.bits = runtime.repeated(some, WORKING_SET + (1 << 27))
        self.scales = runtime.repeated((rng.uniform(0.5, 1.5, 1 << 24) / 300).astype(np.float16), WORKING_SET // 4)
        self.numbers = runtime.repeated((rng.standard_normal(1 << 24, np.float32) / 64).astype(np.float16), WORKING_SET + (1 << 28))

    def part(self, element, shape, number, is_weight):
        made = tensor(self.numbers if is_weight and element == "f16" else self.bits if element == "i32" else self.scales, shape)
        made.offset = number * shape[0] * shape[1] * ROW_SIZE[element]
        return made


def measure(runtime, timer, weights, function, gemm, kind, rows_of_a, rounds):
    """(microseconds of a launch for each graph, the same of the first weights, a result)"""
    rows, columns, count = SHAPES[gemm]
    parts = parts_of(gemm, kind)
    size = sum(ROW_SIZE[e] * s[0] * s[1] for e, s in parts)
    launches = max(2, min(64, WORKING_SET // size))
    x = runtime.buffer((np.random.default_rng(3).standard_normal((rows_of_a, columns))).astype(np.float16))
    residual = [runtime.buffer(np.zeros((rows_of_a, rows), np.float32))] if gemm in ("out", "down") else []
    y, element = runtime.buffer(4 * rows_of_a * rows), "f32" if residual else "f16"
    keep = []

    def record(is_cached):
        runtime.check(runtime.lib.greta_graph_begin(runtime.stream))
        for i in range(launches):
            seen = {}
            given = [tensor(x, (rows_of_a, columns))]
            for e, s in parts:
                # Several parts of a kind have a place each.
                number = seen.get(e, 0)
                seen[e] = number + 1
                each = sum(1 for other, _ in parts if other == e)
                given.append(weights.part(e, s, (0 if is_cached else i) * each + number, kind == "f16"))
            given += [tensor(r, (rows_of_a, rows)) for r in residual]
            keep.append(given)
            function.launch((Tensor * len(given))(*given), tensors([(y, (rows_of_a, rows))]))
        return runtime.make("graph_end", runtime.stream)

    found, graphs = [], [record(is_cached) for is_cached in (True, False)]
    for graph in graphs:
        launch = lambda: runtime.check(runtime.lib.greta_graph_launch(graph, runtime.stream))
        found.append([timer.microseconds(launch) / launches for _ in range(rounds)][1:])
        runtime.lib.greta_graph_destroy(graph)
    result = runtime.read(y, (rows_of_a, rows), element).astype(np.float64)
    for buffer in (x, y, *residual):
        runtime.lib.greta_buffer_destroy(buffer)
    return found[1], found[0], result, size


def main():
    parser = row_ops.arguments("", reps_ms=0)
    if "--write" in sys.argv:
        parser = argparse.ArgumentParser()
        parser.add_argument("--write", type=pathlib.Path, required=True)
        parser.add_argument("--full", action="store_true")
        parser.add_argument("--rows", type=row_numbers, default=[1])
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if "write" in options:
        return write(options.write, options)
    runtime, timer, common = row_ops.start(options)
    weights, wrong = Weights(runtime), False
    for path in sorted(options.directory.glob("skinny_*.greta")):
        if not re.search(options.only, path.stem):
            continue
        named = re.fullmatch(rf"skinny_({'|'.join(SHAPES)})_({'|'.join(FORMATS)})_(\d+)", path.stem)
        if not named:
            sys.exit(f"{path} is no package of --write: its name has no GEMM, format and number of rows")
        gemm, kind, rows = named.groups()
        package, chosen, right = Package(runtime, path), 0, None
        # All pipelines first, side by side: a GPU that idles while one is compiled has to be woken again.
        names = [f["name"] for f in package.manifest()["functions"]]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            functions = dict(zip(names, pool.map(package.function, names)))
        for name, function in functions.items():
            times, cached, result, size = measure(runtime, timer, weights, function, gemm, kind, int(rows), options.rounds + 1)
            function.destroy()
            right = result if right is None else right
            median = statistics.median(times)
            chosen = chosen or median
            tile = dict(zip(("columns", "depth", "waves", "unroll", "run", "slice", "split"), name.split("_")[1:])) if name != "chosen" else {}
            row = common | dict(gemm=gemm, format=kind, rows=rows, weight_mb=round(size / 1e6, 1), median_us=round(median, 3), min_us=round(min(times), 3)) | tile
            row |= dict(cached_us=round(statistics.median(cached), 3), of_chosen=round(median / chosen, 4))
            if not np.linalg.norm(result - right) < 0.01 * np.linalg.norm(right):
                print(f"WRONG: {row}", file=sys.stderr)
                wrong = True
                continue
            print(*(f"{row.get(column, '-'):>8}" for column in COLUMNS[4:]), flush=True)
            records.append(options.csv, COLUMNS, [row])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
