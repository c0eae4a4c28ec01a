"""Checks and measures attention against float64 and torch; called by scripts/bench-h200, which sets the library path.

usage: attention.py DIR CSV [--package=attention.greta,..] [--only=NAME,..] [--reps-ms=20] [--rounds=7] [--scale=1]
The functions are those of attention.mlir; of a package of variants the part before __ says which. Data are random normal. The result is poisoned, computed
once and compared with float64 in some rows of some heads; a wrong one is not timed, and the run ends with status 1. Time is the GPU's, from events around
batches of launches one after another into one result; median, minimum and maximum of `rounds` batches. Decoding goes over several sets of keys and values,
more than any cache holds; decode_i8 has them in 8 bits with a scale for each token and head, decode_e4m3
as floats with one for each head. gated multiplies by sigmoid(gate), which torch does in two more launches. torch's scaled_dot_product_attention runs in the same way on the same data, with the back end that it chooses and with
FlashAttention-2. TFLOP/s counts what causal rows see; of_copy is what is read, over the copy bandwidth of the same run. --scale divides keys, for a try.
"""

import argparse
import dataclasses
import statistics
import sys

import numpy as np

import row_ops  # puts the project's helpers on the path
import records
from greta_runtime import Package, tensors

if row_ops.torch:
    from torch.nn.attention.bias import causal_lower_right

torch = row_ops.torch if row_ops.torch and row_ops.torch.cuda.is_available() else None

PAGE = 16
# The rounding of a result: rounding of weights is as much again.
TOLERANCE = {"f16": 1e-3, "bf16": 8e-3, "f32": 6e-6}
COLUMNS = ["date", "commit", "gpu", "driver", "function", "batch", "heads", "key_heads", "queries", "keys", "depth", "dtype", "variant", "median_us", "min_us", "max_us"]
COLUMNS += ["tflop_per_s", "gb_per_s", "of_copy", "torch_us", "torch_tflop_per_s", "torch_flash_us", "torch_flash_tflop_per_s", "error_euclidean"]


@dataclasses.dataclass(frozen=True)
class Shape:
    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    depth: int = 128
    dtype: str = "f16"
    causal: bool = False
    paged: bool = False
    stored: str = ""  # keys and values, if otherwise: i8 or e4m3
    gated: bool = False  # the result times sigmoid(gate)

    @property
    def is_decode(self):
        return self.queries == 1

    @property
    def flop(self):
        seen = self.keys - (self.queries - 1) / 2 if self.causal else self.keys
        return 4 * self.batch * self.heads * self.queries * seen * self.depth

    @property
    def bytes(self):
        return 2 * self.batch * self.key_heads * self.keys * {"": 2 * self.depth, "e4m3": self.depth, "i8": self.depth + 4}[self.stored]


SHAPES = {
    "full": [Shape(1, 32, 32, 8192, 8192), Shape(1, 32, 32, 2048, 2048)],
    "causal": [Shape(1, 32, 32, 8192, 8192, causal=True)],
    "full_64": [Shape(1, 32, 32, 8192, 8192, 64)],
    "full_bf16": [Shape(1, 32, 32, 8192, 8192, dtype="bf16")],
    "full_f32": [Shape(1, 32, 32, 2048, 2048, dtype="f32")],
    "gated": [Shape(1, 32, 32, 8192, 8192, gated=True), Shape(1, 32, 32, 2048, 2048, gated=True)],
    "grouped": [Shape(1, 32, 8, 8192, 8192)],
    "chunk": [Shape(1, 32, 8, 512, 16384, causal=True)],
    "decode": [Shape(1, 32, 8, 1, 16384, causal=True), Shape(1, 32, 8, 1, 1024, causal=True), Shape(8, 32, 8, 1, 4096, causal=True)],
    "decode_i8": [Shape(1, 32, 8, 1, 16384, causal=True, stored="i8"), Shape(8, 32, 8, 1, 4096, causal=True, stored="i8")],
    "decode_e4m3": [Shape(1, 32, 8, 1, 16384, causal=True, stored="e4m3"), Shape(8, 32, 8, 1, 4096, causal=True, stored="e4m3")],
    "paged": [Shape(32, 32, 8, 1, 4096, causal=True, paged=True)],
    "paged_chunk": [Shape(1, 32, 8, 512, 16384, causal=True, paged=True), Shape(1, 32, 8, 2048, 4096, causal=True, paged=True)],
}


def rounded(x, dtype):
    """f32, f16, or bf16 in the upper half of f32, as the bits of 16-bit integers."""
    if dtype != "bf16":
        return x.astype(np.float16 if dtype == "f16" else np.float32)
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def wide(x):
    return x.astype(np.float64) if x.dtype in (np.float16, np.float32) else (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


CODES = np.arange(127)  # of e4m3's numbers, without a sign
NUMBERS = np.where(CODES < 8, CODES / 512, (1 + CODES % 8 / 8) * 2.0 ** (CODES // 8 - 7))


def in_8_bits(x, stored):
    """The bytes, their scales, and the numbers that they are."""
    x = wide(x)
    if stored == "i8":
        scale = (np.abs(x).max(axis=-1) / 127).astype(np.float32)
        codes = np.round(x / scale[..., None]).astype(np.int8)
        return codes, scale, (codes * scale[..., None]).astype(np.float32)
    scale = np.exp(np.arange(x.shape[1]) / 8).astype(np.float32).reshape(1, -1, 1)
    x /= scale[..., None]
    codes = np.searchsorted((NUMBERS[1:] + NUMBERS[:-1]) / 2, np.abs(x)).astype(np.uint8)
    return codes | (x < 0).astype(np.uint8) << 7, scale, (np.copysign(NUMBERS[codes], x) * scale[..., None]).astype(np.float32)


def reference(shape, q, k, v, rows):
    """Rows of one head."""
    logits = q[rows] @ k.T / np.sqrt(shape.depth)
    if shape.causal:
        logits[np.arange(shape.keys) > rows[:, None] + shape.keys - shape.queries] = -np.inf
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights @ v / weights.sum(axis=1, keepdims=True)


def torch_times(shape, sets, options):
    if not torch:
        return {}
    kinds = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
    ours = [tuple(torch.from_numpy(x.view(np.int16)).cuda().view(kinds[shape.dtype]) for x in one) for one in sets]
    found = {}
    for name, backends in ("torch", None), ("torch_flash", [torch.nn.attention.SDPBackend.FLASH_ATTENTION]):
        # A causal mask of torch's starts with the first key; that of a chunk is bottom right.
        causal = shape.causal and shape.queries == shape.keys
        if shape.causal and not causal and not shape.is_decode:
            bias = causal_lower_right(shape.queries, shape.keys)
        else:
            bias = None
        attention = lambda i: torch.nn.functional.scaled_dot_product_attention(*ours[i % len(ours)][:3], attn_mask=bias, is_causal=causal, enable_gqa=shape.heads != shape.key_heads)
        work = (lambda i: attention(i).mul_(torch.sigmoid(ours[0][3]))) if shape.gated else attention
        try:
            with torch.nn.attention.sdpa_kernel(backends) if backends else torch.no_grad():
                found[f"{name}_us"] = round(row_ops.torch_timed(work, options), 2)
                found[f"{name}_tflop_per_s"] = round(shape.flop / found[f"{name}_us"] / 1e6, 1)
        except RuntimeError as error:
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
    return found


def paged_cache(rng, shape, x):
    """The keys or values [B, H, T, D] in pages, all in one random order, which is the table."""
    pages = x.reshape(shape.batch, shape.key_heads, -1, PAGE, shape.depth).transpose(0, 2, 3, 1, 4).reshape(-1, PAGE, shape.key_heads, shape.depth)
    order = np.random.default_rng(5).permutation(len(pages))
    cache = np.empty_like(pages)
    cache[order] = pages
    return cache, order.reshape(shape.batch, -1).astype(np.int32)


def main():
    parser = row_ops.arguments("attention.greta", reps_ms=20)
    parser.add_argument("--only", type=lambda names: names.split(","), default=list(SHAPES))
    parser.add_argument("--scale", type=int, default=1)
    options = parser.parse_args()

    runtime, timer, common = row_ops.start(options)
    copy = max([row_ops.runtime_copy(runtime, timer, options), *([row_ops.torch_copy(argparse.Namespace(rounds=options.rounds, reps=10))] if torch else [])])
    print(f"copy {copy:.0f} GB/s")
    packages = [Package(runtime, options.directory / name) for name in options.package]
    functions = [(package, function["name"]) for package in packages for function in package.manifest()["functions"]]
    table, wrong = [], False
    for name, shapes in SHAPES.items():
        for shape in shapes if name in options.only else ():
            shape = dataclasses.replace(shape, keys=shape.keys // options.scale, queries=-(-shape.queries // options.scale))
            rng = np.random.default_rng(1)
            count = min(8, max(1, -(-row_ops.WORKING_SET // options.scale // shape.bytes))) if shape.is_decode else 1
            sets = []
            for _ in range(count):
                made = [rng.standard_normal((shape.batch, heads, length, shape.depth), dtype=np.float32) for heads, length in ((shape.heads, shape.queries), (shape.key_heads, shape.keys), (shape.key_heads, shape.keys))]
                if shape.gated:
                    made.append(rng.standard_normal(made[0].shape, dtype=np.float32))
                sets.append([rounded(x, shape.dtype) for x in made])
            beside = torch_times(shape, sets, options)
            lengths = np.full(shape.batch, shape.keys, np.int32)
            operands, buffers = [], []
            for q, k, v, *gate in sets:
                arrays = [q, k, v, *gate]
                if shape.paged:
                    (k, table_of), (v, _) = (paged_cache(rng, shape, x) for x in (k, v))
                    arrays = [q, k, v, table_of]
                if shape.is_decode or shape.paged:
                    arrays.append(lengths)
                if shape.stored:
                    (arrays[1], k_scale, _), (arrays[2], v_scale, _) = (in_8_bits(x, shape.stored) for x in (k, v))
                    arrays += [k_scale, v_scale]
                mine = [runtime.buffer(x) for x in arrays]
                buffers += mine
                operands.append(tensors((b, x.shape) for b, x in zip(mine, arrays)))
            q, k, v, *gate = sets[0]
            if shape.stored:
                k, v = (in_8_bits(x, shape.stored)[2] for x in (k, v))
            result = runtime.buffer(q.nbytes)
            out = tensors([(result, q.shape)])
            rows = np.unique(np.linspace(0, shape.queries - 1, 64).astype(int))
            places = [(0, 0), (shape.batch - 1, shape.heads - 1)]
            group = shape.heads // shape.key_heads
            expected = np.stack([reference(shape, wide(q[b, h]), wide(k[b, h // group]), wide(v[b, h // group]), rows) for b, h in places])
            if gate:
                expected /= 1 + np.exp(-np.stack([wide(gate[0][b, h][rows]) for b, h in places]))
            for package, function in functions:
                if function.split("__")[0] != name:
                    continue
                compiled = package.function(function)
                runtime.poison(result, q.nbytes)
                compiled.launch(operands[0], out)
                runtime.synchronize()
                got = runtime.read(result, q.shape, "i16" if shape.dtype == "bf16" else shape.dtype).view(q.dtype)
                got = np.stack([wide(got[b, h][rows]) for b, h in places])
                error = np.linalg.norm(got - expected) / np.linalg.norm(expected)
                label = f"{function} {shape.batch}x{shape.heads}/{shape.key_heads}x{shape.queries}x{shape.keys}x{shape.depth}"
                if not error <= TOLERANCE[shape.dtype]:
                    print(f"WRONG: {label}: error {error}", file=sys.stderr)
                    wrong = True
                    continue
                times = row_ops.timed(timer, lambda i: compiled.launch(operands[i % len(operands)], out), options)
                median = statistics.median(times)
                row = common | beside | dict(function=function, batch=shape.batch, heads=shape.heads, key_heads=shape.key_heads, queries=shape.queries, keys=shape.keys)
                row |= dict(depth=shape.depth, dtype=shape.dtype, variant=compiled.variant, error_euclidean=f"{error:.2e}")
                row |= dict(median_us=round(median, 2), min_us=round(min(times), 2), max_us=round(max(times), 2), tflop_per_s=round(shape.flop / median / 1e6, 1))
                shown = f"{row['tflop_per_s']:>6} TFLOP/s, torch {beside.get('torch_tflop_per_s', '-')}, FlashAttention-2 {beside.get('torch_flash_tflop_per_s', '-')}"
                if shape.is_decode:
                    rate = shape.bytes / median / 1e3
                    row |= dict(gb_per_s=round(rate), of_copy=round(rate / copy, 3))
                    shown = f"{row['gb_per_s']:>6} GB/s, {row['of_copy']} of copy, torch {beside.get('torch_us', '-')} us"
                table.append(row)
                print(f"{label:52} {row['median_us']:>9} us, {shown}, error {row['error_euclidean']}", flush=True)
                compiled.destroy()
            for buffer in (*buffers, result):
                runtime.lib.greta_buffer_destroy(buffer)
    records.append(options.csv, COLUMNS, table)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
