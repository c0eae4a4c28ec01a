"""Attention and the updates of a KV cache: the functions, their inputs, and their definition in float64 NumPy.

A name says everything: attention_KIND_TYPE_B_Hq_Hkv_S_T_D with B, S and T dynamic, so that one function serves all of them; fixed_.. the same with static
extents; decode_.. with a static S, whose keys are split over workgroups; paged_KIND_.. and pageddecode_.. have T rows in the longest sequence's pages; update_KIND_TYPE_B_H_S_T_D puts S new rows into a cache of T.
"""

import dataclasses

import numpy as np

from case import Case, Kind, tensor
from limits import counts_as_one_row

WINDOW = 40
SOFTCAP = 3.0
PAGE = 16
KINDS = {}


@dataclasses.dataclass(frozen=True)
class Attention(Case, family="attention"):
    kind: str
    dtype: str
    b: int
    hq: int
    hkv: int
    s: int
    t: int
    d: int
    dynamic = "b", "s", "t", "pages"
    operand_types = property(lambda self: {self.dtype})
    has_matrix_product = property(lambda self: self.d % 16 == 0)  # what every instruction's tiles divide

    @property
    def function(self):
        return "_".join(map(str, (self.family, self.kind, self.dtype, self.hq, self.hkv, self.d)))

    @property
    def precision(self):
        return "f32" if self.kind == "lse" else self.dtype

    @property
    def depth(self):
        return self.t

    @property
    def one_row(self):
        return counts_as_one_row(self.s if self.kind == "lse" else self.d, self.t)

    def has(self, *options):
        return all(option in self.kind or self.kind == "all" for option in options)

    def type(self, *extents, dtype=None):
        """Of a tensor whose extents are numbers, or b, s and t, which may be dynamic."""
        return tensor(*("?" if e in self.dynamic else getattr(self, e) if isinstance(e, str) else e for e in extents), dtype or self.dtype)


@dataclasses.dataclass(frozen=True)
class Fixed(Attention, family="fixed"):
    dynamic = ()

    @property
    def function(self):
        return self.name


@dataclasses.dataclass(frozen=True)
class Paged(Attention, family="paged"):
    @property
    def pages(self):
        """Of a sequence, at most."""
        return -(-self.t // PAGE)

    @property
    def spec(self):
        return PAGED


class Split:
    """Few queries, whose keys several workgroups share on any target."""

    dynamic = "b", "t", "pages"
    config = ["greta.config = {split = 40}"]

    @property
    def function(self):
        return "_".join(map(str, (self.family, self.kind, self.dtype, self.hq, self.hkv, self.s, self.d)))


@dataclasses.dataclass(frozen=True)
class Decode(Split, Attention, family="decode"):
    pass


@dataclasses.dataclass(frozen=True)
class PagedDecode(Split, Paged, family="pageddecode"):
    pass


@dataclasses.dataclass(frozen=True)
class Update(Case, family="update"):
    kind: str
    dtype: str
    b: int
    h: int
    s: int
    t: int
    d: int

    @property
    def function(self):
        return "_".join(map(str, (self.family, self.kind, self.dtype, self.h, self.d)))

    @property
    def spec(self):
        return UPDATES[self.kind]


def attributes(case, *others):
    given = [f"window = {WINDOW} : i64"] * case.has("window") + [f"softcap = {SOFTCAP} : f32"] * case.has("softcap") + ["causal"] * case.has("causal")
    given += getattr(case, "config", [])
    return f" {{{', '.join([*given, *others])}}}" if given or others else ""


def options(case):
    """(name, type) of the optional operands."""
    if case.has("lengths"):
        yield "lengths", case.type("b", dtype="i32")
    if case.has("mask"):
        yield "mask", case.type("b", 1, "s", "t") if case.kind == "all" else case.type(1, "hq", "s", "t", dtype="f32")
    if case.has("sinks"):
        yield "sinks", case.type("hq", dtype="f32")


def attention_mlir(case, target):
    q, k = case.type("b", "hq", "s", "d"), case.type("b", "hkv", "t", "d")
    more = list(options(case))
    arguments = [("q", q), ("k", k), ("v", k), *more]
    given = "".join(f" {name}(%{name})" for name, _ in more)
    results, named, returned = q, "%0", "%0"
    if case.kind == "lse":
        results, named, returned = f"{q}, {case.type('b', 'hq', 's', dtype='f32')}", "%0, %1", "%1"
    return f"""func.func @{case.function}({', '.join(f'%{name}: {t}' for name, t in arguments)}) -> {results.split(', ')[-1]} {{
  {named} = greta.attention %q, %k, %v{given}{attributes(case)} : {', '.join(t for _, t in arguments)} -> {results}
  return {returned} : {results.split(', ')[-1]}
}}"""


def queries(case, rng, *shape):
    """Rows of weak and of sharp attention."""
    return rng.standard_normal(shape) * np.choose(np.arange(shape[-2]) % 3, [1.0, 4.0, 0.1])[:, None]


def some_lengths(case):
    """All keys, none, one, and something between."""
    return np.array([(case.t, 0, 1, -(-case.t // 2))[n % 4] for n in range(case.b)])


def attention_inputs(case, rng):
    yield queries(case, rng, case.b, case.hq, case.s, case.d), case.dtype
    lengths = some_lengths(case) if case.has("lengths") else np.full(case.b, case.t)
    for _ in "kv":
        x = rng.standard_normal((case.b, case.hkv, case.t, case.d))
        for n, length in enumerate(lengths):
            x[n, :, length:] = np.nan  # nobody reads what is not valid
        yield x, case.dtype
    if case.has("lengths"):
        yield lengths, "i32"
    if case.has("mask"):
        shape = (case.b, 1, case.s, case.t) if case.kind == "all" else (1, case.hq, case.s, case.t)
        mask = rng.standard_normal(shape)
        mask[rng.random(shape) < 0.3] = -np.inf
        mask[:, :, 2::5] = -np.inf  # whole rows
        if case.kind == "mask":
            mask[:, :, 3::5] = np.finfo(np.float32).min  # what others write for "no": all keys are alike then
        yield mask, case.dtype if case.kind == "all" else "f32"
    if case.has("sinks"):
        yield rng.standard_normal(case.hq), "f32"


def visible(case, shape, lengths=None, causal=None):
    """Which keys rows see, of logits of a shape."""
    batch, _, rows, keys = shape
    valid = np.full(batch, keys) if lengths is None else np.minimum(lengths, keys)
    valid = valid.reshape(-1, 1, 1, 1)
    i, j = np.arange(rows)[:, None], np.arange(keys)
    at = i + valid - rows
    seen = np.broadcast_to(j < valid, shape)
    is_causal = case.has("causal") if causal is None else causal
    if is_causal:
        seen = seen & (j <= at)
    if case.has("window"):
        seen = seen & (j > at - WINDOW) & (is_causal | (j < at + WINDOW))
    return seen


def attend(case, q, k, v, lengths=None, mask=None, sinks=None, causal=None):
    """The result and the logarithm of the sums."""
    heads = q.shape[1]
    k, v = (np.nan_to_num(np.repeat(x, heads // x.shape[1], axis=1)) for x in (k, v))
    x = np.einsum("bhsd,bhtd->bhst", q, k) / np.sqrt(q.shape[-1])
    if case.has("softcap"):
        x = SOFTCAP * np.tanh(x / SOFTCAP)
    if mask is not None:
        x = x + mask
    seen = visible(case, x.shape, lengths, causal)
    x = np.where(seen, x, -np.inf)
    sink = np.full((1, heads, 1, 1), -np.inf) if sinks is None else sinks.reshape(1, -1, 1, 1)
    m = np.maximum(x.max(-1, initial=-np.inf, keepdims=True), sink)
    m = np.where(np.isinf(m), 0, m)
    e = np.exp(x - m)
    total = e.sum(-1, keepdims=True) + np.exp(sink - m)
    y = np.einsum("bhst,bhtd->bhsd", e, v) / np.where(total == 0, 1, total)
    with np.errstate(divide="ignore"):
        return y, (m + np.log(total))[..., 0]


def attention(case, rounded, q, k, v, *rest):
    named = dict(zip((name for name, _ in options(case)), rest, strict=True))
    return attend(case, q, k, v, **named)[case.kind == "lse"]


ATTENTION = Kind(attention_mlir, attention_inputs, attention, "attention")
for kind in ("plain", "causal", "window", "causalwindow", "softcap", "mask", "lengths", "causallengths", "sinks", "all", "lse"):
    KINDS[kind] = ATTENTION


def heads_first(case, x):
    """[B, Hq, S, D] of what lies as [B, S, Hq, D] in memory, or the other way round, where the op has its tokens first."""
    return x.transpose(0, 2, 1, 3) if case.has("tokensfirst") else x


def paged_mlir(case, target):
    q = case.type("b", "s", "hq", "d") if case.has("tokensfirst") else case.type("b", "hq", "s", "d")
    cache, table, lengths = case.type("pages", PAGE, "hkv", "d"), case.type("b", "pages", dtype="i32"), case.type("b", dtype="i32")
    types = f"{q}, {cache}, {cache}, {table}, {lengths}"
    return f"""func.func @{case.function}(%q: {q}, %k: {cache}, %v: {cache}, %table: {table}, %lengths: {lengths}) -> {q} {{
  %0 = greta.paged_attention %q, %k, %v, %table, %lengths{attributes(case, *['tokens_first'] * case.has('tokensfirst'))} : {types} -> {q}
  return %0 : {q}
}}"""


def paged_inputs(case, rng):
    yield heads_first(case, queries(case, rng, case.b, case.hq, case.s, case.d)), case.dtype
    lengths = some_lengths(case)
    used = rng.permutation(case.b * case.pages + 3)
    table = np.full((case.b, case.pages), 1 << 30)  # beyond the cache: not to be read
    cache = np.full((2, len(used), PAGE, case.hkv, case.d), np.nan)
    for n, length in enumerate(lengths):
        for j in range(length):
            page = table[n, j // PAGE] = used[n * case.pages + j // PAGE]
            cache[:, page, j % PAGE] = rng.standard_normal((2, case.hkv, case.d))
    yield from ((x, case.dtype) for x in cache)
    yield table, "i32"
    yield lengths, "i32"


def paged(case, rounded, q, k_cache, v_cache, table, lengths):
    table = np.where((table >= 0) & (table < len(k_cache)), table, 0)
    k, v = (x[table].reshape(case.b, -1, case.hkv, case.d).transpose(0, 2, 1, 3) for x in (k_cache, v_cache))
    for n, length in enumerate(lengths):
        k[n, :, length:] = v[n, :, length:] = 0
    return heads_first(case, attend(case, heads_first(case, q), k, v, lengths, causal=True)[0])


PAGED = Kind(paged_mlir, paged_inputs, paged, "attention")


def update_mlir(case, target):
    cache, new, pos = f"tensor<?x{case.h}x?x{case.d}x{case.dtype}>", f"tensor<?x{case.h}x?x{case.d}x{case.dtype}>", "tensor<?xi32>"
    if case.kind == "paged":
        cache, new = f"tensor<?x{PAGE}x{case.h}x{case.d}x{case.dtype}>", f"tensor<?x{case.h}x{case.d}x{case.dtype}>"
    op = "paged_kv_update" if case.kind == "paged" else "kv_update"
    update = f"%0 = greta.{op} %cache, %new, %pos : {cache}, {new}, {pos} -> {cache}"
    if case.kind == "kept":  # the old cache is looked at afterwards: it cannot be in place
        return f"""func.func @{case.function}(%cache: {cache}, %new: {new}, %pos: {pos}) -> ({cache}, {cache}) {{
  {update}
  %1 = arith.addf %cache, %cache : {cache}
  return %0, %1 : {cache}, {cache}
}}"""
    return f"""func.func @{case.function}(%cache: {cache}, %new: {new}, %pos: {pos}) -> {cache} {{
  {update}
  return %0 : {cache}
}}"""


def update_inputs(case, rng):
    if case.kind == "paged":
        pages = -(-case.t // PAGE)
        yield rng.standard_normal((pages, PAGE, case.h, case.d)), case.dtype
        yield rng.standard_normal((case.s, case.h, case.d)), case.dtype
        slots = rng.permutation(pages * PAGE)[: case.s]
        slots[::5] = -1
        slots[3::7] = pages * PAGE + 2
        yield slots, "i32"
        return
    yield rng.standard_normal((case.b, case.h, case.t, case.d)), case.dtype
    yield rng.standard_normal((case.b, case.h, case.s, case.d)), case.dtype
    yield np.array([(0, case.t - 1, case.t // 2, -2)[n % 4] for n in range(case.b)]), "i32"


def update(case, rounded, cache, new, at):
    y = cache.copy()
    if case.kind == "paged":
        for token, slot in enumerate(at):
            if 0 <= slot < len(cache) * PAGE:
                y[slot // PAGE, slot % PAGE] = new[token]
        return y
    for n, first in enumerate(at):
        for i in range(case.s):
            if 0 <= first + i < case.t:
                y[n, :, first + i] = new[n, :, i]
    return [y, 2 * cache] if case.kind == "kept" else y


UPDATES = {kind: Kind(update_mlir, update_inputs, update, "exact") for kind in ("rows", "kept", "paged")}
