"""torch.distributed on rdna: how ranks begin and end. torchrun and Ray start the guide's programs; a rank that is lost is an error; a process ends in the middle."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from conftest import ROOT
from torch_ranks import Ranks

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use


def lose(torch, dist, rank, size, told):
    tensor = torch.ones(100, device="rdna")
    dist.all_reduce(tensor)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    for what in ("the collective under way", "a later one"):
        with pytest.raises(dist.DistBackendError, match="rank 1|rank 0"):
            dist.all_reduce(tensor)
            tensor.cpu()
    work = None
    with pytest.raises(dist.DistBackendError):
        work = dist.all_reduce(tensor, async_op=True)
        work.wait()
    assert work is None or (work.is_completed() and not work.is_success())
    told.write_text(str(time.monotonic() - begin))
    os._exit(0)


def test_a_lost_rank_is_an_error(rdna, tmp_path):
    """The time-out is half an hour; the process's end is seen."""
    told = tmp_path / "survived"
    ranks = Ranks()
    ranks.begin(tmp_path, lose, 2, told=told)
    for process in ranks.processes:
        process.join(60)
    codes = [process.exitcode for process in ranks.processes]
    said = ranks.connections[0].recv() if not told.exists() and ranks.connections[0].poll() else None
    ranks.end()
    assert codes == [0, -signal.SIGKILL], said
    assert float(told.read_text()) < 10


def guide_program(tmp_path, name="train.py"):
    text = (ROOT / "docs" / "guide" / "torch.md").read_text()
    program = tmp_path / name
    program.write_text(re.search(rf"```python\n(# {re.escape(name)}\n.*?)```", text, re.DOTALL)[1])
    return program


def check_losses(out):
    losses = [float(line.split()[1]) for line in out.splitlines()]
    assert len(losses) == 10 and losses[-1] < losses[0]


ALONE = """
import datetime, os, signal, sys, time
import torch
import torch.distributed as dist
import greta.torch
from greta import _torch

tensor = torch.ones(1 << 22, device="rdna")
backend, seen = _torch.make_collectives(dist.HashStore(), 0, 1, 60.0), []


def begin(then):
    backend.allreduce([tensor]).get_future().then(then)


def late(_):
    time.sleep(0.5)
    seen.append(1)
"""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("begin(late)\ndel backend\nassert seen == [1]", id="the last reference goes, a callback is to come"),
        pytest.param(
            "holder = [backend]\nbegin(lambda _: (time.sleep(0.3), holder.clear()))\ndel backend\nwhile holder: time.sleep(0.01)\ntime.sleep(0.3)",
            id="a callback has the last reference",
        ),
        pytest.param("begin(late)", id="the process ends meanwhile"),
        pytest.param(
            "begin(late)\ntry:\n    begin.__globals__['backend'].abort()\nfinally:\n    del backend",
            id="after an abort",
        ),
        pytest.param(
            """backend.allreduce([tensor]).wait()
child = os.fork()
if not child:
    try:
        backend.allreduce([tensor])
    except RuntimeError as error:
        assert "forked" in str(error), error
        del backend
        sys.exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
backend.allreduce([tensor]).wait()
assert (tensor.cpu() == 1).all()""",
            id="a copy of the process",
        ),
        pytest.param(
            """import threading
store = dist.HashStore()
store.set_timeout(datetime.timedelta(seconds=20))
pair = _torch.make_collectives(store, 0, 2, 60.0)


def meet():
    try:
        pair.allreduce([tensor])
    except RuntimeError:
        seen.append(1)


thread = threading.Thread(target=meet)
thread.start()
while not store.check(["greta/1/host/0"]):
    time.sleep(0.01)
time.sleep(0.2)
child = os.fork()
if not child:
    signal.alarm(10)
    try:
        pair.allreduce([tensor])
    except RuntimeError as error:
        assert "forked" in str(error), error
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
thread.join()
assert seen == [1]""",
            id="a copy of the process while its ranks meet",
        ),
        pytest.param(
            """for _ in range(2):
    store = dist.HashStore()
    dist.init_process_group(store=store, rank=0, world_size=1)
    dist.all_reduce(tensor)
    dist.barrier(device_ids=[0])
    group = dist.group.WORLD
    dist.destroy_process_group()
    try:
        group.allreduce([tensor])
        raise AssertionError("it was destroyed")
    except dist.DistBackendError as error:
        assert "destroyed" in str(error), error""",
            id="no backend is named",
        ),
        pytest.param(
            """store = dist.HashStore()
pair = [_torch.make_collectives(store, rank, 2, 60.0) for rank in (0, 1)]
for one, use in zip(pair, (lambda one: one.eager_connect_single_device(torch.device("rdna", 99)), lambda one: one.allreduce([tensor]))):
    try:
        use(one)
        raise AssertionError("rank 0 has no such device")
    except RuntimeError as error:
        seen.append(str(error))
assert "99" in seen[0] and "greta: rank 0 has no device: " in seen[1] and "99" in seen[1], seen""",
            id="a rank that has no device",
        ),
    ],
)
def test_its_end(rdna, alone, program):
    alone(ALONE + program, timeout=120)


def test_torchrun(rdna, tmp_path):
    """The guide's program."""
    program = guide_program(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", program],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    check_losses(done.stdout)


def test_torchrun_on_two_hosts(rdna, tmp_path, hosts):
    """The same, where ranks reach each other by the network alone."""
    enter, address = hosts
    program = guide_program(tmp_path)
    words = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", f"--master-addr={address}", "--master-port=29656"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "UCX_TLS": "tcp"}
    nodes = [
        subprocess.Popen([*enter[rank], *words, f"--node-rank={rank}", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    said = [node.communicate(timeout=240) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], said[0][1] + said[1][1]
    check_losses(said[0][0])


def test_ray(rdna, tmp_path):
    """The guide's program for Ray, which scripts/torch-ray has. Ray's workers would let every other process of the machine go first."""
    pytest.importorskip("ray")
    program = guide_program(tmp_path, "train_ray.py")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=400, env=environment)
    assert done.returncode == 0, done.stderr
    check_losses(done.stdout)
