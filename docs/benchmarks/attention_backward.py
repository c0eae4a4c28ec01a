"""Checks and measures the gradients of attention against float64 and torch; called by scripts/bench-h200, which sets the library path.

usage: attention_backward.py DIR CSV [--package=attention_backward.greta,..] [--only=NAME,..] [--reps-ms=50] [--rounds=7] [--scale=1]
The functions are those of attention_backward.mlir; of a package of variants the part before __ says which, and one that goes on with _queries or _keys has one of the
two kernels alone. Data are random normal; attention itself runs first. Results are poisoned, computed once and compared with float64 in some rows of two heads; wrong ones
are not timed, and the run ends with status 1. Time is the GPU's, from events around batches of launches; median, minimum and maximum of `rounds` batches.
torch's backward of scaled_dot_product_attention runs in the same way on the same data, with the back end that it chooses and with FlashAttention-2. TFLOP/s counts
five products, 2.5 times what attention has, and of those what causal rows see; a kernel alone the products that it has, three and four.
"""

import dataclasses
import statistics
import sys

import numpy as np

import row_ops
import records
from attention import Shape, rounded, torch, wide
from greta_runtime import Package, tensors

# Weights and their gradients are rounded before they are multiplied, as the result is.
TOLERANCE = {"f16": 1.5e-3, "bf16": 1.2e-2}
COLUMNS = ["date", "commit", "gpu", "driver", "function", "heads", "key_heads", "queries", "keys", "depth", "dtype", "variant", "median_us", "min_us", "max_us"]
COLUMNS += ["tflop_per_s", "torch_us", "torch_tflop_per_s", "torch_flash_us", "torch_flash_tflop_per_s", "error_euclidean"]
SHAPES = {
    "full": Shape(1, 32, 32, 8192, 8192),
    "causal": Shape(1, 32, 32, 8192, 8192, causal=True),
    "full_64": Shape(1, 32, 32, 8192, 8192, 64),
    "full_bf16": Shape(1, 32, 32, 8192, 8192, dtype="bf16"),
    "grouped": Shape(1, 32, 8, 8192, 8192, causal=True),
}
# Shares of what attention's two products have.
PRODUCTS = {"": 2.5, "_queries": 1.5, "_keys": 2.0}


def reference(shape, q, k, v, gradient, rows):
    """Rows of the gradients of a key head and of the first query head that reads it, as dq, dk, dv, and of that head delta; of q and gradient all heads of the group."""
    scale, at = shape.depth**-0.5, np.arange(shape.keys)
    dk, dv = np.zeros((len(rows), shape.depth)), np.zeros((len(rows), shape.depth))
    deltas = []
    for head, (queries, of_result) in enumerate(zip(q, gradient)):
        for first in range(0, shape.queries, 1024):
            block, grad = queries[first : first + 1024], of_result[first : first + 1024]
            logits = block @ k.T * scale
            if shape.causal:
                logits[at > np.arange(first, first + len(block))[:, None] + shape.keys - shape.queries] = -np.inf
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            delta = ((weights @ v) * grad).sum(axis=1)
            slopes = weights[:, rows] * (grad @ v[rows].T - delta[:, None])
            dv += weights[:, rows].T @ grad
            dk += slopes.T @ block * scale
            if head == 0:
                deltas.append(delta)
                mine = rows[(rows >= first) & (rows < first + len(block))] - first
                part = weights[mine] * (grad[mine] @ v.T - delta[mine][:, None]) @ k * scale
                dq = part if first == 0 else np.concatenate([dq, part])
    return dq, dk, dv, np.concatenate(deltas)


def torch_times(shape, inputs, gradient, options):
    if not torch:
        return {}
    kinds = {"f16": torch.float16, "bf16": torch.bfloat16}
    on_device = lambda x: torch.from_numpy(x.view(np.int16)).cuda().view(kinds[shape.dtype])
    q, k, v = (on_device(x).requires_grad_() for x in inputs)
    gradient = on_device(gradient)
    found = {}
    for name, backends in ("torch", None), ("torch_flash", [torch.nn.attention.SDPBackend.FLASH_ATTENTION]):
        chosen = backends or [torch.nn.attention.SDPBackend.CUDNN_ATTENTION, torch.nn.attention.SDPBackend.FLASH_ATTENTION]
        try:
            with torch.nn.attention.sdpa_kernel(chosen, set_priority=True):
                result = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=shape.causal, enable_gqa=shape.heads != shape.key_heads)
                work = lambda i: torch.autograd.grad(result, (q, k, v), gradient, retain_graph=True)
                found[f"{name}_us"] = round(row_ops.torch_timed(work, options), 2)
            found[f"{name}_tflop_per_s"] = round(2.5 * shape.flop / found[f"{name}_us"] / 1e6, 1)
        except RuntimeError as error:
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
    return found


def main():
    parser = row_ops.arguments("attention_backward.greta", reps_ms=50)
    parser.add_argument("--only", type=lambda names: names.split(","), default=list(SHAPES))
    parser.add_argument("--scale", type=int, default=1)
    options = parser.parse_args()

    runtime, timer, common = row_ops.start(options)
    packages = [Package(runtime, options.directory / name) for name in options.package]
    functions = {function["name"]: package for package in packages for function in package.manifest()["functions"]}
    table, wrong = [], False
    for name, shape in SHAPES.items():
        mine = {one: one.split("__")[0].removeprefix(name) for one in functions if one.split("__")[0].removeprefix(name) in PRODUCTS}
        if name not in options.only or not mine:
            continue
        shape = dataclasses.replace(shape, keys=shape.keys // options.scale, queries=shape.queries // options.scale)
        rng = np.random.default_rng(1)
        ofs = [(shape.heads, shape.queries), (shape.key_heads, shape.keys), (shape.key_heads, shape.keys), (shape.heads, shape.queries)]
        q, k, v, gradient = (rounded(rng.standard_normal((shape.batch, heads, length, shape.depth), dtype=np.float32), shape.dtype) for heads, length in ofs)
        beside = torch_times(shape, (q, k, v), gradient, options)
        made = {what: (runtime.buffer(x), x.shape) for what, x in (("q", q), ("k", k), ("v", v), ("do", gradient))}
        for what, like in ("o", q), ("dq", q), ("dk", k), ("dv", v):
            made[what] = runtime.buffer(like.nbytes), like.shape
        for what in "lse", "delta":
            made[what] = runtime.buffer(4 * q[..., 0].size), q.shape[:3]
        of = lambda *names: tensors([made[one] for one in names])
        forward = functions[f"forward_{name}"].function(f"forward_{name}")
        forward.launch(of("q", "k", "v"), of("o", "lse"))
        group = shape.heads // shape.key_heads
        rows = np.unique(np.linspace(0, shape.keys - 1, 64).astype(int))
        places = [(0, 0), (shape.batch - 1, shape.key_heads - 1)]
        expected = [reference(shape, wide(q[b, h * group : (h + 1) * group]), wide(k[b, h]), wide(v[b, h]), wide(gradient[b, h * group : (h + 1) * group]), rows) for b, h in places]
        bits = "f16" if shape.dtype == "f16" else "i16"
        # Gradients of keys take delta, which those of queries leave.
        for function, part in sorted(mine.items(), key=lambda one: one[1] == "_keys"):
            compiled = functions[function].function(function)
            results = {"": ["dq", "dk", "dv"], "_queries": ["dq", "delta"], "_keys": ["dk", "dv"]}[part]
            operands, out = of("q", "k", "v", "delta" if part == "_keys" else "o", "lse", "do"), of(*results)
            for what in results:
                runtime.poison(made[what][0], (4 if what == "delta" else 2) * int(np.prod(made[what][1])))
            compiled.launch(operands, out)
            runtime.synchronize()
            error = 0.0
            for number, what in enumerate(("dq", "dk", "dv")):
                if what not in results:
                    continue
                got = runtime.read(*made[what], bits).view(q.dtype)
                got = np.stack([wide(got[b, h * group if what == "dq" else h][rows]) for b, h in places])
                right = np.stack([one[number] for one in expected])
                error = max(error, np.linalg.norm(got - right) / np.linalg.norm(right))
            if not error <= TOLERANCE[shape.dtype]:
                print(f"WRONG: {function}: error {error}", file=sys.stderr)
                wrong = True
                continue
            times = row_ops.timed(timer, lambda i: compiled.launch(operands, out), options)
            median = statistics.median(times)
            row = common | beside | dict(function=function, heads=shape.heads, key_heads=shape.key_heads, queries=shape.queries, keys=shape.keys, depth=shape.depth, dtype=shape.dtype)
            row |= dict(variant=compiled.variant, error_euclidean=f"{error:.2e}", median_us=round(median, 2), min_us=round(min(times), 2), max_us=round(max(times), 2))
            row["tflop_per_s"] = round(PRODUCTS[part] * shape.flop / median / 1e6, 1)
            table.append(row)
            print(
                f"{function:32} {row['median_us']:>9} us, {row['tflop_per_s']:>6} TFLOP/s, torch {beside.get('torch_tflop_per_s', '-')}, FlashAttention-2 {beside.get('torch_flash_tflop_per_s', '-')}, error {row['error_euclidean']}",
                flush=True,
            )
            compiled.destroy()
        for buffer, _ in made.values():
            runtime.lib.greta_buffer_destroy(buffer)
    records.append(options.csv, COLUMNS, table)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
