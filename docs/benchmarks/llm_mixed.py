"""greta-llm serve under a mixed load: clients that decode while others bring long prompts, and a long prompt that the prefix cache knows.

usage: llm_mixed.py DIR CSV --model=llama3-8b:q4_0 [--device=vulkan] [--decoding=8] [--prompts=8] [--tokens=4096] [--seconds=20] [--options="--prompt-ms=10"]
DIR has greta-llm, mixed.greta (greta-llm compile --synthetic=MODEL --batch=1,8,16) and commit. Random weights, random tokens.
Columns, in milliseconds: the median, 99th percentile and longest gap between two events of a client that decodes, first alone, then while `prompts` clients
ask for one token behind `tokens` new tokens, each again as soon as it has been answered; the prompts' tokens a second meanwhile; then, with nothing else to
do, the median time to the first token of a new prompt and of the same one again.
"""

import argparse
import datetime
import http.client
import json
import pathlib
import random
import re
import shlex
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "lib"))
import records  # noqa: E402

GAPS = "gap_ms", "gap_99_ms", "gap_most_ms"
COLUMNS = ["date", "commit", "gpu", "model", "options", "decoding", "prompts", "tokens", *(f"alone_{g}" for g in GAPS), *GAPS, "prompt_tokens_per_second", "first_token_ms", "cached_first_token_ms"]


class Server:
    def __init__(self, words):
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening at "):
            sys.exit(f"{words[0]} ended with {self.process.wait()}")
        self.port = int(line.rsplit(":", 1)[1])

    def events(self, prompt, most):
        """The time at which each event of an answer arrives."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        body = {"prompt": prompt, "max_tokens": most, "stream": True, "temperature": 0}
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise SystemExit(answer.read().decode())
        for line in answer:
            if line.startswith(b"data: {"):
                yield time.monotonic()
        connection.close()


def new_prompt(tokens):
    return [random.randrange(256, 500) for _ in range(tokens)]


def first_token(server, prompt):
    begin = time.monotonic()
    return (next(server.events(prompt, 1)) - begin) * 1e3


def summary(gaps, prefix=""):
    gaps = sorted(gaps)
    values = statistics.median(gaps), gaps[min(len(gaps) - 1, int(0.99 * len(gaps)))], gaps[-1]
    return {prefix + name: round(value * 1e3, 2) for name, value in zip(GAPS, values)}


def gaps_between(clients, begin, end):
    """All that began within the time."""
    return [b - a for times in clients for a, b in zip(times, times[1:]) if begin <= a < end]


def measure(server, options):
    decoders, is_over, done = [[] for _ in range(options.decoding)], threading.Event(), []

    def decode(times):
        while not is_over.is_set():
            for at in server.events(new_prompt(16), 1 << 11):
                times.append(at)
                if is_over.is_set():
                    return
            times.append(float("inf"))  # no gap of one answer

    def ask():
        while not is_over.is_set():
            for at in server.events(new_prompt(options.tokens), 1):
                done.append(at)

    first_token(server, new_prompt(options.tokens))
    threads = [threading.Thread(target=decode, args=(times,)) for times in decoders]
    for thread in threads:
        thread.start()
    time.sleep(options.seconds / 4)
    middle = time.monotonic()
    threads += [threading.Thread(target=ask) for _ in range(options.prompts)]
    for thread in threads[options.decoding :]:
        thread.start()
    time.sleep(options.seconds)
    end = time.monotonic()
    is_over.set()
    for thread in threads:
        thread.join()
    finite = [[t for t in times if t < float("inf")] for times in decoders]
    row = summary(gaps_between(finite, middle - options.seconds / 8, middle), "alone_") | summary(gaps_between(finite, middle, end))
    row["prompt_tokens_per_second"] = round(options.tokens * sum(at < end for at in done) / (end - middle))
    fresh, cached = [], []
    for _ in range(5):
        prompt = new_prompt(options.tokens)
        fresh.append(first_token(server, prompt))
        cached.append(first_token(server, prompt))
    return row | {"first_token_ms": round(statistics.median(fresh), 1), "cached_first_token_ms": round(statistics.median(cached), 1)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("csv", type=pathlib.Path)
    parser.add_argument("--model", default="llama3-8b:q4_0")
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--decoding", type=int, default=8)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--options", default="", help="more for greta-llm serve")
    options = parser.parse_args()
    random.seed(1)
    words = [options.directory / "greta-llm", "serve", options.directory / "mixed.greta", f"--synthetic={options.model}", f"--device={options.device}", "--port=0", "-q"]
    words += [f"--parallel={options.decoding + options.prompts}", f"--context={(options.decoding + options.prompts) * (options.tokens + 2100)}", *shlex.split(options.options)]
    server = Server([str(w) for w in words])
    try:
        row = measure(server, options)
    finally:
        server.process.terminate()
        server.process.wait()
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True).stdout.split("\n")[0] if options.device == "vulkan" and pathlib.Path("/dev/nvidia0").exists() else options.device
    row |= dict(date=datetime.date.today().isoformat(), commit=(options.directory / "commit").read_text().strip(), gpu=gpu, model=options.model, options=options.options)
    row |= {name: getattr(options, name) for name in ("decoding", "prompts", "tokens")}
    print(", ".join(f"{name} {row[name]}" for name in COLUMNS))
    records.append(options.csv, COLUMNS, [row])


if __name__ == "__main__":
    main()
