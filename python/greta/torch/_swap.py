"""greta.torch.optimize: torch.ops.greta in the modules of a model of transformers, of Llama's kind.

A module gets another forward if its own computes the same; its source or a trial with numbers tells. Parameters and their names stay.
"""

from __future__ import annotations

import copy
import functools
import inspect
import types
from collections import Counter
from typing import Any

import torch

from . import ops  # noqa: F401 -- defines them

_SWIGLU = "self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))"
_ROPE = "apply_rotary_pos_emb(query_states, key_states, cos, sin)"


def _numbers(*shape: int) -> torch.Tensor:
    count = torch.Size(shape).numel()
    return torch.linspace(0.0, 7.0 * count, count).sin().view(shape)


def _agree(ours: Any, theirs: Any) -> bool:
    try:
        return all(torch.allclose(one, other, rtol=1e-4, atol=1e-5) for one, other in zip(ours(), theirs(), strict=True))
    except (RuntimeError, TypeError, ValueError):
        return False


#
# Norms
#


def _epsilon(module: torch.nn.Module) -> float | None:
    found = getattr(module, "variance_epsilon", getattr(module, "eps", None))
    return found if isinstance(found, float) else None


def _rms_norm(self: Any, hidden_states: torch.Tensor) -> torch.Tensor:
    return torch.ops.greta.rms_norm(hidden_states, self.weight, _epsilon(self))


def _is_rms_norm(module: torch.nn.Module) -> bool:
    """Some models add 1 to the weight, or take another mean: a trial says."""
    weight = getattr(module, "weight", None)
    if not type(module).__name__.endswith("RMSNorm") or _epsilon(module) is None or not isinstance(weight, torch.Tensor):
        return False
    if weight.dim() != 1 or weight.is_meta or len(list(module.parameters())) != 1 or next(module.children(), None) is not None:
        return False
    trial, x = copy.deepcopy(module).to("cpu", torch.float32), _numbers(2, weight.shape[0])
    with torch.no_grad():
        trial.weight.copy_(_numbers(weight.shape[0]) + 1.5)
        return _agree(lambda: [_rms_norm(trial, x)], lambda: [trial(x)])


#
# Layers
#


def _source(module: torch.nn.Module) -> str:
    try:
        return inspect.getsource(type(module).forward)
    except (OSError, TypeError):
        return ""


def _swiglu(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.down_proj(torch.ops.greta.swiglu(self.gate_proj(x), self.up_proj(x)))


def _is_swiglu(module: torch.nn.Module) -> bool:
    return type(getattr(module, "act_fn", None)).__name__ in ("SiLU", "SiLUActivation") and _SWIGLU in _source(module)


def _rotated(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ops.greta.rope(q, cos, sin), torch.ops.greta.rope(k, cos, sin)


@functools.lru_cache(None)
def _with_rope(forward: Any) -> Any:
    """The same function, which finds our rotation by the name of its module's; None where that is another one."""
    theirs = getattr(forward, "__globals__", {}).get("apply_rotary_pos_emb")
    if theirs is None or forward.__closure__ or hasattr(forward, "__wrapped__"):
        return None
    q, k, cos, sin = _numbers(1, 4, 3, 8), _numbers(1, 2, 3, 8) + 1, _numbers(1, 3, 8) * 2, _numbers(1, 3, 8) - 1
    if not _agree(lambda: _rotated(q, k, cos, sin), lambda: theirs(q, k, cos, sin)):
        return None
    ours = types.FunctionType(forward.__code__, {**forward.__globals__, "apply_rotary_pos_emb": _rotated}, forward.__name__, forward.__defaults__)
    ours.__kwdefaults__ = forward.__kwdefaults__
    return ours


def _takes_sdpa(model: Any) -> bool:
    """Whether the model's attention is scaled_dot_product_attention, which has a kernel."""
    config = getattr(model, "config", None)
    if getattr(config, "_attn_implementation", None) not in (None, "sdpa") and hasattr(model, "set_attn_implementation"):
        model.set_attn_implementation("sdpa")
    return getattr(config, "_attn_implementation", None) == "sdpa"


def optimize(model: torch.nn.Module) -> dict[str, int]:
    """Lets the model's modules call torch.ops.greta, and says how many call what: rms_norm, swiglu, rope, and attention, which is torch's own.

    A model that was optimized may be trained, moved, copied and compiled; what is counted here is all that has changed.
    """
    swapped: Counter[str] = Counter()
    takesSdpa = _takes_sdpa(model)
    for module in model.modules():
        forward = None
        if _is_rms_norm(module):
            name, forward = "rms_norm", _rms_norm
        elif _is_swiglu(module):
            name, forward = "swiglu", _swiglu
        elif _ROPE in _source(module):
            name, forward = "rope", _with_rope(type(module).forward)
            swapped["attention"] += takesSdpa
        if forward is not None:
            module.forward = types.MethodType(forward, module)
            swapped[name] += 1
    return {name: count for name, count in swapped.items() if count}
