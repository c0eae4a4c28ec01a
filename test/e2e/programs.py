"""Block programs: functions of test/tile/*.mlir, their inputs, and their definition in float64 NumPy.

A name says everything: program_KIND_SIZES, KIND the file and the function in it, SIZES what it is run on, as 33x40x129. One function serves all sizes.
"""

import dataclasses
import pathlib

import numpy as np

from case import Case, Kind, varied_rows

TEXTS = pathlib.Path(__file__).parent.parent / "tile"


@dataclasses.dataclass(frozen=True)
class Program(Case, family="program"):
    kind: str
    sizes: str

    @property
    def shape(self):
        return tuple(map(int, self.sizes.split("x")))

    @property
    def function(self):
        return self.kind.replace("-", "_")

    @property
    def precision(self):
        return self.spec.precision

    @property
    def depth(self):
        by_kind = {"batched-dot": 48, "grouped-matmul": 48, "flash-attention-backward": max(self.shape[-2:])}
        return by_kind.get(self.kind, self.shape[-1] if self.kind.startswith(("matmul", "split-k", "flash-attention")) else 0)

    @property
    def is_gemm(self):
        return self.spec.limit == "gemm"

    @property
    def has_matrix_product(self):
        return self.spec.limit in ("gemm", "attention")

    operand_types = frozenset({"f16"})  # of products

    def mlir(self, target=None):
        return self.spec.mlir(self) if self.spec.mlir else (TEXTS / f"{self.function}.mlir").read_text()


@dataclasses.dataclass(frozen=True)
class Text(Kind):
    """A program whose text is a file, where nothing makes it."""

    precision: str = "f32"  # of the results


def text(inputs, reference, **options):
    return Text(None, inputs, reference, **options)


def softmax(p, rounded, x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def layer_norm(p, rounded, x, weight, bias):
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * weight + bias


def gather(p, rng):
    table, rows, columns = p.shape
    return [(rng.standard_normal((table, columns)), "f32"), (rng.integers(0, table, rows), "i32")]


def attention(p, rounded, q, k, v):
    logits = np.einsum("hsd,htd->hst", q, k) / np.sqrt(q.shape[-1])
    return np.einsum("hst,htd->hsd", softmax(p, rounded, logits.reshape(-1, logits.shape[-1])).reshape(logits.shape), v)


def heads(p, rng):
    number, queries, keys = p.shape
    return [(rng.standard_normal((number, rows, 32)), "f16") for rows in (queries, keys, keys)]


def operands(p, rng):
    m, n, k = p.shape
    return [(rng.standard_normal((m, k)), "f16"), (rng.standard_normal((k, n)) / np.sqrt(k), "f16")]


def recurrence(p, rounded, a, x):
    s = np.array(x)
    for i in range(1, 96):
        s[..., i] += a[..., i] * s[..., i - 1]
    for i in reversed(range(15)):
        s[:, i] += a[:, i] * s[:, i + 1]
    return s


def histogram(p, rounded, x):
    def counts(row, bins):
        return np.bincount(row[(row >= 0) & (row < bins)], minlength=bins)

    none = np.zeros(240, np.int64)
    return np.stack([np.concatenate([counts(row[1::2], 16), none, counts(row, 256)]) for row in x]).astype(np.int32)


def pick(p, rounded, x, rows, columns):
    return np.take_along_axis(np.take_along_axis(x, rows, 1), columns, 2)


def rearrange(p, rounded, x):
    last = x.transpose(0, 3, 1, 2).reshape(-1, 16, 4, 2, 12).transpose(0, 2, 4, 1, 3)
    swapped = np.stack([last[..., 1] * 3, last[..., 0]], -1)
    turned = swapped.reshape(-1, 48, 32).transpose(0, 2, 1)
    return np.concatenate([turned, turned], 2).reshape(-1, 3072)


def large_blocks(p, rounded, x, w, z):
    return [x.transpose(0, 2, 1) @ w, 2 * z.sum(1)]


def sort_mlir(p, name="sort", kept=64, order="sgt"):
    """A bitonic argsort of 64 different keys as Triton writes it: a block of six dimensions of 2, in which a key's partner is the XOR of both with the key.
    Of the sorted ones the first are kept."""
    bits = 6
    cube = "x".join("2" * bits)
    keys, flags = f"tensor<{cube}xi32>", f"tensor<{cube}xi1>"
    lines = []

    def emit(text):
        lines.append(f"  %{len(lines)} = {text}")
        return f"%{len(lines) - 1}"

    def bit(i):
        """Bit i of the place, everywhere."""
        return emit(f"arith.trunci {emit(f'greta_tile.iota {bits - 1 - i} : {keys}')} : {keys} to {flags}")

    def partner(x, i):
        less = "x".join("2" * (bits - 1))
        kept = "x".join("1" if d == bits - 1 - i else "2" for d in range(bits))
        both = emit(f"greta_tile.reduce {{arith.xori}} {x} axis {bits - 1 - i} : {keys} -> tensor<{less}xi32>")
        one = emit(f"greta_tile.reshape {both} : tensor<{less}xi32> -> tensor<{kept}xi32>")
        return emit(f"arith.xori {x}, {emit(f'greta_tile.broadcast {one} : tensor<{kept}xi32> -> {keys}')} : {keys}")

    zero, row = emit("arith.constant 0 : i32"), emit("greta_tile.program_id 0")
    loaded = emit(f"greta_tile.load %x[{row}, {zero}] strides [64, 1] bounds [] : !greta_tile.ptr<i32> -> tensor<1x64xi32>")
    key = emit(f"greta_tile.reshape {loaded} : tensor<1x64xi32> -> {keys}")
    place = emit(f"greta_tile.reshape {emit('greta_tile.iota 1 : tensor<1x64xi32>')} : tensor<1x64xi32> -> {keys}")
    for stage in range(1, bits + 1):
        for i in reversed(range(stage)):
            other, from_there = partner(key, i), partner(place, i)
            greater = emit(f"arith.cmpi {order}, {key}, {other} : {keys}")
            if stage < bits:
                greater = emit(f"arith.xori {greater}, {bit(stage)} : {flags}")
            swaps = emit(f"arith.xori {greater}, {bit(i)} : {flags}")
            key = emit(f"arith.select {swaps}, {other}, {key} : {flags}, {keys}")
            place = emit(f"arith.select {swaps}, {from_there}, {place} : {flags}, {keys}")
    both = emit(f"greta_tile.join {key}, {place} : {keys} -> tensor<{cube}x2xi32>")
    flat = emit(f"greta_tile.reshape {both} : tensor<{cube}x2xi32> -> tensor<1x64x2xi32>")
    end = emit(f"arith.constant {kept} : i32")
    lines.append(
        f"  greta_tile.store {flat}, %y[{row}, {zero}, {zero}] strides [{2 * kept}, 2, 1] bounds [1] ({end}) : tensor<1x64x2xi32> -> !greta_tile.ptr<i32>"
    )
    body = "\n".join(lines)
    n, result = "affine_map<()[n] -> (n)>", f"tensor<?x{kept}x2xi32>"
    return f"""greta_tile.func @{name}_kernel(%x: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<i32>) attributes {{waves = 2 : i32}} {{
{body}
  greta_tile.return
}}
func.func @{name}(%x: tensor<?x64xi32>) -> {result} {{
  %0 = greta_tile.launch @{name}_kernel grid {n} scalars affine_map<()[n] -> ()> (%x) shapes [affine_map<()[n] -> (n, {kept}, 2)>] : (tensor<?x64xi32>) -> {result}
  return %0 : {result}
}}
"""


def sort(p, rounded, x):
    order = np.argsort(x, 1)
    return np.stack([np.take_along_axis(x, order, 1), order.astype(np.int32)], 2)


def permutations(p, rng):
    return [(np.stack([rng.permutation(64) * 37 - 1000 for _ in range(*p.shape)]), "i32")]


def top_k_mlir(p):
    return sort_mlir(p, "top_k", kept=8, order="slt")


def top_k(p, rounded, x):
    order = np.argsort(-x, 1)[:, :8]
    return np.stack([np.take_along_axis(x, order, 1), order.astype(np.int32)], 2)


def grid_inputs(p, rng):
    """n elements by so many programs; `first` blocks are left out, and what program `idle` has."""
    n, programs, first, idle, relu = p.shape
    scalars = [(np.float32(-1.25), "f16"), (rng.standard_normal(n), "f32"), (np.float32(0.375), "bf16"), (np.int32(first), "i8"), (np.int32(idle), "i16")]
    return [*scalars, (np.int32(relu), "i1"), (np.int32(programs), "i32"), (rng.standard_normal(n), "f32")]


def grid(p, rounded, alpha, x, bias, first, idle, relu, programs, y):
    moved = alpha * x + bias
    block = np.arange(len(x)) // 64 - int(first)
    return np.where((block >= 0) & (block % int(programs) != idle), np.maximum(moved, 0) if relu else moved, y)


def philox(seed, counter):
    """The first word that Philox4x32-10 makes of a key and a counter."""
    c = [counter.astype(np.uint64), *np.zeros((3, len(counter)), np.uint64)]
    key, low, high = [seed & 0xFFFFFFFF, seed >> 32], np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        even, odd = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [odd >> high ^ c[1] ^ np.uint64(key[0]), odd & low, even >> high ^ c[3] ^ np.uint64(key[1]), even & low]
        key = [key[0] + 0x9E3779B9 & 0xFFFFFFFF, key[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return c[0]


def dropout(p, rounded, x, probability, seed):
    kept = (philox(int(seed), np.arange(len(x))) >> np.uint64(8)).astype(np.float64) * 2.0**-24 >= probability
    return np.where(kept, x / (1 - probability), 0)


def layer_norm_backward(p, rounded, x, weight, grad, programs):
    centred = x - x.mean(1, keepdims=True)
    scale = 1 / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    normal, gw = centred * scale, grad * weight
    dx = (gw - normal * (normal * gw).mean(1, keepdims=True) - gw.mean(1, keepdims=True)) * scale
    return [dx, (grad * normal).sum(0), grad.sum(0)]


def gradients_of_heads(p, rng):
    number, queries, keys = p.shape
    return [(rng.standard_normal((number, rows, 32)), "f16") for rows in (queries, keys, keys, queries)]


def attention_backward(p, rounded, q, k, v, grad):
    logits = np.einsum("hsd,htd->hst", q, k) / 32**0.5
    weights = softmax(p, rounded, logits.reshape(-1, logits.shape[-1])).reshape(logits.shape)
    of_weights = np.einsum("hsd,htd->hst", grad, v)
    of_logits = weights * (of_weights - (of_weights * weights).sum(-1, keepdims=True)) / 32**0.5
    return [np.einsum("hst,htd->hsd", of_logits, k), np.einsum("hst,hsd->htd", of_logits, q), np.einsum("hst,hsd->htd", weights, grad)]


def group_inputs(p, rng):
    """Groups of any number of rows, none included; rows of A and one B each."""
    rows, groups, n = p.shape
    first = np.sort(np.concatenate([[0, rows], rng.integers(0, rows + 1, groups - 1)]))
    return [(rng.standard_normal((rows, 48)), "f16"), (rng.standard_normal((groups, 48, n)) / 48**0.5, "f16"), (first, "i32")]


def padded_filter(p, rounded, x):
    wide = np.pad(x, 1)
    return sum(wide[i : i + x.shape[0], j : j + x.shape[1]] for i in range(3) for j in range(3))


def small_integers(*shapes):
    """Operands of f16 whose sums of products are exact in f32; K, the last of the sizes, stands for 0 in `shapes`."""
    return lambda p, rng: [(rng.integers(-4, 5, [n or p.shape[-1] for n in shape]), "f16") for shape in shapes]


def by_blocks(a, b):
    return [a[:, i : i + 32] @ b[i : i + 32] for i in range(0, a.shape[1], 32)]


def partial_products(p, rounded, a, b):
    parts = by_blocks(a, b)
    return [np.concatenate(parts), sum(parts)]


def scaled_blocks(p, rng):
    return small_integers((64, 0), (0, 64))(p, rng) + [(rng.integers(-4, 5, (p.shape[-1] // 32, 64)), "f32")]


def scaled_sum(p, rounded, a, b, scales):
    return sum(product * scale[:, None] for product, scale in zip(by_blocks(a, b), scales))


def products_in_place(p, rounded, a, b, sums):
    blocks = [sums[:64], sums[64:]]
    for i, product in enumerate(by_blocks(a, b)):
        blocks[i % 2] = product - blocks[i % 2]
    return np.concatenate(blocks)


def signed_permutation(p, rng):
    b = np.eye(64)[rng.permutation(64)] * rng.choice([-1, 1], 64)
    return [(b, "f16"), (rng.integers(-99, 99, (64 * p.shape[0], 64)), "f16")]


def moved_columns(p, rounded, a, b):
    begins = range(0, 512, 32)
    return sum(a[:, min(i, 384) :][:, :32] @ b[:, i : i + 32].T for i in begins)


def powers(p, rounded, b, x):
    blocks = [x[:64]]
    for _ in range(p.shape[0] - 1):
        blocks.append(blocks[-1] @ b)
    return np.concatenate(blocks)


def grouped_matmul(p, rounded, a, b, first):
    return np.concatenate([a[begin:end] @ b[g] for g, (begin, end) in enumerate(zip(first[:-1].astype(int), first[1:].astype(int)))])


def collatz(p, rounded, x):
    x, steps = x.astype(np.int64), np.zeros(x.shape, np.int32)
    while (x > 1).any():
        steps += x > 1
        x = np.where(x > 1, np.where(x % 2, 3 * x + 1, x // 2), x)
    return steps


def lists(p, rng):
    """Nodes of lists of 1 to 4, in any order; node 0 is in none, as its number is the end of one."""
    order, nodes = 1 + rng.permutation(40), rng.integers(-99, 99, (41, 64))
    parts = np.split(order, np.arange(1, 5).repeat(4).cumsum()[:-1])
    nodes[:, 63] = 0
    for part in parts:
        nodes[part[:-1], 63] = part[1:]
    return [(nodes, "i32"), (np.array([part[0] for part in parts])[: p.shape[0]], "i32")]


def list_sum(p, rounded, nodes, heads):
    sums = np.zeros((len(heads), 64), np.int32)
    for total, node in zip(sums, heads.astype(int)):
        while True:
            total += nodes[node].astype(np.int32)
            node = int(nodes[node, 63])
            if not node:
                break
    return sums


def kept_local(p, rounded, x, z):
    blocks = [z[4 * k : 4 * k + 32] for i in range(3) for k in range(i, i + 4)]
    return 12 * x + sum(block + block.T for block in blocks)


def integers(low, high, *shape):
    return lambda p, rng: [(rng.integers(low, high, (*p.shape, *shape)), "i32")]


def axpy_inputs(p, rng):
    size, n = p.shape
    return [(np.float32(-1.5), "f32"), (rng.standard_normal(size), "f32"), (np.int32(n), "i32"), (rng.standard_normal(size), "f32")]


def axpy(p, rounded, alpha, x, n, y):
    return np.where(np.arange(len(x)) < n, alpha * x + y, y)


KINDS = {
    "vector-add": text(lambda p, rng: [(rng.standard_normal(p.shape), "f32")] * 2, lambda p, rounded, x, y: x + y, limit="row op"),
    "axpy": text(axpy_inputs, axpy, limit="row op"),
    "softmax": text(lambda p, rng: [(rng.standard_normal((*p.shape, 1000)) * 4, "f32")], softmax, limit="row op"),
    "layer-norm": text(
        lambda p, rng: [(varied_rows(rng, (*p.shape, 384)), "f16"), (rng.standard_normal(384), "f16"), (rng.standard_normal(384), "f16")],
        layer_norm,
        limit="layer norm",
        precision="f16",
    ),
    "matmul": text(operands, lambda p, rounded, a, b: a @ b, limit="gemm", precision="f16"),
    "matmul-pointers": text(operands, lambda p, rounded, a, b: a @ b, limit="gemm", precision="f16"),
    "matmul-masks": text(operands, lambda p, rounded, a, b: a @ b, limit="gemm", precision="f16"),
    "batched-dot": text(
        lambda p, rng: [(rng.standard_normal((*p.shape, 32, 48)), "f16"), (rng.standard_normal((*p.shape, 48, 16)) / 48**0.5, "f16")],
        lambda p, rounded, a, b: a @ b,
        limit="gemm",
    ),
    "flash-attention": text(heads, attention, limit="attention", precision="f16"),
    "bounds": text(lambda p, rng: [(rng.standard_normal(p.shape), "f16")], lambda p, rounded, x: abs(x), limit="exact", precision="f16"),
    "padded-filter": text(lambda p, rng: [(rng.integers(-99, 99, p.shape), "f32")], padded_filter, limit="exact"),
    "partial-products": text(
        lambda p, rng: [(rng.standard_normal((64, *p.shape)), "f16"), (rng.standard_normal((*p.shape, 64)), "f16")], partial_products, limit="gemm", precision="f32"
    ),
    "scaled-sum": text(scaled_blocks, scaled_sum, limit="exact"),
    "sum-of-products": text(small_integers((32, 0), (0, 32), (32, 0), (0, 32)), lambda p, rounded, a, b, c, d: a @ b + c @ d + a @ d, limit="exact"),
    "batched-sums": text(small_integers((2, 48, 0), (2, 0, 32), (2, 32, 0)), lambda p, rounded, a, b, c: a @ (b + c.swapaxes(1, 2)), limit="exact"),
    "reshaped-sums": text(small_integers((2, 32, 0), (0, 32)), lambda p, rounded, a, b: np.concatenate(list(a)) @ b, limit="exact"),
    "products-in-place": text(
        lambda p, rng: small_integers((64, 0), (0, 64))(p, rng) + [(rng.integers(-99, 99, (128, 64)), "f32")], products_in_place, limit="exact"
    ),
    "k-tiles": text(small_integers((64, 0, 32), (64, 0, 32)), lambda p, rounded, a, b: a.reshape(64, -1) @ b.reshape(64, -1).T, limit="exact"),
    "moved-columns": text(small_integers((64, 512), (64, 512)), moved_columns, limit="exact"),
    "powers": text(signed_permutation, powers, limit="exact", precision="f16"),
    "octets": text(lambda p, rng: [(rng.standard_normal((*p.shape, 8)), "f16")], lambda p, rounded, x: abs(x), limit="exact", precision="f16"),
    "transpose": text(lambda p, rng: [(rng.integers(-(2**31), 2**31, p.shape), "i32")], lambda p, rounded, x: x.T, limit="exact", precision="i32"),
    "guarded-add": text(
        lambda p, rng: [(rng.standard_normal(p.shape), "f32")] * 2,
        lambda p, rounded, x, y: np.pad(x + y, 32, constant_values=-1),
        limit="row op",
    ),
    "gather-rows": text(gather, lambda p, rounded, table, index: table[index.astype(int)], limit="exact"),
    "split-sums": text(lambda p, rng: [(rng.integers(-99, 99, p.shape), "f32")], lambda p, rounded, x: x.sum(1), limit="exact"),
    "last-block-sum": text(
        lambda p, rng: [(rng.integers(-(2**16), 2**16, p.shape), "i32")], lambda p, rounded, x: x.sum(keepdims=True), limit="exact", precision="i32"
    ),
    "atomic-histogram": text(
        lambda p, rng: [(rng.integers(0, 16, p.shape), "i32")],
        lambda p, rounded, x: np.bincount(x.astype(int), minlength=16),
        limit="exact",
        precision="i32",
    ),
    "cumulative-sum": text(
        integers(-(2**31), 2**31, 1000),
        lambda p, rounded, x: np.stack([np.cumsum(x, 1, dtype=np.int32), np.cumsum(x[:, ::-1], 1, dtype=np.int32)[:, ::-1]], 2),
        limit="exact",
        precision="i32",
    ),
    "recurrence": text(
        lambda p, rng: [(rng.integers(-(2**31), 2**31, (*p.shape, 16, 96)), "i32") for _ in range(2)], recurrence, limit="exact", precision="i32"
    ),
    "argmax": text(
        lambda p, rng: [(rng.integers(-40, 40, (*p.shape, 500)), "f32")], lambda p, rounded, x: x.argmax(1).astype(np.int32), limit="exact", precision="i32"
    ),
    "pick": text(
        lambda p, rng: [
            (rng.standard_normal((*p.shape, 24, 32)), "f16"),
            (rng.integers(0, 24, (*p.shape, 40, 32)), "i32"),
            (rng.integers(0, 32, (*p.shape, 40, 8)), "i32"),
        ],
        pick,
        limit="exact",
        precision="f16",
    ),
    "histogram": text(integers(-20, 300, 1000), histogram, limit="exact", precision="i32"),
    "rearrange": text(lambda p, rng: [(rng.integers(-500, 500, (*p.shape, 8, 12, 16)), "f16")], rearrange, limit="exact", precision="f16"),
    "large-blocks": text(
        lambda p, rng: [(rng.integers(-9, 9, size), "f32") for size in ((*p.shape, 64, 320), (64, 4), (*p.shape, 36, 512))], large_blocks, limit="exact"
    ),
    "long-dot": text(
        lambda p, rng: [(rng.integers(-9, 9, (*p.shape, *size)), "f32") for size in ((32, 80), (80, 64))], lambda p, rounded, x, y: x @ (y - 1) + 2, limit="exact"
    ),
    "kept-local": text(lambda p, rng: [(rng.integers(-9, 10, (rows, 32)), "f32") for rows in (32, 64)], kept_local, limit="exact"),
    "bit-count": text(
        integers(-(2**31), 2**31, 100),
        lambda p, rounded, x: np.unpackbits(x.view(np.uint8), axis=1).reshape(*x.shape, 32).sum(2, dtype=np.int32),
        limit="exact",
        precision="i32",
    ),
    "collatz": text(integers(-5, 1000), collatz, limit="exact", precision="i32"),
    "list-sum": text(lists, list_sum, limit="exact", precision="i32"),
    "sort": Text(sort_mlir, permutations, sort, limit="exact", precision="i32"),
    "top-k": Text(top_k_mlir, permutations, top_k, limit="exact", precision="i32"),
    "grid": text(grid_inputs, grid, limit="row op"),
    "split-k": text(operands, lambda p, rounded, a, b: a @ b, limit="gemm"),
    "grouped-matmul": text(group_inputs, grouped_matmul, limit="gemm", precision="f16"),
    "dropout": text(lambda p, rng: [(rng.standard_normal(p.shape), "f32"), (np.float32(0.4), "f32"), (np.int64(2**40 + 1234), "i64")], dropout, limit="row op"),
    "layer-norm-backward": text(
        lambda p, rng: [(rng.standard_normal((p.shape[0], 200)), "f32"), (rng.standard_normal(200), "f32"), (rng.standard_normal((p.shape[0], 200)), "f32"), (np.int32(p.shape[1]), "i32")],
        layer_norm_backward,
        limit="layer norm",
    ),
    "flash-attention-backward": text(gradients_of_heads, attention_backward, limit="attention", precision="f16"),
}
PROGRAMS = [
    *(Program("vector-add", n) for n in ("1", "255", "1003")),
    *(Program("axpy", sizes) for sizes in ("1003x1003", "300x129", "8x0")),
    *(Program("softmax", rows) for rows in ("1", "5")),
    *(Program("layer-norm", rows) for rows in ("3", "8")),
    *(Program("matmul", shape) for shape in ("64x64x64", "33x100x129", "70x65x1")),
    *(Program(kind, shape) for kind in ("matmul-pointers", "matmul-masks") for shape in ("128x192x64", "33x100x129", "70x65x1")),
    Program("batched-dot", "11"),
    Program("long-dot", "3"),
    *(Program("flash-attention", shape) for shape in ("1x1x1", "2x100x77", "1x64x256")),
    *(Program("bounds", shape) for shape in ("3x7", "9x64", "5x1003")),
    *(Program(kind, depth) for kind in ("partial-products", "scaled-sum", "sum-of-products", "batched-sums", "reshaped-sums", "products-in-place") for depth in ("32", "160")),
    *(Program("k-tiles", tiles) for tiles in ("1", "2", "5")),
    Program("moved-columns", "1"),
    *(Program("powers", blocks) for blocks in ("1", "6")),
    *(Program("padded-filter", shape) for shape in ("1x1", "3x7", "9x64", "5x131")),
    *(Program("octets", rows) for rows in ("1", "301")),
    *(Program("transpose", shape) for shape in ("32x32", "33x70")),
    *(Program("guarded-add", n) for n in ("1", "1003", "2048")),
    *(Program("gather-rows", shape) for shape in ("40x33x50", "3x16x64")),
    *(Program("split-sums", shape) for shape in ("16x64", "35x200")),
    *(Program("last-block-sum", n) for n in ("7", "2500")),
    *(Program("atomic-histogram", n) for n in ("5", "1300")),
    *(Program(kind, "2") for kind in ("cumulative-sum", "recurrence", "pick", "histogram", "rearrange", "large-blocks", "bit-count", "sort")),
    Program("argmax", "6"),
    *(Program("collatz", n) for n in ("3", "300")),
    Program("list-sum", "16"),
    Program("kept-local", "1"),
    Program("top-k", "3"),
    *(Program("grid", sizes) for sizes in ("1003x3x1x2x1", "64x1x0x1x0", "500x5x2x7x0")),
    *(Program("split-k", shape) for shape in ("33x40x300", "1x32x65")),
    *(Program("grouped-matmul", sizes) for sizes in ("100x4x70", "7x3x33")),
    *(Program("dropout", n) for n in ("1", "1003")),
    *(Program("layer-norm-backward", sizes) for sizes in ("1x1", "29x4", "5x11")),
    *(Program("flash-attention-backward", shape) for shape in ("1x5x3", "2x40x33")),
]
