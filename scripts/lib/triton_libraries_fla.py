"""Cases of fla-core: linear attention in chunks and token by token, against its definitions in torch."""

import torch
from fla.ops.delta_rule import chunk_delta_rule, fused_recurrent_delta_rule
from fla.ops.gla import chunk_gla, fused_recurrent_gla
from fla.ops.hgrn import fused_recurrent_hgrn
from fla.ops.linear_attn import chunk_linear_attn, fused_recurrent_linear_attn
from fla.ops.retention import chunk_retention, fused_recurrent_retention
from fla.ops.simple_gla import chunk_simple_gla, fused_recurrent_simple_gla

from triton_libraries import differentiate

BATCH, TOKENS, HEADS, WIDTH = 1, 64, 2, 32


def heads(dtype, scale=1.0):
    return (scale * torch.randn(BATCH, TOKENS, HEADS, WIDTH)).to(dtype)


def recur(q, k, v, decay=None, beta=None, scale=WIDTH**-0.5):
    """S = decay * S + k (v - beta-weighted what S has for k); what a token reads is q S."""
    state, out = torch.zeros(BATCH, HEADS, WIDTH, WIDTH), []
    for t in range(TOKENS):
        if decay is not None:
            state = decay[:, t, :, :, None] * state
        value = v[:, t]
        if beta is not None:
            value = beta[:, t, :, None] * (value - torch.einsum("bhk,bhkv->bhv", k[:, t], state))
        state = state + k[:, t, :, :, None] * value[:, :, None]
        out.append(torch.einsum("bhk,bhkv->bhv", q[:, t] * scale, state))
    return torch.stack(out, 1)


def linear(function):
    def case(dtype):
        return differentiate(lambda q, k, v: function(q, k, v, normalize=False)[0], recur, [heads(dtype) for _ in range(3)])

    return case


def retention(function):
    decay = (1 - 2.0 ** (-5 - torch.arange(HEADS))).expand(BATCH, TOKENS, HEADS)[..., None]

    def case(dtype):
        return differentiate(lambda q, k, v: function(q, k, v)[0], lambda q, k, v: recur(q, k, v, decay), [heads(dtype) for _ in range(3)])

    return case


def gated(function, per_head):
    def case(dtype):
        gate = torch.nn.functional.logsigmoid(torch.randn(BATCH, TOKENS, HEADS) if per_head else torch.randn(BATCH, TOKENS, HEADS, WIDTH)).to(dtype)

        def reference(q, k, v, g):
            return recur(q, k, v, (g[..., None] if per_head else g).exp())

        return differentiate(lambda q, k, v, g: function(q, k, v, g)[0], reference, [*(heads(dtype) for _ in range(3)), gate])

    return case


def delta(function):
    def case(dtype):
        keys = torch.nn.functional.normalize(torch.randn(BATCH, TOKENS, HEADS, WIDTH), dim=-1).to(dtype)
        beta = torch.rand(BATCH, TOKENS, HEADS).to(dtype)
        return differentiate(lambda q, k, v, b: function(q, k, v, b)[0], lambda q, k, v, b: recur(q, k, v, beta=b), [heads(dtype), keys, heads(dtype), beta])

    return case


def hgrn(dtype):
    def reference(x, g):
        state, out = torch.zeros(BATCH, WIDTH), []
        for t in range(TOKENS):
            state = g[:, t].exp() * state + x[:, t]
            out.append(state)
        return torch.stack(out, 1)

    x, gate = torch.randn(BATCH, TOKENS, WIDTH), torch.nn.functional.logsigmoid(torch.randn(BATCH, TOKENS, WIDTH))
    return differentiate(lambda x, g: fused_recurrent_hgrn(x, g)[0], reference, [x.to(dtype), gate.to(dtype)])


CASES = {
    "chunk_linear_attn": linear(chunk_linear_attn),
    "fused_recurrent_linear_attn": linear(fused_recurrent_linear_attn),
    "chunk_retention": retention(chunk_retention),
    "fused_recurrent_retention": retention(fused_recurrent_retention),
    "chunk_gla": gated(chunk_gla, per_head=False),
    "fused_recurrent_gla": gated(fused_recurrent_gla, per_head=False),
    "chunk_simple_gla": gated(chunk_simple_gla, per_head=True),
    "fused_recurrent_simple_gla": gated(fused_recurrent_simple_gla, per_head=True),
    "chunk_delta_rule": delta(chunk_delta_rule),
    "fused_recurrent_delta_rule": delta(fused_recurrent_delta_rule),
    "fused_recurrent_hgrn": hgrn,
}
