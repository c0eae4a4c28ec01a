"""Sorts, sums at indices and draws by weights on torch.device("rdna")."""

import pytest

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use


@pytest.mark.parametrize("word", ("float32", "bfloat16", "int64", "bool"))
def test_sorts_of_any_length(rdna, word):
    """Inductor's function for all lengths would call the operator again, which the CPU would do; rows of more than 1,024 elements are merged of runs."""
    torch = rdna
    generator = torch.Generator().manual_seed(0)
    for shape, dim, descending in (((7,), 0, False), ((3, 100), 1, True), ((600, 2), 0, True), ((2, 33), -1, False), ((3, 2, 1025), 2, False), ((40001,), 0, True), ((2, 5000), 1, False)):
        x = torch.randint(2 if word == "bool" else 50, shape, generator=generator).to(getattr(torch, word))
        if x.is_floating_point():
            x.view(-1)[::3] = float("nan")
        for got, expected in zip(*(one.sort(dim=dim, descending=descending, stable=True) for one in (x.to("rdna"), x))):
            torch.testing.assert_close(got.cpu(), expected, rtol=0, atol=0, equal_nan=True)
    assert not torch.rdna.fallbacks()


def test_sorts_of_many_rows(rdna, monkeypatch):
    """Programs pass into a second dim, whose last ones have no row."""
    torch = rdna
    from greta.torch import _sorts

    monkeypatch.setattr(_sorts, "MOST_PROGRAMS", 4)
    x = torch.randint(9, (7, 1500), generator=torch.Generator().manual_seed(0))
    for got, expected in zip(*(one.sort(dim=1, stable=True) for one in (x.to("rdna"), x))):
        assert torch.equal(got.cpu(), expected)
    assert torch.equal(x.to("rdna").topk(3, 1)[0].cpu(), x.topk(3, 1)[0])
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


@pytest.mark.parametrize("word", ("float32", "float16", "int64"))
def test_medians(rdna, word):
    """NaN is the median where there is one, unless it is left out."""
    torch = rdna
    x = torch.randperm(120, generator=torch.Generator().manual_seed(0)).view(4, 30).to(getattr(torch, word))
    if word != "int64":
        x[1, 7] = x[1, 9] = float("nan")
        x[2, 1:] = float("nan")
    for function in (
        lambda x: x.median(1),
        lambda x: x.nanmedian(-1, keepdim=True),
        lambda x: x.kthvalue(2, 0),
        lambda x: (x.median(), x[0].median(), x.nanmedian(), *x[0, 0].median(0), *x[0, 0].kthvalue(1)),
    ):
        for got, expected in zip(function(x.to("rdna")), function(x)):
            torch.testing.assert_close(got.cpu(), expected, rtol=0, atol=0, equal_nan=True)
    assert not torch.rdna.fallbacks()


def put(x, *tensors):
    return x.index_put_(tensors[:-1], tensors[-1], accumulate=True)


AT_INDICES = {  # a function and its tensors; `draw` is of integers
    "put": (put, lambda draw: [draw(9, 5, 6), draw(10, 40) - 5, draw(12, 40) - 6, draw(1 << 40, 40)]),
    "put columns": (put, lambda draw: [draw(9, 5, 6).T, draw(6, 3, 4), draw(9, 5)]),
    "put by a mask": (put, lambda draw: [draw(9, 5), draw(2, 5).bool(), draw(9)]),
    "put nothing": (put, lambda draw: [draw(9, 5), draw(5, 0), draw(9, 0)]),
    "add": (lambda x, i, y: x.index_add(1, i, y, alpha=3), lambda draw: [draw(9, 5, 6), draw(6, 7), draw(9, 5, 7)]),
    "add at one place": (lambda x, i, y: x.index_add(1, i, y).index_reduce(1, i, y, "prod"), lambda draw: [draw(9, 5, 6), draw(6), draw(9, 5, 1)]),
    "add to i8": (lambda x, i, y: x.index_add(0, i, y, alpha=3), lambda draw: [draw(99, 6).char(), draw(6, 70), draw(99, 70).char()]),
    "scatter": (lambda x, i, y: x.scatter(1, i, y), lambda draw: [draw(1 << 60, 5, 6), draw(6, 2, 1).int(), draw(1 << 60, 3, 4)]),
    "scatter to a view": (lambda x, i, y: x.T.scatter_(0, i, y), lambda draw: [draw(2, 5, 6).bool(), draw(6, 1, 3), draw(2, 2, 3).bool()]),
    "scatter to gaps": (lambda x, i, y: x[:, ::2].scatter(0, i, y), lambda draw: [draw(99, 5, 6), draw(5, 1, 3), draw(99, 1, 3)]),
    "sum": (lambda x, i, y: x.scatter_add(0, i, y), lambda draw: [draw(9, 3, 6), draw(3, 8, 6), draw(1 << 40, 8, 6)]),
    "sum without itself": (lambda x, i, y: x.scatter_reduce(1, i, y, "sum", include_self=False), lambda draw: [draw(9, 3, 6), draw(6, 3, 4), draw(9, 3, 5)]),
    "sum in place": (lambda x, i, y: x.scatter_reduce_(-1, i, y, "sum"), lambda draw: [draw(9, 3), draw(3, 8), draw(9, 8)]),
    "sum of i8": (lambda x, i, y: x.scatter_add(0, i, y), lambda draw: [draw(99, 3).char(), draw(3, 8), draw(99, 8).char()]),
}


@pytest.mark.parametrize("name", AT_INDICES)
def test_integers_at_indices(rdna, name, capfd):
    """Inductor has no atomics of 64 and 8 bits, and would print an error of the compiler's for these."""
    torch = rdna
    function, arguments = AT_INDICES[name]
    generator = torch.Generator().manual_seed(0)
    given = arguments(lambda end, *shape: torch.randint(end, shape, generator=generator))
    for _ in range(2):  # the second is launched by what the first has left
        got = function(*(one.clone().to("rdna") for one in given))
        assert torch.equal(got.cpu(), function(*(one.clone() for one in given)))
    assert not torch.rdna.fallbacks() and "rror" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    "reduce, word", [(reduce, word) for reduce in ("prod", "mean", "amax", "amin") for word in ("float32", "float16", "bfloat16", "int64", "int8", "bool") if (reduce, word) != ("mean", "bool")]
)
def test_reductions_at_indices(rdna, reduce, word):
    torch = rdna
    kind = getattr(torch, word)
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randint(1, 4, (4, 9), generator=generator).to(kind), torch.randint(-1, 3, (4, 9), generator=generator).to(kind)
    index, row = torch.randint(9, (3, 8), generator=generator), torch.randint(4, (4,), generator=generator)
    if kind.is_floating_point:
        y[0, 0] = float("nan")
    for includes in (True, False):
        there = x.to("rdna")
        got = there.scatter_reduce(1, index.to("rdna"), y.to("rdna"), reduce, include_self=includes)
        torch.testing.assert_close(got.cpu(), x.scatter_reduce(1, index, y, reduce, include_self=includes), equal_nan=True)
        if word != "bool":  # which the CPU lacks
            got = there.index_reduce(0, row.to("rdna"), y.to("rdna"), reduce, include_self=includes)
            torch.testing.assert_close(got.cpu(), x.index_reduce(0, row, y, reduce, include_self=includes), equal_nan=True)
    one, at = x[0, 0], index[0, :1] * 0
    got = [one.to("rdna").scatter_reduce(0, at[0].to("rdna"), x[1, 1].to("rdna"), reduce), one.to("rdna").index_reduce(0, at.to("rdna"), x[1, 1].to("rdna"), reduce)]
    assert [each.tolist() for each in got] == [one.scatter_reduce(0, at[0], x[1, 1], reduce).tolist()] * 2
    assert not torch.rdna.fallbacks()


def test_reductions_of_many_at_indices(rdna):
    """Rounds join values further and further away; the gradients are those of the CPU."""
    torch = rdna
    generator = torch.Generator().manual_seed(0)
    values, index = torch.rand(3001, generator=generator) + 0.5, torch.randint(5, (3001,), generator=generator).clamp(1, 3)
    for reduce in ("prod", "mean", "amax", "amin"):
        results = []
        for device in ("cpu", "rdna"):
            y = values.to(device).pow(0.01 if reduce == "prod" else 1).requires_grad_()
            out = torch.ones(5, device=device).scatter_reduce(0, index.to(device), y, reduce)
            out.square().sum().backward()
            results.append((out.detach().cpu(), y.grad.cpu()))
        torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)
    assert not torch.rdna.fallbacks()


@pytest.mark.parametrize(
    "function, message",
    (
        (lambda x: x.scatter(0, x + 1, x), "out of bounds"),
        (lambda x: x.scatter_add(0, x - 1, x), "out of bounds"),
        (lambda x: x.scatter_reduce(0, x + 1, x, "amax"), "out of bounds"),
        (lambda x: x.index_put_((x + 1,), x, accumulate=True), "out of"),
        (lambda x: x.index_add(0, x - 1, x), "out of bounds"),
        (lambda x: x.view(2, 2).index_put_((x.new_ones(2, 1).bool(),), x[0], accumulate=True), "mask"),
        (lambda x: x.index_put_((x > 0,), x, accumulate=True), "expanded size"),
        (lambda x: x.median(1)[0], "Dimension out of range"),
        (lambda x: x.kthvalue(1, -2)[0], "Dimension out of range"),
    ),
)
def test_indices_out_of_range_are_errors(rdna, function, message):
    """Those that a kernel checks are told where the result is read."""
    torch = rdna
    torch.rdna.forbid_fallback(False)
    with pytest.raises((RuntimeError, IndexError), match=message):
        function(torch.arange(4, device="rdna")).cpu()


@pytest.mark.parametrize(
    "function",
    (
        lambda x, i: x[i],
        lambda x, i: x[x.long()[i]],
        lambda x, i: x.gather(0, i),
        lambda x, i: x.index_put((i,), x[:2]),
        lambda x, i: x.long().index_put((i,), x[:2].long(), accumulate=True),
        lambda x, i: x.scatter(0, i, x[:2]),
        lambda x, i: x.index_add(0, i, x[:2]),
    ),
    ids=("read", "read by what was read", "gather", "put", "add integers", "scatter", "add"),
)
def test_kernels_stay_within_a_tensor(rdna, function):
    """An index may be anywhere in 64 bits; the kernels that find it, and those behind them, go on until somebody waits."""
    torch = rdna
    x, index = torch.arange(1000.0, device="rdna"), torch.tensor([1, 10**12], device="rdna")
    with pytest.raises(RuntimeError, match="out of bounds"):
        function(x, index).cpu()
    assert x.sum().item() == 499500


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
