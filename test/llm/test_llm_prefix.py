"""The prefix cache of greta-llm serve: a prompt whose beginning the KV cache still has is evaluated from there on, and its answer is the one without. On
simulated gfx942.
"""

import concurrent.futures
import random

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


def test_same_answers(package):
    """Chunks are no whole pages, and the cache does not hold everything."""
    options = ("--parallel=4", "--context=256", "--chunk=24", "--deterministic")
    servers = [Server(package, ["--synthetic=tiny"], *options, *more) for more in ((), ("--no-prefix-cache",))]
    texts = []
    for server, finds in zip(servers, (True, False)):
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda body: server.complete(**body), bodies()))
        texts.append([answer["choices"] for answer in answers])
        total = sum(map(cached, answers))
        assert (total >= 32) == finds and all(cached(a) < a["usage"]["prompt_tokens"] for a in answers)
        assert server.metric("cached_tokens_total") >= total
        assert server.metric("cache_tokens_free") == server.metric("cache_tokens") == 256
        server.end()
    assert texts[0] == texts[1]
