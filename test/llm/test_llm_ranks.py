"""greta-llm by processes that meet at an address: what they say is what devices of one process say, and all end with the first that ends."""

import contextlib
import dataclasses
import errno
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys
import time

import pytest

import models
from architectures import ARCHITECTURES
from harness import WHOLE
from test_llm import LLM, llm
from test_llm_serve import Server

pytestmark = pytest.mark.xdist_group("llm-ranks")  # one worker makes what these share
# Seconds in which all know that one is gone.
LIMIT = 60
GENERATE = ("-p", "hello", "-n", 12, "--temp=0", "--ignore-eos", "-c", 256, "-q")


def address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def start(*words, environment={}, on=()):
    return subprocess.Popen([str(w) for w in (*on, LLM, *words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", env=os.environ | environment)


def compiled(folder, shards, target="vulkan:portable"):
    path = folder / f"{shards}.greta"
    made = llm("compile", "--synthetic=tiny", f"--targets={target}", "--batch=1", f"--shards={shards}", "-o", path)
    assert made.returncode == 0, made.stderr
    return path


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("ranks"), 2)


def words(package, verb="generate", *more, device="--device=vulkan"):
    return (verb, package, "--synthetic=tiny", device, *more)


def ranks(at, *command, environment={}):
    """Both, of which the last one is said by the environment, as torchrun does."""
    return [start(*command, f"--meet={at}", *(("--ranks=2", "--rank=0") if rank == 0 else ()), environment=environment | {"WORLD_SIZE": "2", "RANK": str(rank)}) for rank in (0, 1)]


def ended(process, limit=300):
    output, errors = process.communicate(timeout=limit)
    return process.returncode, output, errors


@pytest.mark.parametrize("split", ["tensor", "layers"])
def test_two_say_what_one_says(package, split, tmp_path):
    # Whole layers are other kernels than parts: on a simulated chip no driver has to compile them.
    device = "vulkan" if split == "tensor" else "sim:gfx942"
    package = package if split == "tensor" else compiled(tmp_path, 1, "gfx942")
    one = ended(start(*words(package, device=f"--devices={device},{device}"), *GENERATE, f"--split={split}"))
    assert one[0] == 0 and one[1].strip(), one
    command = words(package, device=f"--device={device}")
    assert [ended(process) for process in ranks(address(), *command, *GENERATE, f"--split={split}")] == [one, (0, "", "")]
    if WHOLE and split == "layers":
        bench(package, "--split=layers", device=f"--device={device}")


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """A package for a chip, for which no driver compiles anything."""
    return compiled(tmp_path_factory.mktemp("simulated"), 2, "gfx942")


@pytest.fixture(scope="module")
def of_two(simulated):
    """Words of a rank, and what two devices of one process say."""
    one = ended(start(*words(simulated, device="--devices=sim:gfx942,sim:gfx942"), *GENERATE))
    assert one[0] == 0 and one[1].strip(), one
    return (*words(simulated, device="--device=sim:gfx942"), *GENERATE), one


def test_torchrun(of_two):
    """torchrun says the numbers, in its own way."""
    pytest.importorskip("torch")
    command, one = of_two
    line = shlex.join(str(w) for w in (LLM, *command, f"--meet={address()}"))
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([*launcher, "sh", "-c", f"exec {line}"], capture_output=True, text=True, errors="replace", env=environment, timeout=300)
    assert (done.returncode, done.stdout) == one[:2], done.stderr


def test_mpirun_on_two_hosts(of_two, hosts):
    """Numbers as Open MPI and MPICH say them, and ranks that reach each other by the network alone."""
    enter, name = hosts
    command, one = of_two
    said = ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}, {"PMI_SIZE": "2", "PMI_RANK": "1"})
    processes = [start(*command, f"--meet={name}:29657", environment=said[rank] | {"UCX_TLS": "tcp"}, on=enter[rank]) for rank in (0, 1)]
    assert [ended(process) for process in processes] == [one, (0, "", "")]


def bench(package, *more, device):
    command = words(package, "bench", "-p", 8, "-n", 4, "-r", 1, "--csv", "-q", *more, device=device)
    first, second = [ended(process) for process in ranks(address(), *command)]
    assert first[0] == second[0] == 0 and first[1].count("\n") == 3 and second[1:] == ("", ""), (first, second)


def test_bench(simulated):
    bench(simulated, device="--device=sim:gfx942")


@contextlib.contextmanager
def served(package):
    at = address()
    command = words(package, "serve", "--parallel=1", "--context=256", f"--meet={at}", "--ranks=2")
    other = start(*command, "--rank=1", "-q")
    with contextlib.ExitStack() as stack:
        stack.callback(other.kill)
        server = Server(package, ["--synthetic=tiny"], *command[4:], "--rank=0", device="vulkan")
        stack.callback(server.process.kill)
        yield server, other


def test_server_and_the_end_of_one(package):
    body = dict(prompt="hello", max_tokens=12, temperature=0, logprobs=2)
    alone = Server(package, ["--synthetic=tiny"], "--parallel=1", "--context=256", device="vulkan,vulkan")
    want = alone.complete(**body)["choices"][0]["text"]
    alone.end()
    with served(package) as (server, other):
        assert server.complete(**body)["choices"][0]["text"] == want
        other.send_signal(signal.SIGTERM)  # which is for the first one alone
        assert server.complete(**body | {"grammar": "root ::= [a-z ]+"})["choices"][0]["text"]
        server.end()
        assert ended(other, LIMIT) == (0, "", "")
    # Nobody asks for anything, and one is killed.
    with served(package) as (server, other):
        begin = time.monotonic()
        other.kill()
        status, _, errors = ended(server.process, LIMIT)
        assert status == 1 and errors.startswith("greta-llm: error: ") and errors.count("\n") == 1 and "rank 1" in errors, errors
        assert time.monotonic() - begin < LIMIT


@pytest.mark.parametrize("killed", [1] + WHOLE * [0])
def test_killed_while_it_generates(package, killed):
    processes = ranks(address(), *words(package), "-p", "hello", "-n", 1900, "--temp=0", "--ignore-eos", "-q")
    assert processes[0].stdout.read(1)
    begin = time.monotonic()
    processes[killed].kill()
    status, _, errors = ended(processes[1 - killed], LIMIT)
    assert status == 1 and errors.startswith("greta-llm: error: ") and errors.count("\n") == 1 and f"rank {killed}" in errors, errors
    assert time.monotonic() - begin < LIMIT
    processes[killed].communicate()


def test_the_others_of_three_say_which_was_killed(tmp_path):
    """Whoever hears of it first ends the devices' communicator, and tells why."""
    a = models.as_in_gguf(dataclasses.replace(ARCHITECTURES["llama2"], layers=3))
    model, package = tmp_path / "m.gguf", tmp_path / "m.greta"
    models.write_gguf(model, a, models.random_weights(a), "f16")
    made = llm("compile", model, "--targets=gfx942", "--batch=1", "-o", package)
    assert made.returncode == 0, made.stderr
    command = "bench", package, model, "--device=sim:gfx942", "--split=layers", f"--meet={address()}", "--ranks=3", "-p", 8, "-n", 64, "-r", 99, "-q"
    processes = [start(*command, f"--rank={rank}") for rank in range(3)]
    assert any("pp8" in line for line in iter(processes[0].stdout.readline, ""))
    processes[2].kill()
    for process in processes[:2]:
        status, _, errors = ended(process, LIMIT)
        assert status == 1 and errors.startswith("greta-llm: error: ") and errors.count("\n") == 1 and "rank 2 is gone" in errors, errors
    processes[2].communicate()


@pytest.mark.parametrize("failing", [0, 1])
def test_one_fails_before_they_meet(simulated, failing, tmp_path):
    """The others wait for nobody who does not come, and say why."""
    more = (*GENERATE, "--split=layers", f"--meet={address()}", "--ranks=3")
    right = words(simulated, device="--device=sim:gfx942")
    processes = [start(*(("generate", simulated, tmp_path / "none.gguf") if rank == failing else right), *more, f"--rank={rank}") for rank in range(3)]
    begin, own = time.monotonic(), f"{tmp_path}/none.gguf: cannot open: No such file or directory\n"
    for rank, process in enumerate(processes):
        assert ended(process, LIMIT) == (1, "", "greta-llm: error: " + ("" if rank == failing else f"rank {failing}: ") + own)
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize("failing", [0, 1])
def test_who_comes_late_hears_why(simulated, failing, tmp_path):
    """One that has failed says its error, then that it waits, and tells the other when that comes."""
    more = (*GENERATE, "--split=layers", f"--meet={address()}", "--ranks=2")
    first = start("generate", simulated, tmp_path / "none.gguf", *more, f"--rank={failing}")
    why = f"{tmp_path}/none.gguf: cannot open: No such file or directory\n"
    assert first.stderr.readline() == f"greta-llm: error: {why}" and "Ctrl-C ends this" in first.stderr.readline()
    other = start(*words(simulated, device="--device=sim:gfx942"), *more, f"--rank={1 - failing}")
    assert ended(other, LIMIT) == (1, "", f"greta-llm: error: rank {failing}: {why}") and ended(first, LIMIT) == (1, "", "")


def test_one_has_no_network(simulated):
    """UCX has no such transport there, so that rank cannot come."""
    command = (*words(simulated, device="--device=sim:gfx942"), *GENERATE, "--split=layers", f"--meet={address()}", "--ranks=2")
    first, second = [start(*command, f"--rank={rank}", environment={"UCX_LOG_LEVEL": "fatal"} | ({"UCX_TLS": "nothing"} if rank else {})) for rank in (0, 1)]
    status, _, own = ended(second, LIMIT)
    assert status == 1 and own.startswith("greta-llm: error: ucp_init (UCX): "), own
    assert ended(first, LIMIT) == (1, "", own.replace("error: ", "error: rank 1: ", 1))


def test_the_first_is_killed_while_all_wait(simulated):
    at = address()
    command = (*words(simulated, device="--device=sim:gfx942"), *GENERATE, "--split=layers", f"--meet={at}", "--ranks=3")
    first, second = [start(*command, f"--rank={rank}") for rank in (0, 1)]
    time.sleep(0.5)
    first.kill()
    assert first.communicate() and ended(second, LIMIT) == (1, "", f"greta-llm: error: rank 1 of 3 has waited for rank 0 at {at}: it has ended before all ranks had come\n")


@contextlib.contextmanager
def waiting(package, at, port=0, **device):
    """Rank 0 of a server, and the words for rank 1, which it waits for."""
    command = words(package, "serve", "--parallel=1", "--context=256", f"--meet={at}", "--ranks=2", "-q", **device)
    alone = start(*command, "--rank=0", f"--port={port}")
    host, meeting = at.split(":")
    with contextlib.ExitStack() as stack:
        stack.callback(alone.kill)
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex((host, int(meeting))) == 0:
                    break
            time.sleep(0.1)
        yield alone, (*command, "--rank=1")


def test_a_server_that_waits_for_others_ends(package):
    with waiting(package, address()) as (alone, _):
        alone.send_signal(signal.SIGTERM)
        assert ended(alone, 30)[0] == 0


def test_a_server_that_compiles_ends(package, tmp_path):
    """A signal ends its compiler, and the rank that waits for it hears that it does not come."""
    with waiting(package, address()) as (alone, (serve, _, *rest)):
        other = start(serve, *rest, environment={"XDG_CACHE_HOME": str(tmp_path)})
        children = pathlib.Path(f"/proc/{other.pid}/task/{other.pid}/children")
        while other.poll() is None and not children.read_text():
            time.sleep(0.01)
        other.send_signal(signal.SIGTERM)
        assert ended(other, 60) == (0, "", "")
        assert ended(alone, LIMIT) == (1, "", "greta-llm: error: rank 1: it has ended before all had met\n")


def test_who_waits_does_not_listen(simulated):
    """No connection is taken before the server says so; where another listens at its port meanwhile, it never says so."""
    host, port = address().split(":")
    with waiting(simulated, address(), port, device="--device=sim:gfx942") as (alone, other), socket.socket() as taken:
        with socket.socket() as early:
            assert early.connect_ex((host, int(port))) == errno.ECONNREFUSED
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, int(port)))
        taken.listen()
        second = start(*other)
        assert ended(alone) == (1, "", f"greta-llm: error: cannot listen at {host}:{port}: Address already in use\n")
        status, output, errors = ended(second)
        assert (status, output) == (1, "") and errors.startswith("greta-llm: error: ") and errors.count("\n") == 1, errors


def test_ranks_that_differ(package):
    at = address()
    processes = [start(*words(package), *GENERATE, f"--chunk={16 << rank}", f"--meet={at}", "--ranks=2", f"--rank={rank}") for rank in (0, 1)]
    for process in processes:
        status, output, errors = ended(process)
        assert (status, output, errors) == (1, "", "greta-llm: error: rank 1 has another model, other options or another version than rank 0\n")


def test_words(package):
    for more, environment, says in (
        (("--meet=localhost:1",), {}, "--meet is for 2 to 64 processes: say --ranks and --rank, or start them with torchrun or mpirun"),
        (("--meet=localhost:1",), {"WORLD_SIZE": "2", "RANK": "x"}, "RANK=x is no number of processes"),
        (("--meet=localhost:1", "--ranks=2", "--rank=2"), {}, "--rank=2 is none of 2"),
        (("--meet=localhost", "--ranks=2", "--rank=0"), {}, "'localhost' is no address: it is host:port of rank 0"),
        (("--split=layers",), {}, "--split is for --devices or --meet"),
    ):
        status, _, errors = ended(start(*words(package), *GENERATE, *more, environment=environment))
        assert status == 1 and says in errors and errors.count("\n") == 1, errors
