"""Runs one operator of llama.cpp once, on the first Vulkan device: ggml's graphs and its Vulkan back end, through ggml's C API.

    scripts/virtual-radeon --mesa=testing CHIP build/venv/bin/python docs/benchmarks/ggml_operator.py OPERATOR    in the folder that scripts/vulkan-drivers ggml prints

Comes in: an operator as JSON, {"op": "matmul", "type": "q4_0", "m": 512, "n": 4096, "k": 4096} say. Goes out: on stdout ggml's version, and how many lines
GRETA_VIRTUAL_RADEON_RECORD had before the operator; the lines behind them are its dispatches. Weights are zeros. Tensors have llama.cpp's types and layouts:
activations in f32, keys and values in f16 as its cache keeps them, a mask for attention.
"""

import ctypes
import json
import os
import pathlib
import sys
from ctypes import c_bool, c_char_p, c_float, c_int, c_int64, c_size_t, c_void_p

import numpy as np

# ggml.h: enum ggml_type, enum ggml_prec.
TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_k": 12, "q6_k": 14}
PRECISION_F32 = 10


class InitParams(ctypes.Structure):
    _fields_ = [("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", c_bool)]


# The functions that are called: the result, the arguments. A pointer is any object of ggml's.
FUNCTIONS = {
    "ggml_version": (c_char_p,),
    "ggml_init": (c_void_p, InitParams),
    "ggml_new_tensor_4d": (c_void_p, c_void_p, c_int, c_int64, c_int64, c_int64, c_int64),
    "ggml_permute": (c_void_p, c_void_p, c_void_p, c_int, c_int, c_int, c_int),
    "ggml_mul_mat": (c_void_p, c_void_p, c_void_p, c_void_p),
    "ggml_mul": (c_void_p, c_void_p, c_void_p, c_void_p),
    "ggml_rms_norm": (c_void_p, c_void_p, c_void_p, c_float),
    "ggml_soft_max": (c_void_p, c_void_p, c_void_p),
    "ggml_flash_attn_ext": (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_float, c_float, c_float),
    "ggml_flash_attn_ext_set_prec": (None, c_void_p, c_int),
    "ggml_new_graph": (c_void_p, c_void_p),
    "ggml_build_forward_expand": (None, c_void_p, c_void_p),
    "ggml_backend_load": (c_void_p, c_char_p),
    "ggml_backend_reg_dev_get": (c_void_p, c_void_p, c_size_t),
    "ggml_backend_dev_init": (c_void_p, c_void_p, c_char_p),
    "ggml_backend_alloc_ctx_tensors": (c_void_p, c_void_p, c_void_p),
    "ggml_backend_tensor_set": (None, c_void_p, c_void_p, c_size_t, c_size_t),
    "ggml_backend_graph_compute": (c_int, c_void_p, c_void_p),
}


class Ggml:
    """The functions above without their prefix, a device and a context of tensors."""

    def __init__(self):
        libraries = [ctypes.CDLL(name, ctypes.RTLD_GLOBAL) for name in ("libggml-base.so.0", "libggml.so.0")]
        for name, (result, *arguments) in FUNCTIONS.items():
            function = next(getattr(library, name) for library in libraries if hasattr(library, name))
            function.restype, function.argtypes = result, arguments
            setattr(self, name.removeprefix("ggml_"), function)
        self.backend = self.backend_dev_init(self.backend_reg_dev_get(self.backend_load(str(pathlib.Path("libggml-vulkan.so").resolve()).encode()), 0), None)
        self.context = self.init(InitParams(1 << 22, None, True))

    def new(self, kind, *extents):
        return self.new_tensor_4d(self.context, TYPES[kind], *extents, *[1] * (4 - len(extents)))

    def heads_first(self, tensor):
        return self.permute(self.context, tensor, 0, 2, 1, 3)

    def attention(self, heads, key_heads, size, queries, keys):
        """The result, and the mask with what it holds: prompts see the keys up to their own."""
        q = self.heads_first(self.new("f32", size, heads, queries))
        k, v = (self.heads_first(self.new("f16", size, key_heads, keys)) for _ in range(2))
        mask = self.new("f16", keys, queries)
        result = self.flash_attn_ext(self.context, q, k, v, mask, size**-0.5, 0, 0)
        self.flash_attn_ext_set_prec(result, PRECISION_F32)  # as llama.cpp's graphs ask for
        visible = np.tril(np.ones((queries, keys)), keys - queries)
        return result, (mask, np.where(visible, 0, -np.inf).astype(np.float16))

    def operator(self, op, **o):
        if op == "matmul":
            return self.mul_mat(self.context, self.new(o["type"], o["k"], o["n"]), self.new("f32", o["k"], o["m"])), None
        if op == "rms_norm":
            x = self.new("f32", o["columns"], o["rows"])
            return self.mul(self.context, self.rms_norm(self.context, x, 1e-5), self.new("f32", o["columns"])), None
        if op == "softmax":
            return self.soft_max(self.context, self.new("f32", o["columns"], o["rows"])), None
        return self.attention(**o)

    def run(self, op):
        result, data = self.operator(**op)
        graph = self.new_graph(self.context)
        self.build_forward_expand(graph, result)
        if not self.backend_alloc_ctx_tensors(self.context, self.backend):
            sys.exit("ggml: no memory for the tensors")
        if data:
            tensor, values = data
            self.backend_tensor_set(tensor, values.ctypes.data, 0, values.nbytes)
        before = lines()
        if status := self.backend_graph_compute(self.backend, graph):
            sys.exit(f"ggml: the graph failed with status {status}")
        return before


def lines():
    path = pathlib.Path(os.environ.get("GRETA_VIRTUAL_RADEON_RECORD", ""))
    return len(path.read_text().splitlines()) if path.is_file() else 0


if __name__ == "__main__":
    ggml = Ggml()
    before = ggml.run(json.loads(sys.argv[1]))
    print(ggml.version().decode(), before)
