"""Gradients of attention: the functions, their inputs, and their definition in float64 NumPy.

backward_KIND_TYPE_B_Hq_Hkv_S_T_D has B, S and T dynamic; a kind is a list of options as those of attention (attention_ops.py), and "delta" gives delta as a fourth result, "given"
takes it in place of attention's result and gives the gradients of keys and values alone, "rows" gives that of the queries. backwardview_.. reads and writes columns of a
projection as they lie.
"""

import dataclasses

import numpy as np

from attention_ops import SOFTCAP, Attention, View, attend, attributes, columns_of_heads, heads_first, mask_shape, options, queries, some_lengths, split_heads, visible
from case import Kind, rounded_to, tensor


@dataclasses.dataclass(frozen=True)
class Backward(Attention, family="backward"):
    spec = property(lambda self: BACKWARD)
    precision = property(lambda self: self.dtype)
    one_row = True  # a row that sees one key has a gradient of zero, and of others that cancel everything but what rounding left is gone

    @property
    def depth(self):
        return max(self.s, self.t)

    @property
    def results(self):
        return {"given": ["dk", "dv"], "rows": ["dq"], "delta": ["dq", "dk", "dv", "delta"]}.get(self.kind, ["dq", "dk", "dv"])

    @property
    def operands(self):
        """(name, type) of those that the op has, in order."""
        q, k = (self.type("b", *heads_and_tokens[:: -1 if self.has("tokensfirst") else 1], "d") for heads_and_tokens in (("hq", "s"), ("hkv", "t")))
        numbers = self.type("b", "hq", "s", dtype="f32")
        yield from [("q", q), ("k", k), ("v", k), ("o", numbers if self.kind == "given" else q), ("lse", numbers), ("do", q)]
        yield from ((name, given) for name, given in options(self) if name != "sinks")  # those are in lse


def backward_mlir(case, target):
    types = dict(case.operands)
    made = dict(dq=types["q"], dk=types["k"], dv=types["v"], delta=types["lse"])
    made = {name: made[name] for name in ("dq", "dk", "dv", *["delta"] * (case.kind == "delta"))}
    given = ", ".join(f"%{name}" for name in list(types)[:6]) + "".join(f" {name}(%{name})" for name in list(types)[6:])
    returned = ", ".join(made[name] for name in case.results)
    return f"""func.func @{case.function}({', '.join(f'%{name}: {t}' for name, t in types.items())}) -> ({returned}) {{
  {', '.join(f'%{name}' for name in made)} = greta.attention_backward {given}{attributes(case)} : {', '.join(types.values())} -> {', '.join(made.values())}
  return {', '.join(f'%{name}' for name in case.results)} : {returned}
}}"""


def backward_inputs(case, rng):
    q = rounded_to(case.dtype, queries(case, rng, case.b, case.hq, case.s, case.d))
    k, v = (rounded_to(case.dtype, rng.standard_normal((case.b, case.hkv, case.t, case.d))) for _ in "kv")
    gradient = rng.standard_normal(q.shape)
    named = {}
    if case.has("lengths"):
        named["lengths"] = some_lengths(case)
        for n, length in enumerate(named["lengths"]):
            k[n, :, length:] = v[n, :, length:] = np.nan  # nobody reads what is not valid
    if case.has("mask"):
        shape = mask_shape(case)
        mask = rng.standard_normal(shape)
        mask[rng.random(shape) < 0.3] = -np.inf
        mask[:, :, 2::5] = -np.inf  # whole rows
        mask_type = case.dtype if case.kind == "all" else "f32"
        named["mask"] = rounded_to(mask_type, mask)
    sinks = rng.standard_normal(case.hq) if case.has("sinks") else None
    with np.errstate(all="ignore"):
        o, lse = attend(case, q, k, v, **named, sinks=sinks)
    if case.kind == "given":
        o = (rounded_to(case.dtype, o) * rounded_to(case.dtype, gradient)).sum(-1)
    if case.kind != "given":
        o = heads_first(case, o)
    q, k, v, gradient = (heads_first(case, x) for x in (q, k, v, gradient))
    yield from [(q, case.dtype), (k, case.dtype), (v, case.dtype), (o, "f32" if case.kind == "given" else case.dtype), (lse, "f32"), (gradient, case.dtype)]
    if "lengths" in named:
        yield named["lengths"], "i32"
    if "mask" in named:
        yield named["mask"], mask_type


def weights_of(case, q, k, lse, lengths=None, mask=None):
    """The weights of keys [B, Hq, S, T], and the slopes of what a cap made of logits."""
    raw = np.einsum("bhsd,bhtd->bhst", q, k) / np.sqrt(q.shape[-1])
    tanh = np.tanh(raw / SOFTCAP) if case.has("softcap") else np.zeros(1)
    x = SOFTCAP * tanh if case.has("softcap") else raw
    if mask is not None:
        x = x + mask
    lse = lse[..., None]
    with np.errstate(all="ignore"):
        p = np.where(visible(case, x.shape, lengths) & (x > -np.inf) & (lse > -np.inf), np.exp(x - lse), 0)
    return p, 1 - tanh**2


def gradients(case, q, k, v, o, lse, do, *rest):
    """{name: result}; what a defect changes can be changed here (test_limits.py)."""
    names = [name for name, _ in case.operands][6:]
    group = case.hq // case.hkv
    wide_k, wide_v = (np.nan_to_num(np.repeat(x, group, axis=1)) for x in (k, v))
    p, slopes = weights_of(case, q, wide_k, lse, **dict(zip(names, rest, strict=True)))
    delta = o if case.kind == "given" else (o * do).sum(-1)
    dx = p * slopes * (np.einsum("bhsd,bhtd->bhst", do, wide_v) - delta[..., None]) / np.sqrt(case.d)
    together = lambda x: x.reshape(case.b, case.hkv, group, *x.shape[2:]).sum(2)
    dk, dv = together(np.einsum("bhst,bhsd->bhtd", dx, q)), together(np.einsum("bhst,bhsd->bhtd", p, do))
    return dict(dq=np.einsum("bhst,bhtd->bhsd", dx, wide_k), dk=dk, dv=dv, delta=delta)


def backward(case, rounded, *inputs):
    by_heads = [heads_first(case, x) if number in (0, 1, 2, 3, 5) and x.ndim == 4 else x for number, x in enumerate(inputs)]
    made = gradients(case, *by_heads)
    return [made[name] if name == "delta" else heads_first(case, made[name]) for name in case.results]


FORMS = "attention gradients on gfx90a", "attention gradients on the host"
BACKWARD = Kind(backward_mlir, backward_inputs, backward, "attention gradients", FORMS, kernels=2)


@dataclasses.dataclass(frozen=True)
class BackwardView(View, family="backwardview"):
    """Gradients of causal attention of the columns of a projection, S = T, as columns: two kernels, no copy."""

    one_row = True

    @property
    def spec(self):
        return COLUMNS


def columns_mlir(c, target):
    """[B, S, (Hq + 2 Hkv) D], and o and its gradient [B, S, Hq D], to three of [B, S, H D]."""
    of_q, of_k = (tensor(c.b, "?", heads * c.d, c.dtype) for heads in (c.hq, c.hkv))
    q, k = (tensor(c.b, heads, "?", c.d, c.dtype) for heads in (c.hq, c.hkv))
    whole, lse = tensor(c.b, "?", (c.hq + 2 * c.hkv) * c.d, c.dtype), tensor(c.b, c.hq, "?", "f32")
    text = columns_of_heads(c, "x", whole, (("q", c.hq), ("k", c.hkv), ("v", c.hkv)))
    text += split_heads(c, "o", "o_columns", c.hq) + split_heads(c, "do", "do_columns", c.hq)
    back = ""
    for name, heads, given, wide in (("dq", c.hq, q, of_q), ("dk", c.hkv, k, of_k), ("dv", c.hkv, k, of_k)):
        by_token = tensor(c.b, "?", heads, c.d, c.dtype)
        back += f"""  %{name}_init = tensor.empty(%s) : {by_token}
  %{name}_back = linalg.transpose ins(%{name} : {given}) outs(%{name}_init : {by_token}) permutation = [0, 2, 1, 3]
  %{name}_columns = tensor.collapse_shape %{name}_back [[0], [1], [2, 3]] : {by_token} into {wide}
"""
    return f"""func.func @{c.function}(%x: {whole}, %o_columns: {of_q}, %lse: {lse}, %do_columns: {of_q}) -> ({of_q}, {of_k}, {of_k}) {{
  %one = arith.constant 1 : index
  %s = tensor.dim %x, %one : {whole}
{text}  %dq, %dk, %dv = greta.attention_backward %q, %k, %v, %o, %lse, %do {{causal}} : {q}, {k}, {k}, {q}, {lse}, {q} -> {q}, {k}, {k}
{back}  return %dq_columns, %dk_columns, %dv_columns : {of_q}, {of_k}, {of_k}
}}"""


def by_heads(c, x, heads):
    return x.reshape(c.b, c.s, heads, c.d).transpose(0, 2, 1, 3)


def by_columns(c, x):
    return x.transpose(0, 2, 1, 3).reshape(c.b, c.s, -1)


def columns_inputs(c, rng):
    x = rounded_to(c.dtype, rng.standard_normal((c.b, c.s, (c.hq + 2 * c.hkv) * c.d)))
    o, lse = attend(c, *heads_of(c, x), causal=True)
    yield from [(x, c.dtype), (by_columns(c, o), c.dtype), (lse, "f32"), (rng.standard_normal((c.b, c.s, c.hq * c.d)), c.dtype)]


def heads_of(c, x):
    parts = np.split(x, [c.hq * c.d, (c.hq + c.hkv) * c.d], axis=-1)
    return [by_heads(c, part, heads) for part, heads in zip(parts, (c.hq, c.hkv, c.hkv), strict=True)]


def columns(c, rounded, x, o, lse, do):
    like = Backward("causal", c.dtype, c.b, c.hq, c.hkv, c.s, c.t, c.d)
    made = gradients(like, *heads_of(c, x), by_heads(c, o, c.hq), lse, by_heads(c, do, c.hq))
    return [by_columns(c, made[name]) for name in ("dq", "dk", "dv")]


COLUMNS = Kind(columns_mlir, columns_inputs, columns, "attention gradients", FORMS, kernels=2)
