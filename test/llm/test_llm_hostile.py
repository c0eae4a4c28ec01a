"""greta-llm serve among clients that mean no good, or have gone: whatever they send or hold, the server refuses it in bounded time and memory, and others
are answered. One server for most cases, and a few of their own; raw sockets on the loopback device, on simulated gfx942.
"""

import concurrent.futures
import contextlib
import gzip
import json
import random
import re
import signal
import socket
import time

import pytest

import models
import texts
from models import ARCHITECTURES
from test_llm import LLM, llm
from test_llm_serve import SERVER, Server, events, package, with_template  # noqa: F401: package is a fixture

pytestmark = pytest.mark.xdist_group("llm-hostile")  # one worker makes what these share
BODY = {"prompt": "hi", "max_tokens": 2}


@pytest.fixture(scope="module")
def server(package):
    one = Server(package, ["--synthetic=tiny"], "--parallel=2", "--queue=3", "--context=4096")
    yield one
    one.end()


def request(method="POST", path="/v1/completions", body=BODY, **headers):
    """The bytes of a request. A header of None is left out."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if method == "POST" else b""
    given = {"Host": "127.0.0.1", "Content-Type": "application/json", "Connection": "close", "Content-Length": len(data) or None}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value is not None), "", ""]
    return "\r\n".join(lines).encode("latin1") + data


def connect(server, timeout=60):
    return socket.create_connection(("127.0.0.1", server.port), timeout=timeout)


def received(stream):
    """All until the server closes."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := stream.recv(1 << 16):
            data += piece
    return data


def send(server, data, timeout=60):
    """(status, rest) of the answer; (0, b"") where the connection was closed without one."""
    with connect(server, timeout) as stream:
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            stream.sendall(data)
        answer = received(stream)
        return (int(answer.split()[1]), answer) if answer else (0, b"")


def is_well(server, limit=3):
    begin = time.monotonic()
    assert send(server, request("GET", "/health"), limit)[0] == 200
    assert time.monotonic() - begin < limit


def peak(server):
    """MiB resident at most since the last call."""
    with open(f"/proc/{server.process.pid}/status") as status:
        size = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    with open(f"/proc/{server.process.pid}/clear_refs", "w") as file:
        file.write("5")
    return size


@contextlib.contextmanager
def memory_stays(server, more=24):
    before = peak(server) and peak(server)
    yield
    # A sanitizer keeps what was freed.
    assert peak(server) - before < more or SERVER != LLM


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize("field", ["prompt", "stop", "stream_options", "messages", "unknown"])
def test_json_nested_without_end(server, field):
    path = "/v1/chat/completions" if field == "messages" else "/v1/completions"
    status, answer = send(server, request(path=path, body=b'{"stream": true, "' + field.encode() + b'": ' + DEEP + b"}"))
    assert status == 400 and b"nested more than 64 deep" in answer


@pytest.mark.parametrize(
    "headers, status",
    [
        (dict(Content_Type="text/plain"), 415),
        (dict(Content_Type="application/x-www-form-urlencoded"), 415),
        (dict(Content_Type=None), 415),
        (dict(Origin="http://evil.example"), 403),
        (dict(Origin="null"), 403),
        (dict(Origin="http://127.0.0.1:1"), 403),
        (dict(Host="evil.example"), 403),
        (dict(Host="127.0.0.1.evil.example"), 403),
        (dict(Host="[127.0.0.1].evil.example"), 403),
        (dict(Host="[::1"), 403),
        (dict(Host=None), 400),
        (dict(Content_Encoding="gzip"), 415),
        (dict(Transfer_Encoding="chunked"), 400),  # beside a length
        (dict(Transfer_Encoding="gzip", Content_Length=None), 400),
        (dict(Content_Length="-1"), 400),
        (dict(Content_Length="99999999999999999999"), 413),
        (dict(Content_Length="5000000000"), 413),
        (dict(Expect="100-continue", Content_Type="text/plain"), 415),
        ({f"a{i}": i for i in range(100)}, 431),
        (dict(a="x" * (1 << 20)), 431),
        (dict(Content_Type="application/json; charset=utf-8"), 200),
        (dict(Host="localhost:8080", Origin="http://localhost:8080"), 200),
        (dict(Host="[::1]:80"), 200),
    ],
)
def test_heads(server, headers, status):
    got, answer = send(server, request(**headers))
    # The server may close the connection without an answer if a request is too large.
    assert got == status or (got == 0 and status in (413, 431)), answer
    if status != 200:
        assert not answer or b"\r\nconnection: close\r\n" in answer.lower()


@pytest.mark.parametrize(
    "data",
    [
        bytes(range(256)) * 8,
        b"GET /health\r\n\r\n",
        b"GET /hea\0lth HTTP/1.1\r\nHost: localhost\r\n\r\n",
        request("GET", "/%00"),
        request("GET", "/%"),
        request("GET", "/../../etc/passwd"),
        request("PUT"),
        b"GET /" + b"x" * (1 << 20) + b" HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\n" + b"a: b\r\n" * 50_000 + b"\r\n",
        request(body=b"-1\r\nx", Transfer_Encoding="chunked", Content_Length=None),
        request(body=b"fffffffffffffffff\r\nx", Transfer_Encoding="chunked", Content_Length=None),
        request(body=b"ffffffffffffffff\r\nx", Transfer_Encoding="chunked", Content_Length=None),
    ],
    ids=lambda data: f"{data[-24:]}",
)
def test_what_is_no_request(server, data):
    with memory_stays(server):
        status, answer = send(server, data, 8)
    assert status == 0 or 400 <= status < 500, answer
    is_well(server)


INNER = request("GET", "/v1/models")


@pytest.mark.parametrize(
    "line",
    [
        f"Content-Length : {len(INNER)}",
        f"Content-Length\t: {len(INNER)}",
        f"Content-Length:\r\n {len(INNER)}",
        f"a: b\r\n Content-Length: {len(INNER)}",
        f"a: b\rContent-Length: {len(INNER)}",
        f'"Content-Length": {len(INNER)}',
        "Transfer-Encoding : chunked",
        "Transfer-Encoding:\r\n\tchunked",
    ],
)
def test_a_body_that_is_not_seen_is_no_request(server, line):
    """Lengths that some proxies read, and that libmicrohttpd does not."""
    head = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n{line}\r\n\r\n".encode()
    status, answer = send(server, head + INNER)
    assert status == 400 and answer.count(b"HTTP/1.1") == 1 and b'"object"' not in answer
    is_well(server)


def test_large_bodies(server):
    with memory_stays(server):
        with connect(server) as stream, contextlib.suppress(ConnectionResetError, BrokenPipeError):
            stream.sendall(request(body=b"", Transfer_Encoding="chunked"))
            for _ in range(64 << 4):
                stream.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
            assert b" 413 " in received(stream)
        assert send(server, request(body=gzip.compress(bytes(32 << 20)), Content_Encoding="gzip"))[0] == 415
        ranges = send(server, request("GET", "/", Range="bytes=" + ",".join(["0-"] * 1600)))
        assert ranges[0] == 200 and len(ranges[1]) < 1 << 16
    begin = time.monotonic()
    status, answer = send(server, request(body={"prompt": "x" * ((4 << 20) - 100)}))
    assert status == 400 and b"has no room" in answer
    status, answer = send(server, request(body={"prompt": [1] * 1_000_000}))
    assert status == 400 and time.monotonic() - begin < 20


def resident(server):
    """MiB now."""
    with open(f"/proc/{server.process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def test_memory_of_what_was_answered_goes_back(package):
    """Large texts of many sizes on many connections, most of them refused: the process is as large as before."""
    server = Server(package, ["--synthetic=tiny"], "--parallel=2", "--queue=8", "--context=4096")

    def ask(i):
        rng = random.Random(i)
        for _ in range(12):
            size = rng.randrange(1 << 17, 1 << 21)
            body = rng.choice([{"prompt": "x" * size}, {"prompt": [1] * (size // 8)}, {"prompt": "hi", "user": "x" * size, "max_tokens": 2}, {"x" * size: 1}])
            assert send(server, request(body=body))[0] in (200, 400, 429)

    assert send(server, request())[0] == 200
    before = resident(server)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(ask, range(16)))
    assert resident(server) - before < 8 or SERVER != LLM
    server.end()


def test_slow_silent_and_idle_connections(server):
    """More of each kind than connections may wait: the oldest are closed, and nobody else notices."""
    streams = [connect(server) for _ in range(300)]
    idle = [connect(server) for _ in range(20)]
    for stream in idle:
        stream.sendall(request("GET", "/health", Connection="keep-alive"))
        assert stream.recv(1 << 16).startswith(b"HTTP/1.1 200")
    slow = [connect(server) for _ in range(40)]
    for i, stream in enumerate(slow):
        stream.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" if i % 2 else request(Content_Length=1000))
    with contextlib.ExitStack() as stack:
        for stream in streams + idle + slow:
            stack.enter_context(stream)
        for _ in range(3):
            for stream in slow:
                with contextlib.suppress(OSError):
                    stream.sendall(b"a")
            is_well(server)
            time.sleep(0.3)
        assert json.loads(send(server, request())[1].split(b"\r\n\r\n", 1)[1])["usage"]["completion_tokens"] == 2
        streams[0].settimeout(5)
        assert streams[0].recv(1) == b""


def left(server, body, count=5):
    """So many send a request and go, two of them while it runs; what remains of them a moment later."""
    before = server.metric("requests_cancelled_total")
    with contextlib.ExitStack() as stack:
        for i in range(1, count + 1):
            stack.enter_context(connect(server)).sendall(request(body=body))
            deadline = time.monotonic() + 60
            while server.metric("requests_running") < min(i, 2) or server.metric("requests_waiting") < i - 2:
                assert time.monotonic() < deadline
                time.sleep(0.02)
    are_gone(server, before + count)


def are_gone(server, count):
    deadline = time.monotonic() + 60
    while server.metric("requests_cancelled_total") < count and time.monotonic() < deadline:
        time.sleep(0.05)
    assert server.metric("requests_cancelled_total") == count
    assert server.metric("requests_running") == server.metric("requests_waiting") == 0
    assert server.metric("cache_tokens_free") == server.metric("cache_tokens")


@pytest.mark.parametrize("streams", [False, True])
def test_who_leaves_frees_his_place(server, streams):
    """Two run and three wait in the queue."""
    left(server, {"prompt": "hi", "max_tokens": 1900, "stream": streams})


@pytest.mark.parametrize("streams", [False, True])
def test_a_client_that_ends_its_side_is_answered(server, streams):
    """It has not left: longer than the server takes to look."""
    body = {"prompt": "hi", "max_tokens": 100, "stream": streams, "seed": 1}
    with connect(server) as stream:
        stream.sendall(request(body=body))
        stream.shutdown(socket.SHUT_WR)
        answer = received(stream)
    assert answer.startswith(b"HTTP/1.1 200") and b'"finish_reason":"length"' in answer


def test_requests_behind_each_other(server):
    with connect(server) as stream:
        stream.sendall(request("GET", "/health", Connection="keep-alive") + request(Connection="keep-alive") + request("GET", "/v1/models"))
        assert received(stream).count(b"HTTP/1.1 200") == 3


def test_a_reader_that_does_not_read(server):
    before = server.metric("requests_cancelled_total")
    with socket.socket() as stream:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        stream.connect(("127.0.0.1", server.port))
        stream.sendall(request(body={"prompt": "hi", "max_tokens": 1900, "stream": True}))
        assert send(server, request())[0] == 200
    are_gone(server, before + 1)


def test_what_is_refused_does_not_come_back(server):
    """A name of megabytes, written to a client that does not read it, would stay in memory as an answer."""
    for path, body in (("/v1/completions", {"x" * 3_000_000: 1}), ("/v1/completions", {"prompt": "x", "stream_options": {"y" * 3_000_000: 1}})):
        status, answer = send(server, request(path=path, body=body))
        assert status == 400 and len(answer) < 1500 and re.search(rb'(x|y){900}\.\."', answer)


@pytest.mark.parametrize("stop, status", [("s" * 1024, 200), ("s" * 1025, 400), (["a", "b" * 2000], 400), (["a"] * 17, 400)])
def test_stops_are_short(server, stop, status):
    got, answer = send(server, request(body=BODY | {"stop": stop}))
    assert got == status and (b"a text of at most 1024 bytes" in answer) == (status == 400), answer


@pytest.mark.parametrize(
    "messages, says",
    [
        ([{"role": "user", "content": ""}] * 60_000, b"there are 60000 messages, for which the context of 2048 tokens has no room"),
        ([{"role": "user", "content": "x" * 700_000}] * 4, b"the prompt has 2800000 bytes, for which the context of 2048 tokens has no room"),
    ],
)
def test_conversations_too_large_for_the_context(server, messages, says):
    """Refused in front of the template, which may take seconds of a processor for them."""
    begin = time.monotonic()
    status, answer = send(server, request(path="/v1/chat/completions", body={"messages": messages}))
    assert status == 400 and says in answer, answer[-300:]
    assert time.monotonic() - begin < 10


def test_max_tokens_holds_back_nobody(server):
    """Two slots, one of which has asked for all there is."""
    before = server.metric("requests_finished_total")
    with connect(server) as greedy:
        greedy.sendall(request(body={"prompt": "hi", "max_tokens": 10**9, "stream": True}))
        assert greedy.recv(1)
        assert send(server, request())[0] == 200
        assert server.metric("requests_finished_total") == before + 1


def test_a_refused_body_is_no_request(package, tmp_path):
    key = tmp_path / "key"
    key.write_text("secret\n")
    server = Server(package, ["--synthetic=tiny"], "-c", "64", f"--api-key-file={key}")
    inner = request("GET", "/health")
    with connect(server) as stream:
        stream.sendall(request(body=inner, Connection="keep-alive")[: -len(inner)])
        time.sleep(0.2)
        with contextlib.suppress(OSError):
            stream.sendall(inner)
        answer = received(stream)
    assert answer.startswith(b"HTTP/1.1 401") and answer.count(b"HTTP/1.1") == 1
    # Who has the key may be any page at any name.
    assert send(server, request(Authorization="Bearer secret", Host="chat.example", Origin="https://chat.example"))[0] == 200
    server.end()


def test_the_end_comes(package):
    """SIGTERM, with a client that drips, one that is silent, one that does not read, one whose answer takes long, and one in the queue."""
    server = Server(package, ["--synthetic=tiny"], "--parallel=2", "--grace=2")
    with contextlib.ExitStack() as stack:
        slow, _, stuck, long, queued = (stack.enter_context(connect(server)) for _ in range(5))
        slow.sendall(b"GET /health HTTP/1.1\r\n")
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        for stream, streams in ((stuck, True), (long, False)):
            stream.sendall(request(body={"prompt": "hi", "max_tokens": 1900, "stream": streams}))
        while server.metric("requests_running") < 2:
            time.sleep(0.05)
        queued.sendall(request(body={"prompt": "hi", "max_tokens": 2}))
        while server.metric("requests_waiting") < 1:
            time.sleep(0.05)
        begin = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        while server.process.poll() is None and time.monotonic() - begin < 30:
            with contextlib.suppress(OSError):
                slow.sendall(b"a")
            time.sleep(0.2)
        assert time.monotonic() - begin < 15
        assert server.process.returncode == 0, server.process.stderr.read()
        for stream in (long, queued):
            answer = received(stream)
            assert answer.startswith(b"HTTP/1.1 503") and b"the server is ending" in answer
    assert server.process.communicate()[1] == "greta-llm: error: the server is ending\n"


def test_what_it_says(package):
    """Without -q: what is served, and a line for each request."""
    server = Server(package, ["--synthetic=tiny"], "--parallel=8", "-c", "64", is_quiet=False)
    server.complete(prompt=[5, 6], max_tokens=3)
    server.request("/v1/completions", {"prompt": 3})
    assert send(server, request("GET", "/a\x1b[31m"))[0] == 404
    server.process.send_signal(signal.SIGTERM)
    lines = server.process.communicate(timeout=60)[1].splitlines()
    assert server.process.returncode == 0
    about = "synthetic-tiny at .*: context 2048 tokens, KV cache 64 tokens, 8 slots in batches of 4, queue 64"
    warning = "greta-llm: warning: the package has functions for 4 sequences at once, .* compile with --batch=1,8"
    expected = [about, warning, r"POST /v1/completions 200 prompt 2, generated 3 tokens, \d+ ms", r"POST /v1/completions 400, \d+ ms"]
    for line, pattern in zip(lines, expected):
        assert re.fullmatch(pattern, line), lines
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize(
    "template, says",
    [
        ("{% for a in range(3000) %}{% for b in range(3000) %}{% for c in range(3000) %}{% endfor %}{% endfor %}{% endfor %}", "it takes more than 2 seconds"),
        ("{% for a in range(10**12) %}{% endfor %}", ""),
        ("{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}", ""),
    ],
)
def test_templates_without_end(tmp_path, template, says):
    folder = with_template(tmp_path / "m", template)
    begin = time.monotonic()
    ran = llm("tokenize", folder, "--chat", json.dumps([{"role": "user", "content": "hi"}]))
    assert ran.returncode == 1 and "the model's chat template refuses the messages: " + says in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr
    assert time.monotonic() - begin < 60


def test_stop_matches_special_tokens(tmp_path):
    """A model that says nothing but one special token."""
    a, token = ARCHITECTURES["llama2"], 300
    weights = {name: w * 0 for name, w in models.random_weights(a).items()}
    for name, w in weights.items():
        if "norm" in name or name.startswith("token_embd"):
            w += 1
    weights["output.weight"] -= 1
    weights["output.weight"][token] += 2
    folder = models.write_safetensors(tmp_path / "m", a, weights, "f16")
    (folder / "config.json").write_text(json.dumps(models.config(a) | {"max_position_embeddings": 64}))
    tokenizer = texts.naive_tokenizer(30)
    tokenizer["added_tokens"] = [{"id": token, "content": "<|stop|>", "special": True}]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    made = llm("compile", folder, "--targets=gfx942", "-o", tmp_path / "m.greta")
    assert made.returncode == 0, made.stderr
    server = Server(tmp_path / "m.greta", [folder])
    body = dict(prompt=[1], max_tokens=8, temperature=0)
    assert server.complete(**body)["usage"]["completion_tokens"] == 8
    answer = server.complete(**body, stop=["<|stop|>"])
    assert answer["usage"]["completion_tokens"] == 0 and answer["choices"][0]["finish_reason"] == "stop"
    server.end()
