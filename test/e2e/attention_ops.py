"""Attention: the functions, their inputs, and their definition in float64 NumPy.

A name says everything: attention_KIND_TYPE_B_Hq_Hkv_S_T_D with B, S and T dynamic, so that one function serves all of them; fixed_.. the same with static
extents; KIND may say how keys and values are stored (STORED) and what their scales are for (perall, perhead, pertoken, pergroup of 32 or 16 neighbours); decode_.. with a static S, whose keys are split over workgroups; paged_KIND_.. and pageddecode_.. have T rows in the longest sequence's pages; in rows_KIND_.. sequences have OWN_ROWS of S rows, if they are as many, else 0, 1, 2, 0 ..; view_.. reads its operands, and is read, as
they lie elsewhere.
"""

import dataclasses
import itertools
import math

import numpy as np

from case import Case, Kind, rounded_to, tensor
from limits import counts_as_one_row
from typed import MLIR

WINDOW = 40
SOFTCAP = 3.0
PAGE = 16
OWN_ROWS = (1, 0, 7, 40, 129)
STORED = {"e4m3": "f8e4m3fn", "e5m2": "f8e5m2", "fnuz": "f8e4m3fnuz", "i8": "i8", "half": "f16"}


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
    def spec(self):
        return ATTENTION

    @property
    def function(self):
        return "_".join(map(str, (self.family, self.kind, self.dtype, self.hq, self.hkv, self.d)))

    @property
    def precision(self):
        return "f32" if self.kind == "lse" else self.dtype

    @property
    def depth(self):
        """Of sums of weights; a logit is a sum as well, and four times of what D over 64 adds to its walk is as much of its weight."""
        return (math.sqrt(self.t) + 4 * max(0, math.sqrt(self.d) - 8)) ** 2

    @property
    def one_row(self):
        return counts_as_one_row(self.s if self.kind == "lse" else self.d, self.t)

    @property
    def stored(self):
        """The element type of keys and values."""
        return next((dtype for name, dtype in STORED.items() if name in self.kind), self.dtype)

    @property
    def scales(self):
        """The extents of their scales, if they have any."""
        forms = {"perall": (1, 1, 1), "perhead": (1, "hkv", 1), "pertoken": ("b", "hkv", "t")}
        return next((extents for name, extents in forms.items() if name in self.kind), None)

    def has(self, *options):
        return all(option in self.kind or self.kind == "all" for option in options)

    def type(self, *extents, dtype=None):
        """Of a tensor whose extents are numbers, or b, s and t, which may be dynamic."""
        return tensor(*("?" if e in self.dynamic else getattr(self, e) if isinstance(e, str) else e for e in extents), MLIR.get(dtype, dtype) if dtype else self.dtype)


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
    def scales(self):
        groups = self.d // (32 if self.d % 32 == 0 else 16)
        forms = {"perall": (1, 1, 1), "perhead": (1, 1, "hkv"), "pertoken": ("pages", PAGE, "hkv"), "pergroup": ("pages", PAGE, "hkv", groups)}
        return next((extents for name, extents in forms.items() if name in self.kind), None)

    @property
    def spec(self):
        return PAGED

    @property
    def lengths(self):
        return some_lengths(self)


@dataclasses.dataclass(frozen=True)
class Rows(Paged, family="rows"):
    """Numbers of rows of each sequence's own; rows behind them are no sequence's."""

    @property
    def begins(self):
        return np.cumsum((0, *(OWN_ROWS if self.b == len(OWN_ROWS) else np.arange(self.b) % 3)))

    @property
    def lengths(self):
        """All keys, some of a sequence without rows, as many as rows, fewer, and more."""
        return np.array([self.t, 5, 7, 33, 140]) if self.b == len(OWN_ROWS) else some_lengths(self)


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


def attributes(case):
    given = ["tokens_first"] * case.has("tokensfirst")
    given += [f"window = {WINDOW} : i64"] * case.has("window") + [f"softcap = {SOFTCAP} : f32"] * case.has("softcap") + ["causal"] * case.has("causal")
    given += getattr(case, "config", [])
    return f" {{{', '.join(given)}}}" if given else ""


def heads_first(case, x):
    """[B, Hq, S, D] of what lies as [B, S, Hq, D] in memory, or the other way round, where the op has its tokens first."""
    return x.transpose(0, 2, 1, 3) if case.has("tokensfirst") else x


def query_type(case):
    if isinstance(case, Rows):
        return case.type("s", "hq", "d")
    return case.type("b", "s", "hq", "d") if case.has("tokensfirst") else case.type("b", "hq", "s", "d")


def mask_shape(case):
    """A mask for all heads and of each sequence, one of these with one row for all queries, or one for all sequences."""
    return (case.b, 1, case.s, case.t) if case.kind == "all" else (case.b, 1, 1, case.t) if case.kind == "maskrow" else (1, case.hq, case.s, case.t)


def options(case):
    """(name, type) of the optional operands."""
    if case.has("lengths"):
        yield "lengths", case.type("b", dtype="i32")
    if case.has("mask"):
        yield "mask", case.type("b", 1, "s", "t") if case.kind == "all" else case.type("b", 1, 1, "t", dtype="f32") if case.kind == "maskrow" else case.type(1, "hq", "s", "t", dtype="f32")
    if isinstance(case, Rows):
        yield "begins", tensor("?", "i32")
    if case.has("sinks"):
        yield "sinks", case.type("hq", dtype="f32")


def scale_type(case):
    return "f16" if len(case.scales) == 4 else "f32"


def scales(case):
    if case.scales:
        yield from ((name, case.type(*case.scales, dtype=scale_type(case))) for name in ("k_scale", "v_scale"))


def given_scales(case):
    return " scales(%k_scale, %v_scale)" * bool(case.scales)


def attention_mlir(case, target):
    q, k = query_type(case), case.type("b", "hkv", "t", "d", dtype=case.stored)
    arguments = [("q", q), ("k", k), ("v", k), *options(case), *scales(case)]
    given = "".join(f" {name}(%{name})" for name, _ in options(case)) + given_scales(case)
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


def stored(case, x, scale):
    """Numbers as a cache has them; what nobody reads is not a number, or any of i8."""
    if case.stored.startswith("f8"):
        return np.clip(x / scale, -240, 240), case.stored  # e4m3fnuz has no more, and no infinity
    if case.stored != "i8":
        return x / scale, case.stored
    return np.nan_to_num(np.clip(np.round(x / scale), -127, 127), nan=77), "i8"


def some_scales(case, rng, shape):
    """Of both, so that numbers have the size of those without: an i8 is some 30 times its scale."""
    if not case.scales:
        return np.ones((2, *[1] * len(shape)))
    return np.exp(rng.standard_normal((2, *shape))) / (30 if case.stored == "i8" else 1)


def attention_inputs(case, rng):
    yield heads_first(case, queries(case, rng, case.b, case.hq, case.s, case.d)), case.dtype
    lengths = some_lengths(case) if case.has("lengths") else np.full(case.b, case.t)
    factors = some_scales(case, rng, [getattr(case, e) if isinstance(e, str) else e for e in case.scales or (1, 1, 1)])
    for scale in factors:
        x = rng.standard_normal((case.b, case.hkv, case.t, case.d))
        for n, length in enumerate(lengths):
            x[n, :, length:] = np.nan  # nobody reads what is not valid
        yield stored(case, x, scale[..., None])
    if case.has("lengths"):
        yield lengths, "i32"
    if case.has("mask"):
        shape = mask_shape(case)
        mask = rng.standard_normal(shape)
        mask[rng.random(shape) < 0.3] = -np.inf
        mask[:, :, 2::5] = -np.inf  # whole rows
        if case.kind == "mask":
            mask[:, :, 3::5] = np.finfo(np.float32).min  # what others write for "no": all keys are alike then
        yield mask, case.dtype if case.kind == "all" else "f32"
    if case.has("sinks"):
        yield rng.standard_normal(case.hq), "f32"
    if case.scales:
        for scale in factors:
            for n, length in enumerate(lengths):
                if scale.shape[2] > 1:
                    scale[n, :, length:] = np.nan
            yield scale, "f32"


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


def attend(case, q, k, v, lengths=None, mask=None, sinks=None, k_scale=1.0, v_scale=1.0, causal=None):
    """The result and the logarithm of the sums."""
    heads = q.shape[1]
    k, v = (np.nan_to_num(x) * np.nan_to_num(np.expand_dims(scale, -1)) for x, scale in ((k, k_scale), (v, v_scale)))
    k, v = (np.repeat(x, heads // x.shape[1], axis=1) for x in (k, v))
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
    named = dict(zip((name for name, _ in [*options(case), *scales(case)]), rest, strict=True))
    y, lse = attend(case, heads_first(case, q), k, v, **named)
    return lse if case.kind == "lse" else heads_first(case, y)


FORMS = ("attention on the host",)
ATTENTION = Kind(attention_mlir, attention_inputs, attention, "attention", FORMS)


def paged_mlir(case, target):
    q = query_type(case)
    cache, table, lengths = case.type("pages", PAGE, "hkv", "d", dtype=case.stored), case.type("b", "pages", dtype="i32"), case.type("b", dtype="i32")
    arguments = [("q", q), ("k", cache), ("v", cache), ("table", table), ("lengths", lengths), *options(case), *scales(case)]
    given = "".join(f" {name}(%{name})" for name, _ in options(case)) + given_scales(case)
    types = ", ".join(t for _, t in arguments)
    return f"""func.func @{case.function}({', '.join(f'%{name}: {t}' for name, t in arguments)}) -> {q} {{
  %0 = greta.paged_attention %q, %k, %v, %table, %lengths{given}{attributes(case)} : {types} -> {q}
  return %0 : {q}
}}"""


def paged_inputs(case, rng):
    if isinstance(case, Rows):
        yield queries(case, rng, case.hq, case.s, case.d).transpose(1, 0, 2), case.dtype
    else:
        yield heads_first(case, queries(case, rng, case.b, case.hq, case.s, case.d)), case.dtype
    lengths = case.lengths
    used = rng.permutation(case.b * case.pages + 3)
    table = np.full((case.b, case.pages), 1 << 30)  # beyond the cache: not to be read
    cache = np.full((2, len(used), PAGE, case.hkv, case.d), np.nan)
    for n, length in enumerate(lengths):
        for j in range(length):
            page = table[n, j // PAGE] = used[n * case.pages + j // PAGE]
            cache[:, page, j % PAGE] = rng.standard_normal((2, case.hkv, case.d))
    extents = dict(pages=len(used), hkv=case.hkv)
    factors = some_scales(case, rng, [extents.get(e, e) for e in case.scales or (1, 1, 1)])
    yield from (stored(case, x, of_elements(scale, case.d)) for x, scale in zip(cache, factors, strict=True))
    yield table, "i32"
    yield lengths, "i32"
    if isinstance(case, Rows):
        yield case.begins, "i32"
    if case.has("sinks"):
        yield rng.standard_normal(case.hq), "f32"
    if case.scales:
        unread = np.isnan(cache[..., 0]) & case.has("per" + ("group" if factors.ndim == 5 else "token"))
        unread = unread[:, : factors.shape[1], : factors.shape[2], : factors.shape[3]]
        unread = unread.reshape(*unread.shape, *[1] * (factors.ndim - 4))
        yield from ((np.where(nobody, np.nan, scale), scale_type(case)) for nobody, scale in zip(unread, factors))


def of_elements(scale, d):
    """The scale of each of d elements, of one for all of them or one for each group."""
    return np.repeat(scale, d // scale.shape[-1], axis=-1) if scale.ndim == 4 else scale[..., None]


def paged(case, rounded, q, k_cache, v_cache, table, lengths, *rest):
    named = dict(zip((name for name, _ in [*options(case), *scales(case)]), rest, strict=True))
    k_scale, v_scale = (named.get(name, np.ones((1, 1, 1))) for name in ("k_scale", "v_scale"))
    table = np.where((table >= 0) & (table < len(k_cache)), table, 0)
    k, v = (np.nan_to_num(x) * of_elements(np.nan_to_num(scale), case.d) for x, scale in ((k_cache, k_scale), (v_cache, v_scale)))
    if case.has("pergroup"):
        k, v = rounded_to(case.dtype, k), rounded_to(case.dtype, v)
    k, v = (x[table].reshape(case.b, -1, case.hkv, case.d).transpose(0, 2, 1, 3) for x in (k, v))
    if not isinstance(case, Rows):
        return heads_first(case, attend(case, heads_first(case, q), k, v, lengths, sinks=named.get("sinks"), causal=True)[0])
    y = np.zeros_like(q)
    for n, (first, end) in enumerate(itertools.pairwise(named["begins"])):
        if first < end:
            one = slice(n, n + 1)
            own = attend(case, q[first:end].transpose(1, 0, 2)[None], k[one], v[one], lengths[one], sinks=named.get("sinks"), causal=True)[0]
            y[first:end] = own[0].transpose(1, 0, 2)
    return y


PAGED = Kind(paged_mlir, paged_inputs, paged, "attention", FORMS)


@dataclasses.dataclass(frozen=True)
class View(Attention, family="view"):
    """Causal attention of views: of the columns of a projection ("columns", S = T), of keys and values side by side by token ("pairs"). One kernel, no copy."""

    dynamic = "s", "t"

    @property
    def spec(self):
        return VIEWS[self.kind]


def swapped(name, of, heads, rows, d, dtype, size):
    """Lines that give %name as [B, H, S, D] of [B, S, H, D]."""
    return f"""  %{name}_init = tensor.empty({size}) : {tensor(*heads, *rows, d, dtype)}
  %{name} = linalg.transpose ins(%{of} : {tensor(heads[0], *rows, heads[1], d, dtype)}) outs(%{name}_init : {tensor(*heads, *rows, d, dtype)}) permutation = [0, 2, 1, 3]
"""


def split_heads(c, name, of, heads):
    """Lines that give %name as [B, H, S, D] of [B, S, H D]."""
    part, split = tensor(c.b, "?", heads * c.d, c.dtype), tensor(c.b, "?", heads, c.d, c.dtype)
    text = f"  %{name}_split = tensor.expand_shape %{of} [[0], [1], [2, 3]] output_shape [{c.b}, %s, {heads}, {c.d}] : {part} into {split}\n"
    return text + swapped(name, f"{name}_split", (c.b, heads), ("?",), c.d, c.dtype, "%s")


def columns_of_heads(c, of, whole, parts):
    """Lines that give each (name, heads) as [B, H, S, D] of columns that follow each other."""
    text, first = "", 0
    for name, heads in parts:
        text += f"  %{name}_part = tensor.extract_slice %{of}[0, 0, {first}] [{c.b}, %s, {heads * c.d}] [1, 1, 1] : {whole} to {tensor(c.b, '?', heads * c.d, c.dtype)}\n"
        text += split_heads(c, name, f"{name}_part", heads)
        first += heads * c.d
    return text


def columns_mlir(c, target):
    """[B, S, (Hq + 2 Hkv) D] to [B, S, Hq D]."""
    all_columns, given = (c.hq + 2 * c.hkv) * c.d, tensor(c.b, "?", c.hq * c.d, c.dtype)
    whole = tensor(c.b, "?", all_columns, c.dtype)
    text = columns_of_heads(c, "x", whole, (("q", c.hq), ("k", c.hkv), ("v", c.hkv)))
    q, k = tensor(c.b, c.hq, "?", c.d, c.dtype), tensor(c.b, c.hkv, "?", c.d, c.dtype)
    back = tensor(c.b, "?", c.hq, c.d, c.dtype)
    return f"""func.func @{c.function}(%x: {whole}) -> {given} {{
  %one = arith.constant 1 : index
  %s = tensor.dim %x, %one : {whole}
{text}  %y = greta.attention %q, %k, %v {{causal}} : {q}, {k}, {k} -> {q}
  %back_init = tensor.empty(%s) : {back}
  %back = linalg.transpose ins(%y : {q}) outs(%back_init : {back}) permutation = [0, 2, 1, 3]
  %joined = tensor.collapse_shape %back [[0], [1], [2, 3]] : {back} into {given}
  return %joined : {given}
}}"""


def columns_inputs(c, rng):
    yield rng.standard_normal((c.b, c.s, (c.hq + 2 * c.hkv) * c.d)), c.dtype


def columns(c, rounded, x):
    q, k, v = (part.reshape(c.b, c.s, -1, c.d).transpose(0, 2, 1, 3) for part in np.split(x, [c.hq * c.d, (c.hq + c.hkv) * c.d], axis=-1))
    return attend(c, q, k, v, causal=True)[0].transpose(0, 2, 1, 3).reshape(c.b, c.s, -1)


def pairs_mlir(c, target):
    """q [B, Hq, S, D], keys and values [B, T, 2, Hkv, D]."""
    q, whole, part = tensor(c.b, c.hq, "?", c.d, c.dtype), tensor(c.b, "?", 2, c.hkv, c.d, c.dtype), tensor(c.b, "?", c.hkv, c.d, c.dtype)
    k, text = tensor(c.b, c.hkv, "?", c.d, c.dtype), ""
    for number, name in enumerate("kv"):
        text += f"  %{name}_part = tensor.extract_slice %x[0, 0, {number}, 0, 0] [{c.b}, %t, 1, {c.hkv}, {c.d}] [1, 1, 1, 1, 1] : {whole} to {part}\n"
        text += swapped(name, f"{name}_part", (c.b, c.hkv), ("?",), c.d, c.dtype, "%t")
    return f"""func.func @{c.function}(%q: {q}, %x: {whole}) -> {q} {{
  %one = arith.constant 1 : index
  %t = tensor.dim %x, %one : {whole}
{text}  %y = greta.attention %q, %k, %v {{causal}} : {q}, {k}, {k} -> {q}
  return %y : {q}
}}"""


def pairs_inputs(c, rng):
    yield queries(c, rng, c.b, c.hq, c.s, c.d), c.dtype
    yield rng.standard_normal((c.b, c.t, 2, c.hkv, c.d)), c.dtype


def pairs(c, rounded, q, x):
    k, v = (x[:, :, number].transpose(0, 2, 1, 3) for number in (0, 1))
    return attend(c, q, k, v, causal=True)[0]


VIEWS = {"columns": Kind(columns_mlir, columns_inputs, columns, "attention", FORMS), "pairs": Kind(pairs_mlir, pairs_inputs, pairs, "attention", FORMS)}
