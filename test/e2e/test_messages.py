"""Wrong files and command lines, a row per message: exit status 1, one diagnostic, nothing written."""

import re
import struct

import numpy as np
import pytest

import harness
from test_errors import GOOD, INPUTS, one_diagnostic

RUN, TRANSLATE = harness.RUN, harness.TRANSLATE
TUNE, LLM = (harness.BUILD / "bin" / name for name in ("greta-tune", "greta-llm"))
HOST = ["good.greta", "--device=host"]
TWO = GOOD + GOOD.replace("@rms_norm", "@other")
MATMUL = "func.func @m(%a: tensor<?x64xf16>, %b: tensor<64x64xf16>) -> tensor<?x64xf16> {\n%0 = greta.matmul %a, %b : tensor<?x64xf16>, tensor<64x64xf16> -> tensor<?x64xf16>\nreturn %0 : tensor<?x64xf16>\n}\n"


def npy(header, data=b"", version=1, size=None):
    """The bytes of a .npy file whose header is this text."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", len(text) if size is None else size) + text + data


FILES = {
    "good.mlir": GOOD.encode(),
    "matmul.mlir": MATMUL.encode(),
    "misspelt.mlir": GOOD.replace("greta.rms_norm", "greta.rmsnorm").encode(),
    "deep.mlir": b"func.func @f() {" + b"(" * 100000,
    "empty_group.mlir": b"func.func @f(%x: tensor<4x8xf32>) -> tensor<4x1x8xf32> {\n%0 = tensor.expand_shape %x [[], [1, 2]] output_shape [4, 1, 8] : tensor<4x8xf32> into tensor<4x1x8xf32>\nreturn %0 : tensor<4x1x8xf32>\n}\n",
    "huge.mlir": MATMUL.replace("64x64xf16", "2147483648x64xf16").replace("%a: tensor<?x64", "%a: tensor<?x2147483648").replace(": tensor<?x64xf16>, tensor", ": tensor<?x2147483648xf16>, tensor").encode(),
    "recursive.mlir": b"func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n%0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>\n}\n",
    "twice.mlir": 2 * GOOD.encode(),
    "two.mlir": TWO.encode(),
    "scalar.mlir": b"func.func @f(%x: f32) -> f32 {\nreturn %x : f32\n}\n",
    "binary.mlir": bytes(range(128, 256)),
    "nothing.mlir": b"func.func @f(%x: tensor<4xf32>) {\nreturn\n}\n",
    "declared.mlir": b"func.func @f(%x: tensor<4xf32>) -> tensor<4xf32>\n",
    "text.npy": b"hello, this is no array",
    "version.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 64), }", version=9),
    "size.npy": npy("", size=0)[:9],
    "short.npy": npy("{'descr'", size=200),
    "key.npy": npy("{'description': '<f4'}"),
    "missing.npy": npy("{'descr': '<f4', 'fortran_order': False}"),
    "type.npy": npy("{'descr': '>f4', 'fortran_order': False, 'shape': (3, 64), }"),
    "string.npy": npy("{'descr': '<f4"),
    "structured.npy": npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }"),
    "shape.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, -64), }"),
    "data.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 64), }", bytes(8)),
    "fortran.npy": npy("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 64), }", bytes(768)),
    "everything.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }"),
    "bytes.npy": npy("{'descr': '|u1', 'fortran_order': False, 'shape': (), }", bytes(1)),
}


def first_input(text):
    return [RUN, *HOST, f"--input={text}", INPUTS[1], "--output=y.npy"]


ROWS = {
    "brackets": ([TRANSLATE, "--greta-to-package", "--targets=host", "deep.mlir", "-o", "out"], "brackets nest deeper than 256"),
    "crash of the parser": ([TRANSLATE, "--greta-to-package", "--targets=host", "empty_group.mlir", "-o", "out"], "MLIR's parser crashed: an op in this file is malformed"),
    "huge extent": ([TRANSLATE, "--greta-to-package", "--targets=host", "huge.mlir", "-o", "out"], "is larger than memory; a dimension has up to 2147483647"),
    "recursion": ([TRANSLATE, "--greta-to-package", "--targets=host", "recursive.mlir", "-o", "out"], "recursive.mlir.*error: "),
    "two of one name": ([TRANSLATE, "--greta-to-package", "--targets=host", "twice.mlir", "-o", "out"], "redefinition of symbol"),
    "a scalar": ([TRANSLATE, "--greta-to-package", "--targets=host", "scalar.mlir", "-o", "out"], "argument 0 of function 'f' has type 'f32'; functions take and return ranked tensors"),
    "no text": ([TRANSLATE, "--greta-to-package", "--targets=host", "binary.mlir", "-o", "out"], "binary.mlir:1:1: error: "),
    "no result": ([TRANSLATE, "--greta-to-package", "--targets=gfx942,host", "nothing.mlir", "-o", "out"], "function 'f' returns nothing; what it computes is lost"),
    "no body": ([TRANSLATE, "--greta-to-package", "--targets=host", "declared.mlir", "-o", "out"], "declared.mlir.*error: "),
    "a folder as source": ([TRANSLATE, "--greta-to-package", "--targets=host", ".", "-o", "out"], "error: .*directory"),
    "a folder as output": ([TRANSLATE, "--greta-to-package", "--targets=host", "good.mlir", "-o", "/"], "cannot write '/'"),
    "no room": ([TRANSLATE, "--greta-to-package", "--targets=host", "good.mlir", "-o", "full"], "cannot write 'full': No space left on device"),
    "no folder": ([TRANSLATE, "--greta-to-package", "--targets=host", "good.mlir", "-o", "no/such/out"], "cannot write 'no/such/out': No such file or directory"),
    "no value": ([TRANSLATE, "--greta-to-package", "--targets=", "good.mlir", "-o", "out"], "'--targets=' has no value"),
    "no value behind a command": ([LLM, "generate", "--device=", "-p", "a", "--synthetic=tiny"], "'--device=' has no value"),
    "no such function": ([TRANSLATE, "--greta-to-package", "--targets=host", "--function=other", "good.mlir", "-o", "out"], "no public function 'other' in good.mlir"),
    "hsaco for Vulkan": ([TRANSLATE, "--greta-to-hsaco", "--target=vulkan:portable", "good.mlir", "-o", "out"], "target 'vulkan:portable' is no AMD chip; say for example"),
    "SPIR-V for a chip": ([TRANSLATE, "--greta-to-spirv", "--target=gfx942", "good.mlir", "-o", "out"], "target 'gfx942' is no Vulkan family; say for example"),
    "LLVM IR for Vulkan": ([TRANSLATE, "--greta-to-llvmir", "--target=vulkan:portable", "good.mlir", "-o", "out"], "has no LLVM IR; use --greta-to-spirv"),
    "inspect nothing": ([RUN, "--inspect"], "--inspect needs a package"),
    "inspect a function that is not": ([RUN, "good.greta", "--inspect", "--function=other"], "the package has no function 'other'"),
    "bytes of a copy": ([RUN, "--device=host", "--bench-copy=many"], "not a number of bytes \\(256M, 1G\\)"),
    "too few inputs": ([RUN, *HOST, INPUTS[0]], "the function takes 2 inputs, 1 given"),
    "too many outputs": ([RUN, *HOST, *INPUTS, "--output=a.npy", "--output=b.npy"], "the function has 1 results, 2 --output given"),
    "too many expectations": ([RUN, *HOST, *INPUTS, "--expect=3x64xf32:zeros", "--expect=3x64xf32:zeros"], "the function has 1 results, 2 --expect given"),
    "expected shape": ([RUN, *HOST, *INPUTS, "--expect=4x64xf32:zeros"], "result 'r0' has shape 3x64, expected 4x64"),
    "expected type": ([RUN, *HOST, *INPUTS, "--expect=unsigned.npy"], "is f32, the file holds u16; write --expect=f32:FILE"),
    "wrong result": ([RUN, *HOST, *INPUTS, "--expect=3x64xf32:zeros", "--output=y.npy"], "--expect failed: result 'r0': the worst row is off by"),
    "unsigned for floats": (first_input("unsigned.npy"), "is u16, argument 'x' is f32; write --input=f32:FILE"),
    "unknown type": (first_input("3x64xf33:random:1"), "unknown element type 'f33'"),
    "negative extent": (first_input("-3x64xf32:random:1"), "a negative dim"),
    "unknown numbers": (first_input("3x64xf32:value"), "expected random:SEED\\[:SIGMA\\] \\(integers: random:SEED\\[:LO:HI\\]\\), value:V or zeros"),
    "a fill that is not": (first_input("3x64xf32:rand:1"), "'rand': expected random:SEED.*value:V or zeros after the type"),
    "no fill": (first_input("3x64xf32"), "say what to fill it with: random:SEED, value:V or zeros"),
    "misspelt option": ([RUN, *HOST, *INPUTS, "--chek"], "unknown option '--chek'; did you mean '--check'\\?$"),
    "misspelt option with a value": ([TRANSLATE, "--target-s=host", "good.mlir"], "unknown option '--target-s'; did you mean '--targets'\\?$"),
    "option of a group": ([TRANSLATE, "--greta-to-spriv", "good.mlir"], "unknown option '--greta-to-spriv'; did you mean '--greta-to-spirv'\\?$"),
    "unknown option": ([RUN, *HOST, "--frobnicate"], "unknown option '--frobnicate'; greta-run --help lists all options$"),
    "one argument too many": ([RUN, *HOST, "other.greta"], "unexpected argument 'other.greta'; greta-run --help lists all options$"),
    "misspelt command": ([LLM, "generat", "m.greta"], "unknown command 'generat'; did you mean 'generate'\\? The commands are compile, run, generate, .*list$"),
    "unknown command": ([LLM, "chat", "m.greta", "m.gguf", "--port=1"], "unknown command 'chat'; the commands are compile, run, generate, .*list$"),
    "misspelt option of a command": ([LLM, "serve", "--prot=1"], "unknown option '--prot'; did you mean '--port'\\?$"),
    "misspelt op": ([TRANSLATE, "--greta-to-package", "--targets=host", "misspelt.mlir", "-o", "out"], "custom op 'greta.rmsnorm' is unknown.*; did you mean 'greta.rms_norm'\\?$"),
    "a package for other devices": ([RUN, "good.greta", "--device=sim:gfx942", *INPUTS], "no variant of 'rms_norm' runs on sim:gfx942 .*: the package is for host; compile it with --targets=gfx942 as well$"),
    "nibbles of a scalar": (first_input("i4:bytes.npy"), "packed i4 needs a dim"),
    "no .npy file": (first_input("text.npy"), "text.npy: not a .npy file"),
    ".npy version": (first_input("version.npy"), ".npy format version 9 is not supported"),
    ".npy size": (first_input("size.npy"), "not a .npy file: the header's size"),
    ".npy header": (first_input("short.npy"), "the .npy header is cut off"),
    ".npy key": (first_input("key.npy"), "not a .npy header: key 'description'"),
    ".npy without shape": (first_input("missing.npy"), "not a .npy header: a key is missing"),
    ".npy type": (first_input("type.npy"), "element type '>f4' is not supported \\(<f4 <f2 <f8 |i1 <i2 <i4 <i8 <u4 |u1 <u2\\)"),
    ".npy string": (first_input("string.npy"), "not a .npy header: a string does not end \\(structured types are not supported\\)"),
    ".npy structure": (first_input("structured.npy"), "not a .npy header: "),
    ".npy shape": (first_input("shape.npy"), "not a .npy header: the shape"),
    ".npy data": (first_input("data.npy"), "the file holds 8 bytes of data, shape 3x64 needs 768"),
    "a folder as input": (first_input("."), "error: .*\\."),
    "a folder as package": ([RUN, ".", "--device=host", *INPUTS], "error: "),
    ".npy order": (first_input("fortran.npy"), "the array is in Fortran order; save it with numpy.ascontiguousarray"),
    ".npy of everything": (first_input("everything.npy"), "shape 9999999999x9999999999 is larger than the address space"),
    "numbers of everything": (first_input("9999999999x9999999999xf32:zeros"), "shape 9999999999x9999999999 is larger than the address space"),
    "which function": ([RUN, "two.greta", "--device=host", *INPUTS], "--function is needed; the package has rms_norm, other"),
    "no package": ([RUN, "--device=host"], "no package given; see --help"),
    "which code object": ([TRANSLATE, "--greta-to-hsaco", "--target=gfx942", "two.mlir", "-o", "out"], "becomes 2 code objects; choose one with --function=NAME and --kernel=N, or write a package"),
    "tune nothing": ([TUNE, "none.mlir", "--target=gfx942", "-o", "out"], "cannot open 'none.mlir'"),
    "tune no such function": ([TUNE, "matmul.mlir", "--target=gfx942", "--device=estimate", "--function=other", "-o", "out"], "no public function 'other'"),
    "tune into a folder": ([TUNE, "matmul.mlir", "--target=gfx942", "--device=estimate", "--candidates=1", "--size=64", "-o", "no/such/out"], "cannot write 'no/such/out'|no/such/out"),
}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messages")
    return [harness.compile_package(folder, name, source, "host") for name, source in (("good", GOOD), ("two", TWO))]


@pytest.mark.parametrize("name", ROWS)
def test_message(tmp_path, packages, name):
    for file, content in FILES.items():
        (tmp_path / file).write_bytes(content)
    np.save(tmp_path / "unsigned.npy", np.zeros((3, 64), np.uint16))
    for package in packages:
        (tmp_path / package.name).symlink_to(package)
    (tmp_path / "full").symlink_to("/dev/full")
    before = sorted(p.name for p in tmp_path.iterdir())
    command, pattern = ROWS[name]
    one_diagnostic(harness.tool(*command, cwd=tmp_path, errors="replace"), pattern)
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_a_link_as_output_stays_one(tmp_path):
    """A device or a link is written through, and nothing takes its place."""
    for name in ("good.mlir", "matmul.mlir"):
        (tmp_path / name).write_bytes(FILES[name])
    (tmp_path / "out").symlink_to("made")
    for command in (
        [TRANSLATE, "--greta-to-package", "--targets=host", "good.mlir", "-o", "out"],
        [TUNE, "matmul.mlir", "--target=gfx942", "--device=estimate", "--candidates=1", "--size=64", "-o", "out"],
    ):
        (tmp_path / "made").unlink(missing_ok=True)
        ran = harness.tool(*command, cwd=tmp_path)
        assert ran.returncode == 0 and (tmp_path / "out").is_symlink() and (tmp_path / "made").stat().st_size > 100, ran.stderr


@pytest.mark.parametrize(
    "command, says",
    [
        ([RUN], ["--reps UINT:UINT in [1 - 100000]=50", "--rotate .*=0", "GRETA_CHECK=1"]),
        ([TRANSLATE], ["gfx90a gfx942", "--output TEXT=-"]),
        ([TUNE], ["--candidates .*=16", "--reps .*=20"]),
        ([LLM], ["compile .*", "--synthetic=tiny"]),
        ([LLM, "generate"], ["-n INT:INT in [1 - 16777216]=128", "--temp,--temperature .*=0.8", "--context .*=0 "]),
        ([LLM, "serve"], ["--port .*=8080", "--parallel .* without it 8,? ", "--queue .*=64", "--chunk .*=2048", "--host TEXT=127.0.0.1"]),
    ],
    ids=["greta-run", "greta-translate", "greta-tune", "greta-llm", "generate", "serve"],
)
def test_help_has_defaults(command, says):
    ran = harness.tool(*command, "--help")
    assert ran.returncode == 0 and ran.stderr == ""
    text = " ".join(ran.stdout.split())
    for pattern in says:
        assert re.search(pattern.replace("[", r"\["), text), (pattern, ran.stdout)
