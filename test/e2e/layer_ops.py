"""A layer of a Llama model: norm, QKV with rope and the update of a paged cache, attention, output with residual, norm, MLP with residual; the function, its
inputs, and its definition in float64 NumPy. examples/llama_layer.mlir is what `text` says for Llama 3 8B.

A name says everything: layer_prefill_f16_T is one sequence of T new tokens behind some that the cache has, layer_decode_f16_B a token of each of B sequences.
"""

import dataclasses

import numpy as np

import cases
from case import Case, Kind, tensor

PAGE = 16
BEFORE = 37  # tokens that the cache has of the longest sequence
LLAMA = dict(width=4096, heads=32, key_heads=8, size=128, inner=14336)
SMALL = dict(width=128, heads=4, key_heads=2, size=32, inner=192)
EPS = 1e-5


def text(name, tokens, width, heads, key_heads, size, inner, dtype="f16"):
    """A layer for that many sequences of a token each, or, where it is "?", for one of any number."""
    isPrompt = tokens == "?"
    count, sequences, length = ("%tokens", 1, "?") if isPrompt else (tokens, tokens, 1)
    of = lambda *shape: tensor(*shape, dtype)
    rows = lambda columns: of(tokens, columns)
    per_head = lambda n: of(tokens, n, size)
    columns = (heads + 2 * key_heads) * size
    table, angles, slots = tensor(sequences, "?", "i32"), tensor(tokens, size // 2, "f32"), tensor(tokens, "i32")
    lengths, cache, query = tensor(sequences, "i32"), of("?", PAGE, key_heads, size), of(sequences, length, heads, size)
    arguments = dict(x=rows(width), w_norm=of(width), w_qkv=of(columns, width), cos=angles, sin=angles, k_cache=cache, v_cache=cache, slots=slots, table=table)
    arguments |= dict(lengths=lengths, w_out=of(width, heads * size), w_mlp_norm=of(width), w_gate_up=of(2 * inner, width), w_down=of(width, inner))
    norm = lambda x, w: f"greta.rms_norm {x}, {w} {{eps = 1.0e-5 : f32}} : {rows(width)}, {of(width)} -> {rows(width)}"
    matmul = lambda x, w, k, n: f"greta.matmul {x}, {w} {{transpose_b}} : {rows(k)}, {of(n, k)} -> {rows(n)}"
    part = lambda x, whole, first, n: f"tensor.extract_slice {x}[0, {first}] [{count}, {n}] [1, 1] : {rows(whole)} to {rows(n)}"
    apart = lambda x, n: f"tensor.expand_shape {x} [[0], [1, 2]] output_shape [{count}, {n}, {size}] : {rows(n * size)} into {per_head(n)}"
    rope = lambda x, n: f"greta.rope {x}, %cos, %sin {{style = \"neox\"}} : {per_head(n)}, {angles}, {angles} -> {per_head(n)}"
    update = lambda old, new: f"greta.paged_kv_update {old}, {new}, %slots : {cache}, {per_head(key_heads)}, {slots} -> {cache}"
    lines = [f"%zero = arith.constant 0 : index", f"%tokens = tensor.dim %x, %zero : {rows(width)}"] * isPrompt
    lines += [
        f"%normed = {norm('%x', '%w_norm')}",
        f"%qkv = {matmul('%normed', '%w_qkv', width, columns)}",
        f"%q_columns = {part('%qkv', columns, 0, heads * size)}",
        f"%k_columns = {part('%qkv', columns, heads * size, key_heads * size)}",
        f"%v_columns = {part('%qkv', columns, (heads + key_heads) * size, key_heads * size)}",
        f"%q_heads = {apart('%q_columns', heads)}",
        f"%k_heads = {apart('%k_columns', key_heads)}",
        f"%v_new = {apart('%v_columns', key_heads)}",
        f"%q = {rope('%q_heads', heads)}",
        f"%k_new = {rope('%k_heads', key_heads)}",
        f"%keys = {update('%k_cache', '%k_new')}",
        f"%values = {update('%v_cache', '%v_new')}",
        f"%queries = tensor.expand_shape %q [[0, 1], [2], [3]] output_shape [{sequences}, {'%tokens' if isPrompt else 1}, {heads}, {size}] : {per_head(heads)} into {query}",
        f"%attended = greta.paged_attention %queries, %keys, %values, %table, %lengths {{tokens_first}} : {query}, {cache}, {cache}, {table}, {lengths} -> {query}",
        f"%joined = tensor.collapse_shape %attended [[0, 1], [2, 3]] : {query} into {rows(heads * size)}",
        f"%projected = {matmul('%joined', '%w_out', heads * size, width)}",
        f"%middle = arith.addf %x, %projected : {rows(width)}",
        f"%mlp_normed = {norm('%middle', '%w_mlp_norm')}",
        f"%gate_up = {matmul('%mlp_normed', '%w_gate_up', width, 2 * inner)}",
        f"%gate = {part('%gate_up', 2 * inner, 0, inner)}",
        f"%up = {part('%gate_up', 2 * inner, inner, inner)}",
        f"%active = greta.swiglu %gate, %up : {rows(inner)}, {rows(inner)} -> {rows(inner)}",
        f"%down = {matmul('%active', '%w_down', inner, width)}",
        f"%y = arith.addf %middle, %down : {rows(width)}",
        f"return %y, %keys, %values : {rows(width)}, {cache}, {cache}",
    ]
    given = ",\n    ".join(f"%{name}: {type}" for name, type in arguments.items())
    return f"func.func @{name}({given})\n    -> ({rows(width)}, {cache}, {cache}) {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def example():
    about = "A layer of Llama 3 8B with a KV cache in pages, for a token of each of eight sequences and for new tokens of one: six and seven launches.\n"
    return f"// {about}{text('decode', 8, **LLAMA)}\n{text('prefill', '?', **LLAMA)}"


@dataclasses.dataclass(frozen=True)
class Layer(Case, family="layer"):
    kind: str
    dtype: str
    tokens: int
    operand_types = property(lambda self: {self.dtype})
    has_matrix_product = True
    depth = SMALL["inner"]

    @property
    def function(self):
        return f"{self.family}_{self.kind}_{self.dtype}" + f"_{self.tokens}" * (self.kind == "decode")

    @property
    def new_lengths(self):
        """How many keys each sequence has then, and how many of them are new."""
        return ([BEFORE + self.tokens], self.tokens) if self.kind == "prefill" else ([BEFORE - 9 * n % BEFORE for n in range(self.tokens)], 1)


def layer_mlir(case, target):
    return text(case.function, "?" if case.kind == "prefill" else case.tokens, dtype=case.dtype, **SMALL)


def layer_inputs(case, rng):
    width, heads, key_heads, size, inner = SMALL.values()
    normal = lambda *shape, scale=1: (rng.standard_normal(shape) * scale, case.dtype)
    lengths, new = case.new_lengths
    pages = -(-max(lengths) // PAGE)
    table = rng.permutation(len(lengths) * pages + 2)[: len(lengths) * pages].reshape(-1, pages)
    at = np.concatenate([np.arange(length - new, length) for length in lengths])
    of = np.repeat(np.arange(len(lengths)), new)
    angle = at[:, None] * 10000.0 ** (-2 * np.arange(size // 2) / size)
    cache = lambda: normal(len(lengths) * pages + 2, PAGE, key_heads, size)
    yield from [normal(case.tokens, width), normal(width), normal((heads + 2 * key_heads) * size, width, scale=width**-0.5)]
    yield from [(np.cos(angle), "f32"), (np.sin(angle), "f32"), cache(), cache(), (table[of, at // PAGE] * PAGE + at % PAGE, "i32"), (table, "i32"), (np.array(lengths), "i32")]
    yield from [normal(width, heads * size, scale=(heads * size) ** -0.5), normal(width), normal(2 * inner, width, scale=width**-0.5), normal(width, inner, scale=inner**-0.5)]


def layer(case, rounded, x, w_norm, w_qkv, cos, sin, k_cache, v_cache, slots, table, lengths, w_out, w_mlp_norm, w_gate_up, w_down):
    _, heads, key_heads, size, inner = SMALL.values()
    normed = cases.rms_norm(x, w_norm)
    qkv = rounded(normed @ w_qkv.T).reshape(len(x), -1, size)
    q, k = (rounded(cases.rope_neox(part, cos, sin)) for part in (qkv[:, :heads], qkv[:, heads : heads + key_heads]))
    v = qkv[:, heads + key_heads :]
    caches = []
    for cache, new in (k_cache, k), (v_cache, v):
        cache = cache.copy()
        cache.reshape(-1, key_heads, size)[slots] = new
        caches.append(cache)
    new = len(x) // len(lengths)
    attended = []
    for n, length in enumerate(lengths):
        keys, values = (np.repeat(cache[table[n]].reshape(-1, key_heads, size)[:length], heads // key_heads, 1) for cache in caches)
        logits = np.einsum("shd,thd->hst", q[n * new : (n + 1) * new], keys) / np.sqrt(size)
        logits[:, np.arange(length) > np.arange(length - new, length)[:, None]] = -np.inf
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        attended.append(np.einsum("hst,thd->shd", weights / weights.sum(-1, keepdims=True), values))
    joined = rounded(np.concatenate(attended).reshape(len(x), -1))
    middle = rounded(x + rounded(joined @ w_out.T))
    gate_up = rounded(cases.rms_norm(middle, w_mlp_norm) @ w_gate_up.T)
    active = rounded(cases.swiglu(gate_up[:, :inner], gate_up[:, inner:]))
    return [rounded(middle + rounded(active @ w_down.T)), *caches]


KINDS = {kind: Kind(layer_mlir, layer_inputs, layer, "layer") for kind in ("prefill", "decode")}
