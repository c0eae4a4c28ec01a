"""greta-llm run: a chat in the terminal, its commands, the conversation in the KV cache; packages that commands compile into the user's cache."""

import contextlib
import json
import os
import pty
import re
import shutil
import signal
import subprocess

import numpy as np
import pytest

import models
from conftest import BUILD
from models import ARCHITECTURES
from test_llm import LLM, llm
from test_llm_serve import DEVICE, Server, package, with_template  # noqa: F401

pytestmark = pytest.mark.xdist_group("llm-run")  # one worker makes what these share
TINY = ("--synthetic=tiny", f"--device={DEVICE}", "--temp=0")
STATS = re.compile(r"prompt (\d+) tokens, of which (\d+) were in the cache, [\d.]+ tokens/s; answer (\d+), [\d.]+ tokens/s")


def chat(package, *lines, options=()):
    """(answers and the like, what was said beside them) of a chat that is piped in."""
    ran = subprocess.run([str(w) for w in (LLM, "run", package, *TINY, "-n", "6", *options)], input="\n".join(lines) + "\n", capture_output=True, text=True, errors="replace", timeout=300)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines(), ran.stderr


def stats(said):
    return [tuple(map(int, numbers)) for numbers in STATS.findall(said)]


def test_the_conversation_stays_in_the_cache(package):  # noqa: F811
    answers, said = chat(package, "hello", "/stats", "more", "/stats", "/clear", "hello", "/stats", "/again", "/stats")
    first, second, anew, again = stats(said)
    assert answers[0] == answers[2] == answers[3] and answers[1] != answers[0]
    # All of the first prompt and of its answer but the last token, whose keys may be missing.
    assert first[1] == 0 and second[1] >= first[0] and second[0] > second[1]
    # A prompt that the cache has as a whole is evaluated from its last token on.
    assert anew[0] == first[0] == again[0] and again[1] == first[0] - 1
    assert {one[2] for one in (first, second, anew, again)} == {6}


def test_it_says_what_the_server_says(package):  # noqa: F811
    """From a cache that holds the beginning as from a prompt as a whole."""
    (first, second), _ = chat(package, "abc", "more", options=("--system", "be brief"))
    server = Server(package, ["--synthetic=tiny"])
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "abc"}]
    for want, question in ((first, "more"), (second, "")):
        body = {"messages": messages, "temperature": 0, "max_tokens": 6}
        status, text = server.request("/v1/chat/completions", body)
        assert status == 200, text
        answer = json.loads(text)["choices"][0]["message"]["content"]
        assert answer.split("\n") == want.split("\n")
        messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": question}]
    server.end()


def test_commands(package):  # noqa: F811
    answers, said = chat(package, "/help", "/nothing", "/again", "", "a \\", "b", "/system be brief", "a \\", "b", "/exit", "c")
    assert len(answers) == 2 and answers[0] != answers[1]
    assert "there is no command /nothing" in said and "there is no message to answer" in said and said.count("/clear") == 2


def test_a_full_context(package):  # noqa: F811
    """The oldest messages give way; a message that does not fit is taken back."""
    questions = [f"question {i}" for i in range(8)]
    _, said = chat(package, *questions, "/stats", "x" * 200, "/stats", "short", "/stats", "/clear", "short", "/stats", options=("-c", "128"))
    before, refused, after, alone = stats(said)
    assert "the oldest messages are forgotten" in said and before == refused != after and after[2] == 6
    assert re.search(r"the message has \d+ tokens; there is room for 112 \(--context\)", said)
    # The refused message has cost nothing of the conversation.
    assert after[0] > alone[0] + 20


def test_an_answer_is_stopped(package):  # noqa: F811
    process = subprocess.Popen([str(w) for w in (LLM, "run", package, *TINY, "-c", "2048")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b"hello\n")
    process.stdin.flush()
    assert process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    output, said = process.communicate(b"/stats\n/exit\n", timeout=120)
    assert process.returncode == 0 and output.endswith(b" ..\n")
    ((_, _, made),) = stats(said.decode())
    assert made < 1900


@pytest.mark.parametrize("verb, options", [("run", ("-n", "4")), ("generate", ("-p", "hello", "-n", "4"))])
def test_packages_are_compiled_once(tmp_path, verb, options):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    def ran(device=DEVICE):
        return subprocess.run([str(w) for w in (LLM, verb, "--synthetic=tiny", "--temp=0", f"--device={device}", *options)], input="hello\n", capture_output=True, text=True, errors="replace", timeout=300, env=environment)

    first = ran()
    assert first.returncode == 0, first.stderr
    folder = tmp_path / "greta" / "llm"
    (made,) = folder.iterdir()
    assert re.fullmatch(r"[0-9a-f]{64}\.greta", made.name)
    written = made.stat().st_mtime_ns
    assert ran().stdout == first.stdout and made.stat().st_mtime_ns == written and len(list(folder.iterdir())) == 1
    # Another device's kernels are another package.
    assert ran("sim:gfx1100").returncode == 0 and len(list(folder.iterdir())) == 2


def test_a_damaged_package_is_made_anew(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    words = [str(w) for w in (LLM, "generate", *TINY, "-p", "a", "-n", "2", "-q")]
    first = subprocess.run(words, capture_output=True, env=environment)
    (made,) = (tmp_path / "greta" / "llm").iterdir()
    for damaged in (b"", made.read_bytes()[:1000]):
        made.write_bytes(damaged)
        ran = subprocess.run(words, capture_output=True, env=environment, stdin=subprocess.DEVNULL)
        assert (ran.returncode, ran.stdout) == (0, first.stdout), ran.stderr
    assert list(made.parent.iterdir()) == [made]


def test_nobody_reads(package):  # noqa: F811
    with open("/dev/full", "w") as full:
        ran = subprocess.run([str(w) for w in (LLM, "run", package, *TINY, "-n", "2")], input="a\n", stdout=full, stderr=subprocess.PIPE, text=True)
    assert ran.returncode == 1 and ran.stderr.startswith("greta-llm: error: writing standard output")


def test_a_cache_that_cannot_be_had(tmp_path):
    words = [str(w) for w in (LLM, "generate", *TINY, "-p", "a", "-n", "1")]
    unset = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    for environment, why in (
        (unset, "there is no folder for compiled packages: set XDG_CACHE_HOME or HOME, or name a package that greta-llm compile wrote"),
        ({**unset, "XDG_CACHE_HOME": "/dev/null"}, "/dev/null/greta/llm: cannot be made: Not a directory"),
    ):
        ran = subprocess.run(words, capture_output=True, text=True, env=environment)
        assert (ran.returncode, ran.stderr) == (1, f"greta-llm: error: {why}\n")
    assert llm("generate", "a.greta", "-p", "a").stderr.startswith("greta-llm: error: name one model")


@pytest.mark.parametrize("options, rows", [((), 1), (("--deterministic",), 4)])
def test_a_lone_user_has_kernels_for_one(package, options, rows):  # noqa: F811
    server = Server(package, ["--synthetic=tiny"], "--parallel=4", *options)
    before = server.metric("step_rows_total")
    server.complete(prompt=[5, 6], max_tokens=9, temperature=0)
    assert before > 0  # every kernel has run once
    # The first token is the prompt's. A step may run ahead of the last one.
    assert (server.metric("step_rows_total") - before) / rows in (8, 9)
    server.end()


@pytest.mark.parametrize(
    "script, says",
    [
        ("exit 3", "greta-translate has made no package of the model's kernels for gfx942"),
        ("kill -KILL $$", "greta-translate: Killed"),
    ],
)
def test_a_compiler_that_fails(tmp_path, script, says):
    compiler = tmp_path / "greta-translate"
    compiler.write_text(f"#!/bin/sh\n{script}\n")
    compiler.chmod(0o755)
    alone = shutil.copy(LLM, tmp_path)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "LD_LIBRARY_PATH": str(BUILD / "lib"), "GRETA_HIP_SIM": str(BUILD / "lib" / "libgreta_hip_sim.so")}
    ran = subprocess.run([str(w) for w in (alone, "generate", *TINY, "-p", "a")], capture_output=True, text=True, env=environment)
    assert (ran.returncode, ran.stderr) == (1, f"greta-llm: error: {says}\n")
    assert list((tmp_path / "cache" / "greta" / "llm").iterdir()) == []


def test_instructions_that_do_not_fit(package):  # noqa: F811
    _, said = chat(package, "a", options=("-c", "64", "--system", "x" * 100))
    assert re.search(r"the instructions and the message have \d+ tokens; there is room for 56 \(--context\)", said)


# As gpt-oss's, which forgets thoughts; it refuses channels in a text.
CHANNELS = (
    "{% for m in messages %}{% if '<|channel|>' in m.content %}{{ raise_exception('channels') }}{% endif %}{{ m.role }}:{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments.x }}{% endif %}"
    "{% if m.thinking and loop.last %}<|message|>{{ m.thinking }}{% endif %};{% endfor %}a:"
)
# As Qwen's; the prompt may open the thought.
THOUGHTS = "{% for m in messages %}{{ m.role }}:{{ m.content.split('</think>')[-1] }}{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %};{% endfor %}a:"
# Sayings of a model behind the prompt: its template, tokens, and what becomes of them. Tokens of marks alone stand for no text.
SAYINGS = {
    "channels": (CHANNELS, ("<|channel|>", "analysis<|message|>", "hm", "<|end|>", "<|start|>", "assistant<|channel|>final<|message|>", "so", "<|return|>"), "hm", "so", None),
    "answer": (CHANNELS, ("<|channel|>", "final<|message|>", "so", "<|return|>"), "", "so", None),
    "call": (CHANNELS, ("<|channel|>", "commentary to=functions.f <|constrain|>json<|message|>", '{"x":1}', "<|call|>"), "", "", 'f {"x":1}'),
    "think": (THOUGHTS, ("<think>", "\n", "hm", "</think>", "\n\n", "so", "<|return|>"), "hm", "so", None),
    "open": (THOUGHTS + "<think>", ("hm", "</think>", "\n\n", "so", "<|return|>"), "hm", "so", None),
    "unended": (THOUGHTS, ("<think>", "\n", "hm", "<|return|>"), "hm", "", None),
}


@pytest.fixture(scope="module")
def sayings(tmp_path_factory):
    """A folder by the name of each saying, and the package of all. The layers change nothing: each token says the next one."""
    root = tmp_path_factory.mktemp("sayings")
    a = ARCHITECTURES["llama2"]
    weights = models.random_weights(a)
    for name in weights:
        if name.endswith(("attn_output.weight", "ffn_down.weight")):
            weights[name][:] = 0
    weights["output_norm.weight"][:] = 1
    weights["token_embd.weight"][:] = np.random.default_rng(3).choice([-1, 1], weights["token_embd.weight"].shape)
    first = 287  # behind those of the tokenizer
    for name, (template, said, *_) in SAYINGS.items():
        folder = with_template(root / name, template)
        tokenizer = json.loads((folder / "tokenizer.json").read_text())
        ids = [first + i for i in range(len(said))]
        tokenizer["added_tokens"] = [{"id": i, "content": text, "special": bool(re.fullmatch(r"<[^<>]*>", text)), "lstrip": False, "rstrip": False} for i, text in zip(ids, said)]
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        about = {"chat_template": template, "eos_token": said[-1]} if "think" in template else {"chat_template": template}
        (folder / "tokenizer_config.json").write_text(json.dumps(about))
        last = tokenizer["model"]["vocab"][">" if name == "open" else ":"]  # of the prompt
        weights["output.weight"][:] = 0
        for token, following in zip([last, *ids], ids):
            weights["output.weight"][following] = weights["token_embd.weight"][token]
        (folder / "model.safetensors").write_bytes(models.safetensors_bytes(models.joined(a, weights, to_hugging_face=True), "f16"))
    made = llm("compile", root / "channels", "--targets=gfx942", "-o", root / "m.greta")
    assert made.returncode == 0, made.stderr
    return root


def said(sayings, name, lines, **options):
    return subprocess.run([str(w) for w in (LLM, "run", sayings / "m.greta", sayings / name, f"--device={DEVICE}", "--temp=0", "-n", "9")], input="\n".join(lines) + "\n", text=True, timeout=300, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize("name", SAYINGS)
def test_thoughts_and_calls(sayings, name):
    """They are told from the answer, and go back as the template takes them."""
    template, _, thought, answer, call = SAYINGS[name]
    ran = said(sayings, name, ("hi", "/stats", "ho", "/stats"), stdout=subprocess.PIPE)
    assert ran.returncode == 0, ran.stderr
    shown = f"(thought)\n{thought}\n" + f"(answer)\n{answer}\n" * bool(answer) if thought else f"(call) {call}\n" if call else f"{answer}\n"
    assert ran.stdout == shown * 2, ran.stderr
    message = {"role": "assistant", "content": answer, "reasoning_content": thought} | ({"tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]} if call else {})
    messages = [{"role": "user", "content": "hi"}, message, {"role": "user", "content": "ho"}]
    prompts = [json.loads(llm("tokenize", sayings / name, "--chat", json.dumps(messages[:count])).stdout) for count in (1, 3)]
    assert [one[0] for one in stats(ran.stderr)] == [len(prompt) for prompt in prompts]


def test_thoughts_are_dim_in_a_terminal(sayings):
    ours, theirs = pty.openpty()
    ran = said(sayings, "channels", ("hi",), stdout=theirs)
    os.close(theirs)
    assert ran.returncode == 0, ran.stderr
    shown = b""
    with contextlib.suppress(OSError):  # which is the end
        while more := os.read(ours, 1000):
            shown += more
    assert shown == b"\x1b[2mhm\x1b[0m\r\n\r\nso\r\n"
    os.close(ours)


def test_the_server_tells_thoughts(sayings):
    server = Server(sayings / "m.greta", [sayings / "think"])
    body = {"messages": [{"role": "user", "content": "hi"}], "temperature": 0}
    message = json.loads(server.request("/v1/chat/completions", body)[1])["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("so", "hm")
    # A grammar is that of the answer.
    message = json.loads(server.request("/v1/chat/completions", body | {"grammar": 'root ::= "<think>so"'})[1])["choices"][0]["message"]
    assert message["content"] == "<think>so" and "reasoning_content" not in message
    server.end()
