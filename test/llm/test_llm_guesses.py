"""Guessed tokens of greta-llm: answers of serve are those without, whatever is asked for, in whatever company, and after a preemption; a model that
guesses for another one changes nothing, has to have the same tokens, and guesses all where it is the same. Servers on lavapipe, the rest on simulated gfx942.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import functools
import itertools
import json
import math
import random
import re
import shutil
import subprocess

import pytest

import models
import texts
from test_llm import LLM, llm
from test_llm_devices import A
from test_llm_serve import DEVICE, QUICK, QUICK_TARGET, Server, events

pytestmark = pytest.mark.xdist_group("llm-guesses")  # one worker makes what these share
LARGE = dataclasses.replace(A, layers=1)
SMALL = dataclasses.replace(LARGE, width=32, hidden=64, heads=2, key_heads=1)
LARGE32 = dataclasses.replace(LARGE, head_size=32)
NO_END = {"296": -100}  # of the tokenizer below
# Small models go on repeating themselves.
PROMPT = "abcabcabc"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(a folder with models, in f32, so that the order of a sum decides no token; the package of the large one and of one that has learned something else)"""
    folder = tmp_path_factory.mktemp("models")
    for name, a, seed in (("large", LARGE, 7), ("other", LARGE, 8), ("small", SMALL, 7)):
        models.write_safetensors(folder / name, a, models.random_weights(a, seed))
        (folder / name / "tokenizer.json").write_text(json.dumps(texts.naive_tokenizer(40)))
        (folder / name / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}\n{% endfor %}")
    ran = llm("compile", folder / "large", "--targets=gfx942,vulkan:lavapipe", "--batch=1,4", "-o", folder / "m.greta")
    assert ran.returncode == 0, ran.stderr
    return folder, folder / "m.greta"


def bodies():
    """All that changes what is chosen or said. The first two need more of the cache, as they grow, than there is for both with guesses."""
    common = dict(max_tokens=12, temperature=0.3, prompt=PROMPT * 2)
    for i, more in enumerate(
        [
            dict(prompt=PROMPT, frequency_penalty=0.3, max_tokens=100, logprobs=3, logit_bias=NO_END),
            dict(prompt=PROMPT, frequency_penalty=0.3, max_tokens=100, stream=True, logit_bias=NO_END),
            dict(temperature=0, logprobs=2, stream=True),
            dict(frequency_penalty=0.7, presence_penalty=0.2),
            dict(temperature=0, frequency_penalty=-2.0, max_tokens=16),
            dict(logit_bias={str(ord("a")): 3.0, "0": -100}),
            dict(temperature=0, grammar="root ::= [a-c ]+"),
            dict(grammar='root ::= ("abc" | "cab" | "b")*', frequency_penalty=0.5, logprobs=1),
            dict(temperature=0, echo=True, stop="ab"),
            dict(prompt=random.Random(3).choices(range(256), k=20), temperature=1.0, max_tokens=5),
            dict(prompt=PROMPT * 4, temperature=0, max_tokens=1),
        ]
    ):
        yield common | dict(seed=i) | more


def said(server, body):
    status, text = server.request("/v1/completions", body)
    assert status == 200, text
    if not body.get("stream"):
        return [json.loads(text)["choices"], json.loads(text)["usage"]["completion_tokens"]]
    # How tokens come together in events is not what is said.
    choices = [event["choices"][0] for event in events(text)]
    joined = {"tokens": [], "token_logprobs": [], "top_logprobs": []}
    for choice in choices:
        for name, values in joined.items():
            values.extend((choice.get("logprobs") or {}).get(name, []))
    return ["".join(choice["text"] for choice in choices), choices[-1]["finish_reason"], joined]


def test_same_answers(made):
    """Six sequences are several steps of four tokens, and guesses may begin in one and end in the next. With guesses the cache is too small for all."""
    folder, package = made
    answers = []
    for context, options in ((1024, ()), (176, ("--drafts=3",))):
        with Server(package, [folder / "large"], "--parallel=6", f"--context={context}", "--chunk=16", "--deterministic", *options, device=QUICK) as server:
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                answers.append(list(pool.map(lambda body: said(server, body), bodies())))
            guessed, right = server.metric("guessed_tokens_total"), server.metric("right_guesses_total")
            assert 0 < right < guessed if options else guessed == right == 0
            assert server.metric("requests_failed_total") == 0
            if options:
                assert server.metric("requests_preempted_total") > 0 and server.metric("cached_tokens_total") > 0
            assert server.metric("cache_tokens_free") == server.metric("cache_tokens") == context
    assert answers[0] == answers[1]


@pytest.mark.parametrize("options", [["--temp=0"], ["--temp=0.9", "--seed=3"]])
def test_a_model_guesses(made, options):
    folder, package = made
    words = ("generate", package, folder / "large", f"--device={DEVICE}", "-p", "the theory", "-n", 20, "--ignore-eos", *options)
    plain = llm(*words)
    assert plain.returncode == 0, plain.stderr
    for name in ("large", "small"):
        ran = llm(*words, "--drafts=3", f"--draft-model={folder / name}")
        assert ran.returncode == 0 and ran.stdout == plain.stdout, ran.stderr
        right, guessed = map(int, re.search(r"drafts: (\d+) of (\d+) tokens were right", ran.stderr).groups())
        # 1 + 4 * 4 + 3 tokens, the last of which is checked with two guesses before it.
        assert (right, guessed) == (14, 14) if name == "large" and "--temp=0" in options else guessed > right, ran.stderr


def test_a_model_guesses_in_a_chat(made):
    """It knows what was said in a conversation, not what it guessed."""
    folder, package = made
    said = [
        subprocess.run([str(w) for w in (LLM, "run", package, folder / "large", f"--device={DEVICE}", "--temp=0", "-n", 10, *options)], input="hello\nmore\n", capture_output=True, text=True, errors="replace", timeout=300)
        for options in ((), ("--drafts=3", f"--draft-model={folder / 'other'}"))
    ]
    assert {ran.returncode for ran in said} == {0} and len({ran.stdout for ran in said}) == 1 and said[0].stdout.strip(), said


GUIDED = [
    dict(grammar='root ::= ("abc" | "cab" | "b")*', logprobs=2),
    dict(grammar="root ::= [a-c]{20} [d-f]{3}", temperature=0),
    # No two tokens of it are the same, so nothing that is guessed fits.
    dict(grammar='root ::= "abcdefghijklmnop"', prompt="abcdabcdabcdabcd"),
    dict(response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "array", "items": {"enum": ["abab", "abc"]}, "minItems": 6, "maxItems": 6}}}),
    dict(grammar="root ::= [a-f ]+", frequency_penalty=-0.4, temperature=0),
]


def test_guesses_under_a_grammar(made):
    """Masks behind guesses are those that the answer has there without guesses."""
    folder, package = made
    bodies = [dict(prompt=PROMPT * 2, max_tokens=24, seed=i, temperature=0.8) | more for i, more in enumerate(GUIDED)]
    said = []
    for options in ((), ("--drafts=3",)):
        with Server(package, [folder / "large"], "--parallel=3", "--context=512", "--deterministic", *options, device=QUICK) as server:
            with concurrent.futures.ThreadPoolExecutor(5) as pool:
                said.append([answer["choices"] for answer in pool.map(lambda body: server.complete(**body), bodies)])
            if options:
                right, guessed = server.metric("right_guesses_total"), server.metric("guessed_tokens_total")
                assert 10 < right <= guessed and server.metric("requests_failed_total") == 0
    assert said[0] == said[1]


@contextlib.contextmanager
def pair(folder, package, *options, drafts=("--drafts=3",), model="large"):
    """The same server without guesses and with them."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Server(package, [folder / model], "--deterministic", *options, *more, device=QUICK)) for more in ((), drafts)]


def test_stops_in_guesses(made):
    """A text that stops it may begin in one guess and end in another, or at a token that the model chose behind them; what comes after is not said."""
    folder, package = made
    with pair(folder, package, "--parallel=3", "--context=1024") as servers:
        # Both begin to repeat what was there, so that guesses are right.
        body = dict(prompt=PROMPT * 3, temperature=0, max_tokens=40, logit_bias=NO_END, frequency_penalty=-2.0)
        whole = servers[0].complete(**body)["choices"][0]["text"]
        assert servers[1].complete(**body)["choices"][0]["text"] == whole
        assert servers[1].metric("right_guesses_total") > 10
        bodies = [body | dict(stop=whole[begin : begin + size], stream=begin % 2 == 0, logprobs=begin % 3) for begin in range(0, len(whole), 3) for size in (1, 2, 5)]
        bodies += [body | dict(stop=[whole[9:12], whole[4:9], "never said"], echo=True), body | dict(stop=whole[-1:] + "x", max_tokens=40)]
        answers = []
        for server in servers:
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                answers.append(list(pool.map(lambda body: said(server, body), bodies)))
        for body, plain, guessed in zip(bodies, *answers):
            assert plain == guessed, body
            if isinstance(body["stop"], str) and not body.get("echo"):
                text = guessed[0] if body.get("stream") else guessed[0][0]["text"]
                assert text == whole.split(body["stop"])[0], body


def letters_of(server):
    """The tokens that say a, b and c, and the biases by which no others come."""
    said = {letter: json.loads(server.request("/tokenize", {"content": letter})[1])["tokens"][0] for letter in "abc"}
    return said, {str(token): -100 for token in range(models.VOCABULARY) if token not in said.values()}


@pytest.mark.parametrize("drafts", [("--drafts=3",), ("--drafts=3", "--draft-model")])
def test_to_the_end_of_the_context(made, tmp_path, drafts):
    """The last token of the context is the last that is said, whoever guesses more."""
    folder, _ = made
    shutil.copytree(folder / "large", tmp_path / "short")
    config = json.loads((tmp_path / "short" / "config.json").read_text())
    (tmp_path / "short" / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 40}))
    ran = llm("compile", tmp_path / "short", f"--targets={QUICK_TARGET}", "--batch=1,4", "-o", tmp_path / "m.greta")
    assert ran.returncode == 0, ran.stderr
    drafts = [f"{word}={folder / 'large'}" if word == "--draft-model" else word for word in drafts]
    with pair(tmp_path, tmp_path / "m.greta", "--parallel=3", drafts=drafts, model="short") as servers:
        bodies = [dict(prompt=[i % 3 + 97 for i in range(size)], temperature=0, max_tokens=1000, logit_bias=NO_END, logprobs=1, stream=size % 2 == 0) for size in (1, 2, 9, 15, 16, 17, 31, 33, 36, 37, 38, 39)]
        answers = []
        for server in servers:
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                answers.append(list(pool.map(lambda body: said(server, body), bodies)))
            assert server.metric("requests_failed_total") == 0
        assert servers[1].metric("right_guesses_total") > 10
        for body, plain, guessed in zip(bodies, *answers):
            assert plain == guessed
            if not body["stream"]:
                assert plain[1] == 40 - len(body["prompt"]) and plain[0][0]["finish_reason"] == "length"


def test_conversations_go_on_from_what_was_guessed(made):
    """The next prompt has what was said in it: pages in which wrong guesses were are those of the text, or no part of the cache. Several answers share their prompt."""
    folder, package = made
    with pair(folder, package, "--parallel=4", "--context=1024", "--chunk=16") as servers:
        tokens, others = letters_of(servers[0])
        answers = []
        for server in servers:
            prompt, own, cached = [tokens[letter] for letter in PROMPT * 2], [], 0.0
            for turn in range(5):
                answer = server.complete(prompt=prompt, seed=turn, temperature=0.9 * (turn % 2), max_tokens=17, n=1 + turn % 3, logit_bias=others, logprobs=1)
                own.append(answer["choices"])
                cached = server.metric("cached_tokens_total")
                prompt = prompt + [tokens[letter] for letter in answer["choices"][-1]["text"]] + [tokens["b"]]
            # More than the first prompt: pages of answers are found again.
            assert cached > 4 * 2 * len(PROMPT)
            answers.append(own)
            assert server.metric("requests_failed_total") == 0
        assert servers[1].metric("guessed_tokens_total") > servers[1].metric("right_guesses_total") > 0
        assert answers[0] == answers[1]


def test_guesses_are_drawn_as_without(made):
    """Three tokens that follow each other by chance: how often each three of them come, behind guesses, is what the model says without any. The seeds are fixed."""
    folder, package = made
    temperature, count = 1.5, 240
    with pair(folder, package, "--parallel=4", "--context=1024") as (plain, guessing):
        tokens, others = letters_of(plain)
        common = dict(temperature=temperature, top_k=0, top_p=1, min_p=0, logit_bias=others)
        begin = [tokens[letter] for letter in PROMPT]

        @functools.cache
        def chances(prompt):
            """Of each letter behind a prompt: the logarithms that are said have the biases in them."""
            (answer,) = plain.complete(prompt=list(prompt), max_tokens=1, logprobs=3, **common)["choices"]
            weights = [math.exp(answer["logprobs"]["top_logprobs"][0][letter] / temperature) for letter in "abc"]
            return [weight / sum(weights) for weight in weights]

        expected = {}
        for text in map("".join, itertools.product("abc", repeat=3)):
            behind = [chances((*begin, *(tokens[letter] for letter in text[:i]))) for i in range(3)]
            expected[text] = count * math.prod(chance["abc".index(letter)] for chance, letter in zip(behind, text))
        # Two at a time, which leave room for guesses in a step of four.
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            drawn = collections.Counter(pool.map(lambda seed: guessing.complete(prompt=begin, max_tokens=4, seed=seed, **common)["choices"][0]["text"][:3], range(count)))
        assert guessing.metric("guessed_tokens_total") > guessing.metric("right_guesses_total") > 10, (drawn, expected)
        assert set(drawn) <= set(expected) and min(expected.values()) > 2, (drawn, expected)
        squares = sum((drawn[text] - most) ** 2 / most for text, most in expected.items())
        # 26 degrees of freedom: one in ten thousand is above 61; drawing letters alike, or the guess too often, is far above.
        assert squares < 61, (squares, drawn, expected)


def test_nobody_gives_pages_up_for_guesses(made):
    """Two answers of 71 tokens behind nine fill their five pages; while the last tokens are checked, none needs a sixth one."""
    folder, package = made
    merged = {str(token): -100 for token in range(256, 296)}
    body = dict(prompt=PROMPT, grammar="root ::= [a-c]{71}", max_tokens=200, temperature=0, logit_bias=merged)
    with Server(package, [folder / "large"], "--parallel=2", "--context=160", "--drafts=3", "--deterministic", "--no-prefix-cache", device=QUICK) as server:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda seed: server.complete(**body, seed=seed), range(2)))
        assert [answer["usage"]["completion_tokens"] for answer in answers] == [71, 71]
        assert server.metric("guessed_tokens_total") > 20 and server.metric("requests_preempted_total") == 0


@pytest.mark.parametrize("name", ["large", "other"])
def test_a_model_guesses_for_a_server(made, name):
    """Sequences come and go, and share the steps' places."""
    folder, package = made
    prompts = [dict(prompt=list(range(i, 5 * i)), max_tokens=3 + 4 * i, seed=i, temperature=0.7 * (i % 2), logit_bias=NO_END) for i in range(1, 5)]
    prompts.append(dict(prompts[1], grammar="root ::= [ -~]*"))
    said = []
    for options in ((), ("--drafts=3", f"--draft-model={folder / name}")):
        with Server(package, [folder / "large"], "--parallel=3", "--context=128", "--deterministic", *options, device=QUICK) as server:
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                said.append([answer["choices"] for answer in pool.map(lambda body: server.complete(**body), prompts)])
            if options:
                right, guessed = server.metric("right_guesses_total"), server.metric("guessed_tokens_total")
                # Every other text is drawn, where the likeliest token, which is guessed, need not come; how many guesses there are depends on who shares a step.
                assert right < guessed and (right > 0 or name == "other")
                assert server.metric("requests_failed_total") == 0 and server.metric("cache_tokens_free") == 128
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda t: t["model"]["vocab"].update({"A": t["model"]["vocab"]["B"], "B": t["model"]["vocab"]["A"]}), r'cannot guess for this model: its token (32|33) is "[AB]", not "[AB]"'),
        (lambda t: t["added_tokens"].append({"id": 297, "content": "<|more|>", "special": True}), "cannot guess for this model: it has a token 297, which the model has not"),
        (lambda t: t["added_tokens"].pop(), "cannot guess for this model: it has no token 296, which the model has"),
    ],
)
def test_other_tokens(made, tmp_path, change, says):
    folder, package = made
    models.write_safetensors(tmp_path / "m", SMALL, models.random_weights(SMALL))
    tokenizer = texts.naive_tokenizer(40)
    change(tokenizer)
    (tmp_path / "m" / "tokenizer.json").write_text(json.dumps(tokenizer))
    ran = llm("generate", package, folder / "large", f"--device={DEVICE}", "-q", "-p", "a", "--drafts=3", f"--draft-model={tmp_path / 'm'}")
    assert ran.returncode == 1 and re.search(f"m: {says}\n", ran.stderr) and ran.stderr.count("\n") == 1, ran.stderr


def test_a_model_that_has_less(made, tmp_path):
    """A model guesses up to the end of its own context, and its heads need not have whole groups of the cache's 8 bits."""
    folder, _ = made
    models.write_safetensors(tmp_path / "m", LARGE32, models.random_weights(LARGE32, 7))
    shutil.copytree(folder / "small", tmp_path / "short")
    config = json.loads((tmp_path / "short" / "config.json").read_text())
    (tmp_path / "short" / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 20}))
    (tmp_path / "m" / "tokenizer.json").write_text((folder / "large" / "tokenizer.json").read_text())
    ran = llm("compile", tmp_path / "m", "--targets=gfx942", "--batch=1,4", "--kv-cache=q8_0", "-o", tmp_path / "m.greta")
    assert ran.returncode == 0, ran.stderr
    words = ("generate", tmp_path / "m.greta", tmp_path / "m", f"--device={DEVICE}", "--kv-cache=q8_0", "-p", "abcdefghij", "-n", 24, "--ignore-eos", "--temp=0")
    said = [llm(*words, *options) for options in ([], *(["--drafts=3", f"--draft-model={path}"] for path in (folder / "small", tmp_path / "short")))]
    assert [ran.returncode for ran in said] == [0, 0, 0] and len({ran.stdout for ran in said}) == 1, [ran.stderr for ran in said]
    long, short = (int(re.search(r"drafts: \d+ of (\d+) ", ran.stderr)[1]) for ran in said[1:])
    # It stops where 10 of the 24 tokens are made.
    assert 10 <= short <= 30 < long


def test_new_texts_in_parts(made):
    """A new text has its guesses when the other model has evaluated it, in parts; answers stay what they are."""
    folder, package = made
    bodies = [dict(prompt=list(range(10)), max_tokens=60)] + [dict(prompt=[(7 * i + j) % 250 for j in range(100)], max_tokens=20) for i in range(2)]
    said = []
    for options in ((), ("--drafts=3", f"--draft-model={folder / 'large'}", "--prompt-ms=0.001")):
        with Server(package, [folder / "large"], "--parallel=3", "--context=1024", "--deterministic", *options, device=QUICK) as server:
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                said.append([answer["choices"] for answer in pool.map(lambda body: server.complete(**body, temperature=0, logit_bias=NO_END), bodies)])
            if options:
                # All are right that nothing is left out of.
                assert server.metric("right_guesses_total") > 30 and server.metric("requests_failed_total") == 0
    assert said[0] == said[1]


def test_a_model_without_guesses(made):
    folder, package = made
    ran = llm("generate", package, folder / "large", f"--device={DEVICE}", "-p", "a", f"--draft-model={folder / 'small'}")
    assert ran.returncode == 1 and "--draft-model requires --drafts" in ran.stderr, ran.stderr
