"""Which values there are and how often, on torch.device("rdna") beside the CPU (_sets.py): unique, unique_consecutive, mode and bincount."""

import pytest

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use

FLOATS, INTEGERS = ("float16", "bfloat16", "float32", "float64"), ("uint8", "int8", "int16", "int32", "int64")
NAN = float("nan")


def check(function, *given, **limits):
    """Results are the CPU's, of its types; integers and values are equal."""
    got, expected = (one if isinstance(one, tuple) else (one,) for one in (function(*(one.to("rdna") for one in given)), function(*given)))
    for one, other in zip(got, expected, strict=True):
        assert one.device.type == "rdna" and one.dtype == other.dtype
        import torch

        torch.testing.assert_close(one.cpu(), other, equal_nan=True, **(limits or dict(rtol=0, atol=0)))


def draw(torch, word, end, shape, seed=0):
    """Numbers of both signs, if the type has these."""
    x = torch.randint(end, shape, generator=torch.Generator().manual_seed(seed))
    return (x if word in ("uint8", "bool") else x - end // 2).to(getattr(torch, word))


@pytest.mark.parametrize("word", (*FLOATS, *INTEGERS, "bool"))
def test_unique(rdna, word):
    """Of all elements, along a dim, and of those that stand side by side, with the group of each and how many there are."""
    torch = rdna
    for shape, end, dim in (((5, 7), 50, 0), ((2100,), 5000, 0), ((300, 4), 3, 0), ((4, 5, 6), 2, 1)):
        x = draw(torch, word, end, shape)
        check(lambda x: torch.unique(x, return_inverse=True, return_counts=True), x)
        check(lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), x)
        if len(shape) > 1:
            check(lambda x: torch.unique(x, dim=dim, return_inverse=True, return_counts=True), x)
            check(lambda x: torch.unique_consecutive(x, dim=dim, return_inverse=True, return_counts=True), x)
    assert not torch.rdna.fallbacks()


def test_unique_of_few_and_many(rdna):
    """No element, one, views, numbers that are none, more than a run of a sort has; what is not asked for is not there."""
    torch = rdna
    everything = dict(return_inverse=True, return_counts=True)
    for x in (torch.empty(0, 3), torch.tensor(3.0), torch.tensor([NAN, 1, NAN, 2, 1]), draw(torch, "int64", 99, (6, 8)).T[::2], torch.randint(40000, (70001,), generator=torch.Generator().manual_seed(0)) << 40):
        check(lambda x: torch.unique(x, **everything), x)
        check(lambda x: torch.unique_consecutive(x, **everything), x)
        check(lambda x: torch.unique(x), x)
        check(lambda x: torch.unique(x, return_counts=True), x)
        check(lambda x: torch.unique_consecutive(x, return_inverse=True), x)
    # Slices of more elements than llvmpipe's loops have steps, and than a block has.
    wide = torch.zeros(5, 70001, dtype=torch.int8)
    wide[1, -1], wide[3, 300], wide[4, 40000] = 1, -1, 2
    check(lambda x: torch.unique(x, dim=0, **everything), wide)
    check(lambda x: torch.unique_consecutive(x, dim=0, **everything), wide)
    # In slices NaN is the largest number, and like no other one.
    found = torch.tensor([[NAN, 1], [0, 2], [NAN, 1], [0, 2]], device="rdna").unique(dim=0, **everything)
    assert [str(one.tolist()) for one in found] == ["[[0.0, 2.0], [nan, 1.0], [nan, 1.0]]", "[1, 0, 2, 0]", "[2, 1, 1]"]
    assert not torch.rdna.fallbacks()


@pytest.mark.parametrize("word", (*FLOATS, *INTEGERS, "bool"))
def test_mode(rdna, word):
    """The value that is there most often, the least one of several; its place is the last one that has it, of rows that the CPU sorts so."""
    torch = rdna
    for shape, end, dim in (((16, 9), 4, 0), ((3, 2, 12), 7, -1), ((4,), 50, 0)):
        check(lambda x: tuple(x.mode(dim)), draw(torch, word, end, shape))
        check(lambda x: tuple(x.mode(dim, keepdim=True)), draw(torch, word, end, shape, 1))
    x = draw(torch, word, 90, (2, 3000))
    check(lambda x: x.mode()[0], x)
    values, places = x.to("rdna").mode()
    assert torch.equal(x.to("rdna").gather(-1, places[:, None])[:, 0], values)
    assert not torch.rdna.fallbacks()


def test_modes_of_few(rdna):
    torch = rdna
    check(lambda x: tuple(torch.mode(x)), torch.tensor(3.0))
    values, places = torch.tensor([[NAN, 1, 1, NAN, NAN], [NAN] * 5], device="rdna").mode()
    assert str(values.tolist()) == "[1.0, nan]" and places.tolist() == [2, 0]
    x = torch.tensor([[1.0, 3, 3], [2, 2, 5]], device="rdna", requires_grad=True)
    x.mode(1)[0].sum().backward()
    assert x.grad.tolist() == [[0, 0, 1], [0, 1, 0]]
    assert not torch.rdna.fallbacks()


@pytest.mark.parametrize("word", INTEGERS)
def test_bincount(rdna, word):
    torch = rdna
    generator = torch.Generator().manual_seed(0)
    for n, end in ((1, 3), (300, 70), (5000, 100)):
        x = torch.randint(end, (n,), generator=generator).to(getattr(torch, word))
        check(lambda x: torch.bincount(x), x)
        check(lambda x: torch.bincount(x[::2], minlength=200), x)
        for kind in ("float32", "float16", "int64", "bool"):
            check(lambda x, w: torch.bincount(x, w), x, draw(torch, kind, 50, (n,)), rtol=1e-6, atol=1e-6)
    check(lambda x: torch.bincount(x, minlength=3), x[:0])
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.bincount(x.to("rdna"), x.to("rdna").double()).sum().item() == x.sum().item()
    finally:
        torch.use_deterministic_algorithms(False)
    assert not torch.rdna.fallbacks()


WRONG = {
    "negative": lambda torch, x: torch.bincount(x - 1),
    "two dims": lambda torch, x: torch.bincount(x.view(2, 2)),
    "flags": lambda torch, x: torch.bincount(x > 1),
    "weights": lambda torch, x: torch.bincount(x, x[:3]),
    "minlength": lambda torch, x: torch.bincount(x, minlength=-1),
    "dim": lambda torch, x: x.mode(2),
    "no elements": lambda torch, x: x[:0].mode(),
    "slices": lambda torch, x: torch.unique(x.view(2, 2), dim=3),
    "no slices": lambda torch, x: torch.unique(x.view(2, 2)[:, :0], dim=0),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_an_error(rdna, name):
    """As on the CPU, of whose words the first are there."""
    torch = rdna
    torch.rdna.forbid_fallback(False)
    said = []
    for device in ("cpu", "rdna"):
        with pytest.raises((RuntimeError, IndexError)) as caught:
            WRONG[name](torch, torch.arange(4, device=device))
        said.append(str(caught.value))
    assert said[0] == said[1]
