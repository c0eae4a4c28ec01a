"""The main loops of our f16 GEMMs on AMD chips, beside Triton's, and of attention: nothing here needs a GPU.

    build/venv/bin/python docs/benchmarks/amd_loops.py [--csv=FILE] [--config=TEXT] [--size=4096] [--no-simulator] [--no-triton] [--no-others] [CHIP...]

One GEMM of SIZE x SIZE x SIZE, both operands with K contiguous, is compiled in the default configuration (--config: in that `greta.config`,
`tile = [256, 256, 32], waves = 8` say). The figures are of the loop with the most matrix instructions:
  share      cycles the matrix unit needs over llvm-mca's for one wave (gfx9 only: LLVM has no right models of the others; llvm-mca may not end
             on code for gfx90a: no figure after 30 s of processor time)
  density    matrix instructions over all instructions; alu: vector and scalar ALU instructions per matrix instruction
  busy       share of time the matrix units are busy in the loop in the simulator's issue model, with every wave that a compute unit holds,
             and what bounds it; busy_low and busy_high: the same with LDS rate or latencies halved or doubled
Attention (heads of 64 and 128 elements) has the same figures but busy, in the loop over tiles that every row sees whole.
Registers, spills and shared memory are the code object's own figures. Triton's rows (scripts/setup --triton) are its best tile of
issue_model.py's by busy (without the simulator by share, or by density). Other compilers' code was looked at once, with the same counts (OTHERS).
"""

import argparse
import json
import os
import pathlib
import re
import resource
import tempfile
import zipfile

import issue_model
from issue_model import CHIPS, LLVM, ROOT, records, tool

FIELDS = ["date", "commit", "chip", "kernel", "block", "tile", "instructions", "matrix", "density", "alu", "matrix_cycles", "llvm_mca", "share", "vgprs", "spills", "lds", "compile_s"]
FIELDS += ["waves_per_simd", "busy", "busy_low", "busy_high", "bound"]
# Multiply-adds of f16 a cycle and SIMD, from the CDNA 2, 3 and 4 guides' peak rates.
RATE = {"gfx90a": 128, "gfx942": 256, "gfx950": 512}
# Elsewhere compiled loops of the same GEMM, 2026-11-21: chip, kernel, tile, share, density, ALU per matrix instruction.
OTHERS = [
    ("gfx90a", "hipBLASLt 7.1", "192x208x64", 0.99, 0.53, 0.13),
    ("gfx90a", "IREE 3.13", None, 0.90, 0.52, 0.14),
    ("gfx942", "IREE 3.13", None, 0.78, 0.52, 0.14),
    ("gfx950", "IREE 3.13", None, 0.59, None, None),
    ("gfx1100", "hipBLASLt 7.1", "96x96x32", None, 0.20, None),
    ("gfx1100", "IREE 3.13", None, None, 0.27, 0.41),
    ("gfx1201", "hipBLASLt 7.1", "64x256x32", None, 0.36, 0.66),
    ("gfx1201", "IREE 3.13", None, None, 0.37, 0.14),
]
KINDS = [(r"v_(mfma|smfmac|wmma|swmmac)", "matrix"), (r"v_", "alu"), (r"s_(wait|barrier|nop|delay|setprio|clause|sched|sleep)", "hint"), (r"s_", "alu")]


def product(size, config):
    t = f"tensor<{size}x{size}xf16>"
    attribute = f", greta.config = {{{config}}}" if config else ""
    return f"func.func @product(%a: {t}, %b: {t}) -> {t} {{\n  %0 = greta.matmul %a, %b {{transpose_b{attribute}}} : {t}, {t} -> {t}\n  return %0 : {t}\n}}\n"


def attention(size):
    t = f"tensor<?x32x?x{size}xf16>"
    return f"func.func @attention(%q: {t}, %k: {t}, %v: {t}) -> {t} {{\n  %0 = greta.attention %q, %k, %v : {t}, {t}, {t} -> {t}\n  return %0 : {t}\n}}\n"


def compiled(folder, chip, text):
    """Code object, what the manifest says about its kernel, processor seconds."""
    source, package = folder / "function.mlir", folder / "function.greta"
    source.write_text(text)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    tool(ROOT / "build/bin/greta-translate", "--greta-to-package", f"--targets={chip}", source, "-o", package, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with zipfile.ZipFile(package) as archive:
        (variant,) = json.loads(archive.read("manifest.json"))["functions"][0]["variants"]
        (kernel,) = variant["kernels"]
        code = folder / f"{chip}.hsaco"
        code.write_bytes(archive.read(kernel["file"]))
    return code, kernel, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def kind(text):
    return next((name for pattern, name in KINDS if re.match(pattern, text)), "memory")


def hot_loop(code):
    """(first address, last address, instructions) of the shortest loop with the most matrix instructions."""
    lines = []
    for line in tool(LLVM / "llvm-objdump", "-d", code).splitlines():
        m = re.match(r"\s+(\S.*?)\s*//\s*([0-9A-Fa-f]+): ([0-9A-Fa-f]+)", line)
        if m:
            lines.append((int(m[2], 16), m[1], int(m[3], 16)))
    index = {address: i for i, (address, _, _) in enumerate(lines)}
    best = (0, 0, None)
    for i, (address, text, word) in enumerate(lines):
        distance = (word & 0xFFFF) - 0x10000
        start = index.get(address + 4 + 4 * distance)
        if re.match(r"s_c?branch", text) and word & 0x8000 and start is not None:
            body = [t for _, t, _ in lines[start : i + 1]]
            count = sum(kind(t) == "matrix" for t in body)
            best = max(best, (count, -len(body), (lines[start][0], address, body)), key=lambda entry: entry[:2])
    return best[2]


def matrix_cycles(body, chip):
    cycles = 0
    for text in body:
        m = re.match(r"v_mfma_f32_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?_?f16", text)
        if m:
            cycles += int(m[1]) * int(m[2]) * int(m[3]) * int(m[4] or 1) / RATE[chip]
    return cycles


def metadata(code):
    notes = tool(LLVM / "llvm-readelf", "--notes", code)
    number = lambda key: int(re.search(rf"\.{key}:\s*(\d+)", notes)[1])
    return dict(vgprs=number("vgpr_count"), spills=number("vgpr_spill_count") + number("sgpr_spill_count"), lds=number("group_segment_fixed_size"))


def look(code, chip):
    """The row that the loop and the code object's metadata give."""
    begin, end, body = hot_loop(code)
    count = {name: sum(kind(t) == name for t in body) for name in ("matrix", "alu")}
    row = dict(chip=chip, instructions=len(body), matrix=count["matrix"], density=round(count["matrix"] / len(body), 3), alu=round(count["alu"] / count["matrix"], 2))
    if chip in RATE:
        row["matrix_cycles"] = matrix_cycles(body, chip)
        row["llvm_mca"] = issue_model.llvm_mca(code, chip, begin, end)
        row["share"] = round(row["matrix_cycles"] / row["llvm_mca"], 3) if row["llvm_mca"] else None
    return row | metadata(code)


def simulated(code, launch):
    loop = issue_model.main_loop(code, *launch)
    if not loop:
        return {}
    low, high = issue_model.share_range(code, launch)
    return dict(busy=round(loop["share"], 3), busy_low=low, busy_high=high, waves_per_simd=loop["waves"], bound=loop["bound"])


def attention_rows(folder, chip):
    for size in (64, 128):
        code, kernel, seconds = compiled(folder, chip, attention(size))
        tile = "x".join(str(kernel["config"][name]) for name in ("rows", "depth", "columns"))
        yield look(code, chip) | dict(kernel=f"greta attention D = {size}", block=kernel["block"][0], tile=tile, compile_s=round(seconds, 2))


def rows(options, folder):
    for chip in options.chips:
        code, kernel, seconds = compiled(folder, chip, product(options.size, options.config))
        tile = "x".join(str(kernel["config"][name]) for name in ("rows", "columns", "depth"))
        ours = dict(kernel="greta" + (f" {{{options.config}}}" if options.config else ""), block=kernel["block"][0], tile=tile, compile_s=round(seconds, 2))
        launch = [f"--grid={kernel['grid'][0]}", f"--block={kernel['block'][0]}", *[f"--arg=zero:{2 * options.size**2}"] * 3]
        yield look(code, chip) | ours | (simulated(code, launch) if options.simulator else {})
        if options.triton and issue_model.triton:
            others = []
            for case in issue_model.compiled_by_triton(folder, chip):
                name, code, _, block, tile, lds, _ = case
                if "fp16" in name:
                    loop = simulated(code, issue_model.launch(case, issue_model.GRID)) if options.simulator else {}
                    others.append(look(code, chip) | dict(kernel="Triton", block=block, tile="x".join(map(str, tile)), lds=lds) | loop)
            yield max(others, key=lambda other: (other["spills"] == 0, other.get("busy") or other.get("share") or other["density"]))
        yield from attention_rows(folder, chip)
        if options.others:
            yield from (dict(zip(("chip", "kernel", "tile", "share", "density", "alu"), row)) for row in OTHERS if row[0] == chip)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chips", nargs="*", default=CHIPS)
    parser.add_argument("--csv")
    parser.add_argument("--config")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--no-simulator", dest="simulator", action="store_false")
    parser.add_argument("--no-triton", dest="triton", action="store_false")
    parser.add_argument("--no-others", dest="others", action="store_false")
    options = parser.parse_args()
    records.build("greta-translate", "greta-sim")
    with tempfile.TemporaryDirectory() as name:
        os.environ.setdefault("TRITON_CACHE_DIR", f"{name}/cache")
        records.collect(rows(options, pathlib.Path(name)), options.csv, FIELDS)


if __name__ == "__main__":
    main()
