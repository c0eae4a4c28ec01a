"""Models of embeddings: BERT's and Nomic's states against their definition (and that against transformers'), pooling, and what is refused."""

import json

import numpy as np
import pytest

import encoders
from test_llm import TARGETS, WHOLE, llm

TOKENS = [101, 7, 300, 42, 42, 9, 250, 5, 180, 77, 3, 102]
DEVICES = "vulkan", "sim:gfx942"


@pytest.mark.parametrize("kind", encoders.KINDS)
def test_definition(tmp_path, kind):
    torch = pytest.importorskip("torch", reason="torch is not installed; scripts/setup --llm")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed; scripts/setup --llm")
    weights = encoders.random_weights(kind)
    folder = encoders.write_safetensors(tmp_path / kind, kind, weights)
    if kind == "nomic":  # as transformers' configuration has them
        about = dict(model_type="nomic_bert", hidden_size=encoders.WIDTH, intermediate_size=encoders.HIDDEN, num_hidden_layers=encoders.LAYERS, num_attention_heads=encoders.HEADS, layer_norm_eps=encoders.EPSILON, hidden_act="silu")
        (folder / "config.json").write_text(json.dumps(encoders.config("bert") | about))
    theirs = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    with torch.no_grad():
        got = theirs(torch.tensor([TOKENS])).last_hidden_state[0].numpy()
    want = encoders.states(kind, weights, TOKENS)
    assert np.abs(got - want).max() / np.abs(want).max() < 2e-5


def embedded(*words):
    ran = llm("embed", *words, "-q")
    assert ran.returncode == 0, ran.stderr
    return np.array(json.loads(ran.stdout))


# Each on one device; GRETA_TEST_WHOLE=1: on both.
@pytest.mark.parametrize("kind, device", [(kind, device) for i, kind in enumerate(encoders.KINDS) for device in (DEVICES if WHOLE else DEVICES[i : i + 1])])
def test_embeddings(tmp_path, kind, device):
    weights, package = encoders.random_weights(kind), tmp_path / "m.greta"
    mean = encoders.write_safetensors(tmp_path / "mean", kind, weights, prefix="bert.")
    made = llm("compile", mean, f"--targets={TARGETS[device]}", "-o", package)
    assert made.returncode == 0, made.stderr
    words = f"--device={device}", "--tokens=" + ",".join(map(str, TOKENS))
    got = embedded(package, mean, *words)
    assert np.linalg.norm(got) == pytest.approx(1, abs=1e-6)
    assert np.abs(got - encoders.embedding(kind, weights, TOKENS)).max() <= 2e-5
    # The same package is that of a GGUF file, and of the first token's state.
    cls = tmp_path / "m.gguf"
    encoders.write_gguf(cls, kind, weights, "f32", "cls")
    got = embedded(package, cls, *words)
    assert np.abs(got - encoders.embedding(kind, weights, TOKENS, "cls")).max() <= 2e-5
    one = embedded(package, cls, f"--device={device}", "--tokens=5")
    assert np.abs(one - encoders.embedding(kind, weights, [5])).max() <= 2e-5
