"""greta-llm generates, measures and says what it does: a tiny model of random weights on a simulated chip. Generation that repeats itself, sampling, guesses, `bench`,
`--profile` and GRETA_TRACE.
"""

import json
import os
import re

import pytest

from harness import said_on_a_terminal
from test_llm import LLM, llm


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    package = tmp_path_factory.mktemp("tiny") / "tiny.greta"
    compiled = llm("compile", "--synthetic=tiny", "--targets=gfx942", "--batch=1,2,4", "-o", package)
    assert compiled.returncode == 0, compiled.stderr
    return package


def generated(package, *options):
    ran = llm("generate", package, "--synthetic=tiny", "--device=sim:gfx942", "-p", "Once upon", "-n", "12", "-q", *options)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_generation_repeats_itself(tiny):
    first = generated(tiny, "--seed=5")
    assert len(first) > 12
    assert first == generated(tiny, "--seed=5")
    assert first == generated(tiny, "--seed=5", "--no-graphs")
    assert first == generated(tiny, "--seed=5", "--context=256")
    assert first != generated(tiny, "--seed=6")


def test_sampling_options(tiny):
    greedy = generated(tiny, "--temp=0")
    assert greedy == generated(tiny, "--temp=0", "--seed=9")
    # One candidate is the likeliest one, however it was chosen.
    assert greedy == generated(tiny, "--top-k=1") == generated(tiny, "--top-p=0") == generated(tiny, "--min-p=1")
    assert greedy != generated(tiny, "--temp=0", "--repeat-penalty=1.8")


@pytest.mark.parametrize("options", [["--temp=0"], ["--temp=0.3", "--seed=3"]])
def test_guesses_change_nothing(tiny, options):
    """Tokens that are guessed and checked in one step are those that are generated one by one, the likeliest or drawn."""
    words = ("generate", tiny, "--synthetic=tiny", "--device=sim:gfx942", "-p", "abcabc" * 3, "-n", "20", *options)
    plain, drafted = llm(*words), llm(*words, "--drafts=3")
    assert plain.returncode == drafted.returncode == 0, drafted.stderr
    assert drafted.stdout == plain.stdout and "generated 20," in drafted.stderr
    right, guessed = map(int, re.search(r"drafts: (\d+) of (\d+) tokens were right", drafted.stderr).groups())
    assert 0 < right <= guessed


def test_generation_ends_with_the_context(tiny):
    ran = llm("generate", tiny, "--synthetic=tiny", "--device=sim:gfx942", "-p", "x" * 20, "-n", "1000", "-c", "32")
    assert ran.returncode == 0 and "generated 13," in ran.stderr, ran.stderr


def test_progress_is_for_terminals(tiny):
    words = (LLM, "bench", tiny, "--synthetic=tiny", "--device=sim:gfx942", "-p", "8", "-n", "0", "-r", "2")
    said = said_on_a_terminal(*words)
    for shown in ("loading kernels: embed", "loading weights: 100 %", "pp8 (1 of 1): warming up", "pp8 (1 of 1): run 2 of 2"):
        assert f"\r\x1b[K{shown}\r\x1b[K" in said, said
    assert said_on_a_terminal(*words, "-q") == ""


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_bench(tiny, form):
    # One form has all rows; how the others write them shows in two.
    rows = ["-n", "1", "-d", "0,3", "--batch=1,3"] if form == "json" else ["-n", "0", "-d", "0,3", "--batch=3"]
    ran = llm("bench", tiny, "--synthetic=tiny", "--device=sim:gfx942", "-p", "2", "-r", "2", "--top-k=3", *rows, *([] if form == "table" else [f"--{form}"]))
    assert ran.returncode == 0, ran.stderr
    if form == "json":
        rows = json.loads(ran.stdout)
        wanted = [(*tokens, depth, batch) for batch in (1, 3) for depth in (0, 3) for tokens in ((2, 0), (0, 1))]
        assert [(r["n_prompt"], r["n_gen"], r["n_depth"], r["n_batch"]) for r in rows] == wanted
        assert all(r["avg_ts"] > 0 and r["stddev_ts"] >= 0 for r in rows)
    elif form == "csv":
        header, *rows = ran.stdout.splitlines()
        assert "avg_ts" in header.split(",") and len(rows) == 2
    else:
        lines = ran.stdout.splitlines()
        assert lines[0].split("|")[1].strip() == "model"
        assert [line.split("|")[5].strip() for line in lines[2:]] == ["pp2 x3", "pp2 @ d3 x3"]


def test_profile(tiny):
    """Of each kernel times, and by its tensors bytes and operations: the tiny model is 64 wide, with 512 tokens and an MLP of 192."""
    ran = llm("bench", tiny, "--synthetic=tiny", "--device=sim:gfx942", "-p", "8", "-n", "2", "-r", "1", "-d", "16", "--profile", "--peak=1e6")
    assert ran.returncode == 0, ran.stderr

    def table(text):
        return {line.split()[0]: [float(x) for x in line.replace("%", "").split()[1:]] for line in text.splitlines()[1:] if "%" in line}

    def of_limit(percent, millions, digits, each):
        """A share of a limit of 10^6 a second, as exactly as the columns are printed: microseconds have two digits, shares one."""
        assert 1e8 * (millions - digits) / (each + 0.005) - 0.05 <= percent <= 1e8 * (millions + digits) / (each - 0.005) + 0.05

    _, prompt, generation = (table(part) for part in ran.stdout.split(" us in kernels;"))
    assert sum(row[3] for row in generation.values()) == pytest.approx(100, abs=1)
    assert {"prompt0_0", "head_n_0", "lookup_f16"} <= prompt.keys()
    assert generation["layer0_1_0"][0] == 4 and len(generation["lookup_f16"]) == 4
    for row in (row for kernels in (prompt, generation) for row in kernels.values() if len(row) > 4):
        launches, each, total, _, megabytes, rate, megaflop, speed, limit = row
        assert total == pytest.approx(launches * each, rel=0.01) and rate == pytest.approx(megabytes / each * 1e3, abs=0.1 + 1 / each)
        of_limit(limit, megaflop, 0.05, each)
    limited = llm("bench", tiny, "--synthetic=tiny", "--device=sim:gfx942", "-p", "8", "-n", "0", "-r", "1", "--profile", "--bandwidth=1e6")
    assert "; memory moves 0.0 GB/s" in limited.stdout
    for each, megabytes, limit in ((row[1], row[4], row[8]) for row in table(limited.stdout.split(" us in kernels;")[1]).values() if len(row) > 4):
        of_limit(limit, megabytes, 0.0005, each)
    assert generation["head_1_0"][4] == pytest.approx((512 * 64 * 2 + 64 * 2 + 512 * 4) / 1e6, abs=1e-3)
    assert prompt["prompt0_5"][6] == pytest.approx(8 * 2 * 2 * 64 * 192 / 1e6, abs=0.06)


def test_trace(tiny, tmp_path):
    """GRETA_TRACE: every kernel by the device's clock, one after another, within the calls that waited for it; replayed graphs as one."""
    words = ("generate", tiny, "--synthetic=tiny", "--device=sim:gfx942", "-p", "ab", "-n", "3", "-c", "64", "-q")

    def traced(*options):
        ran = llm(*words, *options, env=os.environ | {"GRETA_TRACE": str(tmp_path / "trace.json")})
        assert ran.returncode == 0 and ran.stderr == "", ran.stderr
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        kernels = [e for e in events if e.get("cat") == "kernel"]
        for first, second in zip(kernels, kernels[1:]):
            assert first["dur"] > 0 and first["ts"] + first["dur"] <= second["ts"] + 0.01
        waits = [e for e in events if e["name"] == "greta_event_synchronize"]
        assert len(waits) == 3 and kernels[-1]["ts"] < waits[-1]["ts"] + waits[-1]["dur"]
        # Reading a token comes behind queueing the step after it.
        queued = [e["ts"] for e in events if e["name"] == "greta_stream_flush"]
        assert len(queued) == 3 and all(flush < wait["ts"] for flush, wait in zip(queued[1:], waits))
        assert max(e["args"]["bytes in use"] for e in events if e["ph"] == "C") > 100_000
        return [e["name"] for e in kernels]

    alone = traced("--no-graphs")
    assert alone[:3] == ["lookup_f16", "lookup_f32", "lookup_f32"] and alone.count("layer0_1_0") == 4 and alone.count("head_1_0") == 2
    assert alone[-2:] == ["sample_parts", "sample_choose"] and alone.count("sample_choose") == 3
    assert traced().count("graph") == 2
    ran = llm(*words, env=os.environ | {"GRETA_TRACE": str(tmp_path / "no" / "trace.json")})
    assert ran.returncode == 0 and "cannot write GRETA_TRACE=" in ran.stderr
