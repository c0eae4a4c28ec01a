"""What clients of greta-llm serve may ask for beside a text: answers in a grammar, calls of tools, chances of tokens, several answers, penalties and biases,
tokens alone, and the same in Ollama's and Anthropic's words; and OpenAI's own Python client. On lavapipe, with a model of random weights: its answers are
nonsense, but for what a grammar or a bias makes of them.
"""

import concurrent.futures
import json
import math
import re

import pytest

from test_llm import llm
from test_llm_prefix import cached
from test_llm_serve import QUICK, QUICK_TARGET, Server, events, with_template
from texts import byte_alphabet

pytestmark = pytest.mark.xdist_group("llm-api")  # one worker makes what these share
# As Hermes and Qwen have it.
TEMPLATE = (
    "{%- if tools %}{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}Call them as <tool_call>{..}</tool_call>\n{% endif %}"
    "{%- for message in messages %}{{ message.role }}: {{ message.content }}"
    "{%- if message.tool_calls %}{% for call in message.tool_calls %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}{% endif %}\n{% endfor %}"
    "{%- if reasoning_effort %}Reasoning: {{ reasoning_effort }}. {% endif %}"
    "{%- if enable_thinking is defined %}{{ 'Think. ' if enable_thinking else 'Do not think. ' }}{% endif %}"
    "{%- if add_generation_prompt %}assistant: {% endif %}"
)
USER = [{"role": "user", "content": "hi"}]
PERSON = {
    "type": "object",
    "properties": {"name": {"enum": ["Ada", "Bob"]}, "age": {"type": "integer", "minimum": 0, "maximum": 120}, "isHere": {"type": "boolean"}},
    "required": ["name", "age", "isHere"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": "find", "description": "finds", "parameters": PERSON, "strict": True}},
    {"type": "function", "function": {"name": "stop", "parameters": {"type": "object", "properties": {"why": {"enum": ["x", "y"]}}}}},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("api")
    model = with_template(folder / "m", TEMPLATE)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 2048}))
    # No token says the byte 1.
    path = model / "tokenizer.json"
    path.write_text(path.read_text().replace(json.dumps(byte_alphabet()[1]) + ":", '"<none>":'))
    made = llm("compile", model, f"--targets={QUICK_TARGET}", "--batch=1,2", "-o", folder / "m.greta")
    assert made.returncode == 0, made.stderr
    one = Server(folder / "m.greta", [model], "--parallel=2", "--context=2048", "--queue=4", device=QUICK)
    # Random weights like spaces where a grammar has them.
    (one.blank,) = tokenize(one, " ")
    (one.newline,) = tokenize(one, "\n")
    one.compact = {str(one.blank): -100, str(one.newline): -100}
    yield one
    one.end()


def ask(server, path, **body):
    status, text = server.request(path, body)
    assert status == 200, text
    return text if body.get("stream") else json.loads(text)


def chat(server, **body):
    return ask(server, "/v1/chat/completions", **({"messages": USER, "seed": 1, "max_tokens": 150} | body))


def tokenize(server, text):
    return ask(server, "/tokenize", content=text)["tokens"]


def is_person(value):
    return list(value) == ["name", "age", "isHere"] and value["name"] in ("Ada", "Bob") and 0 <= value["age"] <= 120 and isinstance(value["isHere"], bool)


def test_json_schema(server):
    # Names keep their order beside as many others as biases may be.
    body = dict(response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}, logit_bias={str(i): 0 for i in range(300)} | server.compact)
    answer = chat(server, **body, n=2)
    assert [c["index"] for c in answer["choices"]] == [0, 1] and {c["finish_reason"] for c in answer["choices"]} == {"stop"}
    contents = [c["message"]["content"] for c in answer["choices"]]
    assert all(is_person(json.loads(text)) for text in contents)
    pieces = events(chat(server, **body, stream=True))
    assert "".join(p["choices"][0]["delta"]["content"] for p in pieces) == contents[0]


def test_pattern(server):
    form = {"type": "json_schema", "json_schema": {"name": "id", "schema": {"type": "string", "pattern": r"^[A-F\d]{4}(-\d{2}){1,3}[^\w\n]?$"}}}
    for seed in range(3):
        text = json.loads(chat(server, response_format=form, seed=seed, temperature=1.5)["choices"][0]["message"]["content"])
        assert re.search(form["json_schema"]["schema"]["pattern"], text, re.ASCII), text


def test_grammar(server):
    answer = ask(server, "/v1/completions", prompt="x", grammar='root ::= ("yes" | "no") "!"{2,3}', max_tokens=20, temperature=2, seed=5)
    assert answer["choices"][0]["text"] in ("yes!!", "yes!!!", "no!!", "no!!!") and answer["choices"][0]["finish_reason"] == "stop"
    # A grammar that takes too long fails its own request.
    hard = "root ::= (" + " | ".join('"a"{0,%d}' % i for i in range(90)) + ")* [b-z]"
    (a,) = tokenize(server, "a")
    status, text = server.request("/v1/completions", dict(prompt="x", grammar=hard, max_tokens=80, logit_bias={str(a): 100}))
    assert status == 400 and "the grammar takes too long" in text, text
    # So does one that the model cannot follow; of several answers one is enough.
    status, text = server.request("/v1/completions", dict(prompt="x", grammar='root ::= "a\\x01" | [b-z]{60}', max_tokens=70, n=2, logit_bias={str(a): 100}))
    assert status == 400 and "no token of the model fits the grammar here" in text, text


def test_required_calls(server):
    body = dict(tools=TOOLS, tool_choice={"type": "function", "function": {"name": "find"}}, logit_bias=server.compact)
    (choice,) = chat(server, **body)["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls" and choice["message"]["content"] is None
    assert call["function"]["name"] == "find" and is_person(json.loads(call["function"]["arguments"])) and call["type"] == "function"
    # As Mistral's templates want it; no two are the same.
    assert len(call["id"]) == 9 and call["id"].isalnum()
    ids = {c["message"]["tool_calls"][0]["id"] for c in chat(server, **body, n=2)["choices"]} | {call["id"]}
    assert len(ids) == 3
    pieces = events(chat(server, **body, stream=True))
    (streamed,) = [p["choices"][0]["delta"]["tool_calls"][0] for p in pieces if "tool_calls" in p["choices"][0]["delta"]]
    assert streamed["function"] == call["function"] and streamed["index"] == 0 and pieces[-1]["choices"][0]["finish_reason"] == "tool_calls"
    # The call and its result go back to the model, arguments as they are.
    again = [*USER, choice["message"], {"role": "tool", "tool_call_id": call["id"], "content": "found"}]
    assert chat(server, messages=again, tools=TOOLS, tool_choice="none", max_tokens=1)["usage"]["prompt_tokens"] > 60


def test_a_prompt_does_not_wait_for_its_grammar(server):
    """All but its last token is evaluated while the first mask is made, and the last one never where that fails. A thread that has to wait for
    a processor may come so late that the mask has failed before: then nothing is evaluated, and another request has to show it."""
    evaluated = []
    while 2 not in evaluated and len(evaluated) < 100:
        begun = server.metric("prompt_tokens_total")
        status, text = server.request("/v1/completions", dict(prompt="abc", grammar="root ::= ([^\\x00]{0,30} | [^\\x01]{0,30}){0,30}", max_tokens=1))
        assert status == 400 and "the grammar takes too long" in text, text
        evaluated.append(server.metric("prompt_tokens_total") - begun)
    assert 2 in evaluated and set(evaluated) <= {0, 2}, evaluated


def test_refusals_of_models_are_texts(server):
    said = [dict(role="assistant", content=[{"type": "refusal", "refusal": "n"}], refusal="o"), dict(role="assistant", content="no")]
    assert len({chat(server, messages=[*USER, one, *USER], max_tokens=4, temperature=0)["choices"][0]["message"]["content"] for one in said}) == 1


def test_sizes_of_events_are_hidden(server):
    plain, hidden = (chat(server, max_tokens=3, stream=True, stream_options={"include_obfuscation": hides}) for hides in (False, True))
    assert [p["choices"] for p in events(plain)] == [p["choices"] for p in events(hidden)]
    sizes = [{len(line.encode()) % 64 for line in text.split("\n\n")[:-2]} for text in (plain, hidden)]
    assert len(sizes[0]) > 1 and len(sizes[1]) == 1 and all(p["obfuscation"].isalpha() for p in events(hidden) if p["obfuscation"])


def test_calls_are_read_from_texts(server):
    """ToolsTest.cpp has more of them."""
    said = 'a <tool_call>{"name": "find", "arguments": {"b": 1}}</tool_call>'
    body = dict(grammar="root ::= " + json.dumps(said))
    (choice,) = chat(server, tools=TOOLS, **body)["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert call["function"] == {"name": "find", "arguments": '{"b":1}'} and choice["message"]["content"] == "a"
    # Without tools it is a text.
    (choice,) = chat(server, **body)["choices"]
    assert "tool_calls" not in choice["message"] and choice["message"]["content"] == said


def test_chances(server):
    body = dict(prompt="Once", max_tokens=4, temperature=0)
    one = ask(server, "/v1/completions", **body, logprobs=3)["choices"][0]
    chances = one["logprobs"]
    assert "bytes:" in "".join(chances["tokens"]) or "".join(chances["tokens"]) == one["text"]
    assert len(chances["tokens"]) == len(chances["token_logprobs"]) == 4
    for chance, likeliest in zip(chances["token_logprobs"], chances["top_logprobs"]):
        assert len(likeliest) == 3 and max(likeliest.values()) == chance < 0
    everything = chat(server, max_tokens=2, logprobs=True, top_logprobs=20)["choices"][0]["logprobs"]["content"]
    assert all(0.2 < sum(math.exp(t["logprob"]) for t in one["top_logprobs"]) < 1 for one in everything) and bytes(everything[0]["bytes"])
    streamed = events(ask(server, "/v1/completions", **body, logprobs=0, stream=True))
    assert sum((p["choices"][0].get("logprobs", {}).get("token_logprobs", []) for p in streamed), []) == chances["token_logprobs"]


def test_chances_of_a_prompt(server):
    """With echo each token of the prompt has its chance, too, but for the first one: what the model says behind the tokens before it."""
    prompt = tokenize(server, "Once upon a time, in a land far away, there was a king. ") * 3
    assert len(prompt) > 2 * 64  # of which a pass has at most 64
    body = dict(prompt=prompt, max_tokens=2, temperature=0)
    answer = ask(server, "/v1/completions", **body, logprobs=2, echo=True)
    (choice,), told = answer["choices"], answer["choices"][0]["logprobs"]
    assert cached(answer) == 0 and "".join(told["tokens"][: len(prompt)]) == ask(server, "/detokenize", tokens=prompt)["content"]
    assert len(told["tokens"]) == len(told["token_logprobs"]) == len(told["top_logprobs"]) == len(prompt) + 2
    assert told["token_logprobs"][0] is None and told["top_logprobs"][0] is None and max(told["token_logprobs"][1:]) < 0
    assert all(chance <= max(top.values()) + 1e-6 for chance, top in zip(told["token_logprobs"][1:], told["top_logprobs"][1:]))
    for i in (1, 63, 64, 65, len(prompt) - 1):
        alone = ask(server, "/v1/completions", prompt=prompt[:i], max_tokens=1, temperature=0, logprobs=20)["choices"][0]["logprobs"]["top_logprobs"][0]
        assert max(alone.values()) == pytest.approx(max(told["top_logprobs"][i].values()), abs=2e-2)
        if told["tokens"][i] in alone:
            assert alone[told["tokens"][i]] == pytest.approx(told["token_logprobs"][i], abs=2e-2)
    assert choice["text"].endswith(ask(server, "/v1/completions", **body)["choices"][0]["text"])
    # Several answers, as events, beside somebody who generates.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        other = pool.submit(ask, server, "/v1/completions", prompt="x", max_tokens=60, seed=1)
        pieces = events(ask(server, "/v1/completions", **body, logprobs=2, echo=True, n=2, stream=True))
        assert other.result()["usage"]["completion_tokens"] > 0
    for index in range(2):
        mine = [p["choices"][0]["logprobs"]["token_logprobs"] for p in pieces if p["choices"][0]["index"] == index and "logprobs" in p["choices"][0]]
        assert sum(mine, [])[1 : len(prompt)] == pytest.approx(told["token_logprobs"][1 : len(prompt)], abs=2e-2)


def test_biases_and_penalties(server):
    (a,), (b,) = tokenize(server, "a"), tokenize(server, "b")
    body = dict(prompt=tokenize(server, "Once upon a time, in a land far away, there was a king."), max_tokens=8, temperature=0)

    def said(biases, **more):
        return ask(server, "/v1/completions", **body, logit_bias={str(token): bias for token, bias in biases.items()}, **more)["choices"][0]["text"]

    assert said({a: 100}) == "a" * 8
    assert said({a: 100, b: 80}) == "a" * 8
    # Each a costs two.
    assert "aa" in said({a: 100, b: 94}, frequency_penalty=2)[:2] and "b" in said({a: 100, b: 94}, frequency_penalty=2)
    letters = {token: 100 for token in range(40, 60)}
    assert len(set(said(letters, presence_penalty=2))) > len(set(said(letters, presence_penalty=-2)))
    # Generated tokens are in the cache, too, but for the last token.
    follows = ask(server, "/v1/completions", **body | {"prompt": body["prompt"] + [a] * 8 + [b]})
    assert cached(follows) == (len(body["prompt"]) + 7) // 16 * 16
    assert ask(server, "/v1/completions", **body | {"prompt": "abc", "max_tokens": 1}, logit_bias={str(a): 100}, echo=True)["choices"][0]["text"] == "abca"


def test_lists_of_prompts(server):
    """Each prompt has `n` answers, those to one prompt behind those to the other; prompts are texts, tokens, or both; whole and as events, with `echo` and chances."""
    prompts = ["Once", tokenize(server, "upon a"), "Once"]
    body = dict(max_tokens=4, temperature=0)
    answer = ask(server, "/v1/completions", prompt=prompts, **body)
    alone = [ask(server, "/v1/completions", prompt=prompt, **body) for prompt in prompts]
    assert [c["index"] for c in answer["choices"]] == [0, 1, 2]
    assert [c["text"] for c in answer["choices"]] == [one["choices"][0]["text"] for one in alone]
    assert answer["usage"]["prompt_tokens"] == sum(one["usage"]["prompt_tokens"] for one in alone) == 4 + 6 + 4
    assert answer["usage"]["completion_tokens"] == 12
    # Seeds go on from prompt to prompt, so equal prompts have other answers.
    drawn = ask(server, "/v1/completions", prompt=["Once", "Once"], n=2, seed=3, max_tokens=8)
    texts = [c["text"] for c in drawn["choices"]]
    assert [c["index"] for c in drawn["choices"]] == [0, 1, 2, 3] and len(set(texts)) == 4 and drawn["usage"]["prompt_tokens"] == 8
    assert texts == [ask(server, "/v1/completions", prompt="Once", seed=seed, max_tokens=8)["choices"][0]["text"] for seed in range(3, 7)]
    pieces = events(ask(server, "/v1/completions", prompt=prompts[:2], **body, n=2, echo=True, logprobs=1, stream=True, stream_options={"include_usage": True}))
    for index, begin in enumerate(("Once", "Once", "upon a", "upon a")):
        mine = [p["choices"][0] for p in pieces if p["choices"][0]["index"] == index]
        assert "".join(c["text"] for c in mine) == begin + answer["choices"][index // 2]["text"]
        assert sum(len(c["logprobs"]["tokens"]) for c in mine if "logprobs" in c) == len(begin) + 4
        assert [c["finish_reason"] for c in mine if c["finish_reason"]] == ["length"]
    assert pieces[-1]["usage"] == answer["usage"] | {"prompt_tokens": 10, "completion_tokens": 16, "total_tokens": 26, "prompt_tokens_details": pieces[-1]["usage"]["prompt_tokens_details"]}
    # One prompt that is wrong is the end of all.
    for prompt, says in (
        (["a", ""], "the prompt has no tokens"),
        (["a", []], "the prompt has no tokens"),
        (["a", 1], "'prompt' has 1 in place of a text or a list of tokens"),
        ([[1], None], "'prompt' has null in place of a text or a list of tokens"),
        ([[1], [[1]]], "'prompt' has [1], which is no token of the model"),
        ([1, "a"], "'prompt' has \"a\", which is no token of the model"),
        (["a", "x" * 3000], "the prompt has 3000 tokens, which leave no room"),
        (["a"] * 129, "'prompt' has 129 texts, each with 'n' = 1; up to 128 answers are possible"),
        (["a"] * 5, "5 answers are more than the server's queue takes, 4"),
    ):
        status, text = server.request("/v1/completions", dict(prompt=prompt, max_tokens=1))
        assert status == 400 and says in json.loads(text)["error"]["message"], text


def test_tokens(server):
    tokens = tokenize(server, "Größe 1")
    assert ask(server, "/detokenize", tokens=tokens) == {"content": "Größe 1"}
    pieces = ask(server, "/tokenize", content="ab", with_pieces=True)["tokens"]
    assert "".join(p["piece"] for p in pieces) == "ab" and [p["id"] for p in pieces] == tokenize(server, "ab")


def test_ollama(server):
    short = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}
    body = dict(messages=USER, format=short, options={"seed": 3, "num_predict": 100, "temperature": 0.9})
    answer = ask(server, "/api/chat", **body, stream=False)
    assert answer["done"] and answer["done_reason"] == "stop" and json.loads(answer["message"]["content"])["a"] in ("x", "y") and answer["eval_count"] > 5
    size = answer["prompt_eval_count"] + 4
    cut = ask(server, "/api/chat", messages=USER, options={"num_ctx": size, "num_gpu": 1, "seed": 3}, stream=False)
    assert cut["done_reason"] == "length" and cut["eval_count"] == 4, cut
    lines = [json.loads(line) for line in ask(server, "/api/chat", **body, stream=True).splitlines()]
    assert "".join(line["message"]["content"] for line in lines) == answer["message"]["content"] and [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    for wrong, says in (
        ({"options": {"mirostat": 1}}, "'options': 'mirostat' is not supported"),
        ({"options": {"num_predict": 0}}, "'num_predict': 0 is not supported"),
        ({"options": {"num_ctx": 4096}}, "'num_ctx' has to be a whole number from 1 to 2048"),
        ({"options": {"num_ctx": 5}}, "tokens, which leave no room in the context"),
        ({"messages": [{"role": "assistant", "tool_calls": {}}]}, "'tool_calls' has to be a list of calls"),
    ):
        status, text = server.request("/api/chat", body | wrong)
        assert status == 400 and says in text, text


def test_values_for_templates(server):
    """By OpenAI's name, by the names that the template has, and by Ollama's; what the template would not read is refused."""

    def size(text):
        return len(tokenize(server, f"user: hi{text}assistant: "))

    assert chat(server, max_tokens=1)["usage"]["prompt_tokens"] == size("")
    for more, text in (
        ({"reasoning_effort": "high"}, "Reasoning: high. "),
        ({"reasoning_effort": None, "chat_template_kwargs": {}}, ""),
        ({"chat_template_kwargs": {"reasoning_effort": "low", "enable_thinking": True}}, "Reasoning: low. Think. "),
        ({"chat_template_kwargs": {"enable_thinking": False}}, "Do not think. "),
    ):
        assert chat(server, **more, max_tokens=1)["usage"]["prompt_tokens"] == size(text), more
    ollama = dict(messages=USER, stream=False, options={"num_predict": 1})
    for think, text in ((None, ""), (True, "Think. "), (False, "Do not think. "), ("medium", "Reasoning: medium. ")):
        assert ask(server, "/api/chat", **ollama, think=think)["prompt_eval_count"] == size(text), think
    for path, more, says in (
        ("/v1/chat/completions", {"reasoning_effort": 3}, "'reasoning_effort' has to be a text"),
        ("/v1/chat/completions", {"reasoning_effort": "low", "chat_template_kwargs": {"reasoning_effort": "low"}}, "'reasoning_effort' is given twice"),
        ("/v1/chat/completions", {"chat_template_kwargs": [1]}, "'chat_template_kwargs' has to be an object"),
        ("/v1/chat/completions", {"chat_template_kwargs": {"enable_thinking": "false"}}, "'enable_thinking' has to be true or false"),
        ("/v1/chat/completions", {"chat_template_kwargs": {"thinking": True}}, "the model's chat template takes no 'thinking' from a request"),
        ("/v1/chat/completions", {"chat_template_kwargs": {"messages": []}}, "the model's chat template takes no 'messages' from a request"),
        ("/v1/chat/completions", {"chat_template_kwargs": {"": 1}}, "the model's chat template takes no '' from a request"),
        ("/v1/chat/completions", {"think": True}, "'think' is no field of this API"),
        ("/v1/completions", {"prompt": "a", "reasoning_effort": "low"}, "'reasoning_effort' is no field of this API"),
        ("/api/chat", {"think": [1]}, "'think' has to be true, false or a text"),
        ("/api/chat", {"think": "x" * 10_000}, "the prompt has"),
    ):
        body = {"max_tokens": 1, "messages": USER} if "v1" in path else ollama
        status, text = server.request(path, ({} if "prompt" in more else body) | more)
        assert status == 400 and says in text, text


def test_anthropic(server):
    tools = [{"name": "stop", "description": "stops", "input_schema": {"type": "object", "properties": {"why": {"enum": ["x", "y"]}}, "required": ["why"]}}]
    body = dict(messages=USER, system="be", max_tokens=120, tools=tools, tool_choice={"type": "any", "disable_parallel_tool_use": True})
    answer = ask(server, "/v1/messages", **body)
    (used,) = answer["content"]
    assert answer["type"] == "message" and answer["stop_reason"] == "tool_use" and used["name"] == "stop" and used["input"]["why"] in ("x", "y")
    text = ask(server, "/v1/messages", **body, stream=True)
    kinds = [block.split("\n")[0].removeprefix("event: ") for block in text.split("\n\n")[:-1]]
    assert kinds == ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"]
    again = [*USER, {"role": "assistant", "content": answer["content"]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": used["id"], "content": "done"}]}]
    again[-1]["content"][0] |= {"is_error": True, "cache_control": {"type": "ephemeral"}}
    plain = ask(server, "/v1/messages", messages=again, max_tokens=3, temperature=0)
    assert plain["content"][0]["type"] == "text" and plain["stop_reason"] == "max_tokens" and plain["usage"]["output_tokens"] == 3
    likeliest = dict(messages=USER, max_tokens=100, temperature=0)  # a drawn answer may end before any stop text
    text = ask(server, "/v1/messages", **likeliest)["content"][0]["text"]
    every = ["never there", next(letter for letter in text if letter not in "\ufffd \n")]
    for stream in (False, True):
        ended = ask(server, "/v1/messages", **likeliest, stop_sequences=every, stream=stream)
        if stream:
            ended = json.loads(ended.split("event: message_delta\ndata: ")[1].split("\n")[0])["delta"]
        assert ended["stop_reason"] == "stop_sequence" and ended["stop_sequence"] == every[1]
    status, text = server.request("/v1/messages", {"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "citations": []}]}], "max_tokens": 1})
    assert status == 400 and "a block of type 'text': 'citations' is not supported" in text
    status, text = server.request("/v1/messages", {"messages": USER})
    assert status == 400 and "'max_tokens' is missing" in text


def test_metrics(server):
    server.complete(prompt="hi", max_tokens=4)
    text = server.request("/metrics")[1]
    for name in ("time_to_first_token_seconds", "time_between_tokens_seconds", "request_seconds"):
        counts = [int(line.split()[1]) for line in text.splitlines() if line.startswith(f"greta_{name}_bucket")]
        assert counts == sorted(counts) and len(counts) == 16 and server.metric(f"{name}_count") == counts[-1] > 0


@pytest.mark.parametrize(
    "body, says",
    [
        ({"n": 17}, "'n' has to be a whole number from 1 to 16"),
        ({"logprobs": True, "top_logprobs": 21}, "'top_logprobs' has to be a whole number from 0 to 20"),
        ({"top_logprobs": 2}, "'top_logprobs' needs 'logprobs': true"),
        ({"logit_bias": {"x": 1}}, "'logit_bias' has \"x\", which is no token of the model"),
        ({"logit_bias": {"1": 101}}, "'logit_bias' has 101 in place of a number from -100 to 100"),
        ({"logit_bias": {str(i): 1 for i in range(513)}}, "'logit_bias' has to be an object of at most 512 tokens"),
        ({"frequency_penalty": 3}, "'frequency_penalty' has to be a number from -2 to 2"),
        ({"response_format": {"type": "xml"}}, "'response_format': 'type' has to be text, json_object or json_schema"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}}}, "'response_format': 'not' of a JSON schema is not supported"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"pattern": "(?=a)"}}}}, "'response_format': 'pattern': a look at what is beside, such as (?=..), is not supported"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object", "properties": {str(i): {} for i in range(300)}}}}}, "more than 256 properties"),
        ({"grammar": "root ::= root"}, "'grammar': one of its rules calls itself before any character"),
        ({"grammar": "x" * 70000}, "'grammar' has more than 64 KiB"),
        ({"grammar": 'root ::= "a"', "response_format": {"type": "json_object"}}, "there can be one"),
        ({"tools": [{"type": "retrieval"}]}, "a tool's 'type' has to be"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "a function's 'name' has to be of 1 to 64"),
        ({"tools": TOOLS, "tool_choice": "always"}, "'tool_choice' has to be"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "g"}}}, "'tool_choice' names no function of 'tools'"),
        ({"tool_choice": "required"}, "'tool_choice' needs 'tools'"),
        ({"tools": TOOLS, "tool_choice": "required", "grammar": "root ::= 'a'"}, "there can be one"),
        ({"tools": TOOLS, "tool_choice": "required", "response_format": {"type": "xml"}}, "'type' has to be text"),
        ({"messages": [*USER, {"role": "assistant", "tool_calls": [{}]}]}, "a call of 'tool_calls' has to have 'function'"),
        ({"messages": [*USER, {"role": "assistant", "tool_calls": [{"x": 1, "function": {"name": "f"}}]}]}, "a call of 'tool_calls': 'x' is not supported"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "x": 1}]}]}, "a part of a message's 'content': 'x' is not supported"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "find", "x": 1}}}, "'function' of 'tool_choice': 'x' is not supported"),
        ({"response_format": {"type": "json_object", "json_schema": {}}}, "'response_format' has 'json_schema' beside another 'type'"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": False}}}, "'response_format': no text fits it"),
    ],
)
def test_refusals(server, body, says):
    status, text = server.request("/v1/chat/completions", {"messages": USER} | body)
    assert status == 400 and says in json.loads(text)["error"]["message"], text


def test_openai_client(server):
    """With a class of pydantic as the schema, and tools, whole and as events."""
    openai = pytest.importorskip("openai")
    pydantic = pytest.importorskip("pydantic")
    import typing

    class Person(pydantic.BaseModel):
        name: typing.Literal["Ada", "Bob"]
        isHere: bool

    client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="any", max_retries=0)
    (model,) = client.models.list().data
    common = dict(model=model.id, messages=USER, seed=2, max_tokens=150, logit_bias=server.compact)
    parsed = client.chat.completions.parse(**common, response_format=Person).choices[0].message.parsed
    assert isinstance(parsed, Person)
    tool = openai.pydantic_function_tool(Person, name="greet")
    answer = client.chat.completions.parse(**common, tools=[tool], tool_choice="required", parallel_tool_calls=False)
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "greet" and isinstance(call.function.parsed_arguments, Person)
    with client.chat.completions.stream(**common, tools=[tool], tool_choice="required", parallel_tool_calls=False) as stream:
        streamed = stream.get_final_completion().choices[0].message.tool_calls
    assert streamed[0].function.arguments == call.function.arguments
    whole = client.completions.create(model=model.id, prompt="x", max_tokens=3, seed=1, n=2, logprobs=2)
    assert len(whole.choices) == 2 and len(whole.choices[0].logprobs.tokens) == 3
    with pytest.raises(openai.BadRequestError, match="'audio' is no field of this API"):
        client.chat.completions.create(**common, audio={"format": "wav", "voice": "x"})


def channels(server):
    """A grammar is that of the channel for answers; here it leaves it for the others."""
    thought = "so<|end|><|channel|>analysis<|message|>hm"
    called = thought + '<|end|> to=functions.stop<|channel|>commentary<|message|>{"why":"x"}'
    (choice,) = chat(server, tools=TOOLS[1:], grammar="root ::= " + json.dumps(called), max_tokens=200)["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert choice["message"]["content"] == "so" and choice["message"]["reasoning_content"] == "hm" and call["function"] == {"name": "stop", "arguments": '{"why":"x"}'}
    # Without tools, too.
    deltas = [event["choices"][0]["delta"] for event in events(chat(server, grammar="root ::= " + json.dumps(thought), stream=True))]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "hm" and "".join(delta.get("content", "") for delta in deltas) == "so"
    # A thought goes back under the name that the template has.
    thought = [{"role": "assistant", "content": "so", "reasoning_content": "h" * 100}]
    assert chat(server, messages=thought, max_tokens=1)["usage"]["prompt_tokens"] > 100


@pytest.mark.parametrize("mark, more", [("[TOOL_CALLS]", ""), ("[TOOL_CALLS]", "[ARGS]"), ("<tool_call>", "<function=<parameter="), ("<|python_tag|>", ""), ("<|channel|>", "<|message|>")])
def test_other_styles(tmp_path, mark, more):
    """Mistral's mark is a token of its own, which begins the answer where a call is required, as is the one of gpt-oss; Llama's calls are whole answers."""
    template = "{% if tools %}{{ tools | tojson }}{# " + mark + more + " #}{% endif %}{{ messages[0].thinking }}{{ messages[0].content }}"
    folder = with_template(tmp_path / "m", template)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["added_tokens"][0]["content"] = mark
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 2048}))
    made = llm("compile", folder, f"--targets={QUICK_TARGET}", "-o", folder / "m.greta")
    assert made.returncode == 0, made.stderr
    server = Server(folder / "m.greta", [folder], device=QUICK)
    compact = {str(tokenize(server, text)[0]): -100 for text in (" ", "\n")}
    # The format is that of texts.
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
    (choice,) = chat(server, tools=TOOLS[1:], tool_choice="required", parallel_tool_calls=False, logit_bias=compact, response_format=form)["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls" and call["function"]["name"] == "stop" and isinstance(json.loads(call["function"]["arguments"]), dict)
    if mark == "<|channel|>":
        channels(server)
    if "<function=" in more:
        # A call that is cut has no end, so nobody takes its arguments for whole ones.
        grammar = "root ::= " + json.dumps("<function=stop>\n<parameter=why>\nx\n</parameter>\n<parameter=why>\n") + " [a-c]{300}"
        (choice,) = chat(server, tools=TOOLS[1:], grammar=grammar, max_tokens=200)["choices"]
        (call,) = choice["message"]["tool_calls"]
        assert choice["finish_reason"] == "length" and call["function"] == {"name": "stop", "arguments": '{"why":"x"'}
    server.end()
