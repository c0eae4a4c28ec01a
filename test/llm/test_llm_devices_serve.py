"""greta-llm serve and run on two devices that compute every layer together: what they say is what one device says, whoever asks beside, from the prefix
cache, after a preemption and with guesses; SIGTERM ends them in bounded time. On simulated gfx942.
"""

import concurrent.futures
import dataclasses
import json
import random
import signal
import subprocess
import time

import pytest

import models
import texts
from test_llm import LLM, llm
from test_llm_devices import A
from test_llm_embeddings import changed, plain_tokenizer
from test_llm_serve import DEVICE, Server, ask_behind

pytestmark = pytest.mark.xdist_group("llm-devices_serve")  # one worker makes what these share
DEVICES = {1: f"--device={DEVICE}", 2: f"--devices={DEVICE},{DEVICE}"}

NO_END = {"296": -100}  # of the tokenizer below


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(a model in f32, so that the order of a sum decides no token; its package for one device and for two)"""
    folder = tmp_path_factory.mktemp("devices")
    a = dataclasses.replace(A, layers=1)
    models.write_safetensors(folder / "m", a, models.random_weights(a))
    (folder / "m" / "tokenizer.json").write_text(json.dumps(texts.naive_tokenizer(40)))
    (folder / "m" / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}\n{% endfor %}")
    for count in DEVICES:
        ran = llm("compile", folder / "m", "--targets=gfx942", "--batch=1,4", f"--shards={count}", "-o", folder / f"{count}.greta")
        assert ran.returncode == 0, ran.stderr
    return folder / "m", {count: folder / f"{count}.greta" for count in DEVICES}


def bodies():
    rng = random.Random(2)
    beginning = rng.choices(range(256), k=32)
    for i in range(8):
        body = dict(prompt=beginning[: 16 * (i % 3)] + rng.choices(range(256), k=1 + i), max_tokens=84 if i < 2 else 1 + 5 * i % 12, seed=i, temperature=i % 2, stream=i % 4 == 0, logit_bias=NO_END)
        yield body | ({"grammar": "root ::= [a-z ]+"} if i == 5 else {})


def test_answers_are_those_of_one_device(made):
    model, packages = made
    said = {}
    for count, package in packages.items():
        # All at once they need more of the cache than there is.
        server = Server(package, [model], "--parallel=4", "--context=176", "--chunk=16", "--deterministic", device=DEVICES[count].split("=")[1])
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            said[count] = list(pool.map(server.text, bodies()))
        assert server.metric("requests_preempted_total") > 0 and server.metric("cached_tokens_total") > 0
        assert server.metric("cache_tokens_free") == server.metric("cache_tokens") == 176
        server.end()
    assert said[1] == said[2]


def test_run_and_guesses(made):
    model, packages = made
    said = [
        subprocess.run([str(w) for w in (LLM, "run", packages[count], model, DEVICES[count], "--temp=0", "-n", 12, *options)], input="hello\nmore\n", capture_output=True, text=True, errors="replace", timeout=300)
        for count in DEVICES
        for options in ((), ("--drafts=3",))
    ]
    assert {ran.returncode for ran in said} == {0} and len({ran.stdout for ran in said}) == 1 and said[0].stdout.strip(), said


def test_layers(tmp_path):
    """Devices that have layers say what one says to the bit, with the likeliest tokens, guesses, and a grammar, though only the last one has logits."""
    a = dataclasses.replace(A, layers=3)
    model, package = models.write_safetensors(tmp_path / "m", a, models.random_weights(a), "f16"), tmp_path / "m.greta"
    (model / "tokenizer.json").write_text(json.dumps(texts.naive_tokenizer(40)))
    assert llm("compile", model, "--targets=gfx942", "--batch=1,4", "-o", package).returncode == 0
    prompts = [dict(prompt=list(range(i, 2 * i)), max_tokens=4 + 3 * i, seed=i, logprobs=2 * (i % 2), logit_bias=NO_END) for i in range(1, 5)]
    prompts[1]["grammar"] = "root ::= [a-z ]+"
    said = []
    for devices, words in ((DEVICE, ()), (",".join([DEVICE] * 3), ("--split=layers",))):
        guesses = ["--drafts=3"] * bool(words)
        server = Server(package, [model], "--parallel=4", "--context=128", "--deterministic", *words, *guesses, device=devices)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            said.append([answer["choices"] for answer in pool.map(lambda body: server.complete(**body), prompts)])
        server.end()
        generated = llm("generate", package, model, f"--device{'s' * bool(words)}={devices}", *words, "-p", "the the the", "-n", 12, "--drafts=3", "--seed=1", "-q")
        assert generated.returncode == 0, generated.stderr
        said[-1].append(generated.stdout)
    assert said[0] == said[1]


def test_sigterm(made):
    """An answer that takes longer than it has ends without the rest."""
    model, packages = made
    server = Server(packages[2], [model], "--parallel=1", "--context=2048", "--grace=1", device=f"{DEVICE},{DEVICE}")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        open_one = pool.submit(server.request, "/v1/completions", dict(prompt=[1], max_tokens=2000, temperature=0, logit_bias=NO_END))
        while server.metric("generated_tokens_total") < 1:
            time.sleep(0.01)
        begin = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        status, text = open_one.result()
    assert status == 503 and "the server is ending" in text
    assert server.process.wait(timeout=60) == 0 and time.monotonic() - begin < 10


def test_embeddings_are_not_divided(tmp_path):
    model, package = changed(tmp_path / "m", tokenizer=plain_tokenizer()), tmp_path / "m.greta"
    assert llm("compile", model, "--targets=gfx942", "-o", package).returncode == 0
    ran = llm("serve", package, model, DEVICES[2], "-q")
    assert ran.returncode == 1 and "cannot be divided among 2 devices: it is a model of embeddings" in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr


def test_who_moves_says_the_same(made):
    """Two others leave the places below, so that a step has one row in place of four."""
    model, packages = made
    with Server(packages[2], [model], "--parallel=4", "--context=176", "--chunk=16", "--no-prefix-cache", device=DEVICES[2].split("=")[1]) as server:
        body = dict(prompt=[5, 6], max_tokens=60, seed=3, temperature=1, logit_bias=NO_END)
        alone = server.complete(**body)
        moved, rows, tokens = ask_behind(server, 2, body)
        assert moved["choices"] == alone["choices"] and tokens > 8 and rows < 2 * tokens
