"""The simulator's issue model beside llvm-mca, on the main loops of matrix products.

    build/venv/bin/python docs/benchmarks/issue_model.py [--csv=FILE] [CHIP...]

For each product: llvm-mca's cycles for one iteration of the main loop (one wave, in order), the model's for the same wave alone with LLVM's
latencies and with its own, and the share of time the matrix units are busy while all workgroups that a compute unit holds run together.
The kernels are test/sim/gemm_mfma_pipelined.cl, with and without its scheduling hints, and Triton's (scripts/setup --triton) at several tiles.
LLVM has right models for gfx9 only; other chips get the model's numbers alone.
"""

import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
LLVM = pathlib.Path("/usr/lib/llvm-22/bin")
CHIPS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
ITERATIONS = 32  # of the main loop, and more where it is unrolled
LLVM_LATENCIES = "--latency=lds:20,scalar:20,cache:320,memory:320"  # SISchedule.td, 4-cycle units
FIELDS = ["chip", "kernel", "matrix_cycles", "llvm_mca", "model_llvm_latencies", "of_mca", "model_one_wave", "share_mca", "share_one_wave",
          "waves_per_simd", "share_all_waves", "bound"]

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

if triton:

    @triton.jit
    def matmul(a, b, c, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        # A [M, K] and B [N, K] with rows sa and sb apart, C [M, N] f32
        rm = (tl.program_id(0) * BM + tl.arange(0, BM)) % M
        rn = (tl.program_id(1) * BN + tl.arange(0, BN)) % N
        rk = tl.arange(0, BK)
        tl.assume(sa > 0)
        tl.assume(sb > 0)
        tl.assume(sc > 0)
        pa = a + rm[:, None] * sa + rk[None, :]
        pb = b + rn[None, :] * sb + rk[:, None]
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            x = tl.load(pa, mask=rk[None, :] < K - k * BK, other=0.0)
            y = tl.load(pb, mask=rk[:, None] < K - k * BK, other=0.0)
            acc = tl.dot(x, y, acc)
            pa += BK
            pb += BK
        tl.store(c + rm[:, None] * sc + rn[None, :], acc)


def tool(*command, timeout=None, text=None):
    return subprocess.run([str(c) for c in command], input=text, capture_output=True, text=True, check=True, timeout=timeout).stdout


def pipelined(folder, chip):
    """Our GEMM: (name, code object, kernel, block, tile, lds, arguments of (M, N, K))."""
    for name, flags in ("pipelined 256x256x32", []), ("pipelined without hints", ["-DPLAIN"]):
        out = folder / f"{chip}-{len(flags)}.hsaco"
        tool(LLVM / "clang", "-target", "amdgcn-amd-amdhsa", f"-mcpu={chip}", "-x", "cl", "-cl-std=CL2.0", "-O3", "-nogpulib", "-w", *flags,
             ROOT / "test/sim/gemm_mfma_pipelined.cl", "-o", out)
        yield name, out, "gemm", 512, (256, 256, 32), 0, lambda m, n, k: [n, k // 8]


def compiled_by_triton(folder, chip):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    big = chip.startswith("gfx9")
    tiles = [(128, 128, 32, 2, 4), (128, 128, 64, 2, 4), (256, 128, 64, 2, 4), (256, 128, 64, 2, 8), (256, 256, 64, 2, 8)] if big else \
        [(64, 64, 32, 1, 4), (128, 64, 32, 1, 4), (128, 128, 32, 1, 4), (128, 128, 32, 1, 8)]
    types = {"gfx942": ["fp16", "fp8e4b8"], "gfx950": ["fp16", "fp8e4nv"], "gfx1201": ["fp16", "fp8e4nv"]}.get(chip, ["fp16"])
    wave = 64 if big else 32
    for dtype in types:
        for bm, bn, bk, stages, warps in tiles:
            integers = {n: "i32" for n in ("M", "N", "K", "sa", "sb", "sc")}
            signature = dict(a="*" + dtype, b="*" + dtype, c="*fp32", **integers, BM="constexpr", BN="constexpr", BK="constexpr")
            index = {n: k for k, n in enumerate(matmul.arg_names)}
            attributes = {(index[n],): [["tt.divisibility", 16]] + ([["tt.pointer_range", 32]] if n in "abc" else []) for n in [*"abc", *integers]}
            constants = {(index[n],): v for n, v in dict(BM=bm, BN=bn, BK=bk).items()}
            k = triton.compile(ASTSource(matmul, signature, constants, attributes), target=GPUTarget("hip", chip, wave),
                               options=dict(num_warps=warps, num_stages=stages))
            out = folder / f"{chip}-{dtype}-{bm}x{bn}x{bk}-{warps}.hsaco"
            out.write_bytes(k.asm["hsaco"])
            yield (f"Triton {dtype} {bm}x{bn}x{bk}, {warps} waves", out, "matmul", warps * wave, (bm, bn, bk), k.metadata.shared,
                   lambda m, n, k: [m, n, k, k, k, n])


def estimate(folder, case, grid, *options):
    name, code, kernel, block, (bm, bn, bk), lds, arguments = case
    m, n, k = bm * grid[0], bn * grid[1], bk * 2 * ITERATIONS
    size = (max(m, n) * k + 4 * bk + 4096) * (1 if "fp8" in name else 2)
    operand = folder / f"{size}.bin"
    if not operand.exists():
        np.random.default_rng(1).integers(0, 48, size, dtype=np.uint8).tofile(operand)
    hidden = ["--arg=i64:0"] * (2 if kernel == "matmul" else 0)  # Triton's scratch pointers
    text = tool(ROOT / "build/bin/greta-sim", code, f"--kernel={kernel}", f"--grid={grid[0]},{grid[1]}", f"--block={block}", f"--lds={lds}",
                f"--arg=in:{operand}", f"--arg=in:{operand}", f"--arg=out:{folder}/c.bin:{m * n * 4}",
                *(f"--arg=i32:{x}" for x in arguments(m, n, k)), *hidden, "--check=none", "--estimate", *options)
    loop = re.search(r"main loop 0x(\w+)-0x(\w+): \d+ iterations, ([\d.]+) cycles each, of them matrix ([\d.]+); matrix units busy ([\d.]+)%", text)
    unit = re.search(r"([\d.]+) waves per SIMD, \d+ cycles, bound by (.*)", text)
    return dict(begin=int(loop[1], 16), end=int(loop[2], 16), cycles=float(loop[3]), matrix=float(loop[4]), share=float(loop[5]) / 100,
                waves=float(unit[1]), bound=unit[2])


def llvm_mca(code, chip, begin, end):
    """Cycles of one iteration; None where llvm-mca has no right model or does not end."""
    if not chip.startswith("gfx9"):
        return None
    body = []
    for line in tool(LLVM / "llvm-objdump", "-d", f"--start-address={begin}", f"--stop-address={end + 1}", code).splitlines():
        m = re.match(r"\s+(\S.*?)\s*//\s*[0-9A-Fa-f]+:", line)
        if not m:
            continue
        # llvm-mca takes every f8f6f4 for one of fp4, which is twice as fast as fp8.
        if "f8f6f4" in m[1] and "cbsz:4" not in m[1]:
            return None
        # Branches cannot be assembled without their label; llvm-mca lets global loads hold up lgkmcnt, buffer loads not.
        text = re.sub(r"^s_c?branch.*", "s_nop 0", m[1])
        text = re.sub(r"^global_load_(\w+) (v\S+|v\[\d+:\d+\]), v\[?(\d+)(?::\d+\])?,.*", r"buffer_load_\1 \2, v\3, s[96:99], 0 offen", text)
        body.append(text)
    try:
        out = tool(LLVM / "llvm-mca", "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={chip}", "-iterations=20", "--resource-pressure=0", "--instruction-info=0",
                   timeout=30, text="\n".join(body))
    except subprocess.TimeoutExpired:
        return None
    return 4 * int(re.search(r"Total Cycles:\s+(\d+)", out)[1]) / 20


def rows(chips):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ.setdefault("TRITON_CACHE_DIR", str(folder / "cache"))
        for chip in chips:
            cases = [*(pipelined(folder, chip) if chip in ("gfx90a", "gfx942") else []), *(compiled_by_triton(folder, chip) if triton else [])]
            for case in cases:
                alone = estimate(folder, case, (1, 1), "--one-wave")
                same = estimate(folder, case, (1, 1), "--one-wave", LLVM_LATENCIES)
                # As many workgroups as a large grid would put on one compute unit.
                full = estimate(folder, case, (64, 16))
                mca = llvm_mca(case[1], chip, alone["begin"], alone["end"])
                yield dict(chip=chip, kernel=case[0], matrix_cycles=alone["matrix"], llvm_mca=mca, model_llvm_latencies=same["cycles"],
                           of_mca=round(same["cycles"] / mca, 3) if mca else None, model_one_wave=alone["cycles"],
                           share_mca=round(alone["matrix"] / mca, 3) if mca else None, share_one_wave=round(alone["matrix"] / alone["cycles"], 3),
                           waves_per_simd=full["waves"], share_all_waves=round(full["share"], 3), bound=full["bound"])


def main():
    out = next((a[6:] for a in sys.argv[1:] if a.startswith("--csv=")), None)
    chips = [a for a in sys.argv[1:] if not a.startswith("--")] or CHIPS
    if not triton:
        print("Triton is not installed (scripts/setup --triton): its kernels are left out", file=sys.stderr)
    table = []
    for row in rows(chips):
        print(json.dumps(row), flush=True)
        table.append(row)
    if out:
        with open(out, "w", newline="") as f:
            writer = csv.DictWriter(f, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    main()
