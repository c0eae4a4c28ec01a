"""The prefix cache of greta-llm serve: a prompt whose beginning the KV cache still has is evaluated from there on, and its answer is the one without. On
simulated gfx942.
"""

import concurrent.futures
import random

import numpy as np
import pytest

from test_llm import llm
from test_llm_serve import Server, package  # noqa: F401: package is a fixture


def bodies():
    """Prompts with few beginnings, of which each part is as long as it likes."""
    rng = random.Random(1)
    parts = [rng.choices(range(512), k=k) for k in (16, 5, 40, 36)]
    for i in range(14):
        prompt = sum(rng.choices(parts, k=rng.randrange(1, 5)), []) + rng.choices(range(512), k=i % 2)
        yield dict(prompt=prompt, max_tokens=1 + i % 5, seed=i)


def cached(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def assert_same_in_parts(package, model, tmp_path):
    """Kernels for parts of a prompt of up to 32 and 128 tokens, and for more, compute the same bits."""
    tokens = ",".join(str(i * 37 % 512) for i in range(150))
    logits = []
    for chunk in (2048, 131, 40, 7):
        ran = llm("logits", package, f"--synthetic={model}", "--device=sim:gfx942", f"--tokens={tokens}", "--batch=0", f"--chunk={chunk}", "-q", "-o", tmp_path / "y.npy")
        assert ran.returncode == 0, ran.stderr
        logits.append(np.load(tmp_path / "y.npy").tobytes())
    assert len(set(logits)) == 1


@pytest.mark.parametrize("model", ["tiny", "tiny-moe"])
def test_same_answers(tmp_path, request, model):
    """Chunks are no whole pages, and the cache does not hold everything."""
    path = request.getfixturevalue("package") if model == "tiny" else tmp_path / "m.greta"
    if not path.exists():
        made = llm("compile", f"--synthetic={model}", "--targets=gfx942", "--batch=1,4", "-o", path)
        assert made.returncode == 0, made.stderr
    assert_same_in_parts(path, model, tmp_path)
    options = (f"--synthetic={model}",), "--parallel=4", "--context=256", "--chunk=24", "--deterministic"
    servers = [Server(path, *options, *more) for more in ((), ("--no-prefix-cache",))]
    texts = []
    for server, finds in zip(servers, (True, False)):
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda body: server.complete(**body), bodies()))
        texts.append([answer["choices"] for answer in answers])
        # How much is found depends on which of them are evaluated together; one by one it is all.
        assert all(cached(a) < a["usage"]["prompt_tokens"] for a in answers)
        again = [server.complete(prompt=list(range(50)), max_tokens=1, seed=1) for _ in range(2)]
        assert again[0]["choices"] == again[1]["choices"] and [cached(a) for a in again] == [0, 48 if finds else 0]
        total = sum(map(cached, answers + again))
        assert server.metric("cached_tokens_total") >= total and (finds or not total)
        assert server.metric("cache_tokens_free") == server.metric("cache_tokens") == 256
        server.end()
    assert texts[0] == texts[1]
