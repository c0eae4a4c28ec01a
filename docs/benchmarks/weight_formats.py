"""Products with packed weights in every format of `greta.dequant` on AMD chips, by the simulator's model: nothing here needs a GPU, and no time is a measurement.

    build/venv/bin/python docs/benchmarks/weight_formats.py [--csv=FILE] [--types=f16,bf16] [--rows=1,512] [--size=4096] [--only=FORMAT,..] [CHIP...]

One product of M rows with SIZE x SIZE weights, in the configuration that the compiler chooses.
  type             of the weights once they are unpacked, of the other operand and of the result; format: that type, or how weights are packed
  bytes            of the weights with their scales and minima; bits: of one weight, with its share of these
  us               of the kernel (several are added); gbs: the bytes over it, in GB/s; of_q4_0: over that of Q4_0 on the chip
  launch_bytes     the bytes over the cycles of the whole launch at the peak clock; of_memory: the share of these cycles that memory needs at its full speed
  cycles           of the compute units alone, as if memory had any bandwidth; bytes_per_cycle: the bytes over it
  valu, bound      the share of time that the vector ALUs are busy, and what bounds the kernel
  tile             rows x columns x depth
"""

import argparse
import itertools
import json
import pathlib
import tempfile
import zipfile

from issue_model import ROOT, records, tool

FIELDS = ["date", "commit", "chip", "type", "m", "format", "bytes", "bits", "us", "gbs", "of_q4_0", "launch_bytes", "of_memory", "cycles", "bytes_per_cycle", "valu", "bound", "vgprs", "tile"]
CHIPS = "gfx942", "gfx1100", "gfx1151", "gfx1201"
# Format: bits of a weight in q and in high, weights of a group, element type of scales, whether there are minima.
FORMATS = {
    "q4_0": (4, 0, 32, "f16", False),
    "q4_0_interleaved": (4, 0, 32, "f16", False),
    "f16": None,  # as they are, as bf16 is
    "bf16": None,
    "q4_k": (4, 0, 32, "f16", True),
    "q4_k_interleaved": (4, 0, 32, "f16", True),
    "q5_0": (4, 1, 32, "f16", False),
    "q5_k": (4, 1, 32, "f16", True),
    "q6_k": (4, 2, 16, "f16", False),
    "q2_k": (4, 0, 16, "f16", True),
    "q3_k": (4, 0, 16, "f16", False),
    "iq4_nl": (4, 0, 32, "f16", False),
    "q8_0": (8, 0, 32, "f16", False),
    "mxfp4": (4, 0, 32, "i8", False),
    "nf4": (4, 0, 64, "f16", False),
    "e4m3": (8, 0, 128, "f32", False),
}
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "i32": 4, "i8": 1}


def weights_of(name, size):
    """Types of the operands of `greta.dequant`, or the weights'."""
    if not FORMATS[name]:
        return [f"{size}x{size}x{name}"]
    bits, high, group, scale, has_minima = FORMATS[name]
    types = [f"{size}x{size * b // 32}xi32" for b in (bits, high) if b]
    return types + [f"{size}x{size // group}x{scale}"] + [f"{size}x{size // group}xf16"] * has_minima


def text_of(name, element, m, size):
    types = [f"tensor<{t}>" for t in weights_of(name, size)]
    a, b, y = (f"tensor<{t}>" for t in (f"{m}x{size}x{element}", f"{size}x{size}x{element}", f"{m}x{size}x{element}"))
    words = [f"%w{i}" for i in range(len(types))]
    line = f'  %b = greta.dequant {", ".join(words)} {{format = "{name}", group = {FORMATS[name][2]}}} : {", ".join(types)} -> {b}\n' if FORMATS[name] else ""
    arguments = ", ".join(f"{w}: {t}" for w, t in zip(words, types))
    return f"func.func @f(%a: {a}, {arguments}) -> {y} {{\n{line}  %0 = greta.matmul %a, {'%b' if line else '%w0'} {{transpose_b}} : {a}, {b} -> {y}\n  return %0 : {y}\n}}\n"


def size_of(text):
    *shape, element = text.split("x")
    elements = 1
    for extent in shape:
        elements *= int(extent)
    return elements * BYTES[element]


def estimates(folder, chip, name, element, m, size):
    """The manifest's kernels, and greta-sim's estimate of each."""
    source, package, code = folder / "f.mlir", folder / "f.greta", folder / "f.hsaco"
    source.write_text(text_of(name, element, m, size))
    tool(ROOT / "build/bin/greta-translate", "--greta-to-package", f"--targets={chip}", source, "-o", package)
    sizes = {"arg": [m * size * 2, *map(size_of, weights_of(name, size))], "result": [m * size * 2], "temp": 2 * [1 << 28]}
    with zipfile.ZipFile(package) as archive:
        (variant,) = json.loads(archive.read("manifest.json"))["functions"][0]["variants"]
        for kernel in variant["kernels"]:
            code.write_bytes(archive.read(kernel["file"]))
            dims = [f"--{each}={','.join(map(str, kernel[each]))}" for each in ("grid", "block")]
            arguments = [f"--arg=zero:{sizes[a['kind']][a['index']]}" for a in kernel["args"]]
            yield kernel, json.loads(tool(ROOT / "build/bin/greta-sim", code, "--check=none", "--estimate", "--json", f"--kernel={kernel['entry']}", *dims, *arguments))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chips", nargs="*", default=list(CHIPS))
    parser.add_argument("--csv", type=pathlib.Path)
    parser.add_argument("--types", default="f16,bf16")
    parser.add_argument("--rows", default="1,512")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--only")
    options = parser.parse_args()
    if options.csv:
        records.build("greta-translate", "greta-sim")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for element, chip, m in itertools.product(options.types.split(","), options.chips, map(int, options.rows.split(","))):
            base = None
            for name in options.only.split(",") if options.only else [name for name in FORMATS if FORMATS[name] or name == element]:
                pairs = list(estimates(pathlib.Path(folder), chip, name, element, m, options.size))
                count = sum(map(size_of, weights_of(name, options.size)))
                longest, estimate = max(pairs, key=lambda pair: pair[1]["cycles"])
                cycles, us, launch, memory = (sum(e[key] for _, e in pairs) for key in ("cycles", "microseconds", "launch_cycles", "memory_cycles"))
                base = base or count / us
                config = longest.get("config") or {}
                tile = "x".join(str(config[key]) for key in ("rows", "columns", "depth") if key in config)
                row = dict(chip=chip, type=element, m=m, format=name, bytes=count, bits=round(8 * count / options.size**2, 3), us=round(us, 2))
                row |= dict(gbs=round(count / us / 1000), of_q4_0=round(count / us / base, 3), launch_bytes=round(count / launch), of_memory=round(memory / launch, 3))
                row |= dict(cycles=round(cycles), bytes_per_cycle=round(count / cycles), valu=round(estimate["busy"]["valu"], 3), bound=estimate["bound"], vgprs=longest["stats"]["vgprs"], tile=tile)
                rows.append(records.origin() | row)
                print({key: value for key, value in rows[-1].items() if key not in ("date", "commit")}, flush=True)
    if options.csv:
        records.renew(options.csv, FIELDS, rows)


if __name__ == "__main__":
    main()
