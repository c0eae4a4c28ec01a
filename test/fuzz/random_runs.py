"""The generators of random programs share this: their options, processes that may crash or hang, the values of integer arguments, and the report."""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT = 300  # seconds, of a compilation
TIMEOUT_OF_ONE = 10  # that a batch which runs has more for each of its programs
# Limits that a program may meet.
REFUSALS = ("of shared memory",)
FINE = ("right", "refused")


def integers(rng, count, dtype):
    """Small numbers, those whose sums wrap, and few different ones."""
    limits = np.iinfo(dtype)
    low = max(-50, limits.min)
    return np.where(rng.random(count) < 0.5, rng.integers(low, 50, count).astype(dtype), rng.integers(limits.min, limits.max, count, dtype, endpoint=True))


def device_of(target):
    return "vulkan" if target.startswith("vulkan") else f"sim:{target}"


def compiled_for(target):
    return target.partition("@")[0]


def under_driver(target, command):
    """A target may name a driver of scripts/vulkan-drivers: vulkan@lavapipe."""
    driver = target.partition("@")[2]
    return [ROOT / "scripts" / "vulkan-drivers", driver, *command] if driver else command


def run_process(command, environment=None, timeout=TIMEOUT):
    """Its status and what it wrote; who takes too long has neither said so nor ended."""
    try:
        ran = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout, env=environment)
        return ran.returncode, ran.stdout, ran.stderr
    except subprocess.TimeoutExpired as e:
        return 124, (e.stdout or b"").decode(), f"took longer than {timeout} s"


def run_each(indices, command_for, environment=None):
    """{index: its line of JSON} of programs that one process runs, which says before each that it starts; whom a process dies with is left out of the next.
    `command_for` gives the command for those that are left."""
    lines, left = {}, list(indices)
    while left:
        status, output, errors = run_process(command_for(left), environment, TIMEOUT + TIMEOUT_OF_ONE * len(left))
        current = None
        for line in map(json.loads, (line for line in output.splitlines() if line.startswith("{"))):
            current = line.get("start", current)
            if "index" in line:
                lines[line["index"]] = line
        left = [k for k in left if k not in lines]
        if left and (status or current is None):
            crashed = current if current in left else left[0]
            lines[crashed] = {"index": crashed, "crash": errors[-2000:] or "no word"}
            left.remove(crashed)
    return lines


def run_all(run_batch, count, targets, first=0, batch=20, jobs=2, seconds=None):
    """(target, index, what, detail) of every program on every target; after `seconds` no batch is begun. `run_batch` takes a target and indices and gives {index: (what, detail)}."""
    parts = [range(k, min(k + batch, first + count)) for k in range(first, first + count, batch)]
    end = time.monotonic() + seconds if seconds else float("inf")

    def in_time(target, part):
        return target, run_batch(target, part) if time.monotonic() < end else {}

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(in_time, target, part) for part in parts for target in targets]):
            target, outcomes = done.result()
            yield from ((target, index, what, detail) for index, (what, detail) in sorted(outcomes.items()))


def parser(description, targets):
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--first", type=int, default=0)
    made.add_argument("--count", type=int, default=100)
    made.add_argument("--targets", default=",".join(targets))
    made.add_argument("--batch", type=int, default=50)
    made.add_argument("--jobs", type=int, default=2)
    made.add_argument("--seconds", type=float, help="begin no batch after this time")
    made.add_argument("--print", action="store_true", help="the programs' texts alone")
    made.add_argument("--constructs", action="store_true", help="how many of the programs have which step, alone")
    made.add_argument("--plant", metavar="DEFECT", help="how many of the programs show this defect, alone")
    return made


def report(options, outcomes):
    """Prints what is not right as it comes, and the numbers at the end; gives the exit status."""
    counts = collections.Counter()
    try:
        for target, index, what, detail in outcomes:
            counts[target, what] += 1
            if what not in FINE:
                print(f"program {index} of seed {options.seed} on {target}: {what}: {detail}", flush=True)
    finally:  # of a run that is interrupted, too
        for (target, what), number in sorted(counts.items()):
            print(f"{target}: {number} {what}", flush=True)
    return int(any(what not in FINE for _, what in counts))


def report_constructs(programs):
    """How many programs have which step, most first. `programs` are (index, names)."""
    counts, total = collections.Counter(), 0
    for _, names in programs:
        counts.update(set(names))
        total += 1
    print(f"of {total} programs")
    for name, number in counts.most_common():
        print(f"{number:6} {name}")


def report_planted(name, outcomes):
    """`outcomes` are (index, whether the program has the place, whether the result shows it)."""
    rows = list(outcomes)
    there, shown = sum(has for _, has, _ in rows), sum(has and sees for _, has, sees in rows)
    print(f"{name}: {there} of {len(rows)} programs have it, {shown} show it")
    return int(not shown)

