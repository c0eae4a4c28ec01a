"""Softmax, its logarithm and norms of rows, which are packages; what has none, and what is computed with them."""

import itertools

import pytest

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use

TOLERANCES = {"float32": 2e-6, "float16": 1e-3, "bfloat16": 8e-3}  # one rounding to the type, of results up to some units
# Functions of rows x, a weight and a bias; norms return the statistics, too, that gradients read.
OPERATORS = {
    "softmax": lambda torch, x, w, b: (torch.softmax(x, -1),),
    "softmax in f32": lambda torch, x, w, b: (torch.softmax(x, -1, dtype=torch.promote_types(x.dtype, torch.float32)),),
    "log_softmax": lambda torch, x, w, b: (torch.log_softmax(x, -1),),
    "layer_norm": lambda torch, x, w, b: torch.native_layer_norm(x, x.shape[-1:], w, b, 1e-5),
    "layer_norm with a weight": lambda torch, x, w, b: torch.native_layer_norm(x, x.shape[-1:], w, None, 0.5),
    "layer_norm with a bias": lambda torch, x, w, b: torch.native_layer_norm(x, x.shape[-1:], None, b, 1e-5),
    "layer_norm of two dims": lambda torch, x, w, b: torch.native_layer_norm(x, x.shape[-2:], None, None, 1e-5),
    "rms_norm": lambda torch, x, w, b: torch._fused_rms_norm(x, x.shape[-1:], w, 1e-5),
    "greta::rms_norm": lambda torch, x, w, b: (torch.ops.greta.rms_norm(x, w, 1e-5),),
    "rms_norm without a weight": lambda torch, x, w, b: (torch.nn.functional.rms_norm(x, x.shape[-1:], None, 2.0**-23),),
}


def made(packages):
    return packages._compiled.cache_info().currsize


def compare(torch, got, expected, tolerance):
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one.cpu().double(), other.double().view(one.shape), rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.fixture
def packages(rdna, monkeypatch):
    """The module of packages, in which no length is known."""
    from greta import _torch
    from greta.torch import _row_packages

    monkeypatch.setattr(_row_packages, "_lengths", {})
    _row_packages._compiled.cache_clear()
    _torch.forget_call_plans()
    return _row_packages


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", OPERATORS)
def test_rows(rdna, packages, name, dtype):
    """Of odd lengths, the longer of which goes through a loop; any numbers of rows share a package, and calls are launched again."""
    torch = rdna
    generator = torch.Generator().manual_seed(0)
    for shape in ((3, 5, 7), (2, 1, 4099)):
        before = made(packages)
        for rows, _ in itertools.product((shape[0], shape[0] + 2), range(3)):
            x, w, b = (torch.randn(one, generator=generator).to(getattr(torch, dtype)) for one in ((rows, *shape[1:]), shape[-1:], shape[-1:]))
            got = OPERATORS[name](torch, *(one.to("rdna") for one in (x, w, b)))
            wide = "in f32" in name
            assert got[0].dtype == (torch.float32 if wide else x.dtype) and all(one.dtype == torch.float32 for one in got[1:])
            compare(torch, got, OPERATORS[name](torch, x.double(), w.double(), b.double()), TOLERANCES["float32" if wide else dtype])
        assert made(packages) == before + 1


def test_numbers_that_are_none(rdna, packages):
    """Infinities and NaN are where the CPU has them."""
    torch = rdna
    rows = torch.randn(6, 13)
    for row, (place, value) in enumerate(((3, torch.inf), (0, -torch.inf), (12, torch.nan), (slice(None), -torch.inf), (slice(None), torch.inf))):
        rows[row, place] = value
    for name in ("softmax", "log_softmax", "layer_norm", "rms_norm without a weight"):
        w, b = torch.ones(13), torch.zeros(13)
        compare(torch, OPERATORS[name](torch, *(one.to("rdna") for one in (rows, w, b)))[:1], OPERATORS[name](torch, rows, w, b)[:1], 1e-5)


def test_what_has_no_package(rdna, packages, monkeypatch):
    """Other dims, layouts and types, lengths beyond the first few and beyond the greatest are right as well; empty tensors need no kernel."""
    torch = rdna
    x = torch.randn(6, 10)
    there = x.to("rdna")
    weight = torch.randn(6)
    for one, other in (
        (torch.softmax(there, 0), torch.softmax(x, 0)),
        (torch.log_softmax(there.t(), -1), torch.log_softmax(x.t(), -1)),
        (torch.softmax(there.view(-1)[1:56].view(5, 11), 1), torch.softmax(x.view(-1)[1:56].view(5, 11), 1)),  # from no multiple of 16 bytes on
        (torch.softmax(there.double(), 1), torch.softmax(x.double(), 1)),
        (torch.nn.functional.layer_norm(there.t(), (6,), weight.to("rdna")), torch.nn.functional.layer_norm(x.t(), (6,), weight)),
        (torch.nn.functional.rms_norm(there.t(), (6,), weight.to("rdna")), torch.nn.functional.rms_norm(x.t(), (6,), weight)),
        (torch.nn.functional.layer_norm(there.double(), (10,)), torch.nn.functional.layer_norm(x.double(), (10,))),
        (torch.softmax(there[:0], 1), torch.softmax(x[:0], 1)),
        (torch.log_softmax(there[:, :0], 1), torch.log_softmax(x[:, :0], 1)),
        (torch.nn.functional.layer_norm(there[:0], (10,)), torch.nn.functional.layer_norm(x[:0], (10,))),
        (torch.softmax(there[0, 0], 0), torch.softmax(x[0, 0], 0)),
    ):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-5, atol=1e-6)
    assert made(packages) == 0
    out = there.clone()
    torch.softmax(out, 1, out=out)
    torch.testing.assert_close(out.cpu(), torch.softmax(x, 1))
    assert made(packages) == 0
    monkeypatch.setattr(packages, "MOST_LENGTHS", 2)
    monkeypatch.setattr(packages, "MOST_LENGTH", 9)
    for length in (10, 9, 8, 7, 9):
        torch.testing.assert_close(torch.softmax(there[:, :length].contiguous(), 1).cpu(), torch.softmax(x[:, :length], 1))
    assert made(packages) == 2


@pytest.mark.parametrize(
    "call",
    (
        lambda F, x: F.layer_norm(x, (5,), x[0, :4]),
        lambda F, x: F.layer_norm(x, (4,)),
        lambda F, x: F.rms_norm(x, (5,), x[0, :1]),
        lambda F, x: F.softmax(x, 2),
    ),
)
def test_what_is_wrong(rdna, call):
    torch = rdna
    x = torch.randn(3, 5)
    said = []
    for device in ("cpu", "rdna"):
        with pytest.raises((RuntimeError, IndexError)) as error:
            call(torch.nn.functional, x.to(device))
        said.append(str(error.value).splitlines()[0])
    assert said[0] == said[1]


def network(torch, device):
    """Layers with what is tested here, from ids to a loss."""
    functional = torch.nn.functional

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words = torch.nn.Embedding(11, 24)
            self.norms = torch.nn.ModuleList((torch.nn.LayerNorm(24), torch.nn.RMSNorm(24)))
            self.linear = torch.nn.Linear(24, 11)

        def forward(self, ids, labels):
            x = self.words(ids)
            x = self.norms[0](x) + torch.softmax(x, -1)
            return functional.cross_entropy(self.linear(self.norms[1](x)), labels, label_smoothing=0.1)

    torch.manual_seed(0)
    return Network().to(device)


@pytest.mark.parametrize("way", ("eager", "compiled", "autocast"))
def test_gradients(rdna, way):
    """A loss and all gradients through these operators beside the CPU's."""
    torch = rdna
    results = []
    for device in ("cpu", "rdna"):
        model = network(torch, device)
        ids, labels = (torch.arange(start, start + 17).remainder(11).to(device) for start in (0, 3))
        labels[2] = -100  # counts for nothing
        run = torch.compile(model) if way == "compiled" and device == "rdna" else model
        for _ in range(3):
            model.zero_grad()
            with torch.autocast(device, dtype=torch.bfloat16, enabled=way == "autocast"):
                loss = run(ids, labels)
            loss.backward()
        results.append([loss.detach(), *(one.grad for one in model.parameters())])
    tolerance = 3e-2 if way == "autocast" else 1e-5
    for one, other in zip(*results, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(other.cpu(), one, rtol=tolerance, atol=tolerance * one.abs().max().item())


def test_numbers_of_narrow_tensors(rdna):
    """A factor beside f16 is f32, as on torch's other GPUs: the nearest number of f16 to this one is 1."""
    torch = rdna
    x, y = torch.full((6,), 2000.0), torch.zeros(6)
    a, b = (one.half().to("rdna") for one in (x, y))
    for one, other in (
        (torch.add(b, a, alpha=1.0004), torch.add(y, x, alpha=1.0004)),
        (torch.sub(b, a, alpha=1.0004), torch.sub(y, x, alpha=1.0004)),
        (torch.addcmul(b, a, b + 1, value=1.0004), torch.addcmul(y, x, y + 1, value=1.0004)),
        (torch.addcdiv(b, a, b + 1, value=1.0004), torch.addcdiv(y, x, y + 1, value=1.0004)),
        (torch.lerp(b, a, 0.10004), torch.lerp(y, x, 0.10004)),
    ):
        torch.testing.assert_close(one.cpu(), other.half(), rtol=0, atol=0)
