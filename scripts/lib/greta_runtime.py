"""The parts of greta_runtime.h that the demo, the end-to-end tests and the benchmark call, through ctypes; arrays go in and out as NumPy arrays.

bf16 and the floats of 8 bits are those of ml_dtypes where that package exists, uint16 and uint8 where it does not.
"""

import ctypes
import json
import os
import pathlib

import numpy as np

SMALL_FLOATS = {
    "bf16": ("bfloat16", np.uint16),
    "f8e4m3fn": ("float8_e4m3fn", np.uint8),
    "f8e5m2": ("float8_e5m2", np.uint8),
    "f8e4m3fnuz": ("float8_e4m3fnuz", np.uint8),
    "f8e5m2fnuz": ("float8_e5m2fnuz", np.uint8),
}
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

DTYPES = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "i1": np.bool_}
DTYPES |= {name: getattr(ml_dtypes, theirs, bits) for name, (theirs, bits) in SMALL_FLOATS.items()}


class Tensor(ctypes.Structure):
    _fields_ = [("buffer", ctypes.c_void_p), ("offset", ctypes.c_size_t), ("shape", ctypes.POINTER(ctypes.c_int64)), ("rank", ctypes.c_uint32), ("value", ctypes.c_void_p)]


class TensorInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("access", ctypes.c_char_p),
        ("rank", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("is_scalar", ctypes.c_int32),
        ("tied", ctypes.c_int32),
    ]


class GretaError(RuntimeError):
    pass


class Runtime:
    """One device of libgreta_runtime.so with one stream."""

    def __init__(self, device, library=None):
        library = library or os.environ.get("GRETA_RUNTIME") or pathlib.Path(__file__).resolve().parents[2] / "build" / "lib" / "libgreta_runtime.so"
        self.lib = ctypes.CDLL(str(library))
        for name in ("greta_last_error", "greta_function_variant", "greta_package_manifest"):
            getattr(self.lib, name).restype = ctypes.c_char_p
        self.lib.greta_function_result_count.restype = ctypes.c_size_t
        self.lib.greta_buffer_size.restype = ctypes.c_size_t
        for name in ("package", "function", "buffer", "event", "graph", "stream"):
            getattr(self.lib, f"greta_{name}_destroy").argtypes = [ctypes.c_void_p]
        self.device = ctypes.c_void_p()
        self.check(self.lib.greta_device_open(device.encode(), ctypes.byref(self.device)))
        self.stream = self.make("stream_create", self.device)

    def check(self, status):
        if status:
            raise GretaError(self.lib.greta_last_error().decode())

    def make(self, call, *arguments):
        """Calls a greta function whose last parameter receives a handle."""
        handle = ctypes.c_void_p()
        self.check(getattr(self.lib, "greta_" + call)(*arguments, ctypes.byref(handle)))
        return handle

    def json(self, call, *arguments):
        """Calls a greta function whose last parameter receives a JSON text."""
        text = ctypes.c_char_p()
        self.check(getattr(self.lib, "greta_" + call)(*arguments, ctypes.byref(text)))
        value = json.loads(text.value)
        self.lib.greta_string_free(text)
        return value

    def info(self):
        return self.json("device_info", self.device)

    def close(self):
        self.lib.greta_stream_destroy(self.stream)
        self.check(self.lib.greta_device_close(self.device))

    def buffer(self, array_or_bytes):
        """A device buffer, filled when given an array."""
        if isinstance(array_or_bytes, int):
            return self.make("buffer_create", self.device, ctypes.c_size_t(max(array_or_bytes, 4)))
        array = np.ascontiguousarray(array_or_bytes)
        handle = self.make("buffer_create", self.device, ctypes.c_size_t(max(array.nbytes, 4)))
        if array.nbytes:
            self.check(self.lib.greta_buffer_write(self.stream, handle, ctypes.c_size_t(0), array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes)))
        return handle

    def repeated(self, array, size):
        """A device buffer of so many bytes, filled with the array's again and again."""
        part, whole = self.buffer(array), self.buffer(size)
        for at in range(0, size, array.nbytes):
            length = min(array.nbytes, size - at)
            self.check(self.lib.greta_buffer_copy(self.stream, whole, ctypes.c_size_t(at), part, ctypes.c_size_t(0), ctypes.c_size_t(length)))
        self.lib.greta_buffer_destroy(part)
        return whole

    def poison(self, buffer, size):
        """Fills a buffer with NaNs, so that an element which no kernel writes shows."""
        self.check(self.lib.greta_buffer_fill(self.stream, buffer, ctypes.c_size_t(0), ctypes.c_size_t(size & ~3), ctypes.c_uint32(0xFFFFFFFF)))

    def read(self, buffer, shape, dtype):
        array = np.empty(shape, DTYPES[dtype])
        if array.nbytes:
            self.check(self.lib.greta_buffer_read(self.stream, buffer, ctypes.c_size_t(0), array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes)))
        return array

    def synchronize(self):
        self.check(self.lib.greta_stream_synchronize(self.stream))


class Package:
    def __init__(self, runtime, path):
        self.runtime = runtime
        self.handle = runtime.make("package_open", str(path).encode())

    def manifest(self):
        return json.loads(self.runtime.lib.greta_package_manifest(self.handle))

    def variants(self, function):
        """As greta_function_variants reports it: per variant whether this device can run it."""
        return self.runtime.json("function_variants", self.runtime.device, self.handle, function.encode())

    def function(self, name, variant=None, flags=0):
        return Function(self, name, variant, flags)


class Function:
    def __init__(self, package, name, variant, flags):
        self.runtime = runtime = package.runtime
        self.handle = runtime.make("function_load", runtime.device, package.handle, name.encode(), variant.encode() if variant else None, ctypes.c_uint32(flags))
        self.variant = runtime.lib.greta_function_variant(self.handle).decode()

    def destroy(self):
        self.runtime.lib.greta_function_destroy(self.handle)

    def results(self, arguments):
        """[(shape, dtype, bytes)] of the results for these argument tensors."""
        results = []
        for index in range(self.runtime.lib.greta_function_result_count(self.handle)):
            info = TensorInfo(struct_size=ctypes.sizeof(TensorInfo))
            self.runtime.check(self.runtime.lib.greta_function_result(self.handle, ctypes.c_size_t(index), ctypes.byref(info)))
            shape, size = (ctypes.c_int64 * max(info.rank, 1))(), ctypes.c_size_t()
            self.runtime.check(
                self.runtime.lib.greta_function_result_shape(self.handle, arguments, ctypes.c_size_t(len(arguments)), ctypes.c_size_t(index), shape, ctypes.byref(size))
            )
            results.append((tuple(shape[: info.rank]), info.dtype.decode(), size.value))
        return results

    def launch(self, arguments, results):
        self.runtime.check(
            self.runtime.lib.greta_function_launch(self.handle, self.runtime.stream, arguments, ctypes.c_size_t(len(arguments)), results, ctypes.c_size_t(len(results)))
        )

    def on(self, arguments):
        """The results' arrays of a launch on these argument tensors."""
        described = self.results(arguments)
        outputs = [self.runtime.buffer(size) for _, _, size in described]
        for buffer, (_, _, size) in zip(outputs, described):
            self.runtime.poison(buffer, size)
        self.launch(arguments, tensors(zip(outputs, (shape for shape, _, _ in described))))
        values = [self.runtime.read(buffer, shape, dtype) for buffer, (shape, dtype, _) in zip(outputs, described)]
        for buffer in outputs:
            self.runtime.lib.greta_buffer_destroy(buffer)
        return values

    def __call__(self, *arrays):
        """Arrays, and scalars as NumPy's, to the results' arrays."""
        buffers = [None if is_scalar(a) else self.runtime.buffer(a) for a in arrays]
        values = self.on(tensors((b, a if is_scalar(a) else a.shape) for b, a in zip(buffers, arrays)))
        for buffer in filter(None, buffers):
            self.runtime.lib.greta_buffer_destroy(buffer)
        return values


def is_scalar(argument):
    return isinstance(argument, np.generic)


def tensor(buffer, shape):
    """A greta_tensor of a buffer and a shape, or of a NumPy scalar in the shape's place."""
    if is_scalar(shape):
        value = np.array([shape])
        made = Tensor(value=value.ctypes.data)
        made.keep = value
        return made
    return Tensor(buffer, 0, (ctypes.c_int64 * max(len(shape), 1))(*shape), len(shape))


def tensors(buffers_and_shapes):
    """A C array of greta_tensor."""
    made = [tensor(buffer, shape) for buffer, shape in buffers_and_shapes]
    array = (Tensor * len(made))(*made)
    array.keep = made  # what they point to
    return array
