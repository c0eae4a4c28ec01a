"""Functions of random_functions.py with an argument whose rows lie so far apart that 32 bits of bytes do not reach the last ones.

`far_functions.py DEVICE PACKAGE FUNCTION FOLDER` runs one in a process of its own on the arrays that `stored` left in FOLDER. An array may have fewer columns than the argument:
its rows are written where the argument has them, and nothing else of the argument's gigabytes is touched."""

import ctypes
import json
import math
import pathlib
import re
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "lib"))
import greta_runtime  # noqa: E402

ROWS = (16, 33, 64, 128)
# Bytes from the first row to the last: two blocks of 4 GiB, of which a block of all rows sees both, and less than a simulator's machine has.
REACH = 9_000_000_000
NEAR = 300  # elements from row to row, in place of those
DISTANCE = re.compile(r"(?<=x)\d{7,}(?=x)")
SIZES = {"f16": 2, "bf16": 2, "f32": 4}


def distance(rng, rows, dtype):
    """Elements from row to row; vectors fit at some of them."""
    return REACH // rows // SIZES[dtype] // 64 * 64 + rng.choice((0, 0, 8, 1))


def is_far(text):
    return "%far" in text


def near(text):
    return DISTANCE.sub(str(NEAR), text)


def wrapped(text, function, arrays):
    """The arrays with the elements that a device finds whose offsets from the first row are taken for 32 bits."""
    far, made = int(DISTANCE.search(text)[0]), []
    for argument, array in zip(function["args"], arrays, strict=True):
        if argument["name"].startswith("far"):
            offsets = (np.arange(array.shape[0])[:, None] * far + np.arange(array.shape[1])) * array.itemsize % 2**32 // array.itemsize
            rows, columns = offsets // far, offsets % far
            is_there = (rows < array.shape[0]) & (columns < array.shape[1])
            array = np.where(is_there, array[np.where(is_there, rows, 0), np.where(is_there, columns, 0)], np.zeros((), array.dtype))
        made.append(array)
    return made


def stored(folder, arrays):
    """The folder, with the arrays' bytes and shapes."""
    folder.mkdir(exist_ok=True)
    (folder / "shapes.json").write_text(json.dumps([array.shape for array in arrays]))
    for i, array in enumerate(arrays):
        array.tofile(folder / f"{i}.in")
    return folder


def loaded(folder, function):
    """The results that a run left there, as f64."""
    shapes = json.loads((folder / "results.json").read_text())
    dtypes = [greta_runtime.DTYPES[result["dtype"]] for result in function["results"]]
    return [np.fromfile(folder / f"{i}.out", dtype).reshape(shape).astype(np.float64) for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True))]


def buffer_of(runtime, array, shape):
    """A buffer of this shape, whose rows begin with the array's."""
    if array.shape == shape:
        return runtime.buffer(array)
    buffer = runtime.buffer(math.prod(shape) * array.itemsize)
    for row, values in enumerate(np.ascontiguousarray(array)):
        at = ctypes.c_size_t(row * shape[1] * array.itemsize)
        runtime.check(runtime.lib.greta_buffer_write(runtime.stream, buffer, at, values.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(values.nbytes)))
    return buffer


def main():
    device, path, name, folder = sys.argv[1], sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
    runtime = greta_runtime.Runtime(device)
    package = greta_runtime.Package(runtime, path)
    (declared,) = [f["args"] for f in package.manifest()["functions"] if f["name"] == name]
    function, arguments = package.function(name), []
    for i, (argument, shape) in enumerate(zip(declared, json.loads((folder / "shapes.json").read_text()), strict=True)):
        array = np.fromfile(folder / f"{i}.in", greta_runtime.DTYPES[argument["dtype"]]).reshape(shape)
        there = tuple(want if isinstance(want, int) else has for want, has in zip(argument["shape"], shape))
        arguments.append((buffer_of(runtime, array, there), there))
    values = function.on(greta_runtime.tensors(arguments))
    for i, value in enumerate(values):
        value.tofile(folder / f"{i}.out")
    (folder / "results.json").write_text(json.dumps([value.shape for value in values]))


if __name__ == "__main__":
    main()
