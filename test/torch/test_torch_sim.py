"""rdna on simulated chips with GRETA_CHECK=1: operators and training are right and pass all checks, and a wrong kernel is told at its line, and a stream that does not wait."""

import functools
import json
import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use
CHIPS = ("gfx942", "gfx1201")  # a chip takes some seconds
PROGRAM = pathlib.Path(__file__).parent / "simulated.py"


def line_of(word):
    (found,) = (number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1) if line.endswith(f"# {word}"))
    return f"{PROGRAM}:{found}:"


@functools.lru_cache(None)
def launched():
    """What the launches said, by chip."""
    run = subprocess.run([sys.executable, PROGRAM, *CHIPS], env=os.environ | {"GRETA_CHECK": "1"}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return dict(zip(CHIPS, map(json.loads, run.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("chip", CHIPS)
def test_simulated(chip):
    pytest.importorskip("torch")
    said = launched()[chip]
    assert said["right"] == "" and said["ordered"] == ""
    assert line_of("bounds") in said["bounds"] and "out-of-bounds write of element 200 of 'y_ptr'" in said["bounds"], said["bounds"]
    assert line_of("bounds") in said["unwritten"] and "uninitialised memory: element 0 of 'x_ptr'" in said["unwritten"], said["unwritten"]
    assert line_of("race") in said["race"] and "program (1,0,0)" in said["race"], said["race"]
    assert "race: 'add_one_0' reads bytes 0 to 511" in said["unordered"] and "(its 'x_ptr'), and a fill on another stream writes them" in said["unordered"], said["unordered"]
