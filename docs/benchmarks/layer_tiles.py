"""Tiles of a layer's GEMMs where greta-llm has them: the layer's own launches, one after another, each layer with other weights. Called by scripts/bench-h200.

usage: layer_tiles.py --write DIR [--formats=q4_k_m,f16] [--rows=1] [--only=REGEX] [--sample=N] [--and NAME:PLACE=TILE,.. ..]    on the build machine: DIR gets a package for each variant
       layer_tiles.py DIR CSV [--device=vulkan] [--rounds=9] [--only=REGEX]

The functions are those of `greta-llm compile --mlir` for Llama 3 8B: layers of one step, two kinds of them where formats are mixed, and the head. In a variant one place (qkv, out, gate_up, down,
head) has another tile, whose name is that of skinny_chain.py: all that make sense, or of each place N by chance (--sample); --and adds variants with tiles in several places. `chosen` has the compiler's tiles. Each variant is a package with the same function,
so that the driver finds kernels that it has compiled already. Queries, keys and values with tiles of their own are three launches side by side; one launch takes its tiles from --tuning alone.
A format with two kinds of layers also has a row for both in turn (`layer0_1+layer1_1`), each with the compiler's tiles. A graph has 32 launches, and each reads what the one before wrote. median_us is a launch of it, by the GPU's clock, median of `rounds` graphs; of_chosen compares with the mean of
`chosen` before and after each thirty variants. A first layer's result that differs from `chosen`'s by more than 1 % of its norm is not recorded, and the run ends with status 1.
"""

import argparse
import collections
import concurrent.futures
import ctypes
import itertools
import pathlib
import random
import re
import statistics
import subprocess
import sys
import time

import numpy as np

import row_ops  # puts the project's helpers on the path
import records
import skinny_chain
from greta_runtime import Package, Tensor, tensor, tensors

COLUMNS = ["date", "commit", "gpu", "driver", "format", "function", "rows", "tiles", "weight_mb", "median_us", "min_us", "of_chosen"]
LAYERS, PAGES, PAGE, BLOCK = 32, 16, 16, 30
PLACES = {"layer": ("qkv", "qkv", "qkv", "out", "gate_up", "gate_up", "down"), "head": ("head",)}
ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = {"i32": 4, "f16": 2, "f32": 4}


def functions_of(form, rows):
    """{name: text} of the functions of a step."""
    command = [ROOT / "build/bin/greta-llm", "compile", f"--synthetic=llama3-8b:{form}", "--mlir", f"--batch={rows}", "--quiet", "-o", "-"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {name: whole for whole, name in re.findall(rf"(func\.func @((?:layer\d+|head)_{rows})\(.*?\n}}\n)", text, re.S)}


def formats_of(text):
    """The format of each product's weights, as skinny_chain.py names them."""
    formats = dict(re.findall(r'(%\d+) = greta\.dequant .*?format = "(\w+)"', text))
    return [formats.get(weights, "f16") for weights in re.findall(r"greta\.matmul %\w+, (%\w+) ", text)]


def with_tiles(name, text, configs):
    """The function with greta.config at the places of `configs`."""
    places = iter(PLACES[re.match("[a-z]+", name)[0]])

    def change(found):
        config = configs.get(next(places))
        return found[0] + (f", greta.config = {{{config}}}" if config else "")

    return re.sub(r"greta\.matmul .*?\{transpose_b", change, text)


def tiles(place, kind):
    """(columns, depth, waves, unroll, run) of one row: tiles whose lanes have some loads of weights under way, two to eight, and up to sixteen narrow ones."""
    _, depth_of_all, count = skinny_chain.SHAPES[place]
    widest = skinny_chain.FORMATS[kind][2]
    # 16 lanes along K leave two along N, one for each of two interleaved rows.
    numbers = (1, 2, 4, 8, 16), (16, 32, 64, 128, 256), (1, 2, 4, 8), (1, 2, 4, 8), sorted({widest, max(widest // 2, 8), 2 * widest})
    for waves, along, each, unroll, run in itertools.product(*numbers):
        columns, depth = each * waves * 32 // along, along * run
        fits = along <= waves * 32 and columns >= each and depth * unroll <= 1 << (depth_of_all - 1).bit_length()
        # A tail's lanes are its GEMM's, and a norm wants many.
        is_wide = waves >= 4 if place in ("out", "down") else waves <= 8
        loads = count * each * unroll * max(run // widest, 1)
        if fits and is_wide and (4 if run > 8 else 2) <= loads <= (16 if run < widest else 8) and columns <= 64:
            yield columns, depth, waves, unroll, run


def sampled(tiles, options, name):
    """All of them, or --sample many by chance, which are the same each time."""
    return random.Random(name).sample(tiles, options.sample) if len(tiles) > options.sample > 0 else tiles


def configs(place, kind, rows):
    """(a tile's name, its greta.config)"""
    if rows > 4:
        return ((name.removeprefix("t_"), config) for name, config in skinny_chain.configs(place, kind, rows, False))
    return (("_".join(map(str, tile)), config_of("_".join(map(str, tile)), rows)) for tile in tiles(place, kind))


def config_of(tile, rows):
    """The greta.config of a tile's name."""
    numbers = [int(number or 0) for number in tile.split("_")]
    if rows <= 4:
        columns, depth, waves, unroll, run = numbers
        return f"tile = [{rows}, {columns}, {depth}], waves = {waves}, run = {run}, unroll = {unroll}"
    columns, depth, waves, _, _, piece, split = numbers
    config = f"instruction = [8, 16, 16], tile = [{-(-rows // 8) * 8}, {columns}, {depth}], slice = {piece}, stages = 0, waves = {waves}"
    return config + (f", split = {split}" if split > 1 else "")


def variants_of(name, text, rows, options):
    """{variant: its function}"""
    places = PLACES[re.match("[a-z]+", name)[0]]
    found, formats = {"chosen": {}}, dict(zip(places, formats_of(text)))
    for place in dict.fromkeys(places):
        asked = [(tile, config) for tile, config in configs(place, formats[place], rows) if re.search(options.only, f"{name}.{formats[place]}.{place}.{tile}")]
        for tile, config in sampled(asked, options, place):
            found[f"{place}.{tile}"] = {place: config}
    for several in options.several:
        label, _, parts = several.partition(":")
        parts = dict(part.split("=") for part in parts.split(","))
        if set(parts) <= set(places):
            found[label] = {place: config_of(tile, rows) for place, tile in parts.items()}
    return {variant: with_tiles(name, text, tiles) for variant, tiles in found.items()}


def write(directory, options):
    for form, rows in itertools.product(options.formats, options.rows):
        for name, text in functions_of(form, rows).items():
            variants = variants_of(name, text, rows, options)

            def compiled(variant):
                return skinny_chain.translate(directory / f"layer_{form}__{name}__{variant}.greta", variants[variant])

            # The compiler knows which tiles have enough registers and shared memory.
            with concurrent.futures.ThreadPoolExecutor() as pool:
                tried = dict(zip(variants, pool.map(compiled, variants)))
            if tried["chosen"].returncode:
                sys.exit(tried["chosen"].stderr)
            print(form, name, sum(one.returncode == 0 for one in tried.values()), flush=True)


class Memory:
    """Weights of random bits, whose scales are small numbers, and a cache."""

    def __init__(self, runtime):
        rng = np.random.default_rng(1)
        self.runtime, self.buffers = runtime, {}
        scales = (rng.uniform(0.5, 1.5, 1 << 22) / 1200).astype(np.float16)
        self.patterns = {"bits": rng.integers(-(2**31), 2**31, 1 << 24).astype(np.int32), "scales": scales, "minima": scales * np.float16(-7.5)}
        self.patterns |= {"numbers": (rng.standard_normal(1 << 24, np.float32) / 64).astype(np.float16), "ones": np.ones(1 << 20, np.float32)}
        self.patterns |= {"cache": rng.standard_normal(1 << 22, np.float32).astype(np.float16)}

    def of(self, kind, size):
        held = self.buffers.get(kind)
        if not held or held[1] < size:
            if held:
                self.runtime.lib.greta_buffer_destroy(held[0])
            self.buffers[kind] = held = (self.runtime.repeated(self.patterns[kind], size), size)
        return held[0]


def kind_of(name, element):
    if "cache" in name:
        return "cache"
    if element == "i32":
        return "bits"
    if element == "f32":
        return "ones"
    return "scales" if name.endswith("scales") else "minima" if name.endswith("minima") else "numbers"


class Chain:
    """The arguments of LAYERS launches of these functions in turn, the results of each, and what they are made of."""

    def __init__(self, runtime, memory, kinds, rows):
        self.runtime, self.rows = runtime, rows
        rng = np.random.default_rng(3)
        positions = np.full(rows, 64, np.int32)
        table = rng.permutation(rows * PAGES).astype(np.int32).reshape(rows, PAGES)
        small = {"cos": np.cos(np.arange(rows * 64.0)).astype(np.float32).reshape(rows, 64), "sin": np.sin(np.arange(rows * 64.0)).astype(np.float32).reshape(rows, 64)}
        small |= {"slots": table[:, 64 // PAGE] * PAGE, "table": table, "lengths": positions + 1}
        small = {name: (runtime.buffer(value), value.shape) for name, value in small.items()}
        stream = rng.standard_normal((rows, 4096)).astype(np.float32)
        self.rest = [runtime.buffer(stream) for _ in range(2)]
        self.normed = [runtime.buffer(stream.astype(np.float16)) for _ in range(2)]
        self.stream = stream
        used, self.places = collections.Counter(), []
        for layer in range(LAYERS):
            places = []
            for argument in kinds[layer % len(kinds)]["args"]:
                name, element = argument["name"], argument["dtype"]
                shape = tuple(rows * PAGES if size < 0 else size for size in (side if isinstance(side, int) else -1 for side in argument["shape"]))
                if name in small:
                    places.append(small[name])
                elif name in ("x", "normed"):
                    places.append(({"x": self.rest, "normed": self.normed}[name][layer % 2], shape))
                else:
                    kind = kind_of(name, element)
                    at = used[kind] if kind != "ones" else 0
                    places.append((kind, shape, at))
                    used[kind] = at + int(np.prod(shape)) * SIZES[element]
            self.places.append(places)
        self.weight_bytes = sum(size for kind, size in used.items() if kind not in ("cache", "ones")) / LAYERS
        self.memory = {kind: memory.of(kind, max(size, 1 << 22)) for kind, size in used.items()}
        self.logits = runtime.buffer(4 * rows * 128256)
        self.is_head = kinds[0]["name"].startswith("head")
        self.made = self.launches()

    def launches(self):
        """(arguments, results) of each launch, which all variants share: what a host takes between two of them lets the GPU's clock fall."""
        made = []
        for layer, places in enumerate(self.places):
            given = []
            for buffer, shape, *offset in places:
                given.append(tensor(self.memory[buffer] if offset else buffer, shape))
                given[-1].offset = offset[0] if offset else 0
            caches = [one for one, place in zip(given, places) if place[0] == "cache"]
            results = [tensor(held[1 - layer % 2], (self.rows, 4096)) for held in (self.rest, self.normed)] + caches
            if self.is_head:
                results = [tensor(self.logits, (self.rows, 128256))]
            made.append(((Tensor * len(given))(*given), (Tensor * len(results))(*results), given, results))
        return made

    def set(self, buffer, value):
        self.runtime.check(self.runtime.lib.greta_buffer_write(self.runtime.stream, buffer, ctypes.c_size_t(0), value.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(value.nbytes)))

    def first_result(self, function):
        self.set(self.rest[0], self.stream)
        self.set(self.normed[0], self.stream.astype(np.float16))
        result, shape = (self.logits, (self.rows, 128256)) if self.is_head else (self.rest[1], (self.rows, 4096))
        self.runtime.poison(result, 4 * int(np.prod(shape)))
        function.launch(*self.made[0][:2])
        found = self.runtime.read(result, shape, "f32").astype(np.float64)
        if self.is_head:
            return found
        normed = self.runtime.read(self.normed[1], shape, "f16").astype(np.float64)
        return np.concatenate([found - self.stream, normed * np.linalg.norm(found - self.stream) / np.linalg.norm(normed)])

    def times(self, functions, timer, rounds):
        self.runtime.check(self.runtime.lib.greta_graph_begin(self.runtime.stream))
        for layer, (given, results, *_) in enumerate(self.made):
            functions[layer % len(functions)].launch(given, results)
        graph = self.runtime.make("graph_end", self.runtime.stream)
        # Not woken for each variant, which takes 0.6 s: it has had work until the graph was recorded, and `chosen` shows whether its clock fell.
        row_ops.last_work = time.perf_counter()
        found = [timer.microseconds(lambda: self.runtime.check(self.runtime.lib.greta_graph_launch(graph, self.runtime.stream))) / LAYERS for _ in range(rounds + 1)]
        self.runtime.lib.greta_graph_destroy(graph)
        return found[1:]

    def destroy(self):
        for buffer in (*self.rest, *self.normed, self.logits):
            self.runtime.lib.greta_buffer_destroy(buffer)


def measure(chain, functions, timer, rounds):
    """Lists of (the variant, its times), of those whose result is right: blocks of variants between two of `chosen`, a block when it is there."""
    # Its clock rises while it has work, which it had none of while pipelines were compiled.
    begin = time.perf_counter()
    while time.perf_counter() - begin < 2:
        chain.times([functions["chosen"]], timer, 100)
    right, variants = chain.first_result(functions["chosen"]), [variant for variant in functions if variant != "chosen"]
    for at in range(0, max(len(variants), 1), BLOCK):
        block = []
        for variant in ("chosen", *variants[at : at + BLOCK], "chosen"):
            result = chain.first_result(functions[variant])
            error = np.linalg.norm(result - right) / np.linalg.norm(right)
            if error < 0.01:
                block.append((variant, chain.times([functions[variant]], timer, rounds)))
            else:
                print(f"WRONG: {variant}: {error}", file=sys.stderr)
        yield block


def main():
    parser = row_ops.arguments("", reps_ms=0)
    if "--write" in sys.argv:
        parser = argparse.ArgumentParser()
        parser.add_argument("--write", type=pathlib.Path, required=True)
        parser.add_argument("--formats", type=lambda names: names.split(","), default=["q4_k_m", "f16"])
        parser.add_argument("--rows", type=skinny_chain.row_numbers, default=[1])
        parser.add_argument("--sample", type=int, default=0)
        parser.add_argument("--and", dest="several", nargs="*", default=[])
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if "write" in options:
        return write(options.write, options)
    runtime, timer, common = row_ops.start(options)
    memory, is_right, groups, kinds = Memory(runtime), True, {}, {}
    for path in sorted(options.directory.glob("layer_*__*__*.greta")):
        form, name, variant = path.stem.removeprefix("layer_").split("__", 2)
        if re.search(options.only, path.stem):
            groups.setdefault((form, name), {})[variant] = Package(runtime, path)
    # Pipelines side by side, those of all groups from the start: a GPU that idles while one is compiled has to be woken again.
    pool = concurrent.futures.ThreadPoolExecutor()
    loading = {group: [pool.submit(package.function, group[1]) for package in packages.values()] for group, packages in groups.items()}
    for (form, name), packages in groups.items():
        begin = time.perf_counter()
        functions = dict(zip(packages, (one.result() for one in loading[form, name])))
        rows = int(name.rsplit("_", 1)[1])
        described = packages["chosen"].manifest()["functions"][0]
        print(f"{form} {name}: {len(functions)} variants, waited {time.perf_counter() - begin:.1f} s", flush=True)
        chain = Chain(runtime, memory, [described], rows)
        table = []
        for block in measure(chain, functions, timer, options.rounds):
            chosen = statistics.mean(statistics.median(times) for variant, times in block if variant == "chosen")
            rows_of_block = []
            for variant, times in block:
                row = common | dict(format=form, function=name, rows=rows, tiles=variant, weight_mb=round(chain.weight_bytes / 1e6, 1))
                row |= dict(median_us=round(statistics.median(times), 2), min_us=round(min(times), 2), of_chosen=round(statistics.median(times) / chosen, 4))
                rows_of_block.append(row)
            records.append(options.csv, COLUMNS, rows_of_block)
            table += rows_of_block
        is_right = is_right and len({row["tiles"] for row in table}) == len(functions)
        for row in sorted(table, key=lambda row: row["of_chosen"])[:14]:
            print(*(f"{row[column]!s:>9}" for column in COLUMNS[4:]), flush=True)
        chain.destroy()
        kinds.setdefault((form, rows), {})[name] = (described, functions.pop("chosen"))
        for function in functions.values():
            function.destroy()
    for (form, rows), given in kinds.items():
        layers = {name: of for name, of in given.items() if name.startswith("layer")}
        if len(layers) > 1:
            chain = Chain(runtime, memory, [described for described, _ in layers.values()], rows)
            times = chain.times([function for _, function in layers.values()], timer, options.rounds)
            row = common | dict(format=form, function="+".join(layers), rows=rows, tiles="chosen", weight_mb=round(chain.weight_bytes / 1e6, 1))
            row |= dict(median_us=round(statistics.median(times), 2), min_us=round(min(times), 2))
            print(*(f"{row.get(column, '')!s:>9}" for column in COLUMNS[4:]), flush=True)
            records.append(options.csv, COLUMNS, [row])
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
