"""Triton's own tests of the language on a device of GRETA: a plugin of pytest that scripts/triton-conformance loads.

In: Triton's test files as they are. Out: their cases run on tensors of the CPU, those in EXCLUDED are left out, and a table says by file what passed and by cause what did
not. Every case is a line of JSON in the record when it is done, so that a run that was cut off goes on where it was.
"""

import collections
import faulthandler
import json
import os
import random
import re
import resource
import signal
import sys
import time

# The checkout's own `triton`, which the tests' conftest.py finds first, is sources that nobody has built.
sys.path[:] = [path for path in sys.path if not os.path.isdir(f"{path}/triton/language") or os.path.exists(f"{path}/triton/_C/libtriton.so")]

import cuda_on_cpu
import greta
import pytest
import triton  # noqa: F401

# Cases that are not about the language, but about another back end's code: patterns of their names, and the reason.
EXCLUDED = {
    r"test_core.py::test_(optimize_thread_locality|no_rematerialization_op|assume|poison_return|disable_licm|tl_range_fuse|override_arch|dot_mulbroadcasted)\b": "read TritonGPU IR or LLVM IR of NVIDIA's or AMD's back end",
    r"test_core.py::test_(vectorization|permute_ptx|maxnreg|enable_reflect_ftz|globaltimer|smid|num_threads)\b": "read PTX or special registers of NVIDIA's GPUs",
    r"test_core.py::test_inline_asm|test_core.py::.*multicta|test_core.py::.*coop_grid": "inline assembly and clusters of NVIDIA's GPUs",
    r"float8e4b15": "a format of NVIDIA's alone, which the frontend converts by its back end's code",
    r"test_(warp_specialization|clc|compile_only)\.py": "NVIDIA's warp specialisation and cluster launch; compile for other back ends by name",
    r"test_compile_errors.py::test_fp8_support": "wants errors that NVIDIA's and AMD's older GPUs give for types we have",
    r"test_reproducer.py": "the file that NVIDIA's and AMD's pass pipelines leave",
    r"test_line_info.py::test_line_info": "read disassembly by NVIDIA's tools",
}

LIMIT = int(os.environ.get("GRETA_CONFORMANCE_LIMIT", "300"))  # seconds of CPU time of a case, on all cores together


def pytest_addoption(parser):
    group = parser.getgroup("greta")
    group.addoption("--greta-device", default="vulkan", help="where kernels run: vulkan, sim:gfx942")
    group.addoption("--sample", type=int, default=0, help="this many cases, chosen at random")
    group.addoption("--seed", type=int, default=0, help="of the sample")
    group.addoption("--record", required=True, help="a file that gets a line of JSON for each case; cases in it are not run again")


def pytest_configure(config):
    greta.triton.activate(config.getoption("--greta-device"))
    # Some tests ask what an NVIDIA GPU has, whatever the back end is: as much as any.
    cuda_on_cpu.install(capability=(9, 0), synchronize=greta.synchronize)
    # Workers of pytest-xdist have to collect alike, those that follow one that crashed, too.
    if hasattr(config, "workerinput"):
        config.greta_done = config.workerinput["greta_done"]
    else:
        config.greta_done = sorted(read(config.getoption("--record")))
        config.pluginmanager.register(Recorder(config.getoption("--record")))


def reason_to_leave_out(name):
    return next((reason for pattern, reason in EXCLUDED.items() if re.search(pattern, name)), None)


def read(path):
    """The last line of each case."""
    if not os.path.exists(path):
        return {}
    with open(path) as lines:
        return {entry["case"]: entry for entry in map(json.loads, lines)}


def pytest_collection_modifyitems(config, items):
    kept = [item for item in items if not reason_to_leave_out(item.nodeid)]
    if count := config.getoption("--sample"):
        kept = random.Random(config.getoption("--seed")).sample(kept, min(count, len(kept)))
    done = set(config.greta_done)
    kept = [item for item in kept if item.nodeid not in done]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


def pytest_configure_node(node):
    node.workerinput["greta_done"] = node.config.greta_done


class TooLong(Exception):
    pass


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    def stop(*_):
        raise TooLong(f"took longer than {LIMIT} s of CPU time")

    item.greta_cpu = time.process_time()
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    # A driver that compiles hears no signal: the kernel ends the worker, and pytest-xdist has another one go on. So it does where nothing goes on any more.
    resource.setrlimit(resource.RLIMIT_CPU, (int(item.greta_cpu) + LIMIT + 5, resource.RLIM_INFINITY))
    faulthandler.dump_traceback_later(10 * LIMIT, exit=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.greta_cpu = time.process_time() - item.greta_cpu
    return report


def pytest_runtest_teardown(item):
    signal.setitimer(signal.ITIMER_PROF, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    faulthandler.cancel_dump_traceback_later()


class Recorder:
    """In the process that has all reports."""

    def __init__(self, path):
        self.path = path

    def pytest_runtest_logreport(self, report):
        if report.when != "call" and report.outcome == "passed":
            return
        message = ""
        if report.outcome == "failed":
            crash = getattr(report.longrepr, "reprcrash", None)
            message = crash.message if crash else str(report.longrepr)
        elif report.outcome == "skipped":
            message = str(report.longrepr[2])
        with open(self.path, "a") as out:
            print(json.dumps({"case": report.nodeid, "outcome": report.outcome, "seconds": round(report.duration, 2), "cpu": round(getattr(report, "greta_cpu", 0), 2), "message": message}), file=out)

    def pytest_terminal_summary(self, terminalreporter):
        for line in table(read(self.path)):
            terminalreporter.write_line(line)


def cause(message):
    """What tells one cause from another: the first line, without paths and numbers."""
    lines = [line for line in message.splitlines() if line.strip()] or ["?"]
    first = lines[0] if ":" not in lines[0][-2:] else " ".join(lines[:2])
    return re.sub(r"\d+", "#", re.sub(r"/\S*/", "", first))[:160]


def table(entries):
    """By file what ran, then by cause what failed."""
    files = collections.defaultdict(collections.Counter)
    causes = collections.Counter()
    for name, entry in entries.items():
        files[name.split("::")[0].split("/")[-1]][entry["outcome"]] += 1
        if entry["outcome"] == "failed":
            causes[cause(entry["message"])] += 1
    total = sum(files.values(), collections.Counter())
    yield ""
    yield "| file | passed | failed | skipped by the test | passed of those that ran |"
    yield "|---|---|---|---|---|"
    for name, counts in [*sorted(files.items()), ("all", total)]:
        ran = counts["passed"] + counts["failed"]
        yield f"| {name} | {counts['passed']} | {counts['failed']} | {counts['skipped']} | {100 * counts['passed'] / max(ran, 1):.1f} % |"
    yield ""
    for text, count in causes.most_common():
        yield f"{count:5} {text}"
