"""A checkout of ROCm/aiter: AMD's hand-tuned GEMM kernels of gfx942 and gfx950, how each is launched, and the times that AMD measured.

In: the checkout's folder. hsa/CHIP/*gemm*/*.csv lists the code objects of a family with their tiles, aiter/configs/**/*gemm*.csv the fastest kernel of each shape with
its time. Out: `kernels`, `measured`, and for a kernel and a shape the grid and the arguments of greta-sim (`launch`). Order and meaning of the arguments are those of
csrc/py_itfs_cu/asm_gemm_*.cu, where each argument takes 16 bytes. Nothing of the checkout is committed in this repository.
"""

import csv
import dataclasses
import pathlib

# Family: folder and list of its kernels under hsa/CHIP, what its kernels' names contain.
FAMILIES = {
    "bf16": ("bf16gemm", "bf16gemm_fp32bf16.csv", "bf16gemm"),
    "i8": ("i8gemm", "i8gemm_bf16_perTokenI8.csv", "I8gemm"),
    "fp8": ("fp8gemm_blockscale", "fp8gemm_bf16_blockscale.csv", "fp8gemm"),
    "fp4": ("f4gemm", "f4gemm_bf16_per1x32Fp4.csv", "f4gemm"),
}
CHIPS = ("gfx942", "gfx950")
SCALE_BLOCK = 128  # of fp8: rows of the weight and elements of K that share a scale


def up(x, y):
    return -(-x // y)


@dataclasses.dataclass(frozen=True)
class Kernel:
    """An assembly GEMM, D = A B^T with A [M, K] and B [N, K]. `shuffled`: B lies in tiles of 16 rows (numerics.shuffle)."""

    chip: str
    family: str
    name: str
    code: pathlib.Path
    tile_m: int
    tile_n: int
    splits: bool
    shuffled: bool


@dataclasses.dataclass(frozen=True)
class Shape:
    m: int
    n: int
    k: int
    out_bytes: int = 2
    bias: bool = False


@dataclasses.dataclass(frozen=True)
class Measured:
    """A row of aiter/configs: the kernel that AMD's tuner found fastest."""

    chip: str
    compute_units: int
    family: str
    kernel: str
    shape: Shape
    split: int
    us: float


def number(row, *names):
    return int(next(row[name] for name in names if row.get(name)))


def kernels(checkout):
    """All GEMM kernels, by (chip, family, name)."""
    found = {}
    for chip in CHIPS:
        for family, (folder, listing, _) in FAMILIES.items():
            path = checkout / "hsa" / chip / folder
            if not (path / listing).exists():
                continue
            for row in csv.DictReader(open(path / listing)):
                found[chip, family, row["knl_name"]] = Kernel(
                    chip, family, row["knl_name"], path / row["co_name"], number(row, "tileM", "tile_m", "tile_M"), number(row, "tileN", "tile_n", "tile_N"),
                    row["splitK"] == "1", number(row, "bPreshuffle", "bpreshuffle") == 1)  # fmt: skip
    return found


def measured(checkout):
    """Every measured shape that an assembly GEMM won, once."""
    rows = {}
    for path in sorted((checkout / "aiter" / "configs").rglob("*gemm*.csv")):
        for row in csv.DictReader(open(path)):
            name = (row.get("kernelName") or "").strip()
            family = next((f for f, (_, _, mark) in FAMILIES.items() if mark in name), None)
            try:
                us = float(row.get("us") or 0)
            except ValueError:
                continue
            if not name.startswith("_ZN5aiter") or not family or row.get("gfx") not in CHIPS or us <= 0:
                continue
            shape = Shape(int(row["M"]), int(row["N"]), int(row["K"]), 4 if "float32" in row.get("outdtype", "") else 2, row.get("bias") == "True")
            one = Measured(row["gfx"], int(row["cu_num"]), family, name, shape, int(float(row["splitK"] or 0)), us)
            rows.setdefault(dataclasses.replace(one, us=0), one)
    return list(rows.values())


def split_of(kernel, shape, split):
    """The split that a launch really gets: AMD's host code clamps what the tuner wrote down. For fp4 it is a power of two, and this its logarithm."""
    if kernel.family == "fp4":
        return split if kernel.splits else 0
    if kernel.family == "bf16":
        return max(1, min(split, 16, shape.k // 64)) if kernel.splits else 1
    return max(1, split)


def splits(kernel, shape):
    """The splits of K that AMD's tuner tries."""
    if kernel.family == "fp4":
        return [0]
    if kernel.family == "bf16":
        return list(range(2, min(16, shape.k // 64) + 1)) if kernel.splits else [1]
    if not kernel.splits:
        return [1]
    fits = []
    for split in range(1, 9):
        part = up(up(shape.k, split), 128) * 128
        if up(shape.k, part) == split and (shape.k % part == 0 or shape.k // part == split - 1):
            fits.append(split)
    return fits or [1]


SEMAPHORES = 1024  # that AMD's callers have for the tiles of a split bf16 GEMM


def takes(kernel, shape, shuffled=None):
    """Whether AMD's host code may launch the kernel on a shape. `shuffled`: how the weights lie; as measured, fp4's do and bf16's do not."""
    if kernel.family == "fp4":
        return kernel.shuffled and not ((kernel.tile_m, kernel.tile_n) == (128, 512) and shape.n % 512)
    if shape.n % kernel.tile_n:
        return False
    if kernel.family != "bf16":
        return True
    whole = kernel.tile_m == 256 and (shape.bias or shape.out_bytes == 4)
    return kernel.shuffled == bool(shuffled) and not whole and not (kernel.splits and workgroups(kernel, shape, 1) > SEMAPHORES)


def sizes(kernel, shape):
    """Bytes of each buffer."""
    m, n, k = shape.m, shape.n, shape.k
    element = {"bf16": 2, "i8": 1, "fp8": 1, "fp4": 0.5}[kernel.family]
    blocks = up(k, SCALE_BLOCK)
    scales = {"i8": (4 * m, 4 * n), "fp8": (4 * m * blocks, 4 * up(n, SCALE_BLOCK) * blocks),
              "fp4": (up(m, 256) * 256 * scale_columns(k), up(n, 256) * 256 * scale_columns(k))}.get(kernel.family, (0, 0))  # fmt: skip
    # This one stores whole tiles: AMD's callers pad its result.
    rows = up(m, kernel.tile_m) * kernel.tile_m if kernel.family == "fp4" and not kernel.shuffled else m
    return dict(d=rows * n * shape.out_bytes, a=int(m * k * element), b=int(n * k * element), scale_a=scales[0], scale_b=scales[1], bias=4 * n)


def scale_columns(k):
    """Scales of fp4: each belongs to 32 elements; they are padded to 8 of them."""
    return up(k // 32, 8) * 8


def launch(kernel, shape, split, buffers=None):
    """Options of greta-sim: grid, block and arguments. `buffers` replaces the zeros that a buffer holds by other arguments: dict(a="in:a.bin")."""
    m, n, k = shape.m, shape.n, shape.k
    held = {name: f"zero:{size}" for name, size in sizes(kernel, shape).items()} | (buffers or {})
    integers = lambda *values: [f"i32:{value}" for value in values]
    rows, columns = up(m, kernel.tile_m), up(n, kernel.tile_n)
    if kernel.family == "bf16":
        pitch = n * shape.out_bytes
        arguments = [held["d"], "null", held["a"], held["b"], "f32:1", "f32:0", *integers(pitch, 0, pitch, 0, 2 * k, 0, 2 * k, 0, m, n, k, split, int(shape.out_bytes == 2)),
                     held["bias"] if shape.bias else "null", f"i32:{int(shape.bias)}", held["semaphores"]]  # fmt: skip
        grid = columns, rows, split
    elif kernel.family == "fp4":
        pitch = scale_columns(k)
        arguments = [held["d"], "null", held["a"], held["b"], "f32:1", "f32:0", *integers(0, 0, n, 0, k, 0, k, 0, m, n, k), held["scale_a"], held["scale_b"],
                     *integers(pitch, 0, pitch, 0, split)]  # fmt: skip
        grid = columns, rows, up(k, up(up(k, 1 << split), 256) * 256)
    else:
        arguments = [held[name] for name in ("d", "a", "b", "scale_a", "scale_b", "bias")] + integers(m, n, k, k, k, 2 * n, split)
        if kernel.family == "fp8":
            arguments += integers(m, up(n, SCALE_BLOCK), up(k, SCALE_BLOCK))
        grid = n // kernel.tile_n * split, rows, 1
    padded = [option for argument in arguments for option in (f"--arg={argument}", "--arg=align:16")]
    # Some kernels' metadata has more than they read.
    return [f"--kernel={kernel.name}", "--grid=" + ",".join(map(str, grid)), "--block=256", *padded, "--arg=align:256"]


def workgroups(kernel, shape, split):
    """The launch's own."""
    parts = up(shape.k, up(up(shape.k, 1 << split), 256) * 256) if kernel.family == "fp4" else split
    return up(shape.m, kernel.tile_m) * up(shape.n, kernel.tile_n) * parts
