"""torch's private places are named in one file, and a torch without one of them is told so."""

import pathlib
import re

import pytest

pytestmark = pytest.mark.xdist_group("torch_device")


def test_places_are_there(rdna):
    from greta.torch import _private

    assert _private.is_checked()
    for name in _private.PLACES:
        assert getattr(_private, name) is not None


def test_no_other_file_names_one():
    folder = pathlib.Path(__file__).resolve().parents[2] / "python" / "greta" / "torch"
    private = re.compile(r"torch\._(inductor|dynamo|decomp|guards|subclasses|C\._dynamo)|torch\.fx\.experimental|torch\.utils(\._| import _)triton")
    found = [f"{path.name}: {line.strip()}" for path in folder.glob("*.py") if path.name != "_private.py" for line in path.read_text().splitlines() if private.search(line)]
    assert not found


def test_a_torch_without_a_place(rdna, monkeypatch):
    from greta.torch import _private

    monkeypatch.setitem(_private.PLACES, "lowering", "torch._inductor.lowered")
    monkeypatch.setitem(_private.PLACES, "make_fx", "torch.fx.experimental.proxy_tensor:makes_fx")
    for name, place in ("lowering", r"torch\._inductor\.lowered"), ("make_fx", r"torch\.fx\.experimental\.proxy_tensor\.makes_fx"):
        with pytest.raises(ImportError, match=rf"was written for torch 2\.11 and 2\.13; this is .*, which has no {place}"):
            getattr(_private, name)
    with pytest.raises(AttributeError, match="has no place 'lowerings'"):
        _private.lowerings  # noqa: B018
