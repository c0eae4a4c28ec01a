"""The simulator's issue model beside llvm-mca, on the main loops of matrix products.

    build/venv/bin/python docs/benchmarks/issue_model.py [--csv=FILE] [CHIP...]

For each product: llvm-mca's cycles for one iteration of the main loop (one wave, in order), the model's for the same wave alone with LLVM's
latencies and with its own, and the share of time the matrix units are busy while all workgroups that a compute unit holds run together, with
the range that this has when the LDS moves half and twice as many bytes a cycle and all latencies are halved and doubled.
The kernels are test/sim/gemm_mfma_pipelined.cl, with and without its scheduling hints, and Triton's (scripts/setup --triton) at several tiles,
compiled as ours are: sizes are constants that the tile divides, so nothing is masked. LLVM has right models for gfx9 only; other chips get the
model's numbers alone.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))
import records  # noqa: E402

LLVM = pathlib.Path("/usr/lib/llvm-22/bin")
CHIPS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
ITERATIONS = 32  # of the main loop, and more where it is unrolled
GRID = (64, 16)  # workgroups: more than a large chip holds
LLVM_LATENCIES = "--latency=lds:20,scalar:20,cache:320,memory:320"  # SISchedule.td, 4-cycle units
SCALES = [f"--scale={name}:{factor}" for name in ("lds-rate", "latency") for factor in (0.5, 2)]
FIELDS = ["date", "commit", "chip", "kernel", "matrix_cycles", "llvm_mca", "model_llvm_latencies", "of_mca", "model_one_wave", "share_mca", "share_one_wave",
          "waves_per_simd", "share_all_waves", "share_low", "share_high", "bound"]

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

if triton:

    @triton.jit
    def matmul(a, b, c, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        # A [M, K], B [N, K] and C [M, N] in f32
        rm = tl.program_id(0) * BM + tl.arange(0, BM)
        rn = tl.program_id(1) * BN + tl.arange(0, BN)
        rk = tl.arange(0, BK)
        pa = a + rm[:, None] * K + rk[None, :]
        pb = b + rn[None, :] * K + rk[:, None]
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for _ in range(0, K, BK):
            acc = tl.dot(tl.load(pa), tl.load(pb), acc)
            pa += BK
            pb += BK
        tl.store(c + rm[:, None] * N + rn[None, :], acc)


def tool(*command, timeout=None, text=None):
    return subprocess.run([str(c) for c in command], input=text, capture_output=True, text=True, check=True, timeout=timeout).stdout


def sizes(tile):
    """M, N and K of the GEMM that GRID and ITERATIONS make of a tile."""
    return tile[0] * GRID[0], tile[1] * GRID[1], tile[2] * 2 * ITERATIONS


def pipelined(folder, chip):
    """Our GEMM: (name, code object, kernel, block, tile, lds, integers among its arguments)."""
    for name, flags in ("pipelined 256x256x32", []), ("pipelined without hints", ["-DPLAIN"]):
        out = folder / f"{chip}-{len(flags)}.hsaco"
        tool(LLVM / "clang", "-target", "amdgcn-amd-amdhsa", f"-mcpu={chip}", "-x", "cl", "-cl-std=CL2.0", "-O3", "-nogpulib", "-w", *flags,
             ROOT / "test/sim/gemm_mfma_pipelined.cl", "-o", out)
        _, n, k = sizes((256, 256, 32))
        yield name, out, "gemm", 512, (256, 256, 32), 0, [n, k // 8]


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
            _, n, k = sizes((bm, bn, bk))
            values = dict(N=n, K=k, BM=bm, BN=bn, BK=bk)
            signature = dict(a="*" + dtype, b="*" + dtype, c="*fp32", **{name: "constexpr" for name in values})
            attributes = {(at,): [["tt.divisibility", 16], ["tt.pointer_range", 32]] for at in range(3)}
            constants = {(matmul.arg_names.index(name),): value for name, value in values.items()}
            compiled = triton.compile(ASTSource(matmul, signature, constants, attributes), target=GPUTarget("hip", chip, wave),
                               options=dict(num_warps=warps, num_stages=stages))
            out = folder / f"{chip}-{dtype}-{bm}x{bn}x{bk}-{warps}.hsaco"
            out.write_bytes(compiled.asm["hsaco"])
            yield f"Triton {dtype} {bm}x{bn}x{bk}, {warps} waves", out, "matmul", warps * wave, (bm, bn, bk), compiled.metadata.shared, []


def main_loop(code, *options):
    """The estimate of greta-sim for the main loop of a launch, as it is without SCALES; None where it finds none."""
    result = json.loads(tool(ROOT / "build/bin/greta-sim", code, "--check=none", "--estimate", "--json", *options))
    loop = result.get("loop")
    if not loop:
        return None
    return dict(begin=loop["begin"], end=loop["end"], cycles=round(loop["cycles"], 1), matrix=round(loop["matrix_cycles"], 1), share=loop["matrix_busy"],
                waves=round(result["waves_per_simd"], 1), bound=result["bound"])


def launch(case, grid):
    """Options of greta-sim for a case; the first `grid` workgroups of its GEMM run."""
    name, _, kernel, block, tile, lds, integers = case
    m, n, k = sizes(tile)
    element = 1 if "fp8" in name else 2
    # Some kernels load a tile more than they use.
    buffers = [(m + tile[0]) * k * element, (n + tile[1]) * k * element, m * n * 4]
    hidden = ["--arg=null"] * (2 if kernel == "matmul" else 0)  # Triton's scratch pointers
    return [f"--kernel={kernel}", f"--grid={grid[0]},{grid[1]}", f"--block={block}", f"--lds={lds}", *(f"--arg=zero:{size}" for size in buffers),
            *(f"--arg=i32:{x}" for x in integers), *hidden]


def estimate(case, grid, *options):
    return main_loop(case[1], *launch(case, grid), *options)


def share_range(code, options):
    """Least and greatest share of the matrix units, rounded, when one assumption of the model is half or twice as large, or none is."""
    shares = [main_loop(code, *options, *scale)["share"] for scale in [[], *([scale] for scale in SCALES)]]
    return round(min(shares), 3), round(max(shares), 3)


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
        out = tool("prlimit", "--cpu=30:40", LLVM / "llvm-mca", "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={chip}", "-iterations=20", "--resource-pressure=0",
                   "--instruction-info=0", text="\n".join(body))
    except subprocess.CalledProcessError as error:
        if error.returncode != -signal.SIGXCPU:
            raise
        return None
    return 4 * int(re.search(r"Total Cycles:\s+(\d+)", out)[1]) / 20


def rows(chips):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ.setdefault("TRITON_CACHE_DIR", str(folder / "cache"))
        for chip in chips:
            cases = [*(pipelined(folder, chip) if chip in ("gfx90a", "gfx942") else []), *(compiled_by_triton(folder, chip) if triton else [])]
            for case in cases:
                alone = estimate(case, (1, 1), "--one-wave")
                same = estimate(case, (1, 1), "--one-wave", LLVM_LATENCIES)
                full = estimate(case, GRID)
                low, high = share_range(case[1], launch(case, GRID))
                mca = llvm_mca(case[1], chip, alone["begin"], alone["end"])
                yield dict(chip=chip, kernel=case[0], matrix_cycles=alone["matrix"], llvm_mca=mca, model_llvm_latencies=same["cycles"],
                           of_mca=round(same["cycles"] / mca, 3) if mca else None, model_one_wave=alone["cycles"],
                           share_mca=round(alone["matrix"] / mca, 3) if mca else None, share_one_wave=round(alone["matrix"] / alone["cycles"], 3),
                           waves_per_simd=full["waves"], share_all_waves=round(full["share"], 3), share_low=low, share_high=high, bound=full["bound"])


def main():
    out = next((a[6:] for a in sys.argv[1:] if a.startswith("--csv=")), None)
    chips = [a for a in sys.argv[1:] if not a.startswith("--")] or CHIPS
    if not triton:
        print("Triton is not installed (scripts/setup --triton): its kernels are left out", file=sys.stderr)
    records.build("greta-sim")
    records.collect(rows(chips), out, FIELDS)


if __name__ == "__main__":
    main()
