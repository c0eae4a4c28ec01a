"""Cases of mamba-ssm: scans of state-space models in chunks and token by token, and the norms around them, against their definitions in torch.

The package's own __init__ imports modules that its build for CUDA makes; its Triton operators are taken without it.
"""

import importlib.util
import sys
import types

import torch
from torch.nn import functional as F

package = types.ModuleType("mamba_ssm")
package.__path__ = list(importlib.util.find_spec("mamba_ssm").submodule_search_locations)
sys.modules["mamba_ssm"] = package

from mamba_ssm.ops.triton.layer_norm import layer_norm_fn, rms_norm_fn  # noqa: E402
from mamba_ssm.ops.triton.layernorm_gated import rmsnorm_fn  # noqa: E402
from mamba_ssm.ops.triton.selective_state_update import selective_state_update  # noqa: E402
from mamba_ssm.ops.triton.ssd_bmm import _bmm_chunk_fwd  # noqa: E402
from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined  # noqa: E402
from triton_libraries import differentiate  # noqa: E402

BATCH, TOKENS, HEADS, WIDTH, STATE, CHUNK = 1, 64, 2, 32, 16, 32


def normal(dtype, *shape):
    return torch.randn(*shape).to(dtype)


def scan(x, dt, a, b, c, d):
    """S = exp(dt a) S + dt x b; what a token gives is S c + d x."""
    state, out = torch.zeros(BATCH, HEADS, WIDTH, STATE), []
    for t in range(TOKENS):
        step = dt[:, t, :, None, None]
        state = (step * a[:, None, None]).exp() * state + step * x[:, t, :, :, None] * b[:, t, :, None, :]
        out.append(torch.einsum("bhps,bgs->bhp", state, c[:, t]) + d[:, None] * x[:, t])
    return torch.stack(out, 1)


def chunk_scan(dtype):
    inputs = [normal(dtype, BATCH, TOKENS, HEADS, WIDTH), F.softplus(torch.randn(BATCH, TOKENS, HEADS)).to(dtype), -torch.rand(HEADS) - 0.5, normal(dtype, BATCH, TOKENS, 1, STATE), normal(dtype, BATCH, TOKENS, 1, STATE), torch.randn(HEADS)]
    return differentiate(lambda x, dt, a, b, c, d: mamba_chunk_scan_combined(x, dt, a, b, c, CHUNK, D=d), scan, inputs)


def chunk_scan_forward(dtype):
    return chunk_scan(dtype)[:1]


def state_update(dtype):
    state = torch.randn(BATCH, HEADS, WIDTH, STATE)
    x, dt, z = normal(dtype, BATCH, HEADS, WIDTH), normal(dtype, BATCH, HEADS, WIDTH), normal(dtype, BATCH, HEADS, WIDTH)
    a, d, bias = -torch.rand(HEADS, WIDTH, STATE) - 0.5, torch.randn(HEADS, WIDTH), torch.randn(HEADS, WIDTH)
    b, c = normal(dtype, BATCH, 1, STATE), normal(dtype, BATCH, 1, STATE)
    step = F.softplus(dt.float() + bias)[..., None]
    expected = (step * a).exp() * state + step * x.float()[..., None] * b.float()[:, :, None]
    out = ((expected * c.float()[:, :, None]).sum(-1) + d * x.float()) * F.silu(z.float())
    got = selective_state_update(state, x, dt, a, b, c, d, z, bias, dt_softplus=True)
    return [(got, out), (state.to(dtype), expected)]


def chunk_products(dtype):
    a, b = normal(dtype, BATCH, TOKENS, STATE), normal(dtype, BATCH, TOKENS, STATE)
    chunks = [one.float().reshape(BATCH, -1, CHUNK, STATE) for one in (a, b)]
    return [(_bmm_chunk_fwd(a, b, CHUNK), chunks[0] @ chunks[1].mT)]


def gated_rms_norm(dtype):
    def reference(x, w, z):
        x = x * F.silu(z)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w

    return differentiate(lambda x, w, z: rmsnorm_fn(x, w, None, z, norm_before_gate=False), reference, [normal(dtype, 8, 64), normal(dtype, 64), normal(dtype, 8, 64)])


def layer_norm(dtype):
    return differentiate(lambda x, w, b: layer_norm_fn(x, w, b), lambda x, w, b: F.layer_norm(x, (64,), w, b, 1e-6), [normal(dtype, 8, 64), normal(dtype, 64), normal(dtype, 64)])


def rms_norm(dtype):
    def reference(x, w):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w

    return differentiate(lambda x, w: rms_norm_fn(x, w, None), reference, [normal(dtype, 8, 64), normal(dtype, 64)])


CASES = {
    "chunk_scan_forward": chunk_scan_forward,
    "chunk_scan": chunk_scan,
    "selective_state_update": state_update,
    "chunk_products": chunk_products,
    "gated_rms_norm": gated_rms_norm,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
}
