"""greta-llm serve: OpenAI's requests, whole and as events, many at a time; what is wrong with a request; a queue that is full; clients that leave; the
end by SIGTERM. On simulated gfx942, with a model of random weights.
"""

import collections
import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import time

import pytest

import models
import texts
from models import ARCHITECTURES
from test_llm import LLM, llm

pytestmark = pytest.mark.xdist_group("llm-serve")  # one worker makes what these share
DEVICE = "sim:gfx942"
# Another build's server, with a sanitizer in it.
SERVER = os.environ.get("GRETA_TEST_SERVER", LLM)
# For servers that take many steps: a step takes less time than a simulator's, the first one more. Under AddressSanitizer a simulator it is, because lavapipe leaves memory behind.
QUICK, QUICK_TARGET = (DEVICE, "gfx942") if "build-sanitize" in str(SERVER) else ("vulkan", "vulkan:lavapipe")


class Server:
    def __init__(self, package, model, *options, is_quiet=True, device=DEVICE, environment={}):
        command = [SERVER, "serve", package, *model, f"--device{'s' * (',' in device)}={device}", "--port=0", *(["-q"] if is_quiet else []), *options]
        self.process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment)
        line = self.process.stdout.readline()
        assert line.startswith("listening at http://127.0.0.1:"), line + self.process.stderr.read()
        self.port = int(line.rsplit(":", 1)[1])

    def request(self, path, body=None, headers={}, timeout=120):
        """(status, text)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body)
        connection.request("POST" if body is not None else "GET", path, data, {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def complete(self, **body):
        status, text = self.request("/v1/completions", body)
        assert status == 200, text
        return json.loads(text)

    def text(self, body):
        """(text, why it ended), whole or as events."""
        status, answer = self.request("/v1/completions", body)
        assert status == 200, answer
        choices = [a["choices"][0] for a in (events(answer) if body["stream"] else [json.loads(answer)])]
        return "".join(c["text"] for c in choices), choices[-1]["finish_reason"]

    def metric(self, name):
        (value,) = [line.split()[1] for line in self.request("/metrics")[1].splitlines() if line.startswith(f"greta_{name} ")]
        return float(value)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        output, errors = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, errors
        assert errors == ""

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if not kind:
            return self.end()
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "tiny.greta"
    made = llm("compile", "--synthetic=tiny", "--targets=gfx942", "--batch=1,4", "-o", path)
    assert made.returncode == 0, made.stderr
    return path


@pytest.fixture(scope="module")
def server(package):
    one = Server(package, ["--synthetic=tiny"], "--parallel=4", "--context=1024", "--chunk=16", "--deterministic")
    yield one
    one.end()


def events(text):
    assert text.endswith("data: [DONE]\n\n")
    return [json.loads(line[6:]) for line in text.split("\n\n")[:-2]]


def test_a_test_that_fails_leaves_no_server(package):
    with pytest.raises(ZeroDivisionError), Server(package, ["--synthetic=tiny"], "-c", "32") as server:
        1 / 0
    assert server.process.returncode == -signal.SIGKILL


def test_completion(server):
    answer = server.complete(prompt="Once upon", max_tokens=8, seed=3)
    assert answer["object"] == "text_completion" and answer["id"].startswith("cmpl-")
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "length" and choice["text"]
    assert answer["usage"] == {"prompt_tokens": 9, "completion_tokens": 8, "total_tokens": 17, "prompt_tokens_details": {"cached_tokens": 0}}
    assert server.complete(prompt=[ord(c) for c in "Once upon"], max_tokens=8, seed=3)["choices"] == answer["choices"]
    assert server.complete(prompt=["Once upon"], max_tokens=8, seed=3)["choices"] == answer["choices"]
    assert server.complete(prompt="Once upon", max_tokens=8, seed=4)["choices"] != answer["choices"]


def test_stream(server):
    body = dict(prompt="Once upon", max_tokens=24, seed=5)
    whole = server.complete(**body)
    status, text = server.request("/v1/completions", body | {"stream": True, "stream_options": {"include_usage": True}})
    assert status == 200
    pieces = events(text)
    assert len(pieces) > 4
    assert "".join(p["choices"][0]["text"] for p in pieces) == whole["choices"][0]["text"]
    assert [p["choices"][0]["finish_reason"] for p in pieces] == [None] * (len(pieces) - 1) + ["length"]
    assert pieces[-1]["usage"] == whole["usage"]


def test_stop(server):
    body = dict(prompt="Once upon", max_tokens=24, temperature=0)
    whole = server.complete(**body)["choices"][0]["text"]
    word = re.findall("[a-z]{4}", whole)[-1]
    answer = server.complete(**body, stop=["never", word])["choices"][0]
    assert answer["finish_reason"] == "stop" and answer["text"] == whole[: whole.index(word)]
    pieces = events(server.request("/v1/completions", body | {"stream": True, "stop": word})[1])
    assert "".join(p["choices"][0]["text"] for p in pieces) == whole[: whole.index(word)]


def test_answers_do_not_depend_on_neighbours(server):
    bodies = [
        dict(prompt=random.Random(i).choices(range(512), k=1 + 7 * i % 50), max_tokens=1 + 5 * i % 24, seed=i, stream=i % 3 == 0, top_k=i % 4 * 10) for i in range(24)
    ]
    alone = [server.text(body) for body in bodies]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert list(pool.map(server.text, bodies)) == alone
    assert server.metric("requests_running") == server.metric("requests_waiting") == 0
    assert server.metric("cache_tokens_free") == server.metric("cache_tokens") == 1024
    memory = server.metric("memory_in_use_bytes")
    assert 100_000 < memory <= server.metric("memory_reserved_bytes")
    list(map(server.text, bodies[:4]))
    assert server.metric("memory_in_use_bytes") == memory


def test_grammars_among_others(server):
    """Who waits for his mask takes part in no step, and says what he says alone; so do the others."""
    grammars = [None, "root ::= [a-z ]* [a-m] [a-z ]{1500}", "root ::= ([a-z]{1,9} [ .]?)*", None, 'root ::= "a" | "no" .{4}', "root ::= [a-z ]* [a-m] [a-z ]{900}", None]
    bodies = [dict(prompt=f"prompt {i}", max_tokens=12 + i, seed=i, stream=i % 2 == 0) | ({"grammar": g} if g else {}) for i, g in enumerate(grammars)]
    alone = [server.text(body) for body in bodies]
    assert re.fullmatch("[a-z ]*", alone[1][0]) and len(alone[1][0]) >= 13
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(server.text, bodies)) == alone
    assert server.metric("requests_failed_total") == 0


def test_clients_that_leave(server):
    before = server.metric("requests_cancelled_total")
    for _ in range(6):
        with socket.create_connection(("127.0.0.1", server.port)) as s:
            body = json.dumps(dict(prompt="x", max_tokens=900, stream=True)).encode()
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            assert s.recv(64).startswith(b"HTTP/1.1 200")
    deadline = time.monotonic() + 100
    while server.metric("requests_cancelled_total") < before + 6 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert server.metric("requests_cancelled_total") == before + 6
    assert server.metric("cache_tokens_free") == 1024
    assert server.complete(prompt="x", max_tokens=2)["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize(
    "body, says",
    [
        (b"nonsense", "the request: is no JSON"),
        (b"[]", "the request is no JSON object"),
        (b'{"prompt": "\xff"}', "the request: is no JSON"),
        (b'{"prompt": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "the request: the JSON is nested more than 64 deep"),
        (b'{"prompt": "x", "max_tokens": 1, "max_tokens": 3}', "the request: an object of the JSON has a name twice"),
        ({}, "'prompt' has to be a text, a list of tokens, or a list of such"),
        ({"prompt": ""}, "the prompt has no tokens"),
        ({"prompt": [512]}, "'prompt' has 512, which is no token of the model"),
        ({"prompt": [{}]}, "'prompt' has {} in place of a text or a list of tokens"),
        ({"prompt": "x", "best_of": 2}, "'best_of': 2 is not supported"),
        ({"prompt": "x", "logprobs": 21}, "'logprobs' has to be a whole number from 0 to 20"),
        ({"prompt": "x", "tools": [{"type": "function"}]}, "'tools': [{\"type\":\"function\"}] is not supported"),
        ({"prompt": "x", "max_token": 3}, "'max_token' is no field of this API"),
        ({"prompt": "x", "messages": []}, "'messages' is no field of this API"),
        ({"prompt": "x", "stream": "yes"}, "'stream' has to be true or false"),
        ({"prompt": "x", "stream_options": "all"}, "'stream_options' has to be an object"),
        ({"prompt": "x", "stream_options": {"all": True}}, "'stream_options': 'all' is not supported"),
        ({"prompt": "x", "model": 3}, "'model' has to be a text"),
        ({"prompt": "x", "seed": -1}, "'seed' has to be a whole number from 0 to"),
        ({"prompt": "x", "max_tokens": 0}, "'max_tokens' has to be a whole number from 1 to"),
        ({"prompt": "x", "temperature": "hot"}, "'temperature' has to be a number from 0 to 100"),
        ({"prompt": "x", "top_p": 1.5}, "'top_p' has to be a number from 0 to 1"),
        ({"prompt": "x", "stop": [3]}, "'stop' has to be a text of at most 1024 bytes, or up to 16 of them"),
        ({"prompt": "x" * 2000}, "the prompt has 2000 tokens, which leave no room in the context"),
        ({"prompt": "x" * 1_000_000}, "the prompt has 1000000 bytes, for which the context of 1024 tokens has no room"),
    ],
)
def test_bad_requests(server, body, says):
    status, text = server.request("/v1/completions", body)
    error = json.loads(text)["error"]
    assert status == 400 and says in error["message"] and error["type"] == "invalid_request_error"


def test_fields_that_change_nothing(server):
    body = dict(prompt="x", max_tokens=3, seed=1)
    neutral = dict(model="any", user="me", n=1, best_of=1, echo=False, suffix=None, logprobs=None, logit_bias={}, frequency_penalty=0, presence_penalty=0.0, stop=None, tools=[])
    assert server.complete(**body, **neutral, tool_choice="none", response_format={"type": "text"})["choices"] == server.complete(**body)["choices"]


def test_a_seed_is_drawn(server):
    drawn = [server.complete(prompt="x", max_tokens=12, seed=seed)["choices"][0]["text"] for seed in (None, None, None, 7, 7)]
    assert len(set(drawn[:3])) > 1 and drawn[3] == drawn[4]


def test_other_paths(server):
    assert server.request("/health") == (200, '{"status":"ok"}')
    assert json.loads(server.request("/v1/models")[1])["data"][0]["id"] == "synthetic-tiny"
    status, text = server.request("/v2")
    assert status == 404 and "there is no GET /v2" in text
    for method, path, allowed in (("PUT", "/v1/models", "GET, HEAD"), ("DELETE", "/", "GET, HEAD"), ("GET", "/v1/chat/completions", "POST"), ("PUT", "/tokenize", "POST")):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request(method, path)
        response = connection.getresponse()
        assert (response.status, response.getheader("Allow")) == (405, allowed) and f"{path} takes {allowed}, not {method}" in response.read().decode()
        connection.close()
    status, text = server.request("/v1/embeddings", {"input": "a"})
    assert status == 400 and "the model makes texts, not embeddings; a server of a model of embeddings, such as bert, answers this" in text
    status, text = server.request("/v1/completions", b"x" * (5 << 20))
    assert status == 413 and "larger than 4 MiB" in text


def test_synthetic_models_chat(server):
    """The first thing that a new user opens is a chat."""
    status, text = server.request("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, "temperature": 0})
    assert status == 200, text
    alone = server.request("/v1/completions", {"prompt": "user: hi\nassistant:", "max_tokens": 4, "temperature": 0})[1]
    assert json.loads(text)["choices"][0]["message"]["content"] == json.loads(alone)["choices"][0]["text"]


@pytest.mark.parametrize("parallel", [1, 4])
def test_the_first_answers_make_nothing(package, tmp_path, parallel):
    """The server listens when the first answer will be fast: one that nobody asked has loaded, recorded and launched whatever another uses that answered requests."""
    trace = tmp_path / "trace.json"

    def used(*prompts):
        options = ["--synthetic=tiny"], f"--parallel={parallel}", "--context=256"
        with Server(package, *options, environment={"GRETA_TRACE": str(trace)}) as server, concurrent.futures.ThreadPoolExecutor(4) as pool:
            for prompt in prompts[:1]:
                server.complete(prompt=prompt, max_tokens=3)
            for answer in pool.map(lambda prompt: server.complete(prompt=prompt, max_tokens=4), prompts):
                assert answer["usage"]["completion_tokens"] <= 4
        events = json.loads(trace.read_text())["traceEvents"]
        calls = collections.Counter(e["name"] for e in events if e.get("cat") == "call")
        made = {name: calls[name] for name in ("greta_function_load", "make kernels", "greta_graph_end")}
        assert all(made.values()), made
        return made, {e["name"] for e in events if e.get("cat") == "kernel"}

    assert used() == used("a", "bc" * 20, "de", "fg")


def test_the_end_while_kernels_are_compiled(tmp_path):
    """The server alone gets the signal, and ends its compiler; nothing is left in the cache."""
    command = (LLM, "serve", "--synthetic=tiny", f"--device={DEVICE}", "--port=0", "-q")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)})
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None and not children.read_text():
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert (process.communicate(timeout=60), process.returncode) == (("", ""), 0)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == []


def test_full_queue_and_end(package):
    """One sequence at a time, one that waits: a third is refused. SIGTERM lets the two finish."""
    server = Server(package, ["--synthetic=tiny"], "--parallel=1", "--queue=1", "--context=1024", "--grace=100")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        body = dict(prompt="x", max_tokens=120, seed=1)
        running = pool.submit(server.request, "/v1/completions", body | {"stream": True})
        while server.metric("requests_running") == 0:
            time.sleep(0.01)
        waiting = pool.submit(server.request, "/v1/completions", body)
        while server.metric("requests_waiting") == 0:
            time.sleep(0.01)
        status, text = server.request("/v1/completions", body)
        assert status == 429 and "the queue is full; try again later" in text
        assert server.metric("requests_refused_total") == 1
        server.end()
        assert running.result()[0] == waiting.result()[0] == 200
        streamed = "".join(p["choices"][0]["text"] for p in events(running.result()[1]))
        assert streamed == json.loads(waiting.result()[1])["choices"][0]["text"]
    assert json.loads(waiting.result()[1])["usage"]["completion_tokens"] == 120


def ask_behind(server, others, body):
    """The answer to `body`, whose place is behind those of `others`, which end before it; and the rows of steps and the tokens behind their end."""
    names = ("step_rows_total", "generated_tokens_total")
    with concurrent.futures.ThreadPoolExecutor(others + 1) as pool:
        before = [pool.submit(server.complete, prompt=[7 + i], max_tokens=16, seed=i) for i in range(others)]
        while server.metric("requests_running") < others:
            time.sleep(0.01)
        last = pool.submit(server.complete, **body)
        for one in before:
            one.result()
        assert not last.done()
        counted = [server.metric(name) for name in names]
        return last.result(), *(server.metric(name) - was for name, was in zip(names, counted))


def test_who_is_left_has_kernels_for_one(package):
    """The second of two places becomes the first when that is free."""
    with Server(package, ["--synthetic=tiny"], "--parallel=4", "--context=1024") as server:
        _, rows, tokens = ask_behind(server, 1, dict(prompt=[5, 6], max_tokens=64, temperature=0))
        assert tokens > 30 and rows < tokens + 10, (rows, tokens)


def test_who_moves_says_the_same(tmp_path):
    """From a batch of places to another, which have the same kernels: with counted tokens and with masks."""
    package = tmp_path / "two.greta"
    made = llm("compile", "--synthetic=tiny", "--targets=gfx942", "--batch=2", "-o", package)
    assert made.returncode == 0, made.stderr
    with Server(package, ["--synthetic=tiny"], "--parallel=4", "--context=1024", "--no-prefix-cache") as server:
        for limits in (dict(frequency_penalty=0.5, presence_penalty=0.3, repeat_penalty=1.1, logprobs=2), dict(grammar="root ::= ([a-p] [q-z]){100,200}")):
            body = dict(prompt=[5, 6], max_tokens=48, seed=3, temperature=1.5) | limits
            alone = server.complete(**body)
            assert alone["usage"]["completion_tokens"] == 48, alone
            assert ask_behind(server, 2, body)[0]["choices"] == alone["choices"]


def test_prompts_share_passes(package):
    """Prompts that wait together are evaluated together, with the answers that each has alone; where two begin alike, one waits for the other's pages."""
    rng = random.Random(2)
    prompts = [rng.choices(range(512), k=k) for k in (3, 17, 40, 1, 33)]
    prompts.append(prompts[2] + [7, 8, 9])
    with Server(package, ["--synthetic=tiny"], "--parallel=8", "--context=1024", "--deterministic") as server:
        bodies = [dict(prompt=prompt, max_tokens=4, seed=i) for i, prompt in enumerate(prompts)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            first = pool.submit(server.complete, prompt=[5] * 600, max_tokens=1)
            while server.metric("requests_running") == 0:
                time.sleep(0.01)
            together = list(pool.map(lambda body: server.complete(**body), bodies))
            first.result()
        passes = server.metric("prompt_passes_total")
        assert passes < 1 + len(prompts), passes
        assert server.metric("cached_tokens_total") >= 32
        for body, answer in zip(bodies, together):
            assert server.complete(**body)["choices"] == answer["choices"]


def test_long_prompts(package):
    """Parts of a long prompt are evaluated between the tokens of who generates, and a short prompt overtakes it."""
    server = Server(package, ["--synthetic=tiny"], "--parallel=3", "--context=2048", "--prompt-ms=0.01", "--no-prefix-cache")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        running = pool.submit(server.request, "/v1/completions", dict(prompt="x", max_tokens=120, seed=1))
        while server.metric("generated_tokens_total") < 2:
            time.sleep(0.01)
        order, begin = [], server.metric("generated_tokens_total")

        def ask(name, count):
            server.complete(prompt=[1] * count, max_tokens=1)
            order.append((name, server.metric("generated_tokens_total") - begin))

        long = pool.submit(ask, "long", 400)
        while server.metric("requests_running") < 2:
            time.sleep(0.01)
        pool.submit(ask, "short", 20).result()
        long.result()
        # 400 tokens are at least 12 parts of 32, each behind a token.
        assert [name for name, _ in order] == ["short", "long"] and order[1][1] > 8, order
        assert running.result()[0] == 200
    server.end()


def test_key(package, tmp_path):
    def refused(says, *options):
        # There is no such model: what is wrong with the port or the key is said before one is loaded.
        ran = llm("serve", package, tmp_path / "none", f"--device={DEVICE}", "-q", "-c", "32", *options)
        assert ran.returncode == 1 and says in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr

    key = tmp_path / "key"
    key.write_text("\n")
    refused("none: cannot open: No such file or directory")
    refused("others can reach 0.0.0.0; name a file with a key", "--host=0.0.0.0")
    refused("its first line is empty", f"--api-key-file={key}")
    refused(f"{tmp_path}: cannot read: Is a directory", f"--api-key-file={tmp_path}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused(f"cannot listen at 127.0.0.1:{port}: Address already in use", f"--port={port}")
    key.write_text("secret\n")
    server = Server(package, ["--synthetic=tiny"], "-c", "64", f"--api-key-file={key}")
    body = dict(prompt="x", max_tokens=1)
    for headers in ({}, {"Authorization": "Bearer secre"}, {"Authorization": "Bearer secret2"}):
        status, text = server.request("/v1/completions", body, headers)
        assert status == 401 and "the API key is missing or wrong" in text
    assert server.request("/v1/completions", body, {"Authorization": "Bearer secret"})[0] == 200
    assert server.request("/v1/completions", body, {"X-Api-Key": "secret"})[0] == 200
    assert server.request("/v1/completions", body, {"X-Api-Key": "secre"})[0] == 401
    assert server.request("/health")[0] == 200
    server.end()


# Chat templates as models have them, and what becomes of a system's, a user's, an assistant's and a user's message.
CHATS = {
    "llama3": (
        "{{- bos_token }}{%- for message in messages %}{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim"
        " + '<|eot_id|>' }}{%- endfor %}{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}",
        "<s><|start_header_id|>system<|end_header_id|>\n\nbe<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nho<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
    ),
    "qwen": (
        "{%- if messages[0].role == 'system' %}\n    {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}\n{%- else %}\n"
        "    {{- '<|im_start|>system\nYou help.<|im_end|>\n' }}\n{%- endif %}\n{%- for message in messages %}\n"
        "    {%- if message.role != 'system' or not loop.first %}\n        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}\n"
        "    {%- endif %}\n{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\n' }}\n{%- endif %}\n",
        "<|im_start|>system\nbe<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nho<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
        "<|im_start|>assistant\n",
    ),
    "mistral": (
        "{%- if messages[0]['role'] == 'system' %}{%- set system_message = messages[0]['content'] %}{%- set loop_messages = messages[1:] %}{%- else %}"
        "{%- set loop_messages = messages %}{%- endif %}{{- bos_token }}{%- for message in loop_messages %}"
        "{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{- raise_exception('roles must alternate') }}{%- endif %}"
        "{%- if message['role'] == 'user' %}{%- if loop.first and system_message is defined %}"
        "{{- ' [INST] ' + system_message + '\n\n' + message['content'] + ' [/INST]' }}{%- else %}{{- ' [INST] ' + message['content'] + ' [/INST]' }}"
        "{%- endif %}{%- elif message['role'] == 'assistant' %}{{- ' ' + message['content'] + eos_token }}{%- endif %}{%- endfor %}",
        "<s> [INST] be\n\nhi [/INST] ho</s> [INST] hi [/INST]",
    ),
}
USER = {"role": "user", "content": "hi"}
MESSAGES = [{"role": "system", "content": "be"}, USER, {"role": "assistant", "content": "ho"}, USER]


def with_template(folder, template, name="tokenizer_config.json"):
    """A small model, whose template is there."""
    a = ARCHITECTURES["llama2"]
    folder = models.write_safetensors(folder, a, models.random_weights(a), "f16")
    (folder / "config.json").write_text(json.dumps(models.config(a) | {"max_position_embeddings": 512}))
    (folder / "tokenizer.json").write_text(json.dumps(texts.naive_tokenizer(30)))
    about = {"bos_token": "<s>", "eos_token": {"content": "</s>"}}
    if name == "chat_template.jinja":
        (folder / name).write_text(template)
    else:
        about["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    return folder


def tokens(*words):
    ran = llm("tokenize", *words)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "chat_template.jinja", "named"])
@pytest.mark.parametrize("chat", CHATS)
def test_chat_templates(tmp_path, chat, name):
    """The model's own program makes the prompt, wherever it lies."""
    template, prompt = CHATS[chat]
    if name == "named":
        template = [{"name": "tool_use", "template": "no"}, {"name": "default", "template": template}]
    folder = with_template(tmp_path / "m", template, name)
    assert tokens(folder, "--chat", json.dumps(MESSAGES)) == tokens(folder, "--no-special", prompt)


def test_chat_templates_like_transformers():
    """The expected prompts are what Jinja says, set up as transformers does."""
    jinja2 = pytest.importorskip("jinja2")
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    for template, prompt in CHATS.values():
        assert environment.from_string(template).render(messages=MESSAGES, add_generation_prompt=True, bos_token="<s>", eos_token="</s>") == prompt


def test_wrong_chats(tmp_path):
    def refused(folder, says, messages=json.dumps(MESSAGES)):
        ran = llm("tokenize", folder, "--chat", messages)
        assert ran.returncode == 1 and says in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr

    folder = with_template(tmp_path / "m", CHATS["mistral"][0])
    refused(folder, "--chat takes a list of messages in JSON", "hi")
    refused(folder, "roles must alternate", json.dumps([USER, USER]))
    refused(with_template(tmp_path / "n", "{% for %}"), "the model's chat template cannot be read: ")
    refused(with_template(tmp_path / "o", ""), "the model has no chat template")


def test_chat(tmp_path):
    template, prompt = CHATS["mistral"]
    folder = with_template(tmp_path / "m", template)
    made = llm("compile", folder, "--targets=gfx942", "-o", tmp_path / "m.greta")
    assert made.returncode == 0, made.stderr
    server = Server(tmp_path / "m.greta", [folder])
    body = dict(max_tokens=6, temperature=0)
    status, text = server.request("/v1/chat/completions", body | {"messages": MESSAGES})
    assert status == 200, text
    answer = json.loads(text)
    assert answer["object"] == "chat.completion" and answer["choices"][0]["message"]["role"] == "assistant"
    # The template's text of a conversation shows in its continuation.
    assert answer["choices"][0]["message"]["content"] == server.complete(prompt=tokens(folder, "--no-special", prompt), **body)["choices"][0]["text"]
    pieces = events(server.request("/v1/chat/completions", body | {"messages": MESSAGES, "stream": True})[1])
    assert "".join(p["choices"][0]["delta"]["content"] for p in pieces) == answer["choices"][0]["message"]["content"]
    assert [p["choices"][0]["delta"].get("role") for p in pieces] == ["assistant"] + [None] * (len(pieces) - 1)
    # The same in parts, and with what a client copies from an answer.
    parts = [m | {"content": [{"type": "text", "text": m["content"][:1]}, {"type": "text", "text": m["content"][1:]}], "refusal": None, "tool_calls": []} for m in MESSAGES]
    assert json.loads(server.request("/v1/chat/completions", body | {"messages": parts})[1])["choices"] == answer["choices"]
    # Without max_tokens an answer may take the room that is left.
    status, text = server.request("/v1/chat/completions", {"messages": MESSAGES, "stop": ["</s>", "never"], "seed": 3})
    usage, choice = json.loads(text)["usage"], json.loads(text)["choices"][0]
    assert choice["finish_reason"] == "stop" or usage["total_tokens"] == 512
    status, text = server.request("/v1/chat/completions", {"messages": [USER, USER]})
    assert status == 400 and "the model's chat template refuses the messages: " in text and "roles must alternate" in text
    for bad, says in (
        (None, "'messages' has to be a list of messages"),
        ([{"role": "user"}], "a message has to have 'content'"),
        ([{"content": "hi"}], "a message has to have the text 'role'"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "a part of a message's 'content' has to be"),
        ([USER | {"audio": {"id": "1"}}], "a message's 'audio' is not supported"),
    ):
        status, text = server.request("/v1/chat/completions", {"messages": bad})
        assert status == 400 and says in text
    server.end()
