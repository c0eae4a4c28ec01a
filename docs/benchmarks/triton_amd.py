"""Kernels of python/tutorials as AMD code objects, by GRETA and by Triton's own AMD back end, in one process; nothing here needs a GPU.

    build/venv/bin/python docs/benchmarks/triton_amd.py [--csv=FILE] [CHIP...]

Both start from the same Python source, tile and number of warps, and both are told what a launch with multiples of 16 and tensors below 2 GB says. Each has:
  compile_s   processor seconds from the source to the code object, nothing cached, least of three
  vgprs, spills, lds   the code object's own figures
  instructions, density, alu, share, busy   of the loop with the most matrix instructions, as in amd_loops.py; of
    kernels without any, instructions of the whole
A row is a kernel on a chip; Triton's columns begin with triton_. Needs the Python package in build/venv and Triton (scripts/setup --triton).
"""

import argparse
import io
import math
import os
import pathlib
import re
import tempfile
import time
import zipfile

import amd_loops
import numpy as np
import records
import tutorials
from issue_model import CHIPS, LLVM, main_loop, tool

FIGURES = ["compile_s", "vgprs", "spills", "lds", "instructions", "density", "alu", "share", "busy"]
FIELDS = ["date", "commit", "chip", "kernel", "block", "num_warps", *FIGURES, *(f"triton_{name}" for name in FIGURES)]
ROUNDS = 3


def cases(chip):
    is_cdna = chip.startswith("gfx9")
    tiles = [(128, 128, 64, 4), (128, 128, 64, 8), (128, 64, 64, 4)] if is_cdna else [(128, 64, 32, 4), (64, 64, 32, 4), (128, 128, 32, 8)]
    rows = [(128, 64, 4), (128, 64, 8)] if is_cdna else [(64, 32, 4), (128, 32, 8)]
    yield from (tutorials.softmax(8192, columns, warps) for columns in (1024, 8192) for warps in (4, 8))
    yield from (tutorials.layer_norm(16384, n, warps) for n in (1024, 8192) for warps in (4, 8))
    yield from (tutorials.matmul(4096, *tile) for tile in tiles)
    yield from (tutorials.attention(32, 4096, causal, *tile) for causal in (False, True) for tile in rows)


def by_triton(case, chip):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from greta.triton.compiler import POINTER_RANGE
    from greta.triton.source import parse_signature

    kernel = tutorials.kernel_of(case)
    types, constants, attributes = parse_signature(kernel, tutorials.words(case))
    for at, name in enumerate(kernel.arg_names):
        if types.get(name, "").startswith("*"):
            attributes = attributes | {(at,): [*attributes.get((at,), []), POINTER_RANGE]}
    source = ASTSource(kernel, types, constants, attributes)
    target = GPUTarget("hip", chip, 64 if chip.startswith("gfx9") else 32)
    made = triton.compile(source, target=target, options=dict(num_warps=case.num_warps))
    return made.asm["hsaco"], made.metadata.shared, 2  # scratch pointers


def by_greta(case, chip):
    import greta

    made = greta.compile(tutorials.kernel_of(case), tutorials.words(case), targets=chip, grid=list(case.grid), pointer_range=32, num_warps=case.num_warps)
    # made.asm would compile once more.
    with zipfile.ZipFile(io.BytesIO(made.data)) as archive:
        (variant,) = made.manifest["functions"][0]["variants"]
        return archive.read(variant["kernels"][0]["file"]), 0, 0


def launch_of(case, chip, lds, hidden):
    """greta-sim's options: memory of zeros, numbers as they are, and what the launcher adds."""
    def options(argument):
        if isinstance(argument, tuple):
            return f"--arg=zero:{math.prod(n for n in argument if isinstance(n, int)) * 4}"
        if isinstance(argument, np.ndarray):
            return f"--arg=zero:{argument.nbytes}"
        return f"--arg=f32:{argument}" if isinstance(argument, np.floating) else f"--arg=i32:{argument}"

    given = [case.out[0] if isinstance(argument, str) else argument for argument in case.arguments(lambda *shape: shape)]
    grid = ",".join(str(extent) for extent in case.grid)
    block = case.num_warps * (64 if chip.startswith("gfx9") else 32)
    return [f"--grid={grid}", f"--block={block}", f"--lds={lds}", *(options(argument) for argument in given if argument != 1), *["--arg=null"] * hidden]


def figures(make, case, chip, folder):
    seconds = []
    for _ in range(ROUNDS):
        begin = time.process_time() + os.times().children_user
        code, lds, hidden = make(case, chip)
        seconds.append(time.process_time() + os.times().children_user - begin)
    path = folder / "code.hsaco"
    path.write_bytes(code)
    text = tool(LLVM / "llvm-objdump", "-d", path)
    if re.search(r"\tv_(mfma|wmma)", text):
        loop = main_loop(path, *launch_of(case, chip, lds, hidden))
        found = amd_loops.look(path, chip) | (dict(busy=round(loop["share"], 3)) if loop else {})
    else:
        found = amd_loops.metadata(path) | dict(instructions=len(re.findall(r"^\t[vsdgb]\w+_", text, re.M)))
    return dict(compile_s=round(min(seconds), 3)) | {name: found[name] for name in FIGURES if name in found}


def rows(chips, folder):
    for chip in chips:
        for case in cases(chip):
            row = dict(chip=chip, kernel=case.name.split("__")[0], block=case.name.split("__")[2], num_warps=case.num_warps)
            row["kernel"] += " causal" if case.name.split("__")[1].endswith("causal") else ""
            row |= figures(by_greta, case, chip, folder)
            yield row | {f"triton_{key}": value for key, value in figures(by_triton, case, chip, folder).items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chips", nargs="*", default=CHIPS)
    parser.add_argument("--csv")
    options = parser.parse_args()
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    records.build("all")  # of which the package takes libraries
    records.install()
    with tempfile.TemporaryDirectory() as name:
        os.environ["TRITON_CACHE_DIR"] = f"{name}/cache"
        records.collect(rows(options.chips, pathlib.Path(name)), options.csv, FIELDS)


if __name__ == "__main__":
    main()
