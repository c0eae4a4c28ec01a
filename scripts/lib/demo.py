"""The parts of scripts/demo: every example on a device, checked against `host`, with what the compiler made of it for every target.

usage: demo.py PACKAGE [DEVICE], DEVICE = vulkan unless named. Tokens are 512, for matmul and the Llama layer 16.
"""

import ctypes
import json
import statistics
import sys
import zipfile

import numpy as np

from greta_runtime import DTYPES, Package, Runtime, tensors

TOKENS = {"matmul": 16, "prefill": 16}
REPEATS = 5
# Both sides may be off by docs/internals/numerics.md's 1e-3 for f16, twice in a function that rounds twice.
LIMIT = 4e-3


def places(shapes):
    """Pages of a cache: each sequence has pages of its own, and as many keys as its new tokens and some before them."""
    (pages, page), (sequences, width) = shapes["k_cache"][:2], shapes["table"]
    own = pages // sequences
    table = np.arange(sequences)[:, None] * own + np.arange(width) % own
    new = shapes["slots"][0] // sequences
    lengths = new + 13 * np.arange(sequences)
    at = (lengths[:, None] - new + np.arange(new)).ravel()
    slots = table[np.arange(sequences).repeat(new), at // page] * page + at % page
    return {"table": table, "lengths": lengths, "slots": slots}


def make_inputs(function):
    """Normal activations; weights near one; tables of rotary angles; matrices scaled so that products stay of size one; places in a cache."""
    rng = np.random.default_rng(2026)
    tokens = TOKENS.get(function["name"], 512)
    shapes = {a["name"]: [tokens if isinstance(d, str) else d for d in a["shape"]] for a in function["args"]}
    integers = places(shapes) if "table" in shapes else {}
    for argument in function["args"]:
        shape = shapes[argument["name"]]
        if argument["name"] in integers:
            array = integers[argument["name"]]
        elif argument["name"] in ("cos", "sin"):
            angle = np.arange(shape[0])[:, None] * 500000.0 ** (-np.arange(shape[1]) / shape[1])
            array = getattr(np, argument["name"])(angle)
        elif len(shape) == 1:
            array = 1 + 0.1 * rng.standard_normal(shape)
        elif tokens not in shape:
            array = rng.standard_normal(shape) / np.sqrt(shape[-1])
        else:
            array = rng.standard_normal(shape)
        yield array.astype(DTYPES[argument["dtype"]])


def median_time(runtime, function, inputs):
    """Milliseconds of one launch on the device, buffers in place."""
    buffers = [runtime.buffer(a) for a in inputs]
    arguments = tensors(zip(buffers, (a.shape for a in inputs)))
    described = function.results(arguments)
    outputs = [runtime.buffer(size) for _, _, size in described]
    results = tensors(zip(outputs, (shape for shape, _, _ in described)))
    start, end = (runtime.make("event_create", runtime.device) for _ in range(2))
    times = []
    for _ in range(REPEATS):
        runtime.check(runtime.lib.greta_event_record(start, runtime.stream))
        function.launch(arguments, results)
        runtime.check(runtime.lib.greta_event_record(end, runtime.stream))
        elapsed = ctypes.c_double()
        runtime.synchronize()
        runtime.check(runtime.lib.greta_event_elapsed(start, end, ctypes.byref(elapsed)))
        times.append(elapsed.value / 1e3)
    for handle in (start, end):
        runtime.lib.greta_event_destroy(handle)
    for buffer in buffers + outputs:
        runtime.lib.greta_buffer_destroy(buffer)
    return statistics.median(times)


def max_error(actual, expected):
    """Largest difference from the host's result, relative to the largest element of its row."""
    errors = []
    for a, e in zip(actual, expected):
        a, e = (x.astype(np.float64).reshape(-1, x.shape[-1]) for x in (a, e))
        errors.append((np.abs(a - e).max(axis=1) / np.abs(e).max(axis=1)).max())
    return max(errors)


def code_objects(function):
    """One line per AMD code object: registers, LDS, spills."""
    for variant in function["variants"]:
        if variant["backend"] == "hip":
            for kernel in variant["kernels"]:
                s = kernel["stats"]
                registers = f"{s['vgprs']:3} VGPRs {s['sgprs']:3} SGPRs"
                yield f"    {variant['id']:12} {registers} {s['lds_bytes']:6} B LDS  {s['vgpr_spills'] + s['sgpr_spills']} spills {s['scratch_bytes']:3} B scratch"


def main(path, device="vulkan"):
    with zipfile.ZipFile(path) as archive:
        functions = json.loads(archive.read("manifest.json"))["functions"]
    runtime, host = Runtime(device), Runtime("host")
    package, host_package = Package(runtime, path), Package(host, path)
    print(f"\ndevice: {runtime.info()['name']}\n")
    print(f"{'function':20} {'kernels':>7}  {'variant':18} {'max error':>10} {'time':>10}")
    worst = 0.0
    for function in functions:
        inputs = list(make_inputs(function))
        loaded = package.function(function["name"])
        error = max_error(loaded(*inputs), host_package.function(function["name"])(*inputs))
        worst = max(worst, error)
        (variant,) = [v for v in function["variants"] if v["id"] == loaded.variant]
        milliseconds = median_time(runtime, loaded, inputs)
        print(f"{function['name']:20} {len(variant['kernels']):7}  {loaded.variant:18} {error:10.1e} {milliseconds:7.2f} ms", flush=True)
        print("\n".join(code_objects(function)))
    print(f"\nlargest error against host {worst:.1e}, of the row's largest element: {'fine' if worst <= LIMIT else 'TOO LARGE'}")
    return 0 if worst <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
