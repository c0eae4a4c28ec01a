"""The choice of tokens on devices against its definition (sampling.py), and the definition against the probabilities that it stands for."""

import subprocess

import numpy as np
import pytest

import architectures
import models
import sampling
from conftest import BUILD
from sampling import Sampling
from test_llm import DEVICES, TARGETS, llm

PAGE, PAGES, HISTORY, BIASES = 16, 20, 16, 512
WORDS = HISTORY + 256 + 2 * BIASES
# A place for each, and one that is empty in the middle.
SAMPLINGS = [
    Sampling(),
    Sampling(temperature=0),
    Sampling(temperature=1, top_k=0, top_p=1, min_p=0, seed=2**63 + 12345),
    Sampling(temperature=0.01, seed=3),
    Sampling(top_k=1),
    None,
    Sampling(temperature=1.3, top_k=0, top_p=0.6, min_p=0, seed=4),
    Sampling(temperature=2, top_k=300, top_p=1, min_p=0, seed=5),
    Sampling(top_k=0, top_p=1, min_p=0.2, seed=6),
    Sampling(top_k=0, top_p=0, min_p=0),
    Sampling(top_k=0, top_p=1, min_p=1),
    Sampling(temperature=0, penalty=1.7, window=64),
    Sampling(penalty=1.2, window=256, seed=7),
    Sampling(temperature=0.7, top_k=0, top_p=0.9, min_p=0, penalty=0.5, window=3, seed=8),
    Sampling(temperature=0, frequency=0.4, presence=1.0),
    Sampling(frequency=-0.0, presence=0.7, penalty=1.3, seed=9),
    Sampling(top_k=0, top_p=1, min_p=0, biases=((3, 2.5), (17, -100.0), (255, 4.0)), seed=10),
    Sampling(temperature=0, biases=((41, 100.0),)),
    Sampling(temperature=1.5, top_k=0, top_p=1, min_p=0, mask=7, seed=11),
    Sampling(mask=31, frequency=0.5, biases=((62, 3.0),), seed=12),
]


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """vocabulary -> a package with the function `sample` alone"""
    folder, known = tmp_path_factory.mktemp("sampling"), {}

    def make(vocabulary):
        if vocabulary not in known:
            with pytest.MonkeyPatch.context() as patch:
                for module in (models, architectures):
                    patch.setattr(module, "VOCABULARY", vocabulary)
                a = models.ARCHITECTURES["llama3"]
                model = models.write_safetensors(folder / str(vocabulary), a, models.random_weights(a))
            printed = llm("compile", model, "--mlir")
            assert printed.returncode == 0, printed.stderr
            text = "greta_tile.func @sample_parts" + printed.stdout.split("greta_tile.func @sample_parts")[1].split("func.func @prompt0")[0]
            module, known[vocabulary] = folder / f"{vocabulary}.mlir", folder / f"{vocabulary}.greta"
            module.write_text(text)
            command = [BUILD / "bin" / "greta-translate", "--greta-to-package", f"--targets={','.join(TARGETS.values())}", module, "-o", known[vocabulary]]
            subprocess.run(command, check=True, timeout=300)
        return known[vocabulary]

    return make


def logits_of(vocabulary, kind, rng):
    if kind == "flat":
        return rng.normal(0, 0.5, vocabulary).astype(np.float32)
    if kind == "peaked":
        x = rng.normal(0, 2, vocabulary)
        x[rng.integers(0, vocabulary, 12)] += rng.uniform(6, 9, 12)
        return x.astype(np.float32)
    # Few values, many ties.
    return rng.integers(-2, 2, vocabulary).astype(np.float32)


def as_row(s, left, tokens):
    row = np.zeros(WORDS, np.int32)
    if s is None:
        return row
    greedy = s.temperature <= 0
    f32 = lambda x: np.float32(x).view(np.int32)
    row[:6] = [left, len(tokens) - 1, sampling.ALL if greedy else s.top_k or sampling.ALL, s.window, *np.array([s.seed], np.uint64).view(np.int32)]
    with np.errstate(divide="ignore"):
        row[6:12] = [
            f32(1 if greedy else 1 / s.temperature),
            f32(not greedy),
            f32(-np.inf if greedy else s.temperature * np.log(s.min_p)),
            f32(2 if greedy or s.top_p >= 1 else s.top_p),
            f32(s.penalty),
            f32(1 / s.penalty),
        ]
    row[12:16] = [s.mask is not None, len(s.biases), f32(s.frequency), f32(s.presence)]
    for i, (token, bias) in enumerate(s.biases):
        row[HISTORY + 256 + i], row[HISTORY + 256 + BIASES + i] = token, f32(bias)
    for i in range(max(0, len(tokens) - 256), len(tokens)):
        row[HISTORY + i % 256] = tokens[i]
    return row


def run(package, device, folder, inputs):
    words = []
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value)
        words.append(f"--input={folder / name}.npy")
    words += [f"--output={folder}/out{i}.npy" for i in range(7)]
    ran = subprocess.run([BUILD / "bin" / "greta-run", package, f"--device={device}", "--function=sample", *words], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return dict(zip(("logits", "rows", "counts", "tokens", "positions", "slots", "lengths"), (np.load(folder / f"out{i}.npy") for i in range(7))))


@pytest.mark.parametrize("kind", ["flat", "peaked", "ties"])
@pytest.mark.parametrize(
    "vocabulary, device",
    # One worker makes the model of the large vocabulary, which takes long.
    [*((vocabulary, device) for vocabulary in (320, 9000) for device in DEVICES), pytest.param(151936, "vulkan", marks=pytest.mark.xdist_group("sampling"))],
)
def test_choice(packages, tmp_path, vocabulary, device, kind):
    """Token, position, slot and length as the next step needs them, for places of every kind at once."""
    rng = np.random.default_rng([vocabulary, ord(kind[0])])
    count = len(SAMPLINGS)
    logits = np.stack([logits_of(vocabulary, kind, rng) for _ in SAMPLINGS])
    logits[3, :5] = [np.nan, np.inf, -np.inf, 7, np.nan]
    texts = [rng.integers(0, min(vocabulary, 400), n).tolist() for n in rng.integers(1, PAGE * PAGES - 2, count)]
    lefts = [1 + i % 3 for i in range(count)]
    places = rng.permutation(count).astype(np.int32)
    of = dict(zip(places.tolist(), range(count)))  # of a place the row of logits
    rows = np.stack([as_row(SAMPLINGS[of[p]], lefts[of[p]], texts[of[p]]) for p in range(count)])
    # By place, as rows; what a place without penalties has counted, or masked, is not read.
    counts = rng.integers(0, 4, (count, vocabulary)).astype(np.int32) * (rng.random((count, vocabulary)) < 0.3)
    masks = np.full((count, (vocabulary + 31) // 32), 0x5555, np.uint32)
    for place, i in of.items():
        if SAMPLINGS[i] and SAMPLINGS[i].mask:
            bits = np.arange(masks.shape[1] * 32) % SAMPLINGS[i].mask == 0
            masks[place] = (bits.reshape(-1, 32) << np.arange(32, dtype=np.uint64)).sum(1).astype(np.uint32)
    table = rng.permutation(count * PAGES).reshape(count, PAGES).astype(np.int32)
    old = {name: np.full(count, value, np.int32) for name, value in (("tokens", -5), ("positions", -6), ("slots", -7), ("lengths", -8))}
    got = run(packages(vocabulary), device, tmp_path, {"logits": logits, "places": places, "table": table, "rows": rows, "masks": masks.view(np.int32), "counts": counts.astype(np.int32), **old})
    compared = 0
    for i, place in enumerate(places):
        s, text, n = SAMPLINGS[i], texts[i], len(texts[i])
        said = counts[place].astype(np.int32)
        state = [int(got[name][place]) for name in ("tokens", "positions", "slots", "lengths")]
        if s is None:
            assert state == [-5, -6, -7, -8] and np.array_equal(got["rows"][place], rows[place]) and np.array_equal(got["counts"][place], said)
            continue
        token = state[0]
        if not sampling.is_close(logits[i].copy(), s, text, said):
            assert token == sampling.choose(logits[i].copy(), s, text, said), s
            compared += 1
        if s.frequency or s.presence:
            said[token] += 1
        assert np.array_equal(got["counts"][place], said)
        goes_on = lefts[i] > 1
        assert state[1:] == ([n, table[place, n // PAGE] * PAGE + n % PAGE, n + 1] if goes_on else [0, -1, 0])
        want = rows[place].copy()
        want[:2] = lefts[i] - 1, n
        want[HISTORY + n % 256] = token
        assert np.array_equal(got["rows"][place], want)
    assert compared >= count - 3


def test_definition_draws_what_softmax_says():
    """20,000 draws among five tokens: each as often as it should, within four standard deviations; what is not allowed never."""
    logits, count = np.array([1.0, 0.5, -1.0, 2.0, 0.0], np.float32), 20_000
    for s, allowed in ((Sampling(temperature=0.9, top_k=0, top_p=1, min_p=0), range(5)), (Sampling(temperature=1, top_k=3, top_p=1, min_p=0), (0, 1, 3))):
        noise = np.stack([sampling.gumbel(1, position, np.arange(5)) for position in range(1, count + 1)])
        keys = logits / s.temperature + np.where(np.isin(np.arange(5), allowed), noise, -np.inf)
        drawn = np.bincount(keys.argmax(1), minlength=5)
        p = np.where(np.isin(np.arange(5), allowed), np.exp(logits / s.temperature), 0)
        p /= p.sum()
        assert (np.abs(drawn - count * p) <= 4 * np.sqrt(count * p * (1 - p))).all()
        assert [sampling.choose(logits.copy(), s, [0] * position) for position in range(1, 50)] == [
            int(np.argmax(logits / s.temperature + np.where(np.isin(np.arange(5), allowed), sampling.gumbel(0, position, np.arange(5)), -np.inf)))
            for position in range(1, 50)
        ]
