"""Loops over K that nobody configured, as block programs on AMD chips, in the simulator's model: nothing here needs a GPU.

    build/venv/bin/python docs/benchmarks/tile_loops.py [--csv=FILE] [--before=GRETA_TRANSLATE] [CHIP...]

4096x4096x4096 in f16, both operands with K contiguous. `plain` is a GEMM; `x3` adds three products to one sum; `scaled` multiplies a scale of each row onto an iteration's product before it adds it;
`stored` also stores each iteration's product. `cycles` are those of all workgroups that a compute unit holds at a time, `workgroups`; a whole launch takes `launch_cycles`, which counts whole rounds of them.
before is the same for the objects of another greta-translate, in the same run.
"""

import argparse
import json
import pathlib
import tempfile
import zipfile

from issue_model import CHIPS, ROOT, records, tool

FIGURES = ["cycles", "workgroups", "launch_cycles", "vgprs", "spills"]
FIELDS = ["date", "commit", "chip", "loop", "tile", "waves", *FIGURES, *(f"before_{name}" for name in FIGURES)]
SIZE = 4096
TILES = [(128, 128, 64, 4), (256, 128, 32, 8), (64, 64, 32, 4)]


def program(kind, m, n, k, waves):
    """A kernel whose third argument is another A and B, or what an iteration stores; its result is the sum."""
    block, third = f"tensor<{m}x{n}xf32>", "f32" if kind == "stored" else "f16"
    dots = f"tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16> -> {block}"

    def load(name, pointer, is_a):
        place, shape = (f"[%row, %k] strides [{SIZE}, 1]", f"{m}x{k}") if is_a else (f"[%k, %column] strides [1, {SIZE}]", f"{k}x{n}")
        return f"%{name} = greta_tile.load {pointer}{place} bounds [] : !greta_tile.ptr<f16> -> tensor<{shape}xf16>"

    body = [load("a", "%x", True), load("b", "%y", False)]
    if kind == "plain":
        body += [f"%r = greta_tile.dot %a, %b, %sum : {dots}"]
    elif kind == "x3":
        body += [load("c", "%z", True), load("d", "%z", False)]
        body += [f"%p = greta_tile.dot %a, %d, %sum : {dots}", f"%q = greta_tile.dot %c, %b, %p : {dots}", f"%r = greta_tile.dot %a, %b, %q : {dots}"]
    else:
        body += [f"%p = greta_tile.dot %a, %b, %none : {dots}"]
    if kind == "scaled":
        body += [f"%rows = greta_tile.load %s[%row, %k] strides [1, {SIZE}] bounds [] : !greta_tile.ptr<f32> -> tensor<{m}x1xf32>"]
        body += [f"%scale = greta_tile.broadcast %rows : tensor<{m}x1xf32> -> {block}", f"%q = arith.mulf %p, %scale : {block}", f"%r = arith.addf %sum, %q : {block}"]
    if kind == "stored":
        body += ["%at = arith.addi %row, %k : i32", f"greta_tile.store %p, %z[%at, %column] strides [{SIZE}, 1] bounds [] : {block} -> !greta_tile.ptr<f32>"]
        body += [f"%r = arith.addf %sum, %p : {block}"]
    pointers = ", ".join(f"%{name}: !greta_tile.ptr<{element}> {{greta.divisibility = 16 : i64, greta.noalias}}" for name, element in zip("xyzso", ("f16", "f16", third, "f32", "f32")))
    constants = "\n".join(f"  %{name} = arith.constant {value} : i32" for name, value in dict(zero=0, step=k, end=SIZE, m=m, n=n).items())
    matrix = f"tensor<{SIZE}x{SIZE}x"
    stored = f"tensor<{(2 if kind == 'stored' else 1) * SIZE}x{SIZE}x{third}>"
    types = f"{matrix}f16>, {matrix}f16>, {stored}, {matrix}f32>"
    lines = "\n    ".join(body)
    return f"""greta_tile.func @kernel({pointers}) attributes {{waves = {waves} : i32}} {{
{constants}
  %p0 = greta_tile.program_id 0
  %p1 = greta_tile.program_id 1
  %row = arith.muli %p0, %m : i32
  %column = arith.muli %p1, %n : i32
  %none = arith.constant dense<0.0> : {block}
  %total = scf.for %k = %zero to %end step %step iter_args(%sum = %none) -> ({block}) : i32 {{
    {lines}
    scf.yield %r : {block}
  }}
  greta_tile.store %total, %o[%row, %column] strides [{SIZE}, 1] bounds [] : {block} -> !greta_tile.ptr<f32>
  greta_tile.return
}}
func.func @f(%a: {matrix}f16>, %b: {matrix}f16>, %c: {stored}, %d: {matrix}f32>) -> {matrix}f32> {{
  %0 = greta_tile.launch @kernel grid affine_map<() -> ({SIZE // m}, {SIZE // n})> scalars affine_map<() -> ()> (%a, %b, %c, %d) shapes [affine_map<() -> ({SIZE}, {SIZE})>]
       : ({types}) -> {matrix}f32>
  return %0 : {matrix}f32>
}}
"""


def estimated(translate, folder, chip, text):
    source, package, code = folder / "loop.mlir", folder / "loop.greta", folder / "loop.hsaco"
    source.write_text(text)
    tool(translate, "--greta-to-package", f"--targets={chip}", source, "-o", package)
    with zipfile.ZipFile(package) as archive:
        (variant,) = json.loads(archive.read("manifest.json"))["functions"][0]["variants"]
        (kernel,) = variant["kernels"]
        code.write_bytes(archive.read(kernel["file"]))
    launch = [f"--grid={','.join(map(str, kernel['grid']))}", f"--block={kernel['block'][0]}", *[f"--arg=zero:{8 * SIZE * SIZE}"] * 5]
    result = json.loads(tool(ROOT / "build/bin/greta-sim", code, "--check=none", "--estimate", "--json", *launch))
    return {name: result[name] for name in FIGURES[:3]} | dict(vgprs=kernel["stats"]["vgprs"], spills=kernel["stats"]["vgpr_spills"])


def rows(options, folder):
    for chip in options.chips:
        for kind in ("plain", "x3", "scaled", "stored"):
            for m, n, k, waves in TILES:
                text = program(kind, m, n, k, waves)
                row = dict(chip=chip, loop=kind, tile=f"{m}x{n}x{k}", waves=waves) | estimated(ROOT / "build/bin/greta-translate", folder, chip, text)
                if options.before:
                    row |= {f"before_{key}": value for key, value in estimated(options.before, folder, chip, text).items()}
                yield row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chips", nargs="*", default=CHIPS)
    parser.add_argument("--csv")
    parser.add_argument("--before")
    options = parser.parse_args()
    records.build("greta-translate", "greta-sim")
    with tempfile.TemporaryDirectory() as name:
        records.collect(rows(options, pathlib.Path(name)), options.csv, FIELDS)


if __name__ == "__main__":
    main()
