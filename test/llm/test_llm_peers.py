"""What test_llm.py compares greta-llm with, compared with others': the definition in float64 with Hugging Face transformers (f32 on the CPU), the files
with safetensors' and gguf's readers. Needs test/requirements-llm.txt (scripts/setup --llm).
"""

import numpy as np
import pytest

import models
from models import ARCHITECTURES, OTHERS
from test_llm import TOKENS

REASON = "is not installed; scripts/setup --llm"


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES | OTHERS if name != "wide"])
def test_definition(tmp_path, name):
    torch = pytest.importorskip("torch", reason="torch " + REASON)
    transformers = pytest.importorskip("transformers", reason="transformers " + REASON)
    a = (ARCHITECTURES | OTHERS)[name]
    weights = models.random_weights(a)
    folder = models.write_safetensors(tmp_path / name, a, weights)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    with torch.no_grad():
        got = theirs(torch.tensor([TOKENS])).logits[0].numpy()
    want = models.logits(a, weights, TOKENS)
    assert (np.abs(got - want).max(1) / np.abs(want).max(1)).max() < 2e-5


@pytest.mark.parametrize("dtype", models.FLOATS)
def test_safetensors(tmp_path, dtype):
    safe_open = pytest.importorskip("safetensors", reason="safetensors " + REASON).safe_open
    pytest.importorskip("torch", reason="torch " + REASON)
    weights = models.random_weights(ARCHITECTURES["qwen2"])
    folder = models.write_safetensors(tmp_path, ARCHITECTURES["qwen2"], weights, dtype)
    with safe_open(folder / "model.safetensors", "pt") as file:
        for name, w in models.rounded(weights, dtype).items():
            assert np.array_equal(file.get_tensor(models.hugging_face_name(name)).float().numpy(), w)


# The gguf package does not expand Q1_0 and Q2_0; llama.cpp's own record does (test_llm_peer_logits.py).
@pytest.mark.parametrize("format", [format for format in models.FORMATS if format not in ("q1_0", "q2_0")])
def test_gguf(tmp_path, format):
    gguf = pytest.importorskip("gguf", reason="gguf " + REASON)
    a = ARCHITECTURES["wide"]
    meant = models.write_gguf(tmp_path / "m.gguf", a, models.random_weights(a), format)
    reader = gguf.GGUFReader(tmp_path / "m.gguf")
    assert reader.get_field("general.architecture").contents() == "llama"
    for tensor in reader.tensors:
        got = gguf.dequantize(tensor.data, tensor.tensor_type).reshape(meant[tensor.name].shape)
        heads = {"attn_q": a.heads, "attn_k": a.key_heads}.get(tensor.name.split(".")[-2])
        np.testing.assert_allclose(models.halved(got, heads) if heads else got, meant[tensor.name], rtol=1e-6, atol=1e-7)
