"""Runs cases of a package on one device in a process of its own, so that a driver that crashes takes no test run with it, and so that the
process can be started on another driver (scripts/vulkan-drivers).

usage: worker.py DEVICE PACKAGE [N], with a JSON list of names of cases on stdin. Every case runs in the variant that the device prefers, and
about every N-th in all that it takes; without N every one does.
Prints one JSON object a line: {"start": case} before a case, then per variant {"case", "variant"} and the verdict of limits.judge, or
{"case", "problem"}.
"""

import json
import sys
import zlib

import numpy as np

import limits
import registry
from greta_runtime import GretaError, Package, Runtime


def report(**line):
    print(json.dumps(line), flush=True)


def preferred(package, functions, function):
    key = function, None
    if key not in functions:
        functions[key] = package.function(function)
        functions.setdefault((function, functions[key].variant), functions[key])
    return functions[key].variant


def run(package, functions, name, whole):
    case = registry.by_name(name)
    inputs = case.inputs()
    with np.errstate(all="ignore"):
        references = list(case.references(inputs))
    runnable = [v["id"] for v in package.variants(case.function) if v["runnable"]]
    if not runnable:
        report(case=name, problem="no variant runs on this device")
    elif not whole:
        runnable = [preferred(package, functions, case.function)]
    for variant in runnable:
        key = case.function, variant
        if key not in functions:  # cases that differ in their inputs share it
            functions[key] = package.function(*key)
        actual = functions[key](*inputs)
        report(case=name, variant=variant, **limits.judge(case, references, actual, variant))


def main(device, path, nth=1):
    runtime = Runtime(device)
    package, functions = Package(runtime, path), {}
    for name in json.load(sys.stdin):
        report(start=name)
        try:
            run(package, functions, name, whole=zlib.crc32(name.encode()) % int(nth) == 0)
        except GretaError as error:
            report(case=name, problem=str(error))
    for function in set(functions.values()):
        function.destroy()
    runtime.lib.greta_package_destroy(package.handle)
    runtime.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
