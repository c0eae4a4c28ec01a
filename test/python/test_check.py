"""GRETA_CHECK=1 on simulated devices: what wrong kernels do is told at their line, and right ones run; what compile errors show."""

import functools
import json
import os
import pathlib
import subprocess
import sys

import pytest

import greta

pytest.importorskip("torch")
triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

from greta.triton.compiler import GretaBackend, GPUTarget  # noqa: E402

KERNELS = pathlib.Path(__file__).with_name("wrong_kernels.py")
CHIPS = ("gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201")

OF_X = "out-of-bounds read of element 100 of 'x_ptr', 4 bytes beyond its end: 'x_ptr' has 400 bytes (100 elements)"
OF_Y = "out-of-bounds write of element 100 of 'y_ptr', 4 bytes beyond its end: 'y_ptr' has 400 bytes (100 elements)"
UNWRITTEN = "uninitialised memory: element 0 of 'x_ptr', which nobody wrote, is read at wrong_kernels.py:{} and "

# The name of the kernel, the word in the line of the mistake, the report, and the program.
WRONG = (
    ("read", "read", OF_X, "(1,0,0)"),
    ("write", "write", OF_Y, "(1,0,0)"),
    ("unused read", "unused", OF_X, "(1,0,0)"),
    ("read of halves", "read", "element 99 of 'x_ptr', 2 bytes beyond its end: 'x_ptr' has 198 bytes (99 elements)", "(1,0,0)"),
    ("read of NumPy", "read", OF_X, "(1,0,0)"),
    ("read of a pool", "read", OF_X, "(1,0,0)"),
    ("write to a pool", "write", OF_Y, "(1,0,0)"),
    ("read of a view", "read", OF_X, "(1,0,0)"),
    ("write to an array", "write", OF_Y, "(1,0,0)"),
    ("element", "element", "read of element 10 of 'x_ptr', 4 bytes beyond its end: 'x_ptr' has 40 bytes", "(0,0,0)"),
    ("element before", "element", "read of element -1 of 'x_ptr', 4 bytes before its begin", "(0,0,0)"),
    ("element far away", "element", "read of element 10000000 of 'x_ptr', 39999964 bytes beyond its end", "(0,0,0)"),
    ("helper", "helper", "read of element 1000 of 'x_ptr', 16 bytes beyond its end", "(0,0,0)"),
    ("loop", "loop", "read of element 2047 of 'b_ptr', 2 bytes beyond its end", "(0,0,0)"),
    ("two_writers", "two_writers", "race: program (1, 0, 0) writes element 0 of 'y_ptr', and program (0, 0, 0) wrote another value at", "(1,0,0)"),
    ("overlap", "overlap", "race: program (1, 0, 0) writes element 15 of 'y_ptr', and program (0, 0, 0) wrote another value at", "(1,0,0)"),
    ("overlap of bytes", "overlap", "race: program (1, 0, 0) writes element 15 of 'y_ptr', and program (0, 0, 0) wrote another value at", "(1,0,0)"),
    ("neighbour", "neighbour", "race: program (1, 0, 0) writes element 1 of 'y_ptr', and program (0, 0, 0) reads it at", "(1,0,0)"),
    ("stored", "stored", UNWRITTEN + "is stored", "(0,0,0)"),
    ("address", "address", UNWRITTEN + "is used as an address", "(0,0,0)"),
    ("branch", "branch", UNWRITTEN + "decides a branch", "(0,0,0)"),
    ("selected", "selected", UNWRITTEN + "is stored", "(0,0,0)"),
    ("mask", "mask", UNWRITTEN + "decides which lanes go on", "(0,0,0)"),
)
READ_AT = {"stored": "unwritten"}  # elsewhere it is the line of the mistake


@functools.lru_cache(None)
def launched(chip: str) -> dict[str, str]:
    run = subprocess.run([sys.executable, KERNELS, f"sim:{chip}"], env=os.environ | {"GRETA_CHECK": "1"}, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def line_of(word: str) -> tuple[int, str]:
    (found,) = ((number, line) for number, line in enumerate(KERNELS.read_text().splitlines(), 1) if line.endswith(f"# {word}"))
    return found


@pytest.mark.parametrize("chip", [pytest.param(chip, marks=pytest.mark.xdist_group(f"check-{chip}")) for chip in CHIPS])  # `launched` runs once
@pytest.mark.parametrize(("name", "word", "said", "program"), WRONG, ids=[case[0].replace(" ", "_") for case in WRONG])
def test_mistake(chip, name, word, said, program):
    number, line = line_of(word)
    message = launched(chip)[name]
    assert f"{KERNELS}:{number}:" in message, message
    if "{}" in said:
        read_at = line_of(READ_AT[name])[0] if name in READ_AT else None
        assert any(said.format(at) in message for at in ([read_at] if read_at else (number, number - 1))), message
    else:
        assert said in message
    assert f"program {program}" in message
    shown = message.splitlines()
    assert shown[-2] == line.rstrip() and shown[-1].strip() == "^"


@pytest.mark.parametrize("chip", CHIPS)
def test_right_kernels_pass(chip):
    wrong = {case[0] for case in WRONG}
    right = {name: said for name, said in launched(chip).items() if name not in wrong}
    assert len(right) == 10 and not any(right.values()), right


def test_cache_key(monkeypatch):
    """A kernel is compiled again for checks."""
    backend = GretaBackend(GPUTarget("greta", "gfx942", 32))
    plain = backend.parse_options({}).hash()
    monkeypatch.setenv("GRETA_CHECK", "1")
    assert backend.parse_options({}).hash() != plain
    monkeypatch.setenv("GRETA_CHECK", "0")
    assert backend.parse_options({}).hash() == plain


@triton.jit
def many_bins(x_ptr, y_ptr, BINS: tl.constexpr):
    bins = tl.histogram(tl.load(x_ptr + tl.arange(0, 1024)), BINS)
    tl.store(y_ptr + tl.arange(0, BINS), bins)


@triton.jit
def gather_large(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.gather(tl.load(x_ptr + i), tl.load(x_ptr + BLOCK + i), 0))


@triton.jit
def foreign_assembly(x_ptr, y_ptr):
    i = tl.arange(0, 32)
    tl.store(y_ptr + i, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(x_ptr + i)], dtype=tl.int32, is_pure=True, pack=1))


@triton.jit
def dot_of_other_shapes(x_ptr, y_ptr):
    i = tl.arange(0, 32)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(y_ptr + i, tl.dot(tl.load(x_ptr + i), tl.load(x_ptr + i)))


@triton.jit
def block_of_a_hundred(x_ptr, y_ptr):
    tl.store(y_ptr + tl.arange(0, 100), 0.0)


@triton.jit
def one_vendors_type(x_ptr, y_ptr):
    i = tl.arange(0, 32)
    tl.store(y_ptr + i, tl.load(x_ptr + i).to(tl.float8e4b15))


def compile_error(kernel, signature, **options) -> str:
    with pytest.raises((greta.Error, triton.CompilationError)) as caught:
        greta.compile(kernel, signature, "gfx942", **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("kernel", "signature", "said"),
    [
        (many_bins, "*i32, *i32, 65536", "needs 262144 bytes where a workgroup of gfx942 has 65536 of shared memory"),
        (gather_large, "*i32, *i32, 32768", "choose a smaller tile, one with 1/2 of the elements fits"),
        (foreign_assembly, "*i32, *i32", "is assembly of another vendor's GPU, 'mov.b32 $0, $1;'; write it in tl, or branch on the target"),
    ],
)
def test_compile_errors(kernel, signature, said):
    """They show the line, its text and a caret, and what would do."""
    message = compile_error(kernel, signature)
    assert said in message
    path, number, column = message.split(": error:")[0].rsplit(":", 2)
    assert pathlib.Path(path) == pathlib.Path(__file__)
    line = pathlib.Path(__file__).read_text().splitlines()[int(number) - 1]
    assert line.startswith("    ") and f"\n{line}\n{' ' * (int(column) - 1)}^" in message


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (dot_of_other_shapes, "input and other must have equal reduction dimensions"),
        (block_of_a_hundred, "arange's range must be a power of 2"),
        (one_vendors_type, "fp8e4b15 is NVIDIA's alone; use fp8e4nv or fp8e4b8"),
    ],
)
def test_frontend_errors(kernel, said):
    """Triton's own, and what it asks of us."""
    message = compile_error(kernel, "*fp16, *fp32")
    assert said in message and "^" in message and f"def {kernel.__name__}(" in message
