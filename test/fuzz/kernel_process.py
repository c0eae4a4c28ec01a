"""Runs random Triton kernels in a process of its own, which a driver may take along: `kernel_process.py DEVICE JOB`, DEVICE one of GRETA's or `interpreter`.

JOB is a JSON file: the module of kernels, and of each its name, its arguments, what inputs it has and where its outputs go. Prints a line of JSON before and after each."""

import importlib.util
import json
import os
import sys
import warnings

import ml_dtypes
import numpy as np
import torch
from kernel_builder import ATOMICS, BIG, COUNTERS, FAR_ROWS, GRID, INPUT, PART, PROGRAMS, WINDOW
from random_runs import integers

TORCH = {"i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8, "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64}
TORCH |= {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
# Exponents from -8 to 7 (kernel_builder.GIVEN); f64 of more.
KINDS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
SPECIALS = (np.inf, -np.inf, np.nan, 0.0, -0.0)


def floats(rng, count, dtype):
    """Some whole, some of all bits, some beside the middle between two numbers of a narrower type; and special ones."""
    kept = rng.choice([1, 3, 4, 8, 11, 24, 52], count)
    low, high = (-7, 8) if dtype == "bf16" else (-8, 8) if dtype != "f64" else (-30, 30)
    mantissa = (rng.integers(0, 1 << 52, count) >> (52 - kept)) << (52 - kept)
    x = np.ldexp(1 + mantissa * 2.0**-52, rng.integers(low, high, count))
    x = np.nextafter(x, np.where(rng.random(count) < 0.5, 0, np.inf)) if dtype == "f64" else x
    x = np.where(rng.random(count) < 0.3, rng.integers(0, 100, count), x) * rng.choice([-1, 1], count)
    # To the type without a rounding up to 2^8, and none below the least.
    bits = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[dtype]
    mantissas, exponents = np.frexp(x)
    x = np.ldexp(np.trunc(np.ldexp(mantissas, bits + 1)), exponents - bits - 1)
    return np.where(rng.random(count) < 0.05, rng.choice(SPECIALS, count), x).astype(KINDS[dtype])


def tensor(array):
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def arguments(job, far):
    """The tensors of a kernel by the names of its arguments, and what is compared."""
    rng = np.random.default_rng(job["inputs"])
    made = {"y": np.zeros(PART * PROGRAMS + COUNTERS * (len(ATOMICS) + 2) * 4, np.uint8), "z": np.zeros(WINDOW * PROGRAMS, np.int32), "za": np.zeros(WINDOW * PROGRAMS, np.int32)}
    y, z, za = (torch.from_numpy(one) for one in made.values())
    tensors = {"z": z, "za": za, "zb": za}
    for name in sorted(job["arguments"]):
        kind, _, dtype = name.partition("_")
        if kind == "y":
            tensors[name] = y.view(TORCH[dtype])
        elif kind == "x":
            data = floats(rng, INPUT + 16, dtype) if dtype in KINDS else integers(rng, INPUT + 16, dtype.replace("i", "int").replace("u", "uint"))
            tensors[name] = tensor(data)[1 if dtype in job["shifted"] else 0 :]
        elif name == "far":
            tensors["far"] = far(FAR_ROWS * job["far_stride"])
    return [job["far_stride"] if name == "far_stride" else tensors[name] for name in job["arguments"]] + [job["n"], BIG], made


def main():
    device, path = sys.argv[1:]
    jobs = json.loads(open(path).read())
    is_interpreted = device == "interpreter"
    assert is_interpreted == (os.environ.get("TRITON_INTERPRET") == "1")
    if is_interpreted:
        import triton_interpreter

        triton_interpreter.mend()
        warnings.simplefilter("ignore")
        far = lambda count: torch.zeros(count, dtype=torch.int32)  # noqa: E731
    else:
        import greta

        greta.triton.activate(device)
        far = lambda count: greta.empty((count,), "i32")  # noqa: E731
    spec = importlib.util.spec_from_file_location("kernels", jobs["module"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for job in jobs["kernels"]:
        print(json.dumps({"start": job["index"]}), flush=True)
        values, made = arguments(job, far)
        options = {} if is_interpreted else {"num_warps": job["warps"]}
        problem = ""
        try:
            with np.errstate(all="ignore"):
                getattr(module, job["name"])[GRID](*values, **options)
        except Exception as error:  # whatever Triton or the compiler says
            problem = f"{type(error).__name__}: {error}"
        np.savez(job["output"], **made)
        print(json.dumps({"index": job["index"], "problem": problem}), flush=True)


if __name__ == "__main__":
    main()
