"""The limits of test_llm.py reject models whose definition is a little wrong, in NumPy. No compiler, no device."""

import dataclasses

import numpy as np
import pytest

import defects
import models
from greta_runtime import DTYPES
from models import ARCHITECTURES, OTHERS
from test_llm import LIMITS, TOKENS, problem


def changed(**fields):
    """Another architecture with the same weights."""
    return lambda a, weights: models.logits(dataclasses.replace(a, **fields), weights, TOKENS)


def with_weights(change):
    """`change(architecture, weights)` in place."""

    def define(a, weights):
        mine = {name: w.copy() for name, w in weights.items()}
        change(a, mine)
        return models.logits(a, mine, TOKENS)

    return define


def each(weights, *words):
    """The names of weights that have one of the words."""
    return [name for name in weights if any(word in name for word in words)]


def no_bias(a, weights):
    for name in each(weights, "bias"):
        weights[name][:] = 0


def no_head_norms(a, weights):
    for name in each(weights, "_q_norm", "_k_norm"):
        weights[name][:] = 1


def no_norm_weights(a, weights):
    weights[f"blk.{a.layers - 1}.attn_norm.weight"][:] = 1


def gate_for_up(a, weights):
    gate, up = (f"blk.0.ffn_{name}.weight" for name in ("gate", "up"))
    weights[gate], weights[up] = weights[up], weights[gate]


def heads_in_turn(a, weights):
    """Query heads share key heads h % Hkv in place of h // group: queries and what they attend are in that order."""
    order = np.arange(a.heads).reshape(a.key_heads, -1).T.reshape(-1)
    for i in range(a.layers):
        for name in each(weights, f"blk.{i}.attn_q.weight", f"blk.{i}.attn_q.bias"):
            w = weights[name]
            weights[name] = w.reshape(a.heads, a.head_size, -1)[order].reshape(w.shape)
        out = weights[f"blk.{i}.attn_output.weight"]
        weights[f"blk.{i}.attn_output.weight"] = out.reshape(len(out), a.heads, a.head_size)[:, order].reshape(out.shape)


def pairs_in_another_order(a, weights):
    """Rope's pairs side by side in place of in halves."""
    for name in each(weights, "attn_q.", "attn_k."):
        heads = a.heads if "attn_q." in name else a.key_heads
        weights[name] = models.interleaved(weights[name].reshape(len(weights[name]), -1), heads).reshape(weights[name].shape)


def logits_ten_percent_larger(a, weights):
    for name in each(weights, "attn_q_norm") or each(weights, "attn_q."):
        weights[name] *= 1.1


def a_group_of_weights_scaled(a, weights):
    """As by the scale of the next group: 32 of the inputs by 1.25."""
    weights["blk.0.ffn_down.weight"][:, :32] *= 1.25


def a_group_with_another_minimum(a, weights):
    """As with the minima of Q4_1 each one group further: 32 inputs of a row are off by the same."""
    w = weights["blk.0.ffn_down.weight"]
    groups = w.reshape(len(w), -1, 32)
    low = groups.min(-1, keepdims=True)
    weights["blk.0.ffn_down.weight"] = (groups + np.roll(low, 1, axis=1) - low).reshape(w.shape)


def a_token_for_another(a, weights):
    weights["token_embd.weight"][TOKENS[5]] = weights["token_embd.weight"][TOKENS[6]]


WRONG = {
    "the base of rope doubled": (lambda a, w: changed(theta=2 * a.theta)(a, w), lambda a: True),
    "rope scaled, or not": (lambda a, w: changed(rope=None if a.rope else models.LLAMA3_ROPE)(a, w), lambda a: True),
    "a window of one key more or less": (lambda a, w: changed(window=a.window + 1 if a.window else len(TOKENS) - 1)(a, w), lambda a: True),
    "a layer left out": (lambda a, w: changed(layers=a.layers - 1)(a, w), lambda a: True),
    "no biases": (with_weights(no_bias), lambda a: a.bias),
    "no norms of heads": (with_weights(no_head_norms), lambda a: a.head_norms),
    "no weights of a norm": (with_weights(no_norm_weights), lambda a: True),
    "gate for up": (with_weights(gate_for_up), lambda a: True),
    "heads in turn": (with_weights(heads_in_turn), lambda a: 1 < a.key_heads < a.heads),
    "rope's pairs in another order": (with_weights(pairs_in_another_order), lambda a: not a.head_norms),
    "logits 10 % larger": (with_weights(logits_ten_percent_larger), lambda a: True),
    "a group's scale": (with_weights(a_group_of_weights_scaled), lambda a: True),
    "a group's minimum": (with_weights(a_group_with_another_minimum), lambda a: True),
    "a token for another": (with_weights(a_token_for_another), lambda a: True),
}
# Wrong results that are within the roundings of a whole model.
TOO_SMALL = {"f32": set(), "f16": {"in a narrower type"}, "packed f16": {"in a narrower type"}, "bf16": {"one percent more"}}
CASES = [(name, architecture) for name, (_, has) in WRONG.items() for architecture, a in ARCHITECTURES.items() if has(a)]


# Each row of greta-llm's table for another architecture: a part of it that is left out.
LEFT_OUT = {
    "qwen2-window": dict(window=None),
    "llama-dynamic": dict(rope=None),
    "qwen3-yarn": dict(rope=None),
    "smollm3": dict(without_rope=""),
    "gemma2": dict(caps=(None, 3.0)),
    "gemma3": dict(local_theta=None),
    "phi3": dict(window=10),
    "phi4-mini": dict(rotated=1.0, rope=None),
    "glm": dict(neighbours=False),
    "glm4": dict(neighbours=False),
    "granite": dict(scales={"embedding": 12.0, "scores": 0.1, "residual": 0.25}),
    "olmo2": dict(head_norms=False),
    "cohere": dict(norm="rms"),
    "cohere2": dict(without_rope=""),
    "starcoder2": dict(window=8),
    "qwen3-moe": dict(normalises=True),
    "mixtral": dict(used=1),
    "olmoe": dict(head_norms=False),
    "gpt-oss": dict(limit=1.8),
    "qwen2-moe": dict(shared_gate=False),
    "deepseek-v2-lite": dict(normalises=True),
    "deepseek-v3": dict(groups=(1, 1)),
}
MORE_LEFT_OUT = [
    ("gemma2", dict(caps=(5.0, None))),
    ("qwen2-window", dict(first=0)),
    ("gemma2", dict(period=0)),
    ("gemma3", dict(scales={"embedding": 8.0})),
    ("gemma3", dict(rope=None)),
    ("granite", dict(scales={"embedding": 12.0, "scores": 0.1, "logits": 1 / 8})),
    ("cohere2", dict(period=0)),
    ("glm", dict(rotated=1.0)),
    ("mixtral", dict(normalises=False)),
    ("gpt-oss", dict(period=0)),
    ("qwen2-moe", dict(shared=0)),
    ("deepseek-v3", dict(rope=models.YARN)),
    ("deepseek-v3", dict(neighbours=False)),
    ("deepseek-v3", dict(routed=2.4)),
    ("deepseek-v3", dict(latent_epsilon=1e-5)),
    ("gpt-oss", dict(rope=models.YARN)),
]


@pytest.mark.parametrize("name, fields", [*LEFT_OUT.items(), *MORE_LEFT_OUT])
def test_parts_of_rows_are_seen(name, fields):
    a = OTHERS[name]
    weights = models.random_weights(a)
    want = models.logits(a, weights, TOKENS)
    for element in ("f32", "f16"):
        assert problem(changed(**fields)(a, weights), want, element)


def test_every_row_has_a_part_that_is_left_out():
    assert LEFT_OUT.keys() == OTHERS.keys()


def definition(architecture):
    a = ARCHITECTURES[architecture]
    weights = models.random_weights(a)
    return a, weights, models.logits(a, weights, TOKENS)


@pytest.mark.parametrize("element", LIMITS)
@pytest.mark.parametrize("name, architecture", CASES)
def test_wrong_definitions_are_rejected(name, architecture, element):
    a, weights, want = definition(architecture)
    assert problem(WRONG[name][0](a, weights), want, element)


@pytest.mark.parametrize("element", LIMITS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_wrong_results_are_rejected(architecture, element):
    _, _, want = definition(architecture)
    unseen = defects.unseen(lambda result: problem(np.asarray(result, np.float64), want, element), want, DTYPES[element.split()[-1]])
    assert set(unseen) == TOO_SMALL[element]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_roundings_hide(architecture):
    """The base of rope off by 1 %: f32 sees it; in f16 and bf16 right kernels are off by more."""
    a, weights, want = definition(architecture)
    wrong = changed(theta=1.01 * a.theta)(a, weights)
    assert problem(wrong, want, "f32") and not problem(wrong, want, "bf16")
