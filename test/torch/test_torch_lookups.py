"""Embedding and losses of one class a row: kernels for all sizes; indices that are out of range, and what Inductor computes."""

import pytest

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use

TYPES = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}


@pytest.fixture
def kernels(rdna, monkeypatch):
    """Counts launches of the kernels by name."""
    from greta import _torch
    from greta.torch import _lookups

    counts = dict.fromkeys(("embedding_kernel", "loss_kernel", "loss_gradient_kernel"), 0)

    class Counted:
        def __init__(self, name):
            self.name, self.kernel = name, getattr(_lookups, name)

        def __getitem__(self, grid):
            counts[self.name] += 1
            return self.kernel[grid]

    for name in counts:
        monkeypatch.setattr(_lookups, name, Counted(name))
    _torch.forget_call_plans()
    return counts


@pytest.mark.parametrize("dtype", TYPES)
def test_embedding(rdna, kernels, dtype):
    """Of any shape of indices, i64 and i32; lengths that fill a block, part of one, and several. Gradients are sums at rows."""
    torch = rdna
    generator = torch.Generator().manual_seed(0)
    for rows, length, shape in ((7, 5, (3,)), (40, 64, (2, 3)), (9, 1100, (130,)), (3, 1, ())):
        table = torch.randn(rows, length, generator=generator).to(getattr(torch, dtype))
        indices = torch.randint(rows, shape, generator=generator)
        for kind in (torch.int64, torch.int32):
            got = torch.nn.functional.embedding(indices.to("rdna", kind), table.to("rdna"))
            assert torch.equal(got.cpu(), torch.nn.functional.embedding(indices, table))
        results = []
        for device in ("cpu", "rdna"):
            weight = table.to(device).requires_grad_()
            made = torch.nn.functional.embedding(indices.to(device), weight, padding_idx=1)
            results.append(torch.autograd.grad((made.float() * 0.5).sum(), weight)[0].cpu())
        torch.testing.assert_close(results[1], results[0])
    assert kernels["embedding_kernel"] == 4 * 3
    assert not torch.rdna.fallbacks()


def test_embedding_elsewhere(rdna, kernels):
    """Tables of other types and layouts are Inductor's; empty ones need no kernel."""
    torch = rdna
    table, indices = torch.arange(12.0).reshape(4, 3), torch.tensor([[3, 0], [1, 1]])
    for weight, at in ((table.double(), indices), (table.t(), indices % 3), (table, indices.t()), (table[:, :0], indices), (table, indices[:0])):
        assert torch.equal(torch.nn.functional.embedding(at.to("rdna"), weight.to("rdna")).cpu(), torch.nn.functional.embedding(at, weight))
    assert kernels["embedding_kernel"] == 0


def losses(torch, device, x, target, **options):
    x = x.to(device).requires_grad_()
    options = {name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in options.items()}
    loss = torch.nn.functional.cross_entropy(x, target.to(device), **options)
    grad = torch.autograd.grad((loss.double() * torch.arange(1, loss.numel() + 1, device=device).view(loss.shape)).sum(), x)[0]
    return loss.detach().cpu().double(), grad.cpu().double()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("reduction", ("none", "mean", "sum"))
def test_cross_entropy(rdna, kernels, reduction, dtype):
    """With weights and classes that are ignored, of one row and of more rows and classes than a block has."""
    torch = rdna
    generator = torch.Generator().manual_seed(0)
    for shape in ((5, 7), (4100, 3), (3, 1100), (9,)):
        x = torch.randn(shape, generator=generator).to(getattr(torch, dtype))
        target = torch.randint(shape[-1], shape[:-1], generator=generator)
        weight = torch.rand(shape[-1], generator=generator).to(x.dtype)
        for options in ({}, {"weight": weight}, {"ignore_index": 2}, {"weight": weight, "ignore_index": 0}):
            given = {"reduction": reduction, **options}
            got, expected = losses(torch, "rdna", x, target, **given), losses(torch, "cpu", x.double(), target, **{name: value.double() if isinstance(value, torch.Tensor) else value for name, value in given.items()})
            for one, other in zip(got, expected):
                torch.testing.assert_close(one, other, rtol=8 * TYPES[dtype], atol=8 * TYPES[dtype], equal_nan=True)
    assert kernels["loss_kernel"] == kernels["loss_gradient_kernel"] == 16
    assert not torch.rdna.fallbacks()


def test_cross_entropy_elsewhere(rdna, kernels):
    """Probabilities, smoothing, images, and types that the kernels do not take."""
    torch = rdna
    generator = torch.Generator().manual_seed(0)
    x, target = torch.randn(6, 4, generator=generator), torch.tensor([1, 0, 3, 3, 2, 1])
    for rows, classes, options in (
        (x, torch.softmax(x, 1), {}),
        (x, target, {"label_smoothing": 0.1}),
        (x.double(), target, {}),
        (x.view(2, 4, 3), target.view(2, 3), {}),
        (x[:0], target[:0], {"reduction": "sum"}),
    ):
        for one, other in zip(losses(torch, "rdna", rows, classes, **options), losses(torch, "cpu", rows, classes, **options)):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    assert kernels["loss_kernel"] == 1  # a part of the smoothed loss


@pytest.mark.parametrize("index", (-1, 4, 1 << 40))
def test_indices_out_of_range(rdna, index):
    """An error where the stream is waited for, and once."""
    torch = rdna
    table, right = torch.arange(12.0).reshape(4, 3).to("rdna"), torch.tensor([3], device="rdna")
    wrong = torch.tensor([2, index, 1], device="rdna")
    x = torch.zeros(3, 4, device="rdna")
    for call, message in (
        (lambda: torch.nn.functional.embedding(wrong, table), "index out of range in embedding"),
        (lambda: torch.nn.functional.nll_loss(x, wrong), "class out of range in nll_loss"),
        (lambda: torch.nn.functional.nll_loss(x, wrong, reduction="none"), "class out of range in nll_loss"),
    ):
        for wait in (lambda made: made.cpu(), lambda made: torch.rdna.synchronize(), lambda made: (event := torch.rdna.Event(), event.record(), event.synchronize())):
            for _ in range(3):  # by Python, recorded and launched again
                made = call()
                with pytest.raises(RuntimeError, match=f"device-side assert failed: {message}.*, pid"):
                    wait(made)
                wait(made)
            assert torch.nn.functional.embedding(right, table).tolist() == [[9, 10, 11]]


def test_devices_tell_of_all_streams(rdna):
    """A device that is waited for waits for all streams, and tells what failed in each."""
    torch = rdna
    table, wrong = torch.arange(12.0).reshape(4, 3).to("rdna"), torch.tensor([4], device="rdna")
    torch.rdna.synchronize()
    for stream in (streams := [torch.rdna.Stream() for _ in range(2)]):
        with stream:
            torch.nn.functional.embedding(wrong, table)
    with pytest.raises(RuntimeError) as told:
        torch.rdna.synchronize()
    assert str(told.value).count("index out of range in embedding") == 2
    torch.rdna.synchronize()
    for stream in streams:
        stream.synchronize()


def test_graphs_tell_of_indices(recording):
    torch = recording
    table, indices = torch.arange(12.0).reshape(4, 3).to("rdna"), torch.tensor([3, 1], device="rdna")
    for _ in range(2):
        torch.nn.functional.embedding(indices, table)
    graph = torch.accelerator.Graph()
    with graph:
        made = torch.nn.functional.embedding(indices, table)
    for index in (0, 7, 2, 9):
        indices.copy_(torch.tensor([index, 1]))
        graph.replay()
        if index < 4:
            assert made.tolist() == [table[index].tolist(), [3, 4, 5]]
        else:
            with pytest.raises(RuntimeError, match="index out of range in embedding"):
                torch.rdna.synchronize()
    torch.rdna.synchronize()
