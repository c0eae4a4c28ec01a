"""greta.Communicator: ranks that are threads with a device each, and ranks that are processes."""

import contextlib
import os
import random
import socket
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import greta
from ranks import ranks

DEVICES = ("host", "vulkan", "sim:gfx942")
RANK = """
import sys, numpy as np, greta
c = greta.Communicator(int(sys.argv[2]), 2, path=sys.argv[1], device="host", ways=["host"])
x = greta.asarray(np.arange(10, dtype=np.float32), device="host")
assert (c.all_reduce(x).numpy() == 2 * np.arange(10)).all()
"""


@pytest.fixture(autouse=True)
def chip():
    """One chip is simulated at a time, and a test before may have left another."""
    greta.set_device("sim:gfx942")


def values(rank, rows, dtype):
    return np.random.default_rng(rank).integers(-8, 9, (rows, 7)).astype(dtype)


def test_collectives():
    def body(c):
        assert c.info["way"] == "host" and c.info["rank"] == c.rank and "kernel" in c.info["left_out"]
        n = c.size
        for dtype in (np.float32, np.float16, ml_dtypes.bfloat16, np.int32):
            host = [values(r, 6, dtype) for r in range(n)]
            wide = np.stack([h.astype(np.float32) for h in host])
            mine = greta.asarray(host[c.rank], device=c.device)
            for op, want in (("sum", wide.sum(0)), ("max", wide.max(0))):
                assert (c.all_reduce(mine, op).numpy().astype(np.float32) == want).all()
                part = c.reduce_scatter(mine, op)
                assert part.shape == (2, 7) and (part.numpy().astype(np.float32) == want[2 * c.rank : 2 * c.rank + 2]).all()
            assert (c.all_gather(mine).numpy() == np.concatenate(host)).all()
            assert (c.all_to_all(mine).numpy() == np.concatenate([h[2 * c.rank : 2 * c.rank + 2] for h in host])).all()
            assert (mine.numpy() == host[c.rank]).all()
            assert c.all_reduce(mine[2:4], out=mine[2:4]).offset == 2 * mine.stride(0) * mine.itemsize
            assert (mine.numpy()[2:4].astype(np.float32) == wide.sum(0)[2:4]).all() and (mine.numpy()[:2] == host[c.rank][:2]).all()
            assert (c.broadcast(mine, root=1)[:2].numpy() == host[1][:2]).all()
        x, y = greta.asarray(np.full(5, c.rank), device=c.device), greta.empty(5, np.int64, c.device)
        c.exchange(sends=[(x, (c.rank + 1) % n)], receives=[(y, (c.rank - 1) % n)])
        assert (y.numpy() == (c.rank - 1) % n).all()
        if c.rank == 0:
            c.send(x, 2)
        elif c.rank == 2:
            assert (c.receive(y, 0).numpy() == 0).all()
        assert c.all_gather(x[3]).shape == (n,)

    ranks(body, DEVICES, staging_bytes=1)


def test_a_large_sum():
    """64 MB, in sixteen steps, of which four are under way at once."""
    host = [np.random.default_rng(rank).random(1 << 24, np.float32) for rank in range(2)]

    def body(c):
        assert (c.all_reduce(greta.asarray(host[c.rank], device=c.device)).numpy() == host[0] + host[1]).all()

    ranks(body, DEVICES[:2])


def test_what_is_refused():
    others = [greta.zeros(4, device=device) for device in DEVICES[1::-1]]

    def body(c):
        x = greta.zeros((5, 2), device=c.device)
        for says, call in (
            ("no reduction is 'xor'", lambda: c.all_reduce(x, "xor")),
            ("'max' is not of uint32", lambda: c.all_reduce(greta.zeros(4, np.uint32, c.device), "max")),
            ("not of bool", lambda: c.all_reduce(greta.zeros(4, bool, c.device))),
            ("reductions are of u8, i8, i32, i64, f16, bf16, f32, f64, not of i16", lambda: c.all_reduce(greta.zeros(4, np.int16, c.device))),
            ("5 rows are no multiple of 2 ranks", lambda: c.reduce_scatter(x)),
            ("5 rows are no multiple of 2 ranks", lambda: c.all_to_all(x)),
            ("`out` is float32", lambda: c.all_reduce(x, out=x[1:])),
            ("the array lies on", lambda: c.broadcast(others[c.rank])),
            ("root 2 is none of 2 ranks", lambda: c.broadcast(x, 2)),
        ):
            with pytest.raises(greta.Error, match=says):
                call()
        assert (c.all_reduce(x).numpy() == 0).all()
        c.close()
        with pytest.raises(greta.Error, match="is closed"):
            c.all_reduce(x)

    ranks(body, DEVICES[:2], staging_bytes=1, ways=["host"])
    for says, options in (
        ("give one of them", {}),
        ("no collectives go by 'rccl'", {"id": greta.unique_id(), "ways": ["host", "rccl"]}),
        ("are not negative", {"id": greta.unique_id(), "timeout": -1}),
        ("has waited 50 ms for rank 1", {"id": greta.unique_id(), "timeout": 0.05}),
    ):
        with pytest.raises(greta.Error, match=says):
            greta.Communicator(0, 2, device="host", **options)
    with pytest.raises(ValueError, match="an id has 16 bytes"):
        greta.Communicator(0, 2, device="host", id=b"short")


def test_one_rank_for_each_device_of_a_process():
    """Two would wait for each other in one stream."""
    name = greta.unique_id()
    with greta.Communicator(0, 1, id=name, device="host") as c:
        with pytest.raises(greta.Error, match="ranks of one process have a device each"):
            greta.Communicator(0, 1, id=name, device="host")
        assert (c.all_gather(greta.zeros(2, device="host")).numpy() == 0).all()


def test_abort_ends_it_on_every_rank():
    def body(c):
        if c.rank == 1:
            return c.abort()
        with pytest.raises(greta.Error, match="rank 1 ended it"):
            while True:
                c.all_reduce(greta.zeros(4, device=c.device)).numpy()

    ranks(body, DEVICES[:2], staging_bytes=1, ways=["host"])


def test_processes(tmp_path):
    """One goes after a collective: the next is an error, soon."""
    path = tmp_path / "ranks"
    other = subprocess.Popen([sys.executable, "-c", RANK, path, "1"])
    with greta.Communicator(0, 2, path=path, device="host", ways=["host"]) as c:
        x = greta.asarray(np.arange(10, dtype=np.float32), device="host")
        assert (c.all_reduce(x).numpy() == 2 * np.arange(10)).all()
        assert other.wait(60) == 0
        with pytest.raises(greta.Error, match="rank 1 is gone"):
            c.all_reduce(x).numpy()


NETWORK = """
import sys, numpy as np, greta
c = greta.Communicator(int(sys.argv[2]), 3, address=sys.argv[1], device="host", timeout=60)
assert c.info["way"] == "host" and c.info["between_hosts"].startswith("UCX"), c.info
x = greta.asarray(np.arange(300001, dtype=np.float32) % 100 + c.rank, device="host")
assert (c.all_reduce(x).numpy() == 3 * (np.arange(300001) % 100) + 3).all()
assert (c.all_gather(x[:5]).numpy() == np.concatenate([np.arange(5) + r for r in range(3)])).all()
if c.rank == 2:
    sys.exit()
try:
    c.all_reduce(x).numpy()
except greta.Error as error:
    assert "rank 2 is gone" in str(error) or "has ended" in str(error), error
else:
    raise AssertionError("a rank is gone")
"""


def free_port():
    """A port below 32768, from where on the system gives them to who asks for any, as UCX does before rank 0 listens."""
    while True:
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", random.randrange(20000, 32000)))
            return one.getsockname()[1]


def test_hosts_by_an_address():
    address = f"127.0.0.1:{free_port()}"
    processes = [subprocess.Popen([sys.executable, "-c", NETWORK, address, str(rank)]) for rank in range(3)]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    with pytest.raises(greta.Error, match="is no address"):
        greta.Communicator(0, 2, address="localhost", device="host")


def test_hosts_without_ucx():
    """The error says what is missing."""
    code = "import greta; greta.Communicator(0, 1, address='127.0.0.1:1', device='host')"
    ran = subprocess.run([sys.executable, "-c", code], env=os.environ | {"GRETA_UCX_LIBRARY": "/nowhere.so"}, capture_output=True, text=True)
    assert ran.returncode and "ranks on several hosts need UCX (libucp.so.0): /nowhere.so" in ran.stderr, ran.stderr


def test_hosts_in_networks_of_their_own(hosts):
    """Ranks reach each other by the network alone: UCX is told to use TCP."""
    enter, address = hosts
    environment = os.environ | {"UCX_TLS": "tcp"}
    at = f"{address}:29655"
    processes = [subprocess.Popen([*enter[rank], sys.executable, "-c", NETWORK, at, str(rank)], env=environment) for rank in range(3)]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
