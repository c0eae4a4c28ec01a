"""Operators on torch.device("rdna") that flag-gems' kernels compute (_gems.py), beside the CPU."""

import importlib.util
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.xdist_group("torch_device"),  # what one has compiled the others use
    pytest.mark.skipif(not importlib.util.find_spec("flag_gems"), reason="flag-gems is not installed; scripts/setup --libraries"),
]


# Operator: cases of a function and its tensors.
CASES = {
    "repeat_interleave.Tensor": [
        (lambda torch, x, n: x.repeat_interleave(n, 0), lambda torch, draw: [draw(99, (5, 2)), draw(4, (5,))]),
        (lambda torch, n: torch.repeat_interleave(n), lambda torch, draw: [draw(70, (9,)).int()]),
        (lambda torch, n: torch.repeat_interleave(n[::2]), lambda torch, draw: [draw(7, (9,))]),
    ],
    "_upsample_bicubic2d_aa.out": [
        (lambda torch, x: torch.nn.functional.interpolate(x, size=(5, 6), mode="bicubic", antialias=True), lambda torch, draw: [draw(99, (2, 1, 12, 10)) / 99]),
    ],
}


def test_every_operator_of_the_list_is_here(rdna):
    from greta.torch import _gems

    assert {str(op).removeprefix("aten.").removesuffix(".default") for op in _gems.TAKEN} == set(CASES)


@pytest.mark.parametrize("name, number", [(name, number) for name in CASES for number in range(len(CASES[name]))])
def test_operators(rdna, name, number):
    torch = rdna
    function, arguments = CASES[name][number]
    generator = torch.Generator().manual_seed(number)
    given = arguments(torch, lambda end, shape: torch.randint(end, shape, generator=generator))
    for _ in range(2):  # the second is launched by what the first has left
        got = function(torch, *(one.clone().to("rdna") for one in given))
        expected = function(torch, *(one.clone() for one in given))
        for one, other in zip(*((each if isinstance(each, tuple) else (each,)) for each in (got, expected)), strict=True):
            assert one.device.type == "rdna"
            torch.testing.assert_close(one.cpu(), other, rtol=1e-5, atol=1e-5) if other.is_floating_point() else torch.testing.assert_close(one.cpu(), other, rtol=0, atol=0)
    assert not torch.rdna.fallbacks()


def test_indices_out_of_range_are_errors(rdna):
    """The library would write there."""
    torch = rdna
    torch.rdna.forbid_fallback(False)
    with pytest.raises((RuntimeError, IndexError), match="negative"):
        torch.repeat_interleave(torch.arange(4, device="rdna") - 1)


def test_what_is_wrong_is_an_error(rdna):
    """The library takes any output_size."""
    torch = rdna
    torch.rdna.forbid_fallback(False)
    for device in ("cpu", "rdna"):
        with pytest.raises((RuntimeError, IndexError)):
            torch.repeat_interleave(torch.arange(4, device=device), output_size=9)


def test_what_the_library_does_not_order_runs_on_the_cpu(rdna):
    torch = rdna
    torch.rdna.forbid_fallback(False)
    x = torch.tensor([3, 1, 1])
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.repeat_interleave(x.to("rdna")).tolist() == [0, 0, 0, 1, 2]
    finally:
        torch.use_deterministic_algorithms(False)
    assert set(torch.rdna.fallbacks()) == {"aten::repeat_interleave.Tensor"}


def test_the_library_is_imported_when_it_is_needed(rdna):
    program = """
import sys, torch, greta.torch
x = torch.tensor([2, 1, 2], device="rdna")
print((x + 1).tolist(), "flag_gems" in sys.modules, torch.repeat_interleave(x).tolist(), "flag_gems" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "[3, 2, 3] False [0, 0, 1, 2, 2] True\n"), done.stderr


def test_another_version_is_left_alone(rdna, monkeypatch):
    from greta.torch import _gems

    monkeypatch.setattr(_gems, "VERSION", "0")
    with pytest.warns(UserWarning, match="takes version 0, .* this is 5"):
        assert _gems._library.__wrapped__() is None
