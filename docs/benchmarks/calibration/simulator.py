"""Estimates of greta-sim, kept in a file so that a run that was cut short goes on where it was.

An estimate is named by a key, a tuple of plain values that tells everything it depends on; the file belongs to one build of greta-sim.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOOL = ROOT / "build" / "bin" / "greta-sim"


def greta_sim(code, *options):
    """Output of greta-sim, or its diagnostic as a RuntimeError."""
    run = subprocess.run([str(x) for x in (TOOL, code, *options)], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip().splitlines()[-1] if run.stderr.strip() else f"greta-sim ended with {run.returncode}")
    return run.stdout


class Estimates:
    """`run(jobs)` estimates what is not known yet; afterwards `estimates[key]` is greta-sim's JSON, or dict(error=...)."""

    def __init__(self, folder, threads):
        build = hashlib.sha256(TOOL.read_bytes()).hexdigest()[:12]
        self.path = folder / f"estimates-{build}.jsonl"
        self.threads = threads
        self.known = {}
        self.lock = threading.Lock()
        if self.path.exists():
            text = self.path.read_bytes()
            whole = text[: text.rfind(b"\n") + 1]  # the last line may have been cut
            os.truncate(self.path, len(whole))
            self.known = {tuple(key): result for key, result in map(json.loads, whole.splitlines())}

    def __getitem__(self, key):
        return self.known[key]

    def run(self, jobs):
        """`jobs`: key to a function without arguments that gives the code object and greta-sim's options."""
        missing = [(key, make) for key, make in jobs.items() if key not in self.known]
        with open(self.path, "a") as file, concurrent.futures.ThreadPoolExecutor(self.threads) as pool:
            for count, _ in enumerate(pool.map(lambda job: self.one(file, *job), missing), 1):
                if count % 500 == 0:
                    print(f"{count} of {len(missing)} estimates", file=sys.stderr, flush=True)

    def one(self, file, key, make):
        try:
            code, options = make()
            result = json.loads(greta_sim(code, *options, "--check=none", "--estimate", "--json", "--threads=1", "--budget=200000000"))
        except RuntimeError as error:
            result = dict(error=str(error))
        with self.lock:
            self.known[key] = result
            file.write(json.dumps([key, result]) + "\n")
            file.flush()
