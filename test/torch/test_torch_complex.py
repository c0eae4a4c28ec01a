"""Complex numbers on torch.device("rdna") as pairs of real ones (_complex_views.py), beside the CPU."""

import pytest

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use


def at(x, *places):
    import torch

    return torch.tensor(places, device=x.device)


def assigned(x, y):
    x = x.clone()
    x[:, at(x, 0, 2)] = y[:, :2]
    return x


FUNCTIONS = {
    "cat": lambda torch, x, y: torch.cat([x, y, x.real], -1) + torch.stack([x, x, y])[0].repeat(1, 3),
    "index": lambda torch, x, y: x[at(x, 1, -1)] + x.index_select(0, at(x, 2, 0)) + x.gather(-1, at(x, 0, 3, 1)[None].expand(2, 3)).sum(),
    "mask": lambda torch, x, y: x[x.real > 0],
    "assign": lambda torch, x, y: assigned(x, y),
    "put": lambda torch, x, y: x.clone().index_put_((at(x, 1, 1),), y[:2], accumulate=True),
    "turn": lambda torch, x, y: x.flip(-1) + x.roll((1, 2), (-1, 0)) + x.roll(3) + x.tril(1) + x.triu(),
    "where": lambda torch, x, y: torch.where(x.real > 0, x, y[0]),
    "compare": lambda torch, x, y: torch.stack([x == y, x != x.conj(), x == 1, x.isnan()]),
    "means": lambda torch, x, y: x.mean() + x.conj().mean(-1) + x.mean((0, 1), keepdim=True)[0],
    "sums": lambda torch, x, y: x.cumsum(-1) + x.T.cumsum(0),
    "products": lambda torch, x, y: x @ y + x.mH @ y + torch.addmm(x, x, y, beta=2, alpha=0.5j) + torch.einsum("ij,kj->ik", x, y) + (x[None] @ y[None])[0],
    "vectors": lambda torch, x, y: x @ y[0] + torch.dot(x[0], y[0]) + torch.vdot(x[0], y[0]) + torch.nn.functional.linear(x, y, y[0])[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(rdna, name):
    torch = rdna
    function = FUNCTIONS[name]
    for seed in range(3):  # the second is recorded, the third launches what it did
        generator = torch.Generator().manual_seed(seed)
        x, y = (torch.randn(4, 4, dtype=torch.complex64, generator=generator) for _ in range(2))
        got, expected = (function(torch, *(one.to(device) for one in (x, y))) for device in ("rdna", "cpu"))
        assert got.device.type == "rdna"
        torch.testing.assert_close(got.cpu(), expected, rtol=1e-5, atol=1e-5)
    assert torch.equal(x.to("rdna"), x.to("rdna")) and not torch.equal(x.to("rdna"), y.to("rdna"))
    assert not torch.rdna.fallbacks()


def test_numbers(rdna):
    """Tensors without dims: the CPU's are read each time, and a wider one does not make the others' numbers wider."""
    torch = rdna
    x = torch.full((2, 3), 0.1, dtype=torch.complex64)
    for seed in range(3):
        x[0, seed] = complex(seed, 1)
        one, tenth = torch.tensor(complex(seed, 1)), torch.tensor(0.1, dtype=torch.complex128)
        for device in ("cpu", "rdna"):
            y = x.to(device)
            made = torch.where(y.real < 1, y, one), torch.where(torch.tensor(seed > 0), y, 2j), y == one, one != y, y == tenth.to(device), y == tenth.real.to(device), y[0, seed].roll(2)
            if device == "rdna":
                assert all(torch.equal(a.cpu(), b) for a, b in zip(made, expected)), (seed, made, expected)
            expected = made
    assert not torch.rdna.fallbacks()


def test_sizes(rdna):
    """Infinite beside an infinite part, else NaN beside NaN."""
    torch = rdna
    nan, inf = float("nan"), float("inf")
    for dtype in (torch.complex64, torch.complex128):
        x = torch.tensor([complex(a, b) for a in (nan, inf, 3.0, -0.0, 3e30) for b in (nan, -inf, 4.0, 0.0, 4e30)], dtype=dtype)
        torch.testing.assert_close(x.to("rdna").abs().cpu(), x.abs(), equal_nan=True)
        assert x.to("rdna").sgn().isnan().cpu()[[0, 2, 10, 15]].all()
    assert not torch.rdna.fallbacks()


def test_gradients(rdna):
    torch = rdna
    results = []
    for device in ("cpu", "rdna"):
        x, y = (torch.randn(3, 3, dtype=torch.complex128, generator=torch.Generator().manual_seed(seed)).to(device).requires_grad_() for seed in (0, 1))
        ((x @ y).cumsum(0) * torch.cat([x[:1], y[1:]])).abs().mean().backward()
        results.append([one.grad.cpu() for one in (x, y)])
    torch.testing.assert_close(*results)
    assert not torch.rdna.fallbacks()


@pytest.mark.parametrize("name, function", (("mm", lambda torch, x: x @ x[:3]), ("cat", lambda torch, x: torch.cat([x, x[0]])), ("dim", lambda torch, x: x.cumsum(2)), ("index", lambda torch, x: torch.flip(x, (0, 0))), ("addmm", lambda torch, x: torch.addmm(x.expand(2, 4, 4), x, x))))
def test_what_is_wrong_is_an_error(rdna, name, function):
    torch = rdna
    torch.rdna.forbid_fallback(False)
    for device in ("cpu", "rdna"):
        with pytest.raises((RuntimeError, IndexError)):
            function(torch, torch.ones(4, 4, dtype=torch.complex64, device=device))
