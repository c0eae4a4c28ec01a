"""Grammars, schemas, tools and texts that mean no good, in the words of every dialect that greta-llm serve speaks: each is refused or answered in bounded time and
memory, and others are answered meanwhile. On simulated gfx942, with the model of test_llm_api.py, whose template knows tools.
"""

import json
import socket
import time

import pytest

from models import NO_END
from test_llm_api import TOOLS, USER, server  # noqa: F401: server is a fixture
from test_llm_hostile import are_gone, is_well, memory_stays, request, send

CHAT, TEXT, ANTHROPIC, OLLAMA = "/v1/chat/completions", "/v1/completions", "/v1/messages", "/api/chat"
FEW = {"max_tokens": 4, "messages": USER}


def doubled(kind, depth=40):
    """A schema of 2 to the power of 40 ways, or members, in two kilobytes."""
    ways = {
        "any": lambda next: {"anyOf": [next, next]},
        "members": lambda next: {"type": "object", "properties": {"a": next, "b": next}, "required": ["a", "b"]},
        "items": lambda next: {"type": "array", "prefixItems": [next, next]},
        "rest": lambda next: {"type": "object", "properties": {"a": next}, "additionalProperties": next},
    }[kind]
    names = {f"d{i}": ways({"$ref": f"#/$defs/d{i + 1}"}) for i in range(depth)}
    return {"$defs": names | {f"d{depth}": {"type": "null"}}, "$ref": "#/$defs/d0"}


def nested(depth):
    schema = {}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


SCHEMAS = {
    **{f"doubled {kind}": doubled(kind) for kind in ("any", "members", "items", "rest")},
    "itself": {"$ref": "#"},
    "itself in an array": {"type": "array", "items": {"$ref": "#"}},
    "each other": {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, {"type": "null"}]}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    "deep": nested(24),
    "many items": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}, "maxItems": 9999}, "maxItems": 9999},
    "many members": {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(256)}},
    "many values": {"enum": [f"{i:x}" * 8 for i in range(4000)]},
    "names that begin alike": {"type": "object", "properties": {"x" * i: {"type": "null"} for i in range(1, 64)}, "additionalProperties": {"type": "null"}},
    "pattern of ways": {"pattern": "(.*.*.*.*.*.*.*.*)*x(a|a|a|a)*(b*)*" + ".?" * 300 + "$"},
    "pattern of classes": {"pattern": "^(" + "|".join(f"[^\\\\u{i:04x}]{{1,40}}" for i in range(0x100, 0x500)) + ")*$"},
    "deep pattern": {"pattern": "(" * 5000 + ")" * 5000},
    "long pattern": {"pattern": "[^a]" * 200_000},
    "long strings": {"type": "string", "minLength": 9999, "maxLength": 10000},
}

GRAMMARS = {
    "ways": "root ::= " + " ".join(['[^0]*'] * 300) + ' "0"',
    "nothing or one": "root ::= " + " ".join(['"a"?'] * 300),
    "rules that double": "root ::= r0\n" + "\n".join(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(40)) + '\nr40 ::= "a"',
    "rules that may be nothing": "root ::= r0\n" + "\n".join(f"r{i} ::= r{i + 1}? r{i + 1}?" for i in range(40)) + '\nr40 ::= "a"',
    "repetitions of repetitions": 'root ::= ((("a"{1000}){1000}){1000}){1000}',
    "nothing, for ever": 'root ::= x*\nx ::= y*\ny ::= ""',
    "two of itself": 'root ::= x "b"\nx ::= "a" x x | "a" | ""',
    "deep": "root ::= " + "(" * 60 + '"a"' + ")" * 60,
    "in the middle": 'root ::= "a" root "b" | "c"',
}


def bounded(server, path, body, seconds=30):
    """The answer; one whose time or memory has no bound fails."""
    with memory_stays(server, 64):
        begin = time.monotonic()
        status, answer = send(server, request(path=path, body=body), 2 * seconds)
        assert time.monotonic() - begin < seconds
    assert status in (200, 400), answer
    if status == 400:
        assert len(answer) < 2000 and json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]["message"]
    is_well(server, 10)
    return status, answer


@pytest.mark.parametrize("name", GRAMMARS)
def test_grammars(server, name):
    bounded(server, TEXT, {"prompt": "hi", "max_tokens": 4, "grammar": GRAMMARS[name]})


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas(server, name):
    """As the form of an answer, of Ollama's, of the arguments of a function, and of Anthropic's input."""
    schema = SCHEMAS[name]
    tool = {"name": "f", "parameters": schema, "strict": True}
    statuses = [
        bounded(server, path, body if path == OLLAMA else FEW | body)[0]
        for path, body in (
            (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}}),
            (OLLAMA, {"messages": USER, "format": schema, "stream": False, "options": {"num_predict": 4}}),
            (CHAT, {"tools": [{"type": "function", "function": tool}], "tool_choice": "required"}),
            (ANTHROPIC, {"tools": [{"name": "f", "input_schema": schema}], "tool_choice": {"type": "any"}}),
        )
    ]
    assert len(set(statuses[:2])) == 1, statuses


def test_many_large_tools(server):
    """As many as there may be, each with a schema that doubles: the model chooses among them."""
    tools = [{"type": "function", "function": {"name": f"f{i}", "parameters": doubled("members", 20)}} for i in range(128)]
    for choice in ("required", "auto", "none", {"type": "function", "function": {"name": "f127"}}):
        bounded(server, CHAT, FEW | {"tools": tools, "tool_choice": choice})


HALVES = "\\ud800", "\\udc00", "\\ud83d\\ud83d", "\\udc00\\ud800", "a\\ud800"


@pytest.mark.parametrize("half", HALVES)
def test_halves_of_characters(server, half):
    """JSON may spell what no text has. In every place it is refused, and said."""
    messages = '"max_tokens": 2, "messages": [{"role": "user", "content": "hi"}]'
    for path, body in (
        (TEXT, '{"prompt": "HALF"}'),
        (TEXT, '{"prompt": "a", "stop": ["HALF"]}'),
        (TEXT, '{"prompt": "a", "grammar": "root ::= \\"HALF\\""}'),
        (CHAT, '{"messages": [{"role": "user", "content": "HALF"}]}'),
        (CHAT, '{"messages": [{"role": "HALF", "content": ""}]}'),
        (CHAT, f'{{{messages}, "response_format": {{"type": "json_schema", "json_schema": {{"name": "n", "schema": {{"const": "HALF"}}}}}}}}'),
        (CHAT, f'{{{messages}, "tools": [{{"type": "function", "function": {{"name": "f", "parameters": {{"properties": {{"HALF": {{}}}}}}}}}}]}}'),
        (ANTHROPIC, '{"max_tokens": 2, "messages": [{"role": "user", "content": [{"type": "text", "text": "HALF"}]}]}'),
        (OLLAMA, '{"messages": [{"role": "user", "content": "HALF"}]}'),
        ("/tokenize", '{"content": "HALF"}'),
        ("/v1/embeddings", '{"input": "HALF"}'),
    ):
        status, answer = send(server, request(path=path, body=body.replace("HALF", half).encode()))
        assert status == 400 and len(answer) < 1000, (path, answer)
    is_well(server)


VALUES = {
    "many names": {f"enable_thinking{i}": i for i in range(100_000)},
    "long name": {"enable_thinking" * 200_000: True},
    "long value": {"reasoning_effort": "x" * 1_000_000},
    "no text": {"reasoning_effort": [["x"] * 100] * 1000},
    "deep": {"enable_thinking": json.loads("[" * 60 + "]" * 60)},
    "the server's": {"add_generation_prompt": False},
    "a template": {"reasoning_effort": "{{ messages }}{% for i in range(1000000) %}" * 200},
}


@pytest.mark.parametrize("name", VALUES)
def test_values_for_templates(server, name):
    assert bounded(server, CHAT, FEW | {"chat_template_kwargs": VALUES[name]})[0] == 400


PROMPTS = {
    "many texts": ["a"] * 200_000,
    "many lists": [[1]] * 200_000,
    "many tokens": [1] * 1_000_000,
    "large texts": ["x" * 15_000] * 128,
    "large lists": [[1] * 8_000] * 128,
    "deep": json.loads("[" * 60 + "]" * 60),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_lists_of_prompts(server, name):
    """Too many, or too large: refused without their tokens."""
    for more in ({}, {"n": 16, "echo": True, "logprobs": 20}):
        assert bounded(server, TEXT, {"prompt": PROMPTS[name], "max_tokens": 1} | more)[0] == 400


@pytest.mark.parametrize(
    "path, body",
    [
        (TEXT, {"prompt": "hi", "max_tokens": 1900, "logprobs": 20, "logit_bias": NO_END}),
        (TEXT, {"prompt": "hi", "max_tokens": 1900, "grammar": "root ::= [a-z]{1900,}"}),
        (CHAT, {"messages": USER, "max_tokens": 1900, "logprobs": True, "top_logprobs": 20, "logit_bias": NO_END}),
        (CHAT, {"messages": USER, "max_tokens": 1900, "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "string", "minLength": 9000}}}}),
        (CHAT, {"messages": USER, "max_tokens": 1900, "tools": TOOLS, "logit_bias": NO_END}),
        (ANTHROPIC, {"messages": USER, "max_tokens": 1900, "temperature": 0}),
        (OLLAMA, {"messages": USER, "options": {"num_predict": 1900, "temperature": 0}}),
    ],
)
def test_readers_that_stop(server, path, body):
    """A client that reads the beginning of its events and no more, in each dialect: its place goes to others, and what it does not read does not grow without end."""
    before = server.metric("requests_cancelled_total")
    with memory_stays(server), socket.socket() as stream:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        stream.connect(("127.0.0.1", server.port))
        stream.sendall(request(path=path, body=body | {"stream": True}))
        assert stream.recv(16).startswith(b"HTTP/1.1 200")
        assert send(server, request())[0] == 200
        assert server.metric("requests_running") == 1, "the answer ended before its reader left"
    are_gone(server, before + 1)
