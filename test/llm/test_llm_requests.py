"""What is wrong with a request, or with a package for a model, is one line on stderr and exit status 1, and nothing is written."""

import dataclasses
import json
import re
import shutil

import pytest

import encoders
import models
import texts
from conftest import BUILD
from harness import TRANSLATE, tool
from test_llm import LLM, llm
from test_llm_errors import A, WEIGHTS, changed, refused


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    package = tmp_path_factory.mktemp("tiny") / "tiny.greta"
    assert llm("compile", "--synthetic=tiny", "--targets=gfx942", "-o", package).returncode == 0
    return package


def test_requests(tmp_path, tiny):
    on = ["--synthetic=tiny", "--device=sim:gfx942"]
    out = tmp_path / "l.npy"
    refused("there is no token 512; the model has 512", "logits", tiny, *on, "--tokens=512", "-o", out)
    refused("there is no token -1; the model has 512", "logits", tiny, *on, "--tokens=-1", "-o", out)
    for big in (2**32 + 1, -(2**32), 2**63 - 1):  # whose lowest bits are a token
        refused(f"there is no token {big}; the model has 512", "logits", tiny, *on, f"--tokens=1,{big}", "-o", out)
    refused("the prompt has 17 tokens; the context has room for 16 (--context)", "generate", tiny, *on, "-p", "x" * 17, "-c", "16")
    refused("the prompt has no tokens", "generate", tiny, *on, "-p", "")
    refused("the context has no room for pp64 (--context)", "bench", tiny, *on, "-p", "64", "-c", "16")
    refused("the context has no room for tg4 @ d64 (--context)", "bench", tiny, *on, "-p", "0", "-n", "4", "-d", "64", "-c", "48")
    refused("--n-depth: Value -1 not in range 0 to 16777216", "bench", tiny, *on, "-d", "-1")
    refused("pp4096: the model's context has 2048 tokens", "bench", tiny, *on, "-p", "4096")
    refused("tg128 @ d4096: the model's context has 2048 tokens", "bench", tiny, *on, "-p", "0", "-d", "4096")
    refused("no command given; the commands are compile, run, generate, embed, logits, tokenize, bench, perplexity, serve, list (--help)")
    refused("nothing to measure: say -p or -n with more than 0 tokens", "bench", tiny, *on, "-p", "0", "-n", "0")
    refused("--temp: 'nan' is no number from 0 to 100", "generate", tiny, *on, "-p", "x", "--temp=nan")
    refused("--top-p: '1.5' is no number from 0 to 1", "generate", tiny, *on, "-p", "x", "--top-p=1.5")
    refused("--peak: '-inf' is no number beyond 0", "bench", tiny, *on, "--profile", "--peak=-inf")
    refused("json was given a disallowed flag override", "list", "--json=5")
    refused("name one model", "tokenize", "a", "b", "--synthetic=tiny")
    assert llm("tokenize", "--synthetic=tiny", "hi").stdout == "[104,105]\n"  # the text is the only word
    refused("l.npy: No such file or directory", "logits", tiny, *on, "--tokens=1", "-o", tmp_path / "no" / "l.npy")
    (tmp_path / "full").symlink_to("/dev/full")
    refused("full: No space left on device", "logits", tiny, *on, "--tokens=1", "-o", tmp_path / "full")
    assert not out.exists()


def test_packages(tmp_path, tiny):
    on = ["--device=sim:gfx942", "-p", "x", "-c", "16"]
    refused("No such file or directory", "generate", tmp_path / "none.greta", "--synthetic=tiny", *on)
    folder = models.write_safetensors(tmp_path / "other", A, WEIGHTS)
    (folder / "tokenizer.json").write_text(json.dumps(texts.naive_tokenizer(3)))
    refused("was compiled for another model (MLP width: 192 in the package, 96 in the model; vocabulary: 512 in the package, 320 in", "generate", tiny, folder, *on)
    mlir = tmp_path / "f.mlir"
    mlir.write_text("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = arith.addf %x, %x : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n")
    assert tool(TRANSLATE, "--greta-to-package", "--targets=gfx942", mlir, "-o", tmp_path / "f.greta").returncode == 0
    refused("has no function 'embed'; it was not compiled for this model", "generate", tmp_path / "f.greta", "--synthetic=tiny", *on)
    mlir.write_text(mlir.read_text().replace("@f", "@embed"))
    assert tool(TRANSLATE, "--greta-to-package", "--targets=gfx942", mlir, "-o", tmp_path / "f.greta").returncode == 0
    refused("has no embedding; run greta-llm compile", "generate", tmp_path / "f.greta", "--synthetic=tiny", *on)


@pytest.mark.parametrize("kind", ["texts", "embeddings"])
def test_packages_with_other_arguments(tmp_path, kind):
    """A function's argument is the model's by its name, and has the model's static dimensions, the first one of a weight too."""
    if kind == "texts":
        model, words = "--synthetic=tiny", ["logits", "--tokens=1", "-o", tmp_path / "l.npy"]
    else:
        model, words = encoders.write_safetensors(tmp_path / "m", "bert", encoders.random_weights("bert")), ["embed", "--tokens=5"]
    made = llm("compile", model, "--targets=gfx942", "--mlir")
    begin = made.stdout.index("func.func @embed")
    end = made.stdout.index("func.func", begin + 9)
    rows = re.search(r"%token_embd: tensor<(\d+)x", made.stdout).group(1)
    for name, pattern, by in (("tokens_of_another", r"%tokens\b", "%tokens_of_another"), ("token_embd", rf"tensor<{rows}x", f"tensor<{int(rows) - 1}x")):
        mlir = tmp_path / "f.mlir"
        mlir.write_text(made.stdout[:begin] + re.sub(pattern, by, made.stdout[begin:end]) + made.stdout[end:])
        compiled = tool(TRANSLATE, "--greta-to-package", "--targets=gfx942", mlir, "-o", tmp_path / "f.greta")
        assert compiled.returncode == 0, compiled.stderr
        refused(f"its argument '{name}' is not what this model has; run greta-llm compile", words[0], tmp_path / "f.greta", model, "--device=sim:gfx942", *words[1:])


def test_kv_caches_of_packages(tmp_path):
    """The cache's format is the package's; a model that has none such is refused before it is compiled."""
    package, on = tmp_path / "m.greta", ["--device=sim:gfx942", "--tokens=1", "-o", tmp_path / "l.npy"]
    assert llm("compile", "--synthetic=tiny", "--targets=gfx942", "--kv-cache=fp8", "-o", package).returncode == 0
    assert llm("logits", package, "--synthetic=tiny", *on, "-q").returncode == 0
    assert llm("logits", package, "--synthetic=tiny", "--kv-cache=fp8", *on, "-q").returncode == 0
    refused("m.greta: was compiled with --kv-cache=fp8, not full; run greta-llm compile", "logits", package, "--synthetic=tiny", "--kv-cache=full", *on)
    refused("--kv-cache=q8_0: heads of 16 numbers are no whole groups of 32; take fp8 or full", "compile", "--synthetic=tiny", "--kv-cache=q8_0", "--mlir")
    latents = models.OTHERS["deepseek-v3"]
    models.write_safetensors(tmp_path / "d", latents, models.random_weights(latents))
    refused("keeps latents in place of keys and values, which stay in full", "compile", tmp_path / "d", "--kv-cache=fp8", "--mlir")
    texts_model = encoders.write_safetensors(tmp_path / "e", "bert", encoders.random_weights("bert"))
    refused("is a model of embeddings, which has no KV cache", "compile", texts_model, "--kv-cache=fp8", "--mlir")
    assert llm("compile", texts_model, "--targets=gfx942", "-o", package).returncode == 0
    refused("is a model of embeddings, which has no KV cache", "embed", package, texts_model, "--kv-cache=fp8", "--device=sim:gfx942", "--tokens=1")


def test_packages_of_models_with_the_same_shapes(tmp_path):
    """Nothing but a number, or tensors that the package does not ask for, tells them apart."""
    on = ["--device=sim:gfx942", "--tokens=1", "-o", tmp_path / "l.npy"]

    def package(model):
        out = tmp_path / "m.greta"
        assert llm("compile", model, "--targets=gfx942", "-o", out).returncode == 0
        return out

    mistral = changed(tmp_path / "a", model_type="mistral", sliding_window=64)
    epsilon = changed(tmp_path / "b", model_type="mistral", sliding_window=64, rms_norm_eps=1e-6)
    window = changed(tmp_path / "c", model_type="mistral", sliding_window=None)
    ours = package(mistral)
    refused("was compiled for another model (epsilon: 1e-05 in the package, 1e-06 in the model); run greta-llm compile", "logits", ours, epsilon, *on)
    refused("was compiled for another model (window: 64 in the package, none in the model)", "logits", ours, window, *on)
    biased = dataclasses.replace(A, kind="qwen2", bias=True)
    models.write_safetensors(tmp_path / "d", biased, models.random_weights(biased))
    refused("(biases of queries, keys and values: no in the package, yes in the model)", "logits", package(changed(tmp_path / "e")), tmp_path / "d", *on)
    # Rope's angles are the model's, whichever package runs it.
    other = changed(tmp_path / "f", model_type="mistral", sliding_window=64, rope_theta=5e5)
    assert llm("logits", package(mistral), other, *on, "-q").returncode == 0


def test_without_the_compiler(tmp_path):
    """Where greta-translate is neither beside it nor in PATH, or no program."""
    alone = shutil.copy(LLM, tmp_path)

    def ran():
        return tool(alone, "compile", "--synthetic=tiny", "--targets=gfx942", "-o", tmp_path / "m.greta", env={"LD_LIBRARY_PATH": str(BUILD / "lib"), "PATH": ""})

    assert ran().returncode == 1 and "there is no greta-translate, beside this program or in PATH" in ran().stderr
    (tmp_path / "greta-translate").touch()
    assert ran().returncode == 1 and "greta-translate: cannot be started: Permission denied" in ran().stderr


def test_compiler_says_what_it_refuses(tmp_path):
    ran = llm("compile", "--synthetic=tiny", "--targets=gfx1", "-o", tmp_path / "m.greta")
    assert ran.returncode == 1 and "gfx1" in ran.stderr and ran.stderr.count("error:") == 1
    assert list(tmp_path.iterdir()) == []
