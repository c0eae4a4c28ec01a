"""Kernels of python/tutorials on a GPU through Vulkan, beside the same kernels under Triton's own CUDA back end in the same run; called by scripts/bench-h200,
which sets the library path.

usage: tutorials.py --write DIR [TARGETS]        on the build machine, with the Python package greta: DIR gets a package for each kernel
       tutorials.py DIR CSV [--only=REGEX] [--reps-ms=50] [--rounds=7]

A launch of Triton's takes the same sizes, tile and num_warps. Data are random normal. The result is poisoned, computed once and compared with torch's in
float32 before it is timed; a wrong one is not timed, and the run ends with status 1. Time is the GPU's, from events around batches of launches; median,
minimum and maximum of `rounds` batches. Beside the products and attention stands GRETA's own operator, where DIR has its package.
"""

import dataclasses
import os
import pathlib
import re
import statistics
import sys
from typing import Any, Callable

import numpy as np

os.environ.setdefault("GRETA_TRITON", "0")
import row_ops  # puts the project's helpers on the path
import records
from greta_runtime import Package, tensors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python" / "tutorials"))
torch = row_ops.torch

TOLERANCE = 5e-3  # of the Euclidean norm: results are f16, sums of 8192 products
COLUMNS = ["date", "commit", "gpu", "driver", "kernel", "shape", "block", "num_warps", "variant", "median_us", "min_us", "max_us", "rate", "unit"]
COLUMNS += ["triton", "triton_us", "of_triton", "greta_us", "of_greta", "error_euclidean"]


@dataclasses.dataclass
class Case:
    """One kernel at one size: what a launch gives it, in its parameters' order."""

    kernel: str  # module:function
    shape: str
    arguments: Callable[[Callable], list]  # of a maker of arrays; "out" stands for the result
    constants: dict[str, Any]
    num_warps: int
    grid: tuple
    work: float  # GB, or TFLOP
    unit: str
    reference: Callable
    out: tuple = ()  # shape and type of the result
    greta: tuple = ()  # package, function, and the numbers of the arguments that it takes

    @property
    def name(self):
        block = "x".join(str(v) for v in self.constants.values() if isinstance(v, int) and not isinstance(v, bool))
        return f"{self.kernel.replace(':', '.')}__{self.shape}__{block}__{self.num_warps}"


def softmax(rows, columns, warps):
    return Case("softmax:softmax_kernel", f"{rows}x{columns}", lambda x: ["out", x(rows, columns), columns, columns, rows, columns], dict(BLOCK=columns), warps, (rows,),
                8e-9 * rows * columns, "GB/s", lambda a: torch.softmax(a[1], 1), ((rows, columns), "f32"))


def layer_norm(rows, n, warps):
    return Case("layer_norm:forward_kernel", f"{rows}x{n}",
                lambda x: [x(rows, n, "f16"), x(n), x(n), "out", np.zeros(rows, np.float32), np.zeros(rows, np.float32), n, np.float32(1e-5)],
                dict(BLOCK=n), warps, (rows,), 4e-9 * rows * n, "GB/s", lambda a: torch.nn.functional.layer_norm(a[0].float(), (n,), a[1], a[2]), ((rows, n), "f16"))


def matmul(size, bm, bn, bk, warps):
    blocks = -(-size // bm) * -(-size // bn)
    # B's columns are contiguous, as a layer's weights are.
    return Case("matmul:matmul_kernel", f"{size}", lambda x: [x(size, size, "f16"), x(size, size, "f16"), "out", size, size, size, size, 1, 1, size, size, 1],
                dict(BM=bm, BN=bn, BK=bk, GROUP=8, ACTIVATION=""), warps, (blocks,), 2e-12 * size**3, "TFLOP/s", lambda a: a[0] @ a[1].T, ((size, size), "f16"),
                ("matmul_pointers", f"f16_{size}x{size}x{size}__same_tile", (0, 1)) if (size, bm, bn, bk) == (4096, 128, 128, 64) else ())


def attention(heads, length, causal, queries, keys, warps):
    shape = (heads, length, 128)
    return Case("attention:attention_kernel", f"{heads}x{length}x128{'_causal' if causal else ''}",
                lambda x: [x(*shape, "f16"), x(*shape, "f16"), x(*shape, "f16"), "out", np.float32(128**-0.5), length, length * 128],
                dict(CAUSAL=causal, BM=queries, BN=keys, D=128), warps, (-(-length // queries), heads), 4e-12 * heads * length**2 * 128 * (0.5 if causal else 1),
                "TFLOP/s", lambda a: torch.nn.functional.scaled_dot_product_attention(*(x[None] for x in a[:3]), is_causal=causal)[0], (shape, "f16"),
                ("attention", "causal" if causal else "full", (0, 1, 2)))


CASES = [
    *(softmax(8192, columns, warps) for columns in (1024, 4096, 8192) for warps in (4, 8)),
    *(layer_norm(16384, n, warps) for n in (1024, 4096, 8192) for warps in (4, 8)),
    matmul(4096, 128, 128, 64, 8), matmul(4096, 128, 128, 32, 8), matmul(4096, 128, 64, 64, 4), matmul(8192, 128, 128, 64, 8),
    *(attention(32, 4096, causal, queries, keys, warps) for causal in (False, True) for queries, keys, warps in ((128, 64, 8), (64, 64, 4), (128, 32, 8))),
]


def kernel_of(case):
    module, function = case.kernel.split(":")
    kernel = getattr(__import__(module), function)
    return getattr(kernel, "fn", kernel) if type(kernel).__name__ == "Autotuner" else kernel


def words(case):
    """The signature by which greta.compile specialises as a launch does: ones are constants, multiples of 16 are known to be."""
    def word(argument):
        if isinstance(argument, str):
            return f"*{ {'f16': 'fp16', 'f32': 'fp32'}[case.out[1]] }:16"
        if isinstance(argument, np.ndarray):
            return f"*fp{8 * argument.itemsize}:16"
        if isinstance(argument, np.floating):
            return "fp32"
        return "1" if argument == 1 else "i32:16"

    made = [word(argument) for argument in case.arguments(lambda *shape: np.empty(1, np.float16 if shape[-1] == "f16" else np.float32))]
    return ", ".join([*made, *(repr(value) if not isinstance(value, str) else value or "''" for value in case.constants.values())])


def write(directory, targets="vulkan:nvidia"):
    import greta

    directory.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        package = greta.compile(kernel_of(case), words(case), targets=targets, grid=list(case.grid), num_warps=case.num_warps, pointer_range=32)
        package.save(str(directory / f"{case.name}.greta"))
        print(case.name, flush=True)


def microseconds(timer, launch, options):
    times = row_ops.timed(timer, launch, options)
    return round(statistics.median(times), 2), round(min(times), 2), round(max(times), 2)


def triton_microseconds(case, given, options):
    on_gpu = [torch.empty(case.out[0], dtype=torch.float16 if case.out[1] == "f16" else torch.float32, device="cuda") if isinstance(a, str)
              else torch.from_numpy(a).cuda() if isinstance(a, np.ndarray) else float(a) if isinstance(a, np.floating) else a for a in given]
    kernel = kernel_of(case)
    return round(row_ops.torch_timed(lambda i: kernel[case.grid](*on_gpu, **case.constants, num_warps=case.num_warps), options), 2)


def greta_microseconds(case, runtime, timer, buffers, given, result, options):
    package, function, numbers = case.greta
    path = options.directory / f"{package}.greta"
    if not path.exists():
        return None
    compiled = Package(runtime, path).function(function)
    shape = lambda s: s if len(s) == 2 else (1, *s)  # attention has a batch
    operands, out = tensors((buffers[n], shape(given[n].shape)) for n in numbers), tensors([(result, shape(case.out[0]))])
    median = microseconds(timer, lambda i: compiled.launch(operands, out), options)[0]
    compiled.destroy()
    return median


def measure(case, runtime, timer, options):
    """A row without the columns that are the same for the whole run; nothing where the result is wrong."""
    rng = np.random.default_rng(1)
    make = lambda *shape: (rng.standard_normal(shape[:-1], np.float32).astype(np.float16) if shape[-1] == "f16" else rng.standard_normal(shape, np.float32))
    given = case.arguments(make)
    kinds = {"f16": np.float16, "f32": np.float32}
    size = int(np.prod(case.out[0])) * kinds[case.out[1]]().itemsize
    result = runtime.buffer(size)
    buffers = [result if isinstance(a, str) else runtime.buffer(a) if isinstance(a, np.ndarray) else None for a in given]
    runtime.poison(result, size)
    described = [case.out[0] if isinstance(a, str) else a.shape if isinstance(a, np.ndarray) else a if isinstance(a, np.floating) else np.int32(a) for a in given]
    # An argument that is 1 is a constant.
    operands = [(b, (int(np.prod(s)),) if b else s) for b, s, a in zip(buffers, described, given) if not (isinstance(a, int) and a == 1)]
    package = Package(runtime, options.directory / f"{case.name}.greta")
    compiled = package.function(package.manifest()["functions"][0]["name"])
    arguments = tensors(operands)
    tied = [info["tied"] for info in package.manifest()["functions"][0]["results"]]
    results = tensors(operands[number] for number in tied)
    compiled.launch(arguments, results)
    runtime.synchronize()
    got = torch.from_numpy(runtime.read(result, case.out[0], case.out[1])).float()
    place = "cuda" if torch.cuda.is_available() else "cpu"
    want = case.reference([torch.from_numpy(a).to(place).float() if isinstance(a, np.ndarray) else a for a in given]).cpu().float()
    error = float((got - want).norm() / want.norm())
    if not error <= TOLERANCE:
        print(f"WRONG: {case.name}: error {error}", file=sys.stderr)
        return None
    median, least, most = microseconds(timer, lambda i: compiled.launch(arguments, results), options)
    row = dict(kernel=case.kernel, shape=case.shape, block=case.name.split("__")[2], num_warps=case.num_warps, variant=compiled.variant, error_euclidean=f"{error:.2e}")
    row |= dict(median_us=median, min_us=least, max_us=most, rate=round(case.work / median * 1e6, 1), unit=case.unit)
    if case.greta and (theirs := greta_microseconds(case, runtime, timer, buffers, given, result, options)):
        row |= dict(greta_us=theirs, of_greta=round(theirs / median, 3))
    compiled.destroy()
    for buffer in filter(None, buffers):
        runtime.lib.greta_buffer_destroy(buffer)
    if torch.cuda.is_available():
        import triton

        try:
            theirs = triton_microseconds(case, given, options)
            row |= dict(triton=triton.__version__, triton_us=theirs, of_triton=round(theirs / median, 3))
        except triton.runtime.errors.TritonError as error:  # a block too large for its back end
            print(f"{case.name}: {error}", file=sys.stderr)
    return row


def main():
    if sys.argv[1] == "--write":
        return write(pathlib.Path(sys.argv[2]), *sys.argv[3:])
    parser = row_ops.arguments(None, reps_ms=50)
    parser.add_argument("--only", type=re.compile, default="")
    options = parser.parse_args()
    runtime, timer, common = row_ops.start(options)
    table, wrong = [], False
    for case in CASES:
        if not re.search(options.only, case.name):
            continue
        row = measure(case, runtime, timer, options)
        if row is None:
            wrong = True
            continue
        table.append(common | row)
        beside = f"Triton {row.get('triton_us', '-')} us ({row.get('of_triton', '-')}), GRETA's operator {row.get('greta_us', '-')} us ({row.get('of_greta', '-')})"
        print(f"{case.name:70} {row['median_us']:>9} us, {row['rate']:>7} {row['unit']}; {beside}, error {row['error_euclidean']}", flush=True)
    records.append(options.csv, COLUMNS, table)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
