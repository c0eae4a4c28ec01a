"""Triton's kernels through the plugin and through greta.jit: what may be passed, what comes back, what is refused."""

import os
import subprocess
import sys

import numpy as np
import pytest

import greta

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402
from triton.language.extra import libdevice  # noqa: E402

import greta.language as gl  # noqa: E402


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@greta.jit
def scale(x, out, factor, n, BLOCK: gl.constexpr):
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK)
    gl.store(out + i, gl.load(x + i, mask=i < n) * factor, mask=i < n)


@triton.jit
def bits(x, out, wide, narrow, flag, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i) + wide + narrow
    tl.store(out + i, tl.where(flag, v, -v))


@pytest.fixture
def vulkan():
    greta.triton.activate("vulkan")
    yield
    greta.triton.deactivate()


def run(x, y, out, n=None, kernel=add):
    n = len(out) if n is None else n
    kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=256)


def test_torch_tensors(triton_device):
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.int8, torch.uint8):
        x, y = (torch.randn(300) * 8).to(dtype), (torch.randn(300) * 8).to(dtype)
        out = torch.zeros_like(x)
        run(x, y, out)
        torch.testing.assert_close(out, x + y, rtol=0, atol=0)


def test_numpy_arrays(triton_device):
    x, y = np.arange(300, dtype=np.float32), np.ones(300, np.float32)
    out = np.zeros(300, np.float32)
    run(x, y, out)
    assert (out == x + 1).all()


def test_greta_arrays(triton_device):
    x, y, out = greta.asarray(np.arange(300.0), "f32"), greta.asarray(np.ones(300), "f32"), greta.empty(300)
    run(x, y, out)
    run(out, y, out)
    assert (out.numpy() == np.arange(300) + 2).all()


@pytest.mark.parametrize("device", ["sim:gfx942", "vulkan"])
def test_launches_say_that_tensors_are_small(device):
    """Offsets have 32 bits then."""
    greta.triton.activate(device)
    try:
        x = torch.ones(300)
        kernel = add[(2,)](x, x, torch.zeros(300), 300, BLOCK=256)
        assert "tt.pointer_range" in kernel.asm["ttir"]
        assert kernel.n_regs >= 1 and kernel.n_spills == 0  # also where the driver does not say; kernels divide by registers
        wide = greta.triton.compiler._reach(torch.empty(1, device="meta").as_strided((1 << 30,), (1,)))
        assert wide == 4
        assert greta.triton.compiler._reach(greta.triton.launch.as_pointer(np.zeros(300, np.float32)[:100])) == 1200
        for middle in (x[100:], greta.triton.launch.as_pointer(np.zeros(300, np.float32)[::-1]), greta.asarray(np.zeros(300, np.float32))[100:]):
            assert greta.triton.compiler._reach(middle) >= 1 << 31
        assert greta.triton.compiler._reach(object()) >= 1 << 31
    finally:
        greta.triton.deactivate()


def test_mixed_and_dlpack(vulkan):
    class OnlyDlpack:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    out = torch.zeros(50)
    run(OnlyDlpack(np.arange(50, dtype=np.float32)), greta.asarray(np.ones(50), "f32"), out)
    assert (out.numpy() == np.arange(50) + 1).all()


def test_views_share_a_buffer(triton_device):
    base = torch.arange(400, dtype=torch.float32)
    run(base[:100], base[100:200], base[200:300])
    assert (base[200:300] == torch.arange(100) + torch.arange(100, 200)).all()
    assert (base[:200] == torch.arange(200)).all() and (base[300:] == torch.arange(300, 400)).all()
    run(base[1:], base[303:], base[1:], 90)  # at no multiple of 16 bytes, in place
    assert base[1] == 1 + 303 and base[0] == 0 and base[303] == 303
    array = np.arange(64, dtype=np.float32)
    run(array[::1][32:], array[:32], array[32:])
    assert (array[32:] == np.arange(32, 64) + np.arange(32)).all()
    one = torch.arange(10, dtype=torch.float32)
    run(one, one, one)
    assert (one == 2 * torch.arange(10)).all()


def test_a_wrapper_that_does_not_say_where_it_begins(triton_device):
    """As flag-gems' buffers: the memory of a tensor at a place of their own."""

    class Buffer:
        def __init__(self, base, first):
            self.base_, self.first, self.dtype = base, first, base.dtype

        def data_ptr(self):
            return self.base_.data_ptr() + self.first * self.base_.element_size()

        def untyped_storage(self):
            return self.base_.untyped_storage()

    base = torch.arange(300, dtype=torch.float32)
    run(Buffer(base, 0), Buffer(base, 100), Buffer(base, 200), 100)
    assert (base[200:] == torch.arange(100) + torch.arange(100, 200)).all() and (base[:200] == torch.arange(200)).all()


def test_only_what_is_written_comes_back(vulkan):
    x = np.arange(64, dtype=np.float32)
    x.flags.writeable = False
    out = np.zeros(64, np.float32)
    run(x, x, out)
    assert (out == 2 * x).all()
    with pytest.raises(ValueError, match="argument 'out' is read-only, and the kernel writes to it"):
        run(out, out, x)


def test_scalars(triton_device):
    x = torch.arange(16, dtype=torch.int64)
    out = torch.zeros(16, dtype=torch.int64)
    bits[1,](x, out, 1 << 40, -5, True, BLOCK=16)
    assert (out == x + (1 << 40) - 5).all()
    bits[1,](x, out, np.int64(7), np.int32(3), False, BLOCK=16)
    assert (out == -(x + 10)).all()


def test_greta_jit_leaves_triton_alone():
    greta.set_device("vulkan")
    x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    before = triton.runtime.driver._active if hasattr(triton.runtime.driver, "_active") else None
    kernel = scale[(1,)](x, out, 2.5, 100, BLOCK=128)
    assert (out == 2.5 * x).all()
    assert "tt.func" in kernel.asm["ttir"] and (getattr(triton.runtime.driver, "_active", None) is before)
    greta.set_device("sim:gfx942")
    scale[(1,)](x, out, 0.5, 100, BLOCK=128)
    assert (out == 0.5 * x).all()


def test_language_is_tritons():
    assert gl is tl and greta.language is tl


def test_grid_of_nothing_and_of_three_axes(vulkan):
    @triton.jit
    def where(out):
        x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
        tl.store(out + (z * tl.num_programs(1) + y) * tl.num_programs(0) + x, x + 10 * y + 100 * z)

    out = torch.full((24,), -1, dtype=torch.int32)
    where[(0,)](out)
    assert (out == -1).all()
    where[(2, 3, 4)](out)
    assert out.tolist() == [x + 10 * y + 100 * z for z in range(4) for y in range(3) for x in range(2)]


def test_autotune_and_heuristics():
    chosen = []

    @greta.autotune([greta.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((64, 1), (128, 2), (1 << 17, 4))], key=["n"])
    @greta.heuristics({"EVEN": lambda a: a["n"] % a["BLOCK"] == 0})
    @greta.jit
    def twice(x, out, n, BLOCK: gl.constexpr, EVEN: gl.constexpr):
        i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK)
        if EVEN:
            gl.store(out + i, gl.load(x + i) * 2)
        else:
            gl.store(out + i, gl.load(x + i, mask=i < n) * 2, mask=i < n)

    def grid(meta):
        chosen.append(meta["BLOCK"])
        return (triton.cdiv(meta["n"], meta["BLOCK"]),)

    greta.set_device("vulkan")
    x, out = greta.asarray(np.arange(1000.0), "f32"), greta.empty(1000)
    twice[grid](x, out, 1000)
    assert (out.numpy() == 2 * np.arange(1000)).all() and twice.best_config.kwargs["BLOCK"] in (64, 128)
    assert {64, 128} <= set(chosen)


def test_autotuning_shows_how_far_it_is(vulkan, monkeypatch):
    bars = []

    class Bar:
        def __init__(self, total, desc, **_):
            self.total, self.desc, self.n, self.closed = total, desc, 0, False
            bars.append(self)

        def update(self):
            self.n += 1

        def close(self):
            self.closed = True

    monkeypatch.setattr("tqdm.tqdm", Bar)

    @greta.autotune([greta.Config({"BLOCK": block}) for block in (32, 64, 128)], key=["n"])
    @greta.jit
    def fill(out, n, BLOCK: gl.constexpr):
        i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK)
        gl.store(out + i, 1.0, mask=i < n)

    out = greta.empty(100)
    fill[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](out, 100)
    assert (out.numpy() == 1).all() and [(bar.total, bar.n, bar.closed, bar.desc) for bar in bars] == [(3, 3, True, "autotuning fill")]


def test_tritons_autotuner(vulkan):
    @triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 256})], key=["n"])
    @triton.jit
    def tuned(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) - tl.load(y + i, mask=i < n), mask=i < n)

    x, y, out = torch.rand(500), torch.rand(500), torch.zeros(500)
    tuned[lambda meta: (triton.cdiv(500, meta["BLOCK"]),)](x, y, out, 500)
    torch.testing.assert_close(out, x - y, rtol=0, atol=0)


def test_descriptors_and_tuples_of_the_host(triton_device):
    from triton.tools.tensor_descriptor import TensorDescriptor

    @triton.jit
    def move(to, of, shift):
        tile = of.load([tl.program_id(0) * 16, 0])
        to.store([tl.program_id(0) * 16, 0], tile * shift[0] + shift[1])

    x, out = torch.randn(40, 16), torch.zeros(40, 16)
    move[(3,)](TensorDescriptor.from_tensor(out, [16, 16]), TensorDescriptor.from_tensor(x, [16, 16]), (2.0, 1.0))
    torch.testing.assert_close(out, 2 * x + 1)


def test_wrong_arguments(vulkan):
    with pytest.raises(ValueError, match="argument 'x' lies on sim:gfx942, the kernel runs on another device"):
        greta.set_device("sim:gfx942")
        there = greta.asarray(np.ones(8), "f32")
        greta.set_device("vulkan")
        run(there, there, there)
    del there
    with pytest.raises(ValueError, match="argument 'x' is a torch tensor on 'meta'"):
        run(torch.empty(8, device="meta"), torch.ones(8), torch.ones(8))
    with pytest.raises(KeyError, match="nonsense"):
        add[(1,)](torch.ones(8), torch.ones(8), torch.ones(8), 8, BLOCK=8, nonsense=3)
    with pytest.raises(AssertionError, match="num_warps is 3; it must be a power of 2"):
        add[(1,)](torch.ones(8), torch.ones(8), torch.ones(8), 8, BLOCK=8, num_warps=3)
    with pytest.raises(greta.Error, match="Triton's kernels run on GPUs, .* not on the device 'host'"):
        greta.set_device("host")
        run(torch.ones(8), torch.ones(8), torch.ones(8))


def test_compile_errors_show_the_users_line(vulkan):
    @triton.jit
    def assembly(x):
        v = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(x + tl.arange(0, 16))], tl.int32, True, 1)
        tl.store(x + tl.arange(0, 16), v)

    with pytest.raises(greta.Error) as error:
        assembly[(1,)](torch.zeros(16, dtype=torch.int32))
    text = str(error.value)
    assert f"{os.path.basename(__file__)}:" in text and "is assembly of another vendor's GPU" in text
    assert 'tl.inline_asm_elementwise("mov.b32' in text and "^" in text


def test_unknown_version_of_triton(monkeypatch):
    monkeypatch.setattr(triton, "__version__", "3.10.1")
    greta.triton.check_version.cache_clear()
    with pytest.raises(greta.Error, match="Triton 3.10.1 is not supported: its IR may differ from that of 3.6 to 3.9"):
        greta.triton.activate("vulkan")
    monkeypatch.undo()
    greta.triton.check_version.cache_clear()
    greta.triton.check_version()


def test_active_by_the_environment(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import torch, triton, triton.language as tl
@triton.jit
def double(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
x = torch.arange(10.)
double[1,](x, 10, B=256)
print(x.sum().item(), triton.runtime.driver.active.get_current_device())
""")
    environment = os.environ | {"GRETA_TRITON": "1", "GRETA_DEVICE": "sim:gfx1201", "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):  # compiled, then from Triton's cache
        ran = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True)
        assert ran.stdout.split() == ["90.0", "sim:gfx1201"], ran.stderr
    assert len(list((tmp_path / "cache").rglob("*.greta"))) == 1


BESSEL = {"j0": "bessel_j0", "j1": "bessel_j1", "y0": "bessel_y0", "y1": "bessel_y1", "cyl_bessel_i0": "i0", "cyl_bessel_i1": "i1"}


@pytest.mark.parametrize("name", BESSEL)
def test_bessel_functions(name, triton_device):
    @triton.jit
    def kernel(x, out, NAME: tl.constexpr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, getattr(libdevice, NAME)(tl.load(x + i)))

    x = torch.linspace(-12, 12, 256)
    x[0] = 0
    out = torch.empty_like(x)
    kernel[(1,)](x, out, NAME=name, BLOCK=256)
    expected = getattr(torch.special, BESSEL[name])(x.double()).float()
    torch.testing.assert_close(out.isnan(), expected.isnan())
    assert torch.equal(out[expected.isinf()], expected[expected.isinf()])
    error = (out - expected).abs() / expected.abs().clamp(min=1)
    assert error.nan_to_num().max() < 2e-6


def test_poll(triton_device):
    @triton.jit
    def kernel(flag, out):
        tl.store(out, tl.atomic_poll(flag, 7))

    if not hasattr(tl, "atomic_poll"):
        pytest.skip("newer than this Triton")
    out = torch.zeros(1, dtype=torch.int8)
    kernel[(3,)](torch.full((1,), 7, dtype=torch.int32), out)
    assert out.item() == 1


@triton.jit
def follow(addresses, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    source = tl.load(addresses + row).to(tl.pointer_type(tl.float32))
    tl.store(out + row * BLOCK + i, tl.load(source + i))


def test_addresses_in_memory(triton_device):
    """Pointers to pointers: of GRETA's arrays."""
    rows = [greta.asarray(np.arange(64, dtype=np.float32) + 100 * row) for row in range(3)]
    out = torch.zeros(3, 64)
    follow[(3,)](torch.tensor([row.data_ptr() for row in rows]), out, BLOCK=64)
    np.testing.assert_array_equal(out.numpy(), np.stack([greta.to_numpy(row) for row in rows]))


def test_addresses_of_the_host_are_an_error(triton_device):
    x, out = torch.ones(64), torch.zeros(2, 64)
    array = greta.asarray(np.ones(64, np.float32))
    with pytest.raises(ValueError, match="argument 'addresses' has at element 1 an address of the host's memory"):
        follow[(2,)](torch.tensor([array.data_ptr(), x.data_ptr()]), out, BLOCK=64)
    # Other numbers may lie among them: these are not followed.
    follow[(1,)](torch.tensor([array.data_ptr(), 7, 0]), out, BLOCK=64)
    assert torch.equal(out[0], x)
