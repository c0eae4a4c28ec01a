"""Gradients of attention: the functions, their inputs, and their definition in float64 NumPy.

backward_KIND_TYPE_B_Hq_Hkv_S_T_D has B, S and T dynamic; a kind is a list of options as those of attention (attention_ops.py), and "delta" gives delta as a fourth result, "given"
takes it in place of attention's result and gives the gradients of keys and values alone, "rows" gives that of the queries.
"""

import dataclasses

import numpy as np

from attention_ops import SOFTCAP, Attention, attend, attributes, options, queries, some_lengths, visible
from case import Kind, rounded_to

KINDS = {}


@dataclasses.dataclass(frozen=True)
class Backward(Attention, family="backward"):
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
        q, k, numbers = self.type("b", "hq", "s", "d"), self.type("b", "hkv", "t", "d"), self.type("b", "hq", "s", dtype="f32")
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
        shape = (case.b, 1, case.s, case.t) if case.kind == "all" else (1, case.hq, case.s, case.t)
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
    made = gradients(case, *inputs)
    return [made[name] for name in case.results]


BACKWARD = Kind(backward_mlir, backward_inputs, backward, "attention gradients", kernels=2)
for kind in ("plain", "causal", "window", "causalwindow", "softcap", "mask", "lengths", "causallengths", "sinks", "all", "delta", "given", "rows"):
    KINDS[kind] = BACKWARD
