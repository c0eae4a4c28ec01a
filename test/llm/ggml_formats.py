"""Formats of weights as llama.cpp's own library has them, ggml, in a process of its own: it needs a newer C library than Debian 12's.

    scripts/vulkan-drivers lavapipe PYTHON test/llm/ggml_formats.py LIBRARY FOLDER

Comes in: jobs.json of the folder, {name: [ggml's number, rows, columns]}, and of each name rows of our blocks, NAME.blocks, and of f32, NAME.rows, if ggml is to
quantise them. Goes out: NAME.numbers, f32, what our blocks stand for; and of rows of f32 NAME.theirs, the blocks that ggml makes of them, and NAME.meant, what those
stand for. On stdout: the names that ggml does not know.
"""

import ctypes
import json
import pathlib
import sys
from ctypes import c_bool, c_char_p, c_float, c_int, c_int64, c_size_t, c_void_p


class Traits(ctypes.Structure):
    """ggml.h: ggml_type_traits, up to what is used of it."""

    _fields_ = [
        ("name", c_char_p),
        ("block", c_int64),
        ("interleaved", c_int64),
        ("bytes", c_size_t),
        ("is_quantized", c_bool),
        ("to_float", ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_int64)),
    ]


def main(library, folder):
    ggml, folder = ctypes.CDLL(library), pathlib.Path(folder)
    ggml.ggml_get_type_traits.restype = ctypes.POINTER(Traits)
    ggml.ggml_quantize_chunk.restype = c_size_t
    ggml.ggml_quantize_chunk.argtypes = [c_int, c_void_p, c_void_p, c_int64, c_int64, c_int64, c_void_p]
    for name, (number, rows, columns) in json.loads((folder / "jobs.json").read_text()).items():
        traits = ggml.ggml_get_type_traits(number).contents
        if not traits.to_float:
            print(name)
            continue

        def numbers(blocks):
            made = (c_float * (rows * columns))()
            traits.to_float(blocks, made, rows * columns)
            return bytes(made)

        ours = (folder / f"{name}.blocks").read_bytes()
        size = rows * columns // traits.block * traits.bytes
        assert len(ours) == size, (name, len(ours), size)
        (folder / f"{name}.numbers").write_bytes(numbers(ours))
        if not (folder / f"{name}.rows").exists():
            continue
        theirs, weights = ctypes.create_string_buffer(size), (c_float * columns)(*[1.0] * columns)
        done = ggml.ggml_quantize_chunk(number, (folder / f"{name}.rows").read_bytes(), theirs, 0, rows, columns, weights)
        assert done == size, (name, done, size)
        (folder / f"{name}.theirs").write_bytes(theirs.raw)
        (folder / f"{name}.meant").write_bytes(numbers(theirs))


main(*sys.argv[1:])
