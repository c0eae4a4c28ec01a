"""torch.device("rdna") itself: memory, views, copies, streams, random numbers, files."""

import copy
import io
import json
import os
import signal
import sys

import pytest

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use


def test_names(rdna):
    torch = rdna
    x = torch.ones(2, device="rdna")
    assert x.device == torch.device("rdna:0") and x.is_rdna
    assert torch.accelerator.current_accelerator() == torch.device("rdna")
    assert torch.rdna.device_count() == torch.accelerator.device_count() > 0
    assert torch.rdna.get_device_properties().spec.startswith(("vulkan", "hip"))


@pytest.mark.parametrize("kind", ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float64", "complex64"))
def test_copies_convert(rdna, kind):
    torch = rdna
    kind = getattr(torch, kind)
    host = torch.tensor([[-2.7, 0.0, 1.5], [3.0, 100.0, -1.0]])
    expected = host.to(kind)
    assert torch.equal(host.to("rdna").to(kind).cpu(), expected)
    there = expected.to("rdna")
    assert torch.equal(there.cpu(), expected)
    assert torch.equal(there.t()[1:].contiguous().cpu(), expected.t()[1:])


def test_views_share_memory(rdna):
    torch = rdna
    host = torch.arange(24.0).reshape(2, 3, 4)
    there = host.to("rdna")
    for x in (host, there):
        x.permute(2, 0, 1)[1:3, :, ::2] = 7
        x[:, 1].fill_(5)
        x.view(-1).as_strided((2, 2), (5, 1), 3).zero_()
        x[0].t().copy_(x[1].clone().t())
    assert torch.equal(there.cpu(), host)
    assert torch.equal(there[1, 1:, 2:].cpu(), host[1, 1:, 2:])  # begins behind the start of its memory


def test_lazy_conjugates(rdna):
    torch = rdna
    host = torch.randn(3, 4, dtype=torch.complex64)
    there = host.to("rdna")
    assert torch.equal(there.conj().cpu(), host.conj())
    assert torch.equal(there.t().conj().contiguous().cpu(), host.t().conj())
    assert torch.equal(there.conj().imag.cpu(), host.conj().imag)


def test_memory_is_counted_and_used_again(measured):
    torch = measured
    torch.rdna.empty_cache()
    before = torch.rdna.memory_allocated()
    for _ in range(50):
        x = torch.empty(1 << 18, device="rdna")
        assert torch.rdna.memory_allocated() == before + (1 << 20)
        address = x.data_ptr()
        del x
    assert torch.empty(1 << 18, device="rdna").data_ptr() == address
    assert torch.rdna.max_memory_allocated() >= before + (1 << 20)
    assert "tensors hold" in torch.rdna.memory_summary()


def test_out_of_memory_says_what_holds_it(rdna):
    torch = rdna
    held = torch.zeros(1 << 20, device="rdna")
    with pytest.raises(torch.OutOfMemoryError, match=r"out of memory.*tensors hold"):
        torch.empty(1 << 50, dtype=torch.uint8, device="rdna")
    assert held.cpu().sum() == 0  # and goes on


def test_streams_and_events(rdna):
    torch = rdna
    x = torch.arange(1000.0).to("rdna")
    stream, start, end = torch.rdna.Stream(), torch.rdna.Event(enable_timing=True), torch.rdna.Event(enable_timing=True)
    stream.wait_stream(torch.rdna.current_stream())
    with torch.rdna.stream(stream):
        start.record()
        y = x.clone()
        end.record()
    torch.rdna.current_stream().wait_event(end)
    assert torch.equal(y.cpu(), x.cpu())
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0


def test_generators(rdna):
    torch = rdna
    torch.manual_seed(3)
    a, b = torch.rand(100, device="rdna"), torch.rand(100, device="rdna")
    torch.rdna.manual_seed(3)
    assert torch.equal(torch.rand(100, device="rdna").cpu(), a.cpu())
    assert not torch.equal(a.cpu(), b.cpu())
    generator = torch.Generator("rdna").manual_seed(5)
    state = generator.get_state()
    first = torch.randn(4000, device="rdna", generator=generator).cpu()
    generator.set_state(state)
    assert torch.equal(torch.randn(4000, device="rdna", generator=generator).cpu(), first)
    assert abs(first.mean()) < 0.1 and abs(first.std() - 1) < 0.1
    # Both parts of a complex number have half of the variance.
    parts = torch.view_as_real(torch.randn(4000, dtype=torch.complex64, device="rdna")).cpu()
    assert (parts.mean(0).abs() < 0.1).all() and (parts.var(0) - 0.5).abs().max() < 0.1
    assert not torch.rdna.fallbacks()


def test_pinned_memory(rdna):
    torch = rdna
    x = torch.arange(12.0).to("rdna")
    pinned = torch.empty(12).pin_memory()
    assert pinned.is_pinned() and not torch.empty(12).is_pinned()
    pinned.copy_(x, non_blocking=True)
    torch.rdna.synchronize()
    assert torch.equal(pinned, x.cpu())


def test_files_and_copies_of_objects(rdna):
    torch = rdna
    x = torch.arange(12.0).reshape(3, 4).to("rdna")
    file = io.BytesIO()
    torch.save({"x": x, "view": x.t()}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded["view"].device == x.device and loaded["view"].stride() == (1, 4)
    file.seek(0)
    assert torch.equal(torch.load(file, map_location="cpu")["x"], x.cpu())
    assert copy.deepcopy(x).device == x.device
    assert next(torch.nn.Linear(2, 2).rdna().parameters()).device.type == "rdna"


def test_fallback_is_counted_and_forbidden(rdna):
    torch = rdna
    x = torch.eye(3).to("rdna")
    with pytest.raises(NotImplementedError, match="forbid_fallback"):
        torch.linalg.qr(x)
    torch.rdna.forbid_fallback(False)
    torch.linalg.qr(x)
    assert any("qr" in name for name in torch.rdna.fallbacks())


@pytest.mark.parametrize("layout", ("sparse_coo", "sparse_csr", "sparse_bsc"))
def test_sparse_tensors(rdna, layout):
    """Sparse tensors lie on the device with their parts; operators on them run on the CPU, counted, or are errors where that is forbidden."""
    torch = rdna
    dense = torch.tensor([[0, 2.0, 0, 1], [3, 0, 4, 0]])
    host = dense.to_sparse(layout=getattr(torch, layout), blocksize=(1, 2) if "bs" in layout else None)
    x = host.to("rdna")
    assert x.device.type == "rdna" and x.layout == host.layout and x.values().device == x.device
    places = "indices" if layout == "sparse_coo" else "row_indices" if layout == "sparse_bsc" else "col_indices"
    assert torch.equal(getattr(x, places)().cpu(), getattr(host, places)()) and torch.equal(x.clone().cpu().to_dense(), dense)
    assert not torch.rdna.fallbacks()
    with pytest.raises(NotImplementedError, match="forbid_fallback"):
        x.to_dense()
    torch.rdna.forbid_fallback(False)
    assert torch.equal(x.to_dense().cpu(), dense) and torch.equal(dense.to("rdna").to_sparse(layout=host.layout, blocksize=(1, 2) if "bs" in layout else None).cpu().to_dense(), dense)
    if layout != "sparse_bsc":  # the CPU has no such kernels for blocks
        y = torch.arange(12.0).reshape(4, 3)
        assert torch.equal((x @ y.to("rdna")).cpu(), dense @ y)
        result = x.mul_(2.0)
        assert result is x and torch.equal(x.cpu().to_dense(), 2 * dense)
    assert "aten::_to_dense" in torch.rdna.fallbacks()


def test_sparse_gradients(rdna):
    """Gradients of an embedding are its rows, and SparseAdam moves these rows alone, as on the CPU."""
    torch = rdna
    torch.rdna.forbid_fallback(False)
    torch.manual_seed(0)
    host = torch.nn.Embedding(6, 3, sparse=True)
    weights = []
    for table in (host, copy.deepcopy(host).to("rdna")):
        optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        table(torch.tensor([1, 4, 1], device=table.weight.device)).square().sum().backward()
        assert table.weight.grad.layout == torch.sparse_coo and table.weight.grad.device == table.weight.device
        optimizer.step()
        weights.append(table.weight.detach().cpu())
    torch.testing.assert_close(weights[1], weights[0])


@pytest.mark.parametrize("variable", ("1", "0", None))
def test_autoload(rdna, alone, variable):
    """torch alone knows the device where a variable asks for it, and greta is not imported otherwise."""
    program = "import sys, torch; print('greta' in sys.modules, torch.device('rdna').type if 'greta' in sys.modules else '')"
    assert alone(program, timeout=120, GRETA_TORCH_AUTOLOAD=variable).split() == (["True", "rdna"] if variable == "1" else ["False"])


def test_the_driver_of_triton_comes_back(rdna):
    """Who has used greta.triton on arrays leaves torch's kernels their driver."""
    import greta

    greta.triton.activate("vulkan")
    greta.triton.deactivate()
    x = rdna.arange(6.0).reshape(2, 3)
    assert rdna.equal((x.to("rdna") @ x.t().to("rdna")).cpu(), x @ x.t())


BEFORE_A_BACKWARD = """
import greta.torch, torch
torch.ones(2, requires_grad=True).clone().backward(torch.ones(2))
"""
DURING_A_BACKWARD = """
import threading, torch
begun, imported = threading.Event(), threading.Event()
class Waits(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()
    @staticmethod
    def backward(context, grad):
        begun.set()
        imported.wait()
        return grad
thread = threading.Thread(target=lambda: Waits.apply(torch.ones(2, requires_grad=True)).backward(torch.ones(2)))
thread.start()
begun.wait()
import greta.torch
imported.set()
thread.join()
"""


@pytest.mark.parametrize("program", (BEFORE_A_BACKWARD, DURING_A_BACKWARD), ids=("before_a_backward", "during"))
def test_backward_whenever_the_device_was_made(rdna, alone, program):
    """torch starts the threads of autograd at the first backward of a process, with the devices that there are then."""
    program += "x = torch.ones(2, device='rdna', requires_grad=True)\nx.clone().backward(torch.full((2,), 3.0, device='rdna'))\nprint(x.grad.tolist())"
    assert alone(program) == "[3.0, 3.0]\n"


def test_a_forked_process_may_not_use_the_device(rdna):
    torch = rdna
    torch.ones(1, device="rdna")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # rather than hang
        try:
            torch.empty(1, device="rdna")
            os.write(writing, b"nothing")
        except RuntimeError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0 if torch.rdna._is_in_bad_fork() else 1)
    os.close(writing)
    with os.fdopen(reading) as said:
        assert "use the start method 'spawn'" in said.read()
    assert os.waitpid(child, 0)[1] == 0
    assert not torch.rdna._is_in_bad_fork()
    with torch.rdna.stream(None):
        assert torch.empty(0, device="rdna").view(0, 3).clone().shape == (0, 3)


def test_profiles_have_the_time_of_the_device(rdna):
    torch = rdna
    x = torch.zeros(1 << 21, device="rdna")
    with torch.autograd.profiler.profile(use_device="rdna", use_kineto=False) as profile:
        x.clone()
    times = {row.key: row.device_time_total for row in profile.key_averages()}
    assert times["aten::clone"] >= times["aten::copy_"] > 0


def test_kernels_of_a_profile(recording, tmp_path):
    """torch.profiler.profile has each kernel with the device's time, at the operator that launched it, and in the trace that it writes."""
    torch = recording  # which an older torch that lacks it does not profile either
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.PrivateUse1]
    x, w = torch.ones(256, 512, device="rdna"), torch.ones(512, 128, device="rdna")
    for _ in range(2):  # the second product is launched by the plan of the first, and a session sees nothing of the one before
        with torch.profiler.profile(activities=activities) as profile:
            y = x @ w
        assert y.sum().item() == 256 * 512 * 128
        rows = {row.key: row for row in profile.key_averages()}
        assert rows["product"].count == 1 and rows["product"].self_cpu_time_total == 0
        assert rows["aten::mm"].self_device_time_total == rows["product"].self_device_time_total > 0
    graph = torch.accelerator.Graph()
    with torch.profiler.profile(activities=activities) as recording, graph:
        x @ w
    assert "product" not in {row.key for row in recording.key_averages()}  # a graph takes no events
    profile.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kernel = next(one for one in events if one.get("name") == "product")
    operator = next(one for one in events if one.get("name") == "aten::mm")
    assert kernel["cat"] == "kernel" and 0 < kernel["ts"] - operator["ts"] < 1e7 and kernel["dur"] > 0  # microseconds of one clock


def test_dlpack(rdna):
    """Both ways without a copy: among torch's tensors, and with GRETA's arrays. NumPy gets a copy of what the host does not reach."""
    import greta
    import greta.torch
    import numpy as np

    torch = rdna
    x = torch.arange(6.0).to("rdna")
    assert x.__dlpack_device__() == (12, 0)
    assert torch.from_dlpack(x).data_ptr() == torch.from_dlpack(x.__dlpack__()).data_ptr() == x.data_ptr()
    for one in (x[1:].view(5, 1), x.view(2, 3).t()):
        assert (np.from_dlpack(one, device="cpu") == one.cpu().numpy()).all()
    other = greta.from_dlpack(x[2:], device="vulkan")
    x.fill_(7)
    torch.rdna.synchronize()
    del x
    torch.zeros(6, device="rdna").cpu()  # takes no memory that others hold
    assert other.numpy().tolist() == [7, 7, 7, 7]

    array = greta.asarray(np.arange(6, dtype=np.int32), device="vulkan")
    for one in (array, array[2:]):
        there = greta.torch.from_dlpack(one)
        assert there.device.type == "rdna" and there.tolist() == one.numpy().tolist()
        there[:1].fill_(9)
        torch.rdna.synchronize()
    assert array.numpy().tolist() == [9, 1, 9, 3, 4, 5]
    back = greta.from_dlpack(there, device="vulkan")
    assert back.numpy().tolist() == [9, 3, 4, 5] and greta.asarray(there, device="vulkan").dtype == np.int32


def test_dlpack_says_what_it_cannot_express(rdna):
    import greta.torch

    torch = rdna
    x = torch.zeros(2, 3, device="rdna")
    with pytest.raises(BufferError, match=r"rdna:0 is DLPack's device \d+:0; its memory cannot be given as 2:0"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="only contiguous tensors"):
        x.t().__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="use tensor.detach"):
        x.clone().requires_grad_().__dlpack__(dl_device=(1, 0))
    with pytest.raises(BufferError, match="not of ComplexFloat"):
        torch.zeros(2, dtype=torch.complex64, device="rdna").__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="no tensor of rdna has DLPack's type 1 of 32 bits"):
        greta.torch.from_dlpack(torch.zeros(2, dtype=torch.uint32))
    with pytest.raises(BufferError, match="rdna:0 cannot use this memory as it lies.*stride"):
        greta.torch.from_dlpack(torch.zeros(2, 3).t())
    assert torch.rdna.default_stream().stream_id == 0


def test_another_torch_is_told(rdna, monkeypatch):
    """Inductor of a version that nobody looked at: a warning when it is imported, and torch.compile for rdna is an error."""
    torch = rdna
    from greta.torch import _inductor
    from torch._inductor import compile_fx
    from torch._inductor.codegen import common

    common.init_backend_registration()
    for registered in (common.device_op_overrides_dict, common.device_codegens):
        monkeypatch.setitem(registered, "rdna", registered["rdna"])
    for name in ("Scheduling", "PythonWrapperCodegen", "CppWrapperCodegen", "WrapperFxCodegen"):
        monkeypatch.setattr(torch.rdna, name, None, raising=False)
    monkeypatch.setattr(torch, "__version__", "2.99.1")
    with pytest.warns(UserWarning, match=r"torch.compile on rdna was written for torch 2\.11 and 2\.13; this is 2\.99\.1, so operators"):
        _inductor._register_code_generation(compile_fx)
    with pytest.raises(Exception, match=r"torch.compile on rdna was written for torch 2\.11 and 2\.13; this is 2\.99\.1"):
        torch.compile(lambda x: x.sin() * 99)(torch.ones(3, device="rdna"))


def test_another_kind_of_gpu(rdna, monkeypatch):
    """CUDA in the same process: Inductor, which takes one kind of GPU for granted, compiles for rdna."""
    from torch._inductor import utils
    from torch._inductor.fx_passes import joint_graph, post_grad

    monkeypatch.setattr(rdna.cuda, "is_available", lambda: True)
    assert {module.get_gpu_type() for module in (utils, post_grad, joint_graph)} == {"rdna"}


def test_advice(monkeypatch, capsys):
    """What is missing is said with what to do, also where torch is (test_run.py: greta-run says the same)."""
    from greta import diagnose

    found = [
        {"spec": "hip", "available": False, "reason": "libamdhip64.so: cannot open shared object file"},
        {"spec": "vulkan:0", "available": False, "reason": "denied by GRETA_VULKAN_DENY"},
        {"spec": "sim:<gfx>", "available": False, "reason": "libgreta_hip_sim.so: cannot open shared object file"},
    ]
    monkeypatch.setattr(diagnose, "_probed", lambda: tuple(found))
    monkeypatch.setitem(sys.modules, "torch", None)
    assert diagnose.main(()) == 0
    said = capsys.readouterr().out
    assert "\n-> vulkan:0: unset GRETA_VULKAN_DENY to use it\n-> sim:<gfx>: install libgreta_hip_sim.so beside the runtime, or name it in GRETA_HIP_SIM\n" in said
    assert "\n-> hip: " in said and "\n-> torch: install torch, and then greta again, for it\n" in said


def test_diagnosis(rdna, capsys, monkeypatch):
    from greta import diagnose

    assert diagnose.main(("float32", "int32")) == 0
    said = capsys.readouterr().out
    assert all(f"\n-> {one}\n" in said for one in diagnose.advice())
    assert f"torch {rdna.__version__.split('+')[0]}" in said and "vulkan:0" in said and "simulated gfx" in said
    assert "  float32   right\n  int32     right\n" in said and "on the CPU ran" not in said
    monkeypatch.setattr(rdna, "equal", lambda one, other: False)
    assert diagnose.main(("float32",)) == 1
    assert "float32   wrong: sum and product" in capsys.readouterr().out
