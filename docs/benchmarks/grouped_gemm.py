"""Grouped GEMMs on AMD chips beside GEMMs that do as much, by the simulator's model: nothing here needs a GPU.

    build/venv/bin/python docs/benchmarks/grouped_gemm.py [--csv=FILE] [--tokens=1,64,4096] [--weights=f16,q4] [CHIP...]
    build/venv/bin/python docs/benchmarks/grouped_gemm.py --check [--tokens=1,64] [--weights=f16,q4] [DEVICE...]    on small integers, to the bit: sim:gfx942, vulkan, host ..

Each token goes to 8 of 128 experts; hidden 2048, ffn 768, weights [E, N, K] of f16 or 4 bits in groups of 32, in the default configuration:
  grouped      greta.grouped_matmul of 8 rows for each token, routed evenly (1 token: 8 experts a row each)
  dynamic      the same with any number of rows: the kernels of the range that has so many
  plain        a greta.matmul that reads as many weights (1 and 64 tokens: as many rows of B as the experts in use have together, and the rows
               that an expert has), or has as many rows (4096 tokens)
The simulator takes some workgroups of a grid for all, and of a grouped GEMM some have no rows. With up to 64 tokens `microseconds` and `cycles` are means over ROUTINGS ways to route. With more they are those of a routing in which every
workgroup has rows (`filled`), times the tiles that an even routing has over those of that one. `bytes` is what a cycle of the whole launch (microseconds at the chip's clock) brings of weights, `loop` the share of the matrix unit in the main loop.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import zipfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))

import records  # noqa: E402
from dynamic_m import evaluate  # noqa: E402
from issue_model import tool  # noqa: E402

EXPERTS, TOP, HIDDEN, FFN = 128, 8, 2048, 768
ROUTINGS, FEW = 8, 64
CLOCK = {"gfx90a": 1700, "gfx942": 2100, "gfx950": 2400, "gfx1100": 2500, "gfx1201": 2970}  # MHz, of lib/Target
BYTES = {"f16": 2, "q4": 0.5 + 2 / 32}
FIELDS = ["date", "commit", "chip", "tokens", "weights", "kernel", "tile", "microseconds", "cycles", "weight_bytes", "bytes", "loop"]


def offsets(tokens, routing=1):
    """The first row of each expert."""
    rng = np.random.default_rng(routing)
    counts = np.zeros(EXPERTS, int)
    for _ in range(tokens):
        counts[rng.choice(EXPERTS, TOP, replace=False)] += 1
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def filled(tokens, m):
    """All slots for tiles of m rows have some: a group has a row more than whole tiles, the last one what is left."""
    each = TOP * tokens // EXPERTS // m * m - m + 1
    return np.array([*range(0, EXPERTS * each, each), TOP * tokens], np.int32)


def tiles(table, m):
    return int(-(-np.diff(table) // m).sum())


def function(weights, rows, columns, matrices=0, dynamic=False):
    """The text, and the bytes of the arguments; offsets are 0 bytes."""
    tensor = lambda *shape: f"tensor<{'x'.join(map(str, shape))}>"
    all_rows = columns * max(matrices, 1)
    a, y = (tensor("?" if dynamic else rows, width, "f16") for width in (HIDDEN, columns))
    b = tensor(matrices, columns, HIDDEN, "f16") if matrices else tensor(columns, HIDDEN, "f16")
    arguments, sizes, body = [("%a", a)], [2 * rows * HIDDEN], ""
    if weights == "f16":
        arguments.append(("%b", b))
        sizes.append(2 * all_rows * HIDDEN)
    else:
        q, s, w = tensor(all_rows, HIDDEN // 8, "i32"), tensor(all_rows, HIDDEN // 32, "f16"), tensor(all_rows, HIDDEN, "f16")
        arguments += [("%q", q), ("%s", s)]
        sizes += [all_rows * HIDDEN // 2, all_rows * HIDDEN // 16]
        name = "%w" if matrices else "%b"
        body = f"  {name} = greta.dequant %q, %s {{group = 32}} : {q}, {s} -> {w}\n"
        if matrices:
            body += f"  %b = tensor.expand_shape %w [[0, 1], [2]] output_shape [{matrices}, {columns}, {HIDDEN}] : {w} into {b}\n"
    if matrices:
        o = tensor(matrices + 1, "i32")
        arguments.append(("%o", o))
        sizes.append(0)
        body += f"  %y = greta.grouped_matmul %a, %b, %o {{transpose_b}} : {a}, {b}, {o} -> {y}\n"
    else:
        body += f"  %y = greta.matmul %a, %b {{transpose_b}} : {a}, {b} -> {y}\n"
    return f"func.func @f({', '.join(f'{n}: {t}' for n, t in arguments)}) -> {y} {{\n{body}  return %y : {y}\n}}\n", sizes, 2 * rows * columns


def cases(tokens, weights):
    table = offsets(tokens)
    used = int((np.diff(table) > 0).sum())
    yield "grouped", function(weights, TOP * tokens, FFN, EXPERTS), used * FFN
    yield "dynamic", function(weights, TOP * tokens, FFN, EXPERTS, dynamic=True), used * FFN
    if tokens <= 64:
        rows = max(1, TOP * tokens // used)
        yield "plain", function(weights, rows, used * FFN), used * FFN
    else:
        yield "plain", function(weights, TOP * tokens, FFN), used * FFN


def estimated(folder, chip, made, tokens, routings=1):
    """The configuration, and an estimate for each of some routings."""
    text, sizes, result = made
    source, package, code, table = (folder / name for name in ("f.mlir", "f.greta", "f.hsaco", "offsets"))
    source.write_text(text)
    tool(ROOT / "build/bin/greta-translate", "--greta-to-package", f"--targets={chip}", source, "-o", package)
    with zipfile.ZipFile(package) as archive:
        (variant,) = json.loads(archive.read("manifest.json"))["functions"][0]["variants"]
        symbols = {"d0": TOP * tokens}
        fits = lambda part: all(low <= evaluate(e, symbols) <= high for e, low, high in part["when"])
        (kernel,) = next(filter(fits, variant.get("ranges", [])), variant)["kernels"]
        code.write_bytes(archive.read(kernel["file"]))

    def argument(a):
        if a["kind"] == "arg":
            return f"--arg=zero:{sizes[a['index']]}" if sizes[a["index"]] else f"--arg=in:{table}"
        if a["kind"] in ("i32", "i64"):
            return f"--arg={a['kind']}:{evaluate(a['value'], symbols)}"
        return f"--arg=zero:{result if a['kind'] == 'result' else 1 << 24}"

    dims = [f"--{name}={','.join(str(evaluate(e, symbols)) for e in kernel[name])}" for name in ("grid", "block")]
    estimates = []
    for routing in range(routings):
        chosen = offsets(tokens, routing + 1) if tokens <= FEW else filled(tokens, kernel["config"]["rows"])
        table.write_bytes(chosen.tobytes())
        estimates.append(json.loads(tool(ROOT / "build/bin/greta-sim", code, "--check=none", "--estimate", "--json", *dims, *map(argument, kernel["args"]))))
    return kernel["config"], estimates


def check(folder, device, tokens, weights):
    """The words right and wrong of the whole result on `device`, and what ran."""
    rng = np.random.default_rng(tokens)
    rows, table = TOP * tokens, offsets(tokens)
    text, _, _ = function(weights, rows, FFN, EXPERTS)
    (folder / "f.mlir").write_text(text)
    target = device.removeprefix("sim:").partition(":")[0]
    tool(ROOT / "build/bin/greta-translate", "--greta-to-package", f"--targets={target}", folder / "f.mlir", "-o", folder / "f.greta")
    a = rng.integers(-2, 3, (rows, HIDDEN), np.int8)
    if weights == "f16":
        b = rng.integers(-2, 3, (EXPERTS, FFN, HIDDEN), np.int8)
        operands = [a.astype(np.float16), b.astype(np.float16)]
    else:
        words = rng.integers(-(2**31), 2**31, (EXPERTS * FFN, HIDDEN // 8), np.int64).astype(np.int32)
        b = (((words[:, :, None] >> np.arange(0, 32, 4)) & 15) - 8).astype(np.int8).reshape(EXPERTS, FFN, HIDDEN)
        operands = [a.astype(np.float16), words, np.ones((EXPERTS * FFN, HIDDEN // 32), np.float16)]
    expected = np.zeros((rows, FFN), np.float16)
    for e in range(EXPERTS):
        part = slice(table[e], table[e + 1])
        if part.start < part.stop:
            expected[part] = a[part].astype(np.float32) @ b[e].T.astype(np.float32)
    inputs = []
    for i, operand in enumerate([*operands, table]):
        np.save(folder / f"{i}.npy", operand)
        inputs.append(f"--input={folder}/{i}.npy")
    said = json.loads(tool(ROOT / "build/bin/greta-run", folder / "f.greta", f"--device={device}", *inputs, f"--output={folder}/y.npy", "--json", timeout=6000))
    y = np.load(folder / "y.npy")
    return dict(device=device, variant=said["variant"], tokens=tokens, weights=weights, elements=y.size, wrong=int((y != expected).sum()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chips", nargs="*", default=["gfx942", "gfx950", "gfx1201"])
    parser.add_argument("--csv")
    parser.add_argument("--tokens", default="1,64,4096")
    parser.add_argument("--weights", default="f16,q4")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        with tempfile.TemporaryDirectory() as name:
            for device in options.chips:
                for tokens in map(int, options.tokens.split(",")):
                    for weights in options.weights.split(","):
                        print(json.dumps(check(pathlib.Path(name), device, tokens, weights)), flush=True)
        return
    if options.csv:
        records.build("greta-translate", "greta-sim")
    origin, rows = records.origin(), []
    with tempfile.TemporaryDirectory() as name:
        for chip in options.chips or ["gfx942"]:
            for tokens in map(int, options.tokens.split(",")):
                for weights in options.weights.split(","):
                    for kernel, made, weight_rows in cases(tokens, weights):
                        config, estimates = estimated(pathlib.Path(name), chip, made, tokens, ROUTINGS if kernel != "plain" and tokens <= FEW else 1)
                        size = round(weight_rows * HIDDEN * BYTES[weights])
                        tile = "x".join(str(config[key]) for key in ("rows", "columns", "depth")) + f" waves {config['waves']}"
                        us = float(np.mean([e["microseconds"] for e in estimates]))
                        if kernel != "plain" and tokens > FEW:
                            us *= tiles(offsets(tokens), config["rows"]) / tiles(filled(tokens, config["rows"]), config["rows"])
                        loop = max((e.get("loop") or {}).get("matrix_busy") or 0 for e in estimates)
                        row = dict(chip=chip, tokens=tokens, weights=weights, kernel=kernel, tile=tile, microseconds=round(us, 2), cycles=round(np.mean([e["cycles"] for e in estimates])),
                                   weight_bytes=size, bytes=round(size / (us * CLOCK[chip]), 1), loop=round(loop, 3))
                        print(json.dumps(row), flush=True)
                        rows.append(origin | row)
    if options.csv:
        records.renew(options.csv, FIELDS, rows)


if __name__ == "__main__":
    main()
