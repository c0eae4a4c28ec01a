"""GRETA's Vulkan kernels through Mesa's RADV beside GRETA's HIP code objects for the same Radeon, by the simulator's model: nothing here needs a GPU, and no time is a measurement.

    build/venv/bin/python docs/benchmarks/radeon.py [--csv=FILE] [--only=NAME,..] [--mesa=backports,testing] [--config=TEXT] [CHIP...]

Each function is compiled for the chip's Vulkan family and for the chip. The Vulkan variant runs on `scripts/virtual-radeon`: RADV's compiler makes the code that the card would get, and the record of the dispatch has
the estimate (docs/guide/virtual-radeon.md). The code object's estimate is `greta-sim --estimate`'s. Both run only the workgroups that the estimate needs, on zeros. Mesa 25.0.7 has no matrices on RDNA 4: its GEMMs
and attention are left out there. Times of several kernels are added.
  hip_us, vulkan_us   microseconds by the model; ratio: HIP's over Vulkan's, so 1 is as fast and more is faster
  bound, waits        of the Vulkan kernel: what bounds it, and what most of the waves' waiting is for, with its share of the waves' time
  matrix, lds, valu   share of time these units are busy in the Vulkan kernel; hip_matrix: in the code object
  vgprs, scratch      of RADV's code: registers of a lane, and bytes in memory for those that did not fit
  waves               waves a SIMD, and what limits them

--config is a `greta.config` for the GEMMs and attention of the Vulkan family: `tile = [128, 128, 32], waves = 4` say.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile
import zipfile

from issue_model import ROOT, records, tool

FIELDS = ["date", "commit", "mesa", "chip", "function", "hip_us", "vulkan_us", "ratio", "bound", "waits", "matrix", "hip_matrix", "lds", "valu", "vgprs", "scratch", "waves", "limit", "variant", "config"]
# Chip -> its name for scripts/virtual-radeon, its Vulkan family.
CHIPS = {"gfx1103": ("phoenix", "vulkan:rdna3"), "gfx1100": ("navi31", "vulkan:rdna3"), "gfx1201": ("gfx1201", "vulkan:rdna4")}
MESAS = {"backports": "25.0.7", "testing": "26.1.6"}
BYTES = {"f16": 2, "f32": 4, "i32": 4}


def matmul(name, m, n, k):
    return name, [f"{m}x{k}xf16", f"{n}x{k}xf16"], f"{m}x{n}xf16", "greta.matmul %a, %b {transpose_b CONFIG}", "matrices"


ROWS = "4096x8192xf16"
HEADS = "1x32x2048x128xf16"
W4 = "greta.matmul %a, %w {transpose_b}"
# Name, types of the arguments, type of the result, the op, and whether it needs matrices.
FUNCTIONS = [
    matmul("gemm_4096", 4096, 4096, 4096),
    matmul("gemm_1024", 1024, 1024, 1024),
    ("attention", [HEADS] * 3, HEADS, "greta.attention %a, %b, %c {CONFIG}", "matrices"),
    ("gemv", ["1x4096xf16", "14336x4096xf16"], "1x14336xf16", "greta.matmul %a, %b {transpose_b}", ""),
    ("gemv_w4", ["1x4096xf16", "14336x512xi32", "14336x32xf16", "14336x4xi32"], "1x14336xf16", W4, ""),
    ("rms_norm", [ROWS, "8192xf16"], ROWS, "greta.rms_norm %a, %b {eps = 1.0e-5 : f32}", ""),
    ("softmax", [ROWS], ROWS, "greta.softmax %a", ""),
]


def text_of(function, config):
    name, arguments, result, op, _ = function
    types = [f"tensor<{t}>" for t in arguments]
    parameters = ", ".join(f"%{letter}: {t}" for letter, t in zip("abcd", types))
    before = ""
    if "%w" in op:
        weights = "tensor<14336x4096xf16>"
        before = f"  %w = greta.dequant %b, %c, %d {{group = 128}} : {', '.join(types[1:])} -> {weights}\n"
        types = [types[0], weights]
    op = op.replace("CONFIG", config and ("" if op.endswith("{CONFIG}") else ", ") + f"greta.config = {{{config}}}")
    body = f"{before}  %r = {op} : {', '.join(types)} -> tensor<{result}>\n"
    return f"func.func @{name}({parameters}) -> tensor<{result}> {{\n{body}  return %r : tensor<{result}>\n}}\n"


def size_of(type):
    *extents, element = type.split("x")
    elements = 1
    for extent in extents:
        elements *= int(extent)
    return elements * BYTES[element]


def compiled(folder, function, target, config=""):
    """The package, and the manifest's variants."""
    source, package = folder / "function.mlir", folder / f"{function[0]}.{target.replace(':', '-')}.greta"
    source.write_text(text_of(function, config))
    tool(ROOT / "build/bin/greta-translate", "--greta-to-package", f"--targets={target}", source, "-o", package)
    with zipfile.ZipFile(package) as archive:
        variants = json.loads(archive.read("manifest.json"))["functions"][0]["variants"]
        for variant in variants:
            for kernel in variant["kernels"]:
                kernel["code"] = archive.read(kernel["file"])
    return package, variants


def hip(folder, function, chip):
    """greta-sim's estimate of each kernel."""
    _, variants = compiled(folder, function, chip)
    code = folder / "code.hsaco"
    sizes = {"arg": [size_of(t) for t in function[1]], "result": [size_of(function[2])]}
    for kernel in variants[0]["kernels"]:
        code.write_bytes(kernel["code"])
        dims = [f"--{name}={','.join(map(str, kernel[name]))}" for name in ("grid", "block")]
        arguments = [f"--arg=zero:{sizes[a['kind']][a['index']]}" for a in kernel["args"]]
        yield json.loads(tool(ROOT / "build/bin/greta-sim", code, "--check=none", "--estimate", "--json", f"--kernel={kernel['entry']}", *dims, *arguments))


def through_radv(folder, function, chip, mesa, config):
    """The variant, and the record of each of its kernels: the longest dispatch with its grid and workgroup, because the runtime and the driver dispatch kernels of their own."""
    name, family = CHIPS[chip]
    package, variants = compiled(folder, function, family, config)
    record = folder / "record"
    record.unlink(missing_ok=True)
    settings = dict(GRETA_VIRTUAL_RADEON_RECORD=str(record), GRETA_VIRTUAL_RADEON_ESTIMATE_ONLY="1", GRETA_HEALTH="off")
    command = [ROOT / "scripts/virtual-radeon", f"--mesa={mesa}", name, ROOT / "build/bin/greta-run", package, "--device=vulkan", *(f"--input={t}:zeros" for t in function[1])]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{function[0]} on {chip}: {done.stderr.strip()}")
    taken = re.search(r"variant (\S+?),", done.stdout)[1]
    (variant,) = [v for v in variants if v["id"] == taken]
    dispatches = [json.loads(line) for line in record.read_text().splitlines()]
    same = lambda kernel: [d for d in dispatches if d["grid"] == kernel["grid"] and d["block"] == kernel["block"]]
    return variant, [max(same(kernel), key=lambda d: d["microseconds"]) for kernel in variant["kernels"]]


def described(config):
    """128x256x32 waves 8 ..., of what the manifest says about a kernel."""
    config = dict(config or {})
    tile = "x".join(str(config.pop(name)) for name in ("rows", "columns", "depth") if name in config)
    config.pop("instruction", None)
    return " ".join([tile, *(f"{name} {value}" for name, value in sorted(config.items()))])


def row(folder, function, chip, mesa, config, of_hip):
    variant, dispatches = through_radv(folder, function, chip, mesa, config)
    longest = max(dispatches, key=lambda d: d["microseconds"])
    time = sum(d["microseconds"] for d in dispatches)
    waits, share = max(longest["wait"].items(), key=lambda item: item[1])
    hip_us = sum(e["microseconds"] for e in of_hip)
    busy = {unit: round(longest["busy"][unit], 3) for unit in ("matrix", "lds", "valu")}
    result = dict(mesa=MESAS[mesa], chip=chip, function=function[0], hip_us=round(hip_us, 2), vulkan_us=round(time, 2), ratio=round(hip_us / time, 3), bound=longest["bound"])
    result |= dict(waits=f"{waits} {share:.2f}", hip_matrix=round(max(e["busy"]["matrix"] for e in of_hip), 3), vgprs=longest["vgprs"], scratch=max(d["scratch_bytes"] for d in dispatches))
    result |= dict(waves=longest["waves_per_simd"], limit=longest["occupancy_limit"], variant=variant["id"], config=described(variant["kernels"][0].get("config")))
    return result | busy


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chips", nargs="*", default=list(CHIPS))
    parser.add_argument("--csv")
    parser.add_argument("--only", default=",".join(function[0] for function in FUNCTIONS))
    parser.add_argument("--mesa", default=",".join(MESAS))
    parser.add_argument("--config", default="")
    options = parser.parse_args()
    records.build("greta-translate", "greta-sim", "greta-run", "greta_virtual_radeon")
    origin, table = records.origin(), []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for chip in options.chips:
            for function in FUNCTIONS:
                if function[0] not in options.only.split(","):
                    continue
                of_hip = list(hip(folder, function, chip))
                for mesa in options.mesa.split(","):
                    if function[4] and (chip, mesa) == ("gfx1201", "backports"):
                        continue
                    table.append(origin | row(folder, function, chip, mesa, options.config if function[4] else "", of_hip))
                    print(json.dumps({key: value for key, value in table[-1].items() if key not in origin}), flush=True)
    if options.csv:
        records.append(pathlib.Path(options.csv), FIELDS, table)


if __name__ == "__main__":
    main()
