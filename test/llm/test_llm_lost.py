"""greta-llm serve when its Vulkan device is lost (test/unit/llm/LosingVulkan.cpp): who waits is told, /health says so, and the process ends with status 1
in bounded time, so that whoever started it starts it again, with a device that works.
"""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import threading
import time

import pytest

from conftest import ROOT
from test_llm import LLM, llm
from test_llm_embeddings import changed, plain_tokenizer
from test_llm_hostile import connect, received, request
from test_llm_serve import SERVER, Server

# Seconds in which all is over. A server with a sanitizer in it is many times slower.
LIMIT = 15 if SERVER == LLM else 120
LONG = {"prompt": "hi", "max_tokens": 1900, "temperature": 0}


def loader():
    """The path of the system's libvulkan.so.1, or of the one that this process was started with."""
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder and (path := pathlib.Path(folder) / "libvulkan.so.1").exists():
            return str(path)
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return re.search(r"libvulkan\.so\.1 \(.*x86-64\) => (.*)", known)[1]


# One worker runs these and test_llm_load.py, whose package has the same kernels: what lavapipe has compiled for one is there for the next.
pytestmark = pytest.mark.xdist_group("tiny-on-lavapipe")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    path = tmp_path_factory.mktemp("lost") / "tiny.greta"
    made = llm("compile", "--synthetic=tiny", "--targets=vulkan:lavapipe", "--batch=1,4", "-o", path)
    assert made.returncode == 0, made.stderr
    return path


@pytest.fixture
def losing(tmp_path, package):
    """(a function that starts a server, the file with which its device is lost)"""
    lose = tmp_path / "lose"
    before = ROOT / "build" / "test" / "unit" / "llm" / "losing"
    paths = ":".join(filter(None, [str(before), os.environ.get("LD_LIBRARY_PATH")]))
    environment = {"LD_LIBRARY_PATH": paths, "GRETA_TEST_VULKAN": loader(), "GRETA_TEST_LOSE": str(lose)}
    # Such a process does not wait for its threads. Drivers keep memory of their own, and are closed before leaks are counted.
    for name, option in (("TSAN_OPTIONS", "report_thread_leaks=0"), ("ASAN_OPTIONS", "detect_leaks=0")):
        environment[name] = f"{os.environ.get(name, '')} {option}"
    with contextlib.ExitStack() as servers:

        def start(package=package, model="--synthetic=tiny", device="vulkan", options=("--parallel=3",), is_quiet=True, **more):
            server = Server(package, [model], *options, "--queue=4", is_quiet=is_quiet, device=device, environment=environment | more)
            servers.callback(server.process.kill)
            return server

        yield start, lose


class Health(threading.Thread):
    """What /health says, again and again until nobody answers. The first answer is there when this is made, so that a test which loses its device then
    has one from before."""

    def __init__(self, server):
        super().__init__()
        self.server, self.answers = server, []
        self.start()
        while not self.answers and self.is_alive():
            time.sleep(0.01)

    def run(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            while True:
                status, text = self.server.request("/health", timeout=10)
                self.answers.append((status, json.loads(text)["status"]))
                time.sleep(0.01)


def test_everyone_is_told(losing):
    start, lose = losing
    server = start(GRETA_TEST_MEMORY=str(1 << 30))
    assert server.metric("cache_tokens") == 3 * 2048  # the model's context for each
    with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor(8) as pool:
        # A client that does not read: the process does not wait for it for long.
        stuck = stack.enter_context(socket.socket())
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        stuck.connect(("127.0.0.1", server.port))
        stuck.sendall(request(body=LONG | {"stream": True}))
        stream = stack.enter_context(connect(server))
        stream.sendall(request(body=LONG | {"stream": True}))
        assert stream.recv(1).startswith(b"H")
        whole = [pool.submit(server.request, "/v1/completions", LONG) for _ in range(3)]
        while server.metric("requests_running") < 3 or server.metric("requests_waiting") < 2:
            time.sleep(0.01)
        health = Health(server)
        lose.touch()
        begin = time.monotonic()
        for answer in whole:
            status, text = answer.result(LIMIT + 5)
            assert status == 503 and "the device is lost: " in json.loads(text)["error"]["message"], text
        events = received(stream)
        assert b"the device is lost: " in events and b"[DONE]" in events
        said = server.process.communicate(timeout=LIMIT + 5)[1]
        assert server.process.returncode == 1 and time.monotonic() - begin < LIMIT
        assert said.startswith("greta-llm: error: ") and "the device was lost" in said and said.count("\n") == 1
        health.join()
    # It was well, then lost, and stays so to the end.
    statuses = [status for status, _ in health.answers]
    assert statuses == sorted(statuses) and set(statuses) == {200, 503}
    assert all(text.startswith("the device is lost: ") for status, text in health.answers if status == 503)


def test_lost_while_nobody_waits(losing):
    """The next request finds it out; a new process, with a device that works again, answers as before, also where its memory has no room for the whole context."""
    start, lose = losing
    server = start()
    body = LONG | {"max_tokens": 12}
    alone = server.complete(**body)["choices"]
    lose.touch()
    status, text = server.request("/v1/completions", body)
    assert status == 503 and "the device is lost: " in text
    assert "the device was lost" in server.process.communicate(timeout=LIMIT + 5)[1] and server.process.returncode == 1
    lose.unlink()
    server = start(GRETA_TEST_MEMORY=str(512 << 10))
    # Half of it, but for what sequences have beside: a token takes 256 bytes.
    assert 960 <= server.metric("cache_tokens") <= 1024
    assert server.request("/health") == (200, '{"status":"ok"}') and server.complete(**body)["choices"] == alone
    server.end()


def test_slots_where_memory_is_scarce(losing):
    """Without --parallel each slot has 1024 tokens of the cache at least, unless --context says that it is to be small."""
    for memory, options, slots in ((512 << 10, (), 1), (1200 << 10, (), 2), (1 << 30, (), 8), (512 << 10, ("--parallel=3",), 3), (512 << 10, ("--context=512",), 8)):
        server = losing[0](options=options, is_quiet=False, GRETA_TEST_MEMORY=str(memory))
        assert server.complete(prompt="x", max_tokens=2)["usage"]["completion_tokens"] == 2
        server.process.terminate()
        said = server.process.communicate(timeout=60)[1]
        assert f", {slots} slots in batches of " in said, said


def test_one_of_several_is_lost(tmp_path, losing):
    """The first one, which answers wait for, is well; it tells what the lost one said."""
    start, lose = losing
    package = tmp_path / "two.greta"
    made = llm("compile", "--synthetic=tiny", "--targets=vulkan:portable", "--batch=1,4", "--shards=2", "-o", package)
    assert made.returncode == 0, made.stderr
    server = start(package, device="vulkan:0,vulkan:1", GRETA_TEST_LOSE_ONLY="1")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(server.request, "/v1/completions", LONG | {"stream": i > 0}) for i in range(2)]
        while server.metric("requests_running") < 2:
            time.sleep(0.01)
        health = Health(server)
        lose.touch()
        begin = time.monotonic()
        for answer in answers:
            assert "the device is lost: " in answer.result(LIMIT + 5)[1]
    said = server.process.communicate(timeout=LIMIT + 5)[1]
    assert server.process.returncode == 1 and time.monotonic() - begin < LIMIT
    assert said.startswith("greta-llm: error: ") and "the device was lost" in said and said.count("\n") == 1
    health.join()
    assert any(status == 503 and "the device was lost" in text for status, text in health.answers)


def test_lost_by_a_model_of_embeddings(tmp_path, losing):
    start, lose = losing
    model, package = changed(tmp_path / "m", tokenizer=plain_tokenizer()), tmp_path / "m.greta"
    made = llm("compile", model, "--targets=vulkan:portable", "-o", package)
    assert made.returncode == 0, made.stderr
    server = start(package, model)
    assert server.request("/v1/embeddings", {"input": [7]})[0] == 200
    lose.touch()
    status, text = server.request("/v1/embeddings", {"input": [7]})
    assert status == 500 and "the device was lost" in text
    said = server.process.communicate(timeout=LIMIT + 5)[1]
    assert server.process.returncode == 1
    assert said.startswith("greta-llm: error: ") and "the device was lost" in said and said.count("\n") == 1
