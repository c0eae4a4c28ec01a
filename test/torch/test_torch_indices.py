"""Sorts, sums at indices and draws by weights on torch.device("rdna")."""

import pytest

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use


@pytest.mark.parametrize("word", ("float32", "int64", "bool"))
def test_sorts_of_any_length(rdna, word):
    """Inductor's function for all lengths would call the operator again, which the CPU would do."""
    torch = rdna
    generator = torch.Generator().manual_seed(0)
    for shape, dim, descending in (((7,), 0, False), ((3, 100), 1, True), ((600, 2), 0, True), ((2, 33), -1, False)):
        x = torch.randint(2 if word == "bool" else 50, shape, generator=generator).to(getattr(torch, word))
        for got, expected in zip(*(one.sort(dim=dim, descending=descending, stable=True) for one in (x.to("rdna"), x))):
            assert torch.equal(got.cpu(), expected)
    assert not torch.rdna.fallbacks()


def test_sums_at_indices(rdna):
    """The sum of many numbers in bf16 is rounded once, and that of bool says whether one is true."""
    torch = rdna
    index = torch.arange(600) % 3
    x, y = torch.full((3, 4), 2.0, dtype=torch.bfloat16), torch.full((600, 4), 0.5, dtype=torch.bfloat16)
    result = x.to("rdna").index_add(0, index.to("rdna"), y.to("rdna"), alpha=2)
    assert torch.equal(result.cpu(), torch.full((3, 4), 202.0, dtype=torch.bfloat16))
    some = torch.tensor([True, False, False, False])
    at, added = torch.tensor([1, 1, 2, 2]), torch.tensor([False, False, True, True])
    there = some.to("rdna")
    assert there.index_put((at.to("rdna"),), added.to("rdna"), accumulate=True).tolist() == [True, False, True, False]
    assert there.scatter_add(0, at.to("rdna"), added.to("rdna")).tolist() == [True, False, True, False]
    assert not torch.rdna.fallbacks()


@pytest.mark.parametrize("word", ("float32", "bfloat16", "int32"))
def test_a_negative_index_is_no_place_to_add_to(rdna, word):
    """Inductor's function alone would count it from the end."""
    torch = rdna
    x = torch.ones(4, dtype=getattr(torch, word), device="rdna")
    for index in (-1, 4):
        with pytest.raises(Exception, match="out of bounds"):
            x.index_add(0, torch.tensor([index], device="rdna"), x[:1]).cpu()
    assert x.index_add(0, torch.tensor([1, 1], device="rdna"), x[:2]).tolist() == [1, 3, 1, 1]


def test_masks_as_indices(rdna):
    torch = rdna
    rows, columns = torch.tensor([True, False, True]), torch.tensor([[False, True, True, False]] * 3)
    results = []
    for device in ("cpu", "rdna"):
        x = torch.arange(24.0).reshape(3, 4, 2).to(device).requires_grad_()
        m, n, i = (one.to(device) for one in (rows, columns, torch.tensor([1, 0])))
        got = [x[m], x[n], x[:, n[0]], x[m, i], x[n & False], x[m, 1:3], x[rows]]
        sum((one * one).sum() for one in got).backward()
        y = x.detach().clone()
        y[m] = y[m] + 1
        y[n, 1] = torch.arange(6.0, device=device)
        y[n & False] = y[n & False]
        results.append([*(one.detach() for one in got), x.grad, y])
    for one, other in zip(*results, strict=True):
        assert torch.equal(other.cpu(), one)
    assert not torch.rdna.fallbacks()
    with pytest.raises((IndexError, NotImplementedError)):
        x[torch.ones(4, dtype=torch.bool, device="rdna")]


@pytest.mark.parametrize("word", ("float32", "float16"))
def test_draws_by_weights(rdna, word):
    torch = rdna
    torch.manual_seed(0)
    weights = torch.tensor([[0, 1, 2, 0, 5], [3, 0, 0, 0, 3]], dtype=getattr(torch, word), device="rdna")
    shares = (weights / weights.sum(1, keepdim=True)).cpu().float()
    draws = torch.multinomial(weights, 20000, replacement=True).cpu()
    single = torch.multinomial(weights[:1].expand(20000, 5), 1).cpu().T
    for drawn, share in (*zip(draws, shares), (single[0], shares[0])):
        counts = torch.bincount(drawn, minlength=5) / 20000
        assert (counts[share == 0] == 0).all() and (counts - share).abs().max() < 0.02  # five standard deviations
    rows = torch.multinomial(weights[0].expand(50, 5), 3).cpu()
    assert (rows.sort(1)[0] == torch.tensor([1, 2, 4])).all() and len(rows.unique(dim=0)) > 2
    assert not torch.rdna.fallbacks()


def test_weights_that_cannot_be_drawn_by(rdna):
    torch = rdna
    torch.rdna.forbid_fallback(False)
    for weights in ([-1.0, 2.0], [0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]):
        with pytest.raises(RuntimeError, match="prob|sum"):
            torch.multinomial(torch.tensor(weights, device="rdna"), 1)
