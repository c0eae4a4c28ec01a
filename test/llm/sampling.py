"""The choice of the next token, defined (tools/greta-llm/engine/Sampling.h): in float64, apart from the random numbers, which are integers."""

import dataclasses

import numpy as np

ALL = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class Sampling:
    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    penalty: float = 1.0
    window: int = 64
    seed: int = 0
    frequency: float = 0.0
    presence: float = 0.0
    biases: tuple = ()  # (token, value)
    mask: int | None = None  # every so many-th token is left


def mix(x):
    x = np.uint32(x)
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def gumbel(seed, position, tokens):
    """-ln(-ln(1 - v)), v a uniform number of 31 bits, rounded to a float as the device does."""
    with np.errstate(over="ignore"):
        first = mix(np.uint32(seed & 0xFFFFFFFF) ^ mix(np.uint32(seed >> 32) ^ mix(np.uint32(position))))
        second = mix(first ^ np.uint32(0x9E3779B9))
        bits = mix(mix(np.asarray(tokens, np.uint32) ^ first) + second)
    v = np.minimum((bits >> np.uint32(1) | np.uint32(1)).astype(np.float32) * np.float32(2.0**-31), np.float32(1 - 2.0**-24))
    return -np.log(-np.log1p(-v.astype(np.float64)))


def penalised(logits, s, tokens, counts=None):
    logits = np.nan_to_num(logits.astype(np.float64), nan=-3e38, posinf=3e38, neginf=-3e38)
    for token in set(tokens[max(0, len(tokens) - s.window) :]):
        logits[token] *= 1 / s.penalty if logits[token] > 0 else s.penalty
    if counts is not None:
        logits -= s.frequency * counts + s.presence * (counts > 0)
    for token, bias in s.biases:
        logits[token] += bias
    if s.mask:
        logits[np.arange(len(logits)) % s.mask != 0] = -3e38
    return logits


def keys_of(logits, s, tokens, counts=None, p_factor=1.0, distance=0.0):
    """Of each token l / temperature + noise, -inf where it is not allowed. `p_factor` and `distance` shift the limits."""
    logits = penalised(logits, s, tokens, counts)
    if s.temperature <= 0:
        return logits
    order = np.argsort(-logits, kind="stable")
    weights = np.exp((logits - logits.max()) / s.temperature)
    # The number and the probability of the tokens that are likelier than each; equals have the same.
    first = np.searchsorted(-logits[order], -logits, side="left")
    likelier = np.concatenate([[0], np.cumsum(weights[order])])[first] / weights.sum()
    allowed = first < (s.top_k or ALL)
    if s.top_p < 1:
        allowed &= likelier < s.top_p * p_factor
    if s.min_p > 0:
        allowed &= logits >= logits.max() + s.temperature * np.log(s.min_p) + distance
    allowed |= logits == logits.max()
    noise = gumbel(s.seed, len(tokens), np.arange(len(logits)))
    return np.where(allowed, logits / s.temperature + noise, -np.inf)


def choose(logits, s, tokens, counts=None):
    return int(np.argmax(keys_of(logits, s, tokens, counts)))


def is_close(logits, s, tokens, counts=None):
    """Whether rounding may decide: another limit would choose another token, or the second best is as good."""
    best = choose(logits, s, tokens, counts)
    for p_factor, distance in ((1 - 1e-5, 1e-5), (1 + 1e-5, -1e-5)):
        keys = keys_of(logits, s, tokens, counts, p_factor, distance)
        if np.argmax(keys) != best:
            return True
    keys = np.sort(keys)
    return s.temperature > 0 and keys[-1] - keys[-2] < 1e-4 * max(1, 1 / s.temperature)
