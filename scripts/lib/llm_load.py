"""Load on greta-llm serve: what scripts/llm-load runs for minutes and test_llm_load.py for seconds.

Clients ask what was answered alone before, of all APIs, with formats and tools and in several answers, whole or as events, leave in the middle, send what is no request or more than there may be, hold
connections open without a request, and meet a full queue. The server is
killed and started again halfway, and is sent SIGTERM while requests are open. Every finished answer has to be the one that was given alone; memory
has to stay flat.
"""

import collections
import http.client
import json
import random
import re
import signal
import socket
import statistics
import subprocess
import threading
import time
import traceback

MALFORMED = [
    b"nonsense\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 400\r\n\r\nshort",
    b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
    b"\0\xff\x80" * 1000,
    b"",
    b"POST /v1/completions HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + b"10000\r\n%b\r\n" % bytes(65536) * 80,
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 65536\r\n\r\n" + bytes(65536),
]
BODIES = [
    b"{",
    b"[1]",
    b'{"prompt": "\xff"}',
    b'{"prompt": 3}',
    b'{"prompt": [-1]}',
    b'{"prompt": "x", "max_tokens": -1}',
    b'{"prompt": "x", "temperature": 1e99}',
    b'{"prompt": "x", "stop": [[]]}',
    b"[" * 100_000,
    b'{"prompt": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"prompt": "' + b"x" * 1_000_000 + b'"}',
    b'{"prompt": "x", "max_token": 1}',
    b'{"prompt": "x", "grammar": "root ::= root"}',
    b'{"prompt": "x", "grammar": "' + b"(" * 60_000 + b'"}',
    b'{"prompt": "x", "grammar": "root ::= [a-z]{99999}"}',
    b'{"prompt": "x", "response_format": {"type": "json_schema", "json_schema": {"schema": {"pattern": "(?=a)"}}}}',
    b'{"prompt": "x", "response_format": {"type": "json_object"}, ' + b", ".join(b'"%d": 1' % i for i in range(100_000)) + b"}",
    b'{"prompt": "x", "logit_bias": {' + b", ".join(b'"%d": 1' % i for i in range(100_000)) + b"}}",
    b'{"prompt": "x", "n": 1e9}',
    b'{"prompt": "x", "response_format": {"type": "json_schema"}, "tools": [{}]}',
]

JSON = {"Content-Type": "application/json"}


class Server:
    """greta-llm serve as a process, again and again at one port."""

    def __init__(self, command, environment=None):
        self.command, self.environment, self.port = [str(c) for c in command], environment, 0
        self.start()

    def start(self):
        command = [*self.command, f"--port={self.port}"]
        # Behind a kill the port may be taken for a moment.
        for _ in range(100):
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)
            line = self.process.stdout.readline()
            if line.startswith("listening at "):
                self.port = int(line.rsplit(":", 1)[1])
                return
            errors = self.process.communicate()[1]
            if "cannot listen" not in errors:
                break
            time.sleep(0.1)
        raise AssertionError(f"{command} does not start: {line}{errors}")

    def connect(self, timeout=120):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, path, data=None):
        """(status, text)"""
        connection = self.connect()
        connection.request("POST" if data is not None else "GET", path, data, JSON)
        response = connection.getresponse()
        text = response.read().decode(errors="replace")
        connection.close()
        return response.status, text

    def metric(self, name):
        (value,) = [line.split()[1] for line in self.request("/metrics")[1].splitlines() if line.startswith(f"greta_{name} ")]
        return float(value)

    def resident(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    def wait(self, status):
        errors = self.process.communicate(timeout=300)[1]
        assert self.process.returncode == status, f"ended with {self.process.returncode}:\n{errors}"
        assert errors == "", errors


COMPLETIONS, CHATS, OLLAMA, MESSAGES = "/v1/completions", "/v1/chat/completions", "/api/chat", "/v1/messages"
SCHEMA = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "integer", "minimum": 0, "maximum": 99}}, "required": ["a", "b"]}
FORMAT = {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}}
TOOLS = {"tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]}
KINDS = [
    (COMPLETIONS, {"temperature": 0}),
    (COMPLETIONS, {}),
    (CHATS, {}),
    (OLLAMA, {}),
    (COMPLETIONS, {"n": 2}),
    (MESSAGES, {}),
    (CHATS, TOOLS | {"tool_choice": "required", "max_tokens": 80}),  # as many as a call has
    (COMPLETIONS, FORMAT),
    (COMPLETIONS, {"temperature": 1.5, "stop": ["na", "zek"]}),
    (COMPLETIONS, {"frequency_penalty": 0.5, "presence_penalty": 0.2, "logit_bias": {"100": 3}, "logprobs": 2}),
    (COMPLETIONS, {"grammar": 'root ::= [a-z ]{3,30} ("." | "!")'}),
    (COMPLETIONS, {"top_k": 20, "top_p": 0.9}),
    (COMPLETIONS, {"min_p": 0.1, "repeat_penalty": 1.3}),
    (CHATS, FORMAT | {"n": 2}),
    (OLLAMA, {"format": SCHEMA}),
    (OLLAMA, TOOLS),
    (MESSAGES, {"tools": [{"name": "f", "input_schema": SCHEMA}], "tool_choice": {"type": "any"}, "max_tokens": 80}),
]


def request_of(i, **changes):
    """(path, body) of a request that depends on its number alone."""
    rng = random.Random(i)
    path, more = KINDS[i % len(KINDS)]
    # Some begin alike, which the prefix cache knows.
    prompt = [1] * (i % 3 * 20) + rng.choices(range(512), k=rng.randint(1, 60))
    text = "a" * (i % 3 * 20) + "".join(rng.choices("abc de", k=rng.randint(1, 60)))
    body = {"max_tokens": rng.randint(1, 48), "seed": i, "stream": i % 2 == 0} | ({"prompt": prompt} if path == COMPLETIONS else {"messages": [{"role": "user", "content": text}]})
    body |= more | changes
    if path == OLLAMA:
        body["options"] = {"num_predict": body.pop("max_tokens"), "seed": body.pop("seed")}
    if path == MESSAGES:  # has no seeds
        body["temperature"] = 0
        del body["seed"]
    return path, body


def said_of(parts):
    """The parts of a message together: text, and calls without their numbers."""
    calls = [call["function"] for part in parts for call in part.get("tool_calls") or []]
    return "".join(part.get("content") or "" for part in parts), [(call["name"], json.dumps(call["arguments"])) for call in calls]


def answer_of(path, answer, is_stream):
    """Returns what is said, and why it ended, of each of several answers; None where they were cut off."""
    events = [event.split("data: ", 1)[-1] for event in answer.split("\n\n")[:-1]] if is_stream and path != OLLAMA else answer.splitlines()
    if is_stream and path in (COMPLETIONS, CHATS) and events[-1:] != ["[DONE]"]:
        return None
    events = [json.loads(event) for event in events if event != "[DONE]"]
    if path == OLLAMA:
        return [(*said_of([event["message"] for event in events]), events[-1]["done_reason"])] if events and events[-1]["done"] else None
    if path == MESSAGES:
        if not is_stream:
            (message,) = events
            blocks = [block["text"] if "text" in block else json.dumps(block["input"]) for block in message["content"]]
            return [([block for block in blocks if block], message["stop_reason"])]
        if not events or events[-1]["type"] != "message_stop":
            return None
        blocks = {}
        for event in events:
            if event["type"] == "content_block_delta":
                blocks[event["index"]] = blocks.get(event["index"], "") + (event["delta"].get("text") or json.dumps(json.loads(event["delta"]["partial_json"])))
        (reason,) = [event["delta"]["stop_reason"] for event in events if event["type"] == "message_delta"]
        return [(list(blocks.values()), reason)]
    choices = {}
    for event in events:
        for choice in event["choices"]:
            choices.setdefault(choice["index"], []).append(choice)
    said = {i: said_of([c.get("message") or c.get("delta") or {"content": c.get("text")} for c in some]) for i, some in choices.items()}
    return [(*said[i], choices[i][-1]["finish_reason"]) for i in sorted(choices)]


class Load:
    def __init__(self, server, clients, kinds):
        self.server, self.count = server, clients
        self.counts, self.lock, self.problems = collections.Counter(), threading.Lock(), []
        self.is_over, self.is_away = threading.Event(), threading.Event()
        self.alone = {}
        for i in range(kinds):
            path, body = request_of(i)
            status, text = server.request(path, json.dumps(body))
            assert status == 200, text
            self.alone[i] = answer_of(path, text, body["stream"])

    def note(self, what):
        with self.lock:
            self.counts[what] += 1

    def client(self, number):
        rng = random.Random(number)
        while not self.is_over.is_set():
            generation, is_away = self.server.process, self.is_away.is_set()
            try:
                self.act(rng)
            except (OSError, http.client.HTTPException, ValueError):
                # A request that is open when the server is killed is lost, and nothing else.
                if is_away or self.is_away.is_set() or generation is not self.server.process:
                    self.note("lost while the server was away")
                    time.sleep(0.2)
                else:
                    self.problems.append(traceback.format_exc())
                    return
            except AssertionError as problem:
                self.problems.append(str(problem))
                return

    def act(self, rng):
        kind = rng.random()
        if kind < 0.7:
            return self.complete(rng)
        if kind < 0.85:
            return self.leave(rng)
        if kind < 0.94:
            return self.disturb(rng)
        if kind < 0.95:
            return self.hold(rng)
        status, text = self.server.request(rng.choice(["/metrics", "/health", "/v1/models", "/nowhere"]))
        assert status in (200, 404), text
        self.note("other paths")

    def complete(self, rng):
        i = rng.randrange(len(self.alone))
        path, body = request_of(i)
        status, text = self.server.request(path, json.dumps(body))
        if status == 429:
            self.note("refused by a full queue")
            time.sleep(rng.random() * 0.2)
            return
        assert status == 200, text
        got = answer_of(path, text, body["stream"])
        if got is None:
            raise ConnectionError("a stream was cut off")
        assert got == self.alone[i], f"request {i}: {got!r} in place of {self.alone[i]!r}"
        self.note("finished")

    def leave(self, rng):
        """Goes away while the answer is made, sometimes before it begins."""
        connection = self.server.connect()
        path, body = request_of(rng.randrange(len(self.alone)), max_tokens=400, stream=rng.random() < 0.7)
        connection.request("POST", path, json.dumps(body), JSON)
        if rng.random() < 0.6:
            response = connection.getresponse()
            response.read(rng.randrange(1, 400))
        connection.close()
        self.note("left")

    def disturb(self, rng):
        if rng.random() < 0.5:
            status, text = self.server.request("/v1/completions", rng.choice(BODIES))
            assert status == 400 and "error" in json.loads(text), text
        else:
            sent, answer = rng.choice(MALFORMED), b""
            try:
                with socket.create_connection(("127.0.0.1", self.server.port), timeout=120) as s:
                    s.sendall(sent)
                    s.shutdown(socket.SHUT_WR)
                    while part := s.recv(65536):
                        answer += part
            except OSError:
                pass  # it did not want to read all
            # A refusal, or nothing; it ends in bounded time, as all clients do.
            assert not answer or re.match(rb"HTTP/1\.[01] [45]\d\d ", answer), f"{sent[:80]!r} is answered by {answer[:200]!r}"
        self.note("malformed")

    def hold(self, rng):
        """Connections that say nothing, or a byte now and then."""
        streams = []
        try:
            for i in range(rng.randrange(1, 40)):
                streams.append(socket.create_connection(("127.0.0.1", self.server.port), timeout=120))
                if i % 2:
                    streams[-1].sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n")
            for _ in range(4):
                time.sleep(0.5)
                for stream in streams[1::2]:
                    stream.sendall(b" ")
        except OSError:
            pass  # it closed what waited too long
        for stream in streams:
            stream.close()
        self.note("held connections open")

    def settle(self):
        """Nothing runs and nothing waits: all of the cache is free."""
        deadline = time.monotonic() + 120
        while self.server.metric("requests_running") + self.server.metric("requests_waiting") and time.monotonic() < deadline:
            time.sleep(0.1)
        assert self.server.metric("cache_tokens_free") == self.server.metric("cache_tokens")

    def begin(self):
        self.is_over.clear()
        self.threads = [threading.Thread(target=self.client, args=(number,), daemon=True) for number in range(self.count)]
        for thread in self.threads:
            thread.start()

    def watch(self, seconds, wanted={}):
        """KB that the server holds, over time: for so long, and longer, up to five minutes, until so much of each kind has happened."""
        sizes, begin = [], time.monotonic()

        def is_over():
            past = time.monotonic() - begin
            is_seen = len(sizes) >= 5 and all(self.counts[what] >= count for what, count in wanted.items())
            return past >= seconds and is_seen or past >= seconds + 300

        while not is_over() and not self.problems:
            sizes.append(self.server.resident())
            time.sleep(min(1, seconds / 20))
        return sizes

    def finish(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join(1 if self.problems else 300)
        assert not self.problems, self.problems[0]

    def kill(self):
        self.is_away.set()
        self.server.process.kill()
        self.server.process.communicate()
        self.server.start()
        self.is_away.clear()

    def stop(self):
        """SIGTERM while as many streams as may be are open: they end as they would have."""
        asked, results = [request_of(i, stream=True) for i in range(4)], {}

        def ask(i):
            results[i] = self.server.request(asked[i][0], json.dumps(asked[i][1]))

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(asked))]
        taken = self.server.metric("first_tokens_total")
        for thread in threads:
            thread.start()
        while self.server.metric("first_tokens_total") == taken:
            time.sleep(0.01)
        self.server.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join(300)
        self.server.wait(0)
        finished = 0
        for i, (status, text) in results.items():
            # Who came behind the signal was refused.
            assert status in (200, 503), text
            if status == 200:
                assert answer_of(asked[i][0], text, True) == self.alone[i]
                finished += 1
        assert finished
        self.counts["finished behind SIGTERM"] = finished


def run(command, seconds, clients, environment=None, kinds=24, wanted={}):
    """Counts of what happened, at least those of `wanted`, and the server's size in KB in the second and the last fifth of its second life: medians, because each body of a megabyte
    comes and goes."""
    server = Server(command, environment)
    try:
        load = Load(server, clients, kinds)
        load.begin()
        load.watch(seconds / 2)
        load.kill()  # with all clients at work
        sizes = load.watch(seconds / 2, wanted)
        load.finish()
        load.settle()
        in_use = server.metric("memory_in_use_bytes")
        for i in range(8):
            path, body = request_of(i)
            assert answer_of(path, server.request(path, json.dumps(body))[1], body["stream"]) == load.alone[i]
        assert server.metric("memory_in_use_bytes") == in_use
        load.stop()
    finally:
        server.process.kill()
    fifth = len(sizes) // 5
    return dict(load.counts), int(statistics.median(sizes[fifth : 2 * fifth])), int(statistics.median(sizes[-fifth:])), max(sizes)
