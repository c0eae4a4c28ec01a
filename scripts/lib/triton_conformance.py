"""Triton's own tests of the language on a device of GRETA: a plugin of pytest that scripts/triton-conformance loads.

In: Triton's test files as they are. Out: their cases run on tensors of the CPU, those in EXCLUDED are left out, and tables say by file and by test function what passed and by
cause what did not. Every case is a line of JSON in the record when it is done, so that a run that was cut off goes on where it was.

With --peer the cases that failed run again, with Triton's own back end on the machine's GPU: what fails there, too, is what the installed Triton does not have, because the
tests are newer or the test is about something else. Such cases have a table of their own, and count neither as passed nor as failed.
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
import torch
import triton

# Cases that are not about the language, but about another back end's code: patterns of their names, and the reason.
EXCLUDED = {
    r"test_core.py::test_(optimize_thread_locality|no_rematerialization_op|assume|poison_return|disable_licm|tl_range_fuse|tl_range_fuse_dependent|trans_reshape|override_arch|dot_mulbroadcasted)\b": "read TritonGPU IR or LLVM IR of NVIDIA's or AMD's back end",
    r"test_core.py::test_(vectorization|permute_ptx|maxnreg|enable_reflect_ftz|globaltimer|smid|num_threads)\b": "read PTX or special registers of NVIDIA's GPUs",
    r"test_core.py::test_inline_asm|test_core.py::.*multicta|test_core.py::.*coop_grid": "inline assembly and clusters of NVIDIA's GPUs",
    r"test_core.py::test_pointer_arguments": "want an error for tensors of the CPU, which are what kernels here take",
    r"test_autotuner.py::test_exceed_threads": "wants NVIDIA's limit of threads, where num_warps is 128",
    r"test_autotuner.py::test_kwargs\[True\]|test_blaslt.py": "CUDA's graphs and library",
    r"float8e4b15|test_abs_fp8\[in_dtype0\]": "a format of NVIDIA's alone, which the frontend converts by its back end's code",
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
    group.addoption("--each", type=int, default=0, help="beside them so many cases of every test function, chosen at random")
    group.addoption("--seed", type=int, default=0, help="of the samples")
    group.addoption("--peer", action="store_true", help="run what failed again, with Triton's own back end on CUDA")
    group.addoption("--record", required=True, help="a file that gets a line of JSON for each case; cases in it are not run again")


def pytest_configure(config):
    peer = config.getoption("--peer")
    if not peer:
        greta.triton.activate(config.getoption("--greta-device"))
        # Some tests ask what an NVIDIA GPU has, whatever the back end is: as much as any.
        cuda_on_cpu.install(capability=(9, 0), synchronize=greta.synchronize)
        # Triton takes its CUDA driver for active wherever torch sees CUDA, and tests ask torch for the device by which kernels are cached.
        triton.backends.backends["nvidia"].driver.is_active = classmethod(lambda _: False)
        torch.cpu.current_device = lambda: triton.runtime.driver.active.get_current_device()
    # Workers of pytest-xdist have to collect alike, those that follow one that crashed, too.
    if hasattr(config, "workerinput"):
        config.greta_done = config.workerinput["greta_done"]
    else:
        record = config.getoption("--record")
        entries = read(record)
        config.greta_done = sorted(entries)
        if peer:
            config.greta_done = sorted(name for name, entry in entries.items() if entry["outcome"] == "failed" and "peer" not in entry)
        config.pluginmanager.register(Recorder(record, peer))


def reason_to_leave_out(name):
    return next((reason for pattern, reason in EXCLUDED.items() if re.search(pattern, name)), None)


def read(path):
    """The last line of each case; what became of it with Triton's own back end is its `peer`."""
    entries = {}
    if os.path.exists(path):
        with open(path) as lines:
            for entry in map(json.loads, lines):
                if entry.pop("by_peer", False):
                    entries[entry["case"]]["peer"] = entry
                else:
                    entries[entry["case"]] = entry
    return entries


def function_of(case):
    """Without parameters, which may contain the separator."""
    return case.split("[")[0]


def draw(items, config):
    """By case and by function; both draws are the same in every process."""
    count, each, seed = config.getoption("--sample"), config.getoption("--each"), config.getoption("--seed")
    chosen = set(random.Random(seed).sample(items, min(count, len(items))) if count or each else items)
    for item in chosen:
        item.user_properties.append(("by_case", True))
    functions = collections.defaultdict(list)
    for item in items:
        functions[function_of(item.nodeid)].append(item)
    for name, cases in functions.items():
        chosen.update(random.Random(f"{seed} {name}").sample(cases, min(each, len(cases))))
    return [item for item in items if item in chosen]


def pytest_collection_modifyitems(config, items):
    done = set(config.greta_done)
    if config.getoption("--peer"):
        kept = [item for item in items if item.nodeid in done]
    else:
        kept = draw([item for item in items if not reason_to_leave_out(item.nodeid)], config)
        # Long ones would be the last ones otherwise, one worker's alone.
        random.Random(0).shuffle(kept)
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

    # Tests that are to run in a process of their own leave what they read of the environment.
    triton.knobs.refresh_knobs()
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

    def __init__(self, path, by_peer):
        self.path = path
        self.by_peer = by_peer

    def pytest_runtest_logreport(self, report):
        if report.when != "call" and report.outcome == "passed":
            return
        message = ""
        if report.outcome == "failed":
            crash = getattr(report.longrepr, "reprcrash", None)
            message = crash.message if crash else str(report.longrepr)
        elif report.outcome == "skipped":
            message = str(report.longrepr[2])
        entry = {"case": report.nodeid, "outcome": report.outcome, "seconds": round(report.duration, 2), "cpu": round(getattr(report, "greta_cpu", 0), 2), "message": message}
        entry["by_case"] = ("by_case", True) in map(tuple, report.user_properties)
        with open(self.path, "a") as out:
            print(json.dumps(entry | ({"by_peer": True} if self.by_peer else {})), file=out)

    def pytest_terminal_summary(self, terminalreporter):
        for line in table(read(self.path)):
            terminalreporter.write_line(line)


def cause(message):
    """A text that tells one cause from another: the first line, without paths and numbers."""
    lines = [line for line in message.splitlines() if line.strip()] or ["?"]
    first = lines[0] if ":" not in lines[0][-2:] else " ".join(lines[:2])
    return re.sub(r"\d+", "#", re.sub(r"/\S*/", "", first))[:160]


def is_beyond(entry):
    """Whether the installed Triton does not have what a case is about: its own back end fails, too. An error of CUDA's says nothing: it may be of a case before."""
    peer = entry.get("peer", {})
    return entry["outcome"] == "failed" and peer.get("outcome") == "failed" and "CUDA error" not in peer["message"]


def share(passed, failed):
    return f"{100 * passed / max(passed + failed, 1):.1f} %"


def table(entries):
    """By file what ran of the cases drawn as such, of all what failed by function, then by cause."""
    files = collections.defaultdict(collections.Counter)
    functions = collections.defaultdict(collections.Counter)
    causes, beyond = collections.Counter(), collections.Counter()
    for name, entry in entries.items():
        outcome = "beyond" if is_beyond(entry) else entry["outcome"]
        if entry.get("by_case", True):
            files[name.split("::")[0].split("/")[-1]][outcome] += 1
        functions[function_of(name)][outcome] += 1
        if outcome == "failed":
            causes[cause(entry["message"])] += 1
        if outcome == "beyond":
            beyond[f"{cause(entry['peer']['message'])}   (here: {cause(entry['message'])})"] += 1
    total = sum(files.values(), collections.Counter())
    yield ""
    yield "| file | passed | failed | not this Triton's | skipped by the test | passed of those that ran |"
    yield "|---|---|---|---|---|---|"
    for name, counts in [*sorted(files.items()), ("all", total)]:
        yield f"| {name} | {counts['passed']} | {counts['failed']} | {counts['beyond']} | {counts['skipped']} | {share(counts['passed'], counts['failed'])} |"
    ran = {name: counts for name, counts in functions.items() if counts["passed"] + counts["failed"]}
    broken = {name: counts for name, counts in ran.items() if counts["failed"]}
    yield ""
    yield f"test functions: {len(ran)} ran, {len(ran) - len(broken)} whole, {share(len(ran) - len(broken), len(broken))}"
    for name, counts in sorted(broken.items()):
        yield f"  {name.split('/')[-1]}: {counts['failed']} of {counts['passed'] + counts['failed']} failed"
    yield ""
    for text, count in causes.most_common():
        yield f"{count:5} {text}"
    if beyond:
        yield ""
        yield "What Triton's own back end fails, too:"
        for text, count in beyond.most_common():
            yield f"{count:5} {text}"


if __name__ == "__main__":
    print("\n".join(table(read(sys.argv[1]))))
