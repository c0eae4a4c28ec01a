"""Memory of torch.device("rdna") over many steps: its figures, no growth, recovery, checkpointing, several devices, and what other processes find compiled."""

import os
import pathlib
import shutil
import time

import pytest

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use


def test_figures(measured):
    torch = measured
    free, total = torch.rdna.mem_get_info()
    assert 0 < free <= total
    torch.rdna.synchronize()
    torch.rdna.empty_cache()
    torch.accelerator.reset_peak_memory_stats()
    before = torch.rdna.memory_allocated()
    size = 80 << 20  # more than the pieces that other tensors share
    x = torch.zeros(size // 4, device="rdna")
    for module in torch.rdna, torch.accelerator:
        assert module.memory_allocated() - before == size
        assert module.max_memory_allocated() >= module.memory_allocated() and module.memory_reserved() >= module.memory_allocated()
        assert module.memory_stats()["allocated_bytes.all.current"] == module.memory_allocated()
    del x
    assert torch.rdna.memory_allocated() == before and torch.rdna.max_memory_allocated() >= before + size
    torch.rdna.synchronize()
    reserved = torch.rdna.memory_reserved()
    torch.rdna.empty_cache()
    assert torch.rdna.memory_reserved() <= reserved - size


def segments(torch, address):
    return [one for one in torch.rdna.memory_snapshot() if one["address"] == address]


def test_snapshot(rdna):
    """A tensor's segment, what becomes of it, and the memory of a graph."""
    torch = rdna
    stream = torch.rdna.Stream()
    with stream:
        x = torch.zeros(1000, device="rdna")
    address = x.data_ptr()
    (held,) = segments(torch, address)
    assert held["device"] == 0 and held["stream"] == stream.stream_id and held["segment_pool_id"] == (0, 0)
    assert held["total_size"] == held["allocated_size"] >= 4000 and held["blocks"][0]["requested_size"] == 4000 and held["blocks"][0]["state"] == "active_allocated"
    del x
    (left,) = segments(torch, address)
    assert left["allocated_size"] == left["requested_size"] == 0 and left["stream"] == stream.stream_id and left["blocks"][0]["state"] == "inactive"
    assert sum(one["allocated_size"] for one in torch.rdna.memory_snapshot() if one["device"] == 0) == torch.rdna.memory_allocated()
    torch.rdna.empty_cache()
    assert not segments(torch, address)
    if not hasattr(torch.accelerator, "Graph"):  # torch 2.11 has none
        return
    before = {(0, 0), *(one["segment_pool_id"] for one in torch.rdna.memory_snapshot())}
    graph, y = torch.accelerator.Graph(), torch.ones(1000, device="rdna")
    y.fill_(2)
    with graph:
        y.copy_(torch.full((1000,), 3.0, device="rdna"))
    ofGraph = [one for one in torch.rdna.memory_snapshot() if one["segment_pool_id"] not in before]
    assert len({one["segment_pool_id"] for one in ofGraph}) == 1
    assert (None, "inactive") in [(one["stream"], one["blocks"][0]["state"]) for one in ofGraph]


def test_fragmentation(rdna):
    """What lies between tensors is in no use, but no piece for a larger one."""
    torch = rdna
    torch.rdna.empty_cache()
    pieces = [torch.empty(1 << 20, dtype=torch.uint8, device="rdna") for _ in range(64)]
    before = torch.rdna.memory_stats()
    del pieces[::2]
    torch.rdna.empty_cache()
    after = torch.rdna.memory_stats()
    assert after["unused_bytes"] >= before["unused_bytes"] + (16 << 20) and after["largest_unused_bytes"] <= after["unused_bytes"]
    assert before["fragmentation"] < after["fragmentation"] < 1
    assert f"{after['unused_bytes'] / (1 << 20):.2f} MiB of it in no use, the largest piece {after['largest_unused_bytes'] / (1 << 20):.2f} MiB" in torch.rdna.memory_summary()
    del pieces
    torch.rdna.empty_cache()
    assert torch.rdna.memory_stats()["unused_bytes"] < after["unused_bytes"]


def test_other_streams_keep_memory(rdna):
    """What another stream uses, or is said to use, is not the next tensor's memory, in whose stream the read may come later; one of its stream alone is."""
    torch = rdna
    stream, size = torch.rdna.Stream(), (1 << 20) + 4096
    for how in "alone", "recorded", "used":
        x = torch.ones(size, device="rdna")
        torch.rdna.synchronize()
        if how == "recorded":
            x.record_stream(stream)
        if how == "used":
            with stream:
                copy = x.clone()
        address = x.data_ptr()
        del x
        assert [one["blocks"][0]["state"] for one in segments(torch, address)] == (["inactive"] if how == "alone" else [])
        overwriting = torch.zeros(size, device="rdna")
        assert how != "alone" or overwriting.data_ptr() == address
    torch.rdna.current_stream().wait_stream(stream)
    assert torch.equal(copy.cpu(), torch.ones(size)) and torch.equal(overwriting.cpu(), torch.zeros(size))


def test_idle_streams_say_so(rdna):
    torch = rdna
    for stream in torch.rdna.Stream(), torch.rdna.current_stream():
        with stream:
            x = torch.full((1 << 16,), 2.0, device="rdna")
        stream.synchronize()
        assert stream.query() and stream.query()
        with stream:
            x.fill_(3)
        end = time.monotonic() + 60
        while not stream.query():
            assert time.monotonic() < end
        assert torch.equal(x.cpu(), torch.full((1 << 16,), 3.0))


def test_steps_of_mixed_sizes(rdna):
    """10,000 steps take no more memory than the first thousand, of the device or of the process."""
    torch = rdna

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    x, sizes, figures = torch.ones(1 << 16, device="rdna"), [(17 * n * n) % 60000 + 8 for n in range(23)], []
    for step in range(10000):
        y = x[: sizes[step % 23]] * 2
        z = y + y
        if step in (999, 9999):
            torch.rdna.synchronize()
            figures.append((torch.rdna.memory_reserved(), torch.rdna.memory_allocated(), resident()))
    assert (z == 4).all().item() and y.numel() == sizes[9999 % 23]
    (reserved, allocated, then), (reserved_now, allocated_now, now) = figures
    assert reserved_now <= reserved + (1 << 20) and allocated_now <= allocated + (1 << 20)
    assert now <= then + (32 << 20)


def test_out_of_memory_recovers(measured):
    torch = measured
    x = torch.ones(1 << 10, device="rdna")
    for _ in range(3):  # what a first and a second call keep is there then
        (x + 1).sum().item()
    before = torch.rdna.memory_allocated()
    for _ in range(3):
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(1 << 50, device="rdna")
        now = torch.rdna.memory_allocated()
        total = (x + 1).sum().item()
        assert now == before and total == 2 << 10


def test_checkpointing(rdna):
    """The second forward draws the numbers of the first."""
    torch = rdna
    from torch.utils.checkpoint import checkpoint

    layer = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Dropout(0.5), torch.nn.ReLU(), torch.nn.Linear(32, 4)).to("rdna")
    x, results = torch.randn(8, 16, generator=torch.Generator().manual_seed(0)).to("rdna"), []
    for again in False, True:
        torch.rdna.manual_seed(3)
        layer.zero_grad()
        (checkpoint(layer, x, use_reentrant=False) if again else layer(x)).square().sum().backward()
        results.append([one.grad.cpu().clone() for one in layer.parameters()])
    for one, other in zip(*results):
        assert torch.equal(one, other) and one.abs().sum() > 0


def test_copies_between_devices(alone):
    """Two devices of one driver: copies in either direction, of views, with a cast, into what is there."""
    pytest.importorskip("torch")
    program = """
import torch, greta.torch
x = torch.arange(24.0).reshape(4, 6)
first, second = x.to("rdna:0"), (x + 1).to("rdna:1")
assert torch.equal(first.to("rdna:1").cpu(), x) and torch.equal(second.to("rdna:0").cpu(), x + 1)
assert torch.equal(first.t().to("rdna:1").cpu(), x.t()) and torch.equal(first.to("rdna:1", torch.float16).cpu(), x.half())
second[:, 2:4].copy_(first[:, :2])
assert torch.equal(second.cpu()[:, 2:4], x[:, :2]) and torch.equal(second.cpu()[:, 4:], x[:, 4:] + 1)
print("right")
"""
    assert alone(program, GRETA_TORCH_DEVICES="vulkan:0,vulkan:0") == "right\n"


def test_dynamic_shapes_compile_once(rdna):
    torch = rdna
    from torch._dynamo.testing import CompileCounterWithBackend

    counter = CompileCounterWithBackend("inductor")
    layer = torch.nn.Linear(16, 8).to("rdna")
    function = torch.compile(lambda x: torch.nn.functional.gelu(layer(x)).sum(-1), backend=counter, dynamic=True)
    generator = torch.Generator().manual_seed(0)
    for rows in 5, 9, 33, 64, 7:
        x = torch.randn(rows, 16, generator=generator)
        exact = torch.nn.functional.gelu(x.double() @ layer.weight.detach().cpu().double().t() + layer.bias.detach().cpu().double()).sum(-1)
        torch.testing.assert_close(function(x.to("rdna")).detach().cpu().double(), exact, rtol=1e-4, atol=1e-4)
    assert counter.frame_count == 1


def test_sizes_of_a_compiled_function_grow(rdna):
    """Blocks are not those of the first sizes, programs are more than lavapipe has workgroups in a dim (of sums along rows two rows each), and nothing is compiled again."""
    torch = rdna
    from torch._dynamo.testing import CompileCounterWithBackend

    counter = CompileCounterWithBackend("inductor")
    for function, sizes in (
        (lambda x: (x.sin() + 1) * x, ((10,), (11,), (3_000_001,), (12,))),
        (lambda x: (x.t() + 1).contiguous(), ((5, 7), (3, 9), (11, 70_001), (90_001, 3))),
        (lambda x: (x * 2).sum(0), ((5, 7), (3, 9), (4, 300_001), (90_001, 3))),
        (lambda x: (x * 2).sum(1), ((5, 7), (3, 9), (300_001, 3), (131_073, 5))),
    ):
        torch._dynamo.reset()
        counter.clear()
        compiled = torch.compile(function, backend=counter, dynamic=True)
        for shape in sizes:
            x = torch.rand(shape, generator=torch.Generator().manual_seed(0))
            torch.testing.assert_close(compiled(x.to("rdna")).cpu(), function(x), rtol=1e-4, atol=1e-5)
        assert counter.frame_count == 1


def test_other_processes_find_what_is_compiled(alone, tmp_path):
    """A second process with the same cache compiles nothing: no file is added."""
    pytest.importorskip("torch")
    program = """
import torch, greta.torch
x = torch.arange(40.0, device="rdna").reshape(5, 8)
print((torch.sigmoid(x) * 2 + x).sum().item(), torch.compile(lambda x: (x.sin() + 1) * x)(x).sum().item())
"""
    outputs, files = [], []
    for _ in range(2):
        outputs.append(alone(program, XDG_CACHE_HOME=str(tmp_path), GRETA_CACHE=str(tmp_path / "greta")))
        files.append({path for path in tmp_path.rglob("*") if path.is_file()})
    assert outputs[0] == outputs[1] and files[0] and files[1] == files[0]


def test_operators_are_compiled_beforehand(alone, tmp_path):
    """greta.torch.warm compiles operators for all sizes; another process takes them for sizes of its own at the first call, and compiles nothing."""
    pytest.importorskip("torch")
    caches = dict(XDG_CACHE_HOME=str(tmp_path), GRETA_CACHE=str(tmp_path / "greta"))
    said = alone("from greta.torch import warm\nprint(warm.main(['--dtypes=float16', '--only=^(mul|sum), 2']))", **caches)
    assert "float16 mul, 2 dims: " in said and "float16 sum, 2 dims: " in said and said.splitlines()[-1] == "0", said
    packages = {path for path in tmp_path.rglob("*.greta")}
    said = alone(
        "import torch, greta.torch\n"
        "x = torch.arange(15).reshape(5, 3).half().to('rdna')\n"
        "print((x * x.clone()).sum(-1).tolist())\n"
        "from torch._dynamo.utils import counters\n"
        "print(counters['inductor']['fxgraph_cache_hit'], counters['inductor']['fxgraph_cache_miss'])\n",
        **caches,
    )
    assert said.splitlines() == ["[5.0, 50.0, 149.0, 302.0, 509.0]", "2 0"], said
    assert packages and {path for path in tmp_path.rglob("*.greta")} == packages


def test_sizes_grow(alone, tmp_path):
    """A function for all sizes that small tensors were compiled for has blocks of few elements, of which a large one would need more workgroups than lavapipe takes."""
    pytest.importorskip("torch")
    program = """import torch, greta.torch
for n in (10, 11, 300_001, 3_000_001, 12):
    x = torch.arange(n)
    there = x.to("rdna")
    assert torch.equal(torch.bitwise_and(there >= 0, there < 5).cpu(), torch.bitwise_and(x >= 0, x < 5)), n
    assert torch.equal((there[:1] - there).cpu(), x[:1] - x) and there.sum().item() == x.sum().item(), n
print(torch.rdna.fallbacks())"""
    said = alone(program, XDG_CACHE_HOME=str(tmp_path), GRETA_CACHE=str(tmp_path / "greta"))
    assert said.strip() == "{}", said


@pytest.mark.parametrize(
    "argument, message",
    (
        ("--dtypes=int64", "no types of floats"),
        ("--dtypes=of", "no types of floats"),
        ("--only=(", "no regular expression"),
        ("--only=absent", "no operator has such a name"),
        ("--device=cpu", "no device of rdna"),
        ("--device=rdna:99", "--device=rdna:99: "),
    ),
)
def test_what_cannot_be_compiled_beforehand(rdna, capsys, argument, message):
    from greta.torch import warm

    with pytest.raises(SystemExit) as ended:
        warm.main([argument])
    assert ended.value.code == 2 and message in capsys.readouterr().err


def test_an_operator_that_has_no_kernel_is_told(rdna, capsys, monkeypatch):
    from greta.torch import warm

    monkeypatch.setattr(warm, "TABLE", {"geqrf": lambda make: rdna.geqrf(make(2))})
    assert warm.main(["--dtypes=float32"]) == 1
    assert "float32 geqrf: " in capsys.readouterr().out.replace("\n", " ")


def test_what_another_version_compiled_is_left_alone(rdna, monkeypatch, tmp_path):
    """Inductor's folder, and its key of each graph in a folder that the user names, are of the compiler and of the text of all modules of the package."""
    torch = rdna
    from greta.torch import _fusion, _inductor
    from torch._dynamo.utils import counters

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    x, found, folders = torch.arange(8.0).to("rdna"), [], []
    for key in ("one", "one", "other"):
        monkeypatch.setattr(_inductor, "build_key", lambda: key)
        monkeypatch.setattr(_fusion, "build_key", lambda: key)
        monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
        _inductor._use_own_cache()
        folders.append(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "named"))
        torch._dynamo.reset()
        before = counters["inductor"]["fxgraph_cache_hit"]
        assert torch.equal(torch.compile(lambda x: x * 3 + 1)(x).cpu(), torch.arange(8.0) * 3 + 1)
        found.append(counters["inductor"]["fxgraph_cache_hit"] - before)
    assert found == [0, 1, 0]
    assert folders[0] == folders[1] != folders[2] and all(one.startswith(str(tmp_path / "greta" / "inductor")) for one in folders)


def test_the_key_is_of_every_module(tmp_path):
    import greta
    from greta import _compile

    folder = pathlib.Path(greta.__file__).parent
    copy = tmp_path / "greta"
    shutil.copytree(folder, copy, ignore=lambda _, names: [name for name in names if name.endswith((".so", ".a")) or name == "__pycache__"])
    key = _compile.build_key.__wrapped__
    keys = [key(copy)]
    for name in ("torch/_fusion.py", "torch/_sets.py", "_trace.py", "triton/compiler.py"):
        with (copy / name).open("a") as file:
            file.write("\n")
        keys.append(key(copy))
    (copy / "torch" / "_new.py").write_text("")
    keys.append(key(copy))
    assert key(folder) == keys[0] and len(set(keys)) == len(keys)
