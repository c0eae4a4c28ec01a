"""Runs cases of a package on one device in a process of its own, so that a driver that crashes takes no test run with it, and so that the
process can be started on another driver (scripts/vulkan-drivers).

usage: worker.py DEVICE PACKAGE, with a JSON list of [case name, rows] on stdin. Every case runs in every variant that the device takes.
Prints one JSON object a line: {"start": [case, rows]} before a case, then {"case", "rows", "variant", "errors": [euclidean, maximum]}
per variant (the largest of all results), or {"case", "rows", "problem"}.
"""

import json
import sys

import cases
import epilogues
import prologues
import products
import slices
import tiled
import typed
from greta_runtime import GretaError, Package, Runtime


def report(**line):
    print(json.dumps(line), flush=True)


MODULES = {"product": products, "tiled": tiled, "epilogue": epilogues, "prologue": prologues, "slice": slices, "typed": typed}


def by_name(name):
    return MODULES.get(name.split("_")[0], cases).by_name(name)


def run(package, name, rows):
    case = by_name(name)
    inputs = case.inputs(rows)
    expected = case.reference(inputs)
    runnable = [v["id"] for v in package.variants(name) if v["runnable"]]
    if not runnable:
        report(case=name, rows=rows, problem="no variant runs on this device")
    for variant in runnable:
        function = package.function(name, variant)
        actual = function(*inputs)
        function.destroy()
        shapes = [[list(a.shape) for a in results] for results in (actual, expected)]
        if shapes[0] != shapes[1]:
            report(case=name, rows=rows, variant=variant, problem=f"shapes {shapes[0]} instead of {shapes[1]}")
            continue
        shape = (1, -1) if getattr(case, "is_one_row", False) else None
        errors_of = getattr(case, "errors", cases.row_errors)
        errors = [errors_of(*(x.reshape(shape or x.shape) for x in pair)) for pair in zip(actual, expected)]
        report(case=name, rows=rows, variant=variant, errors=[float(max(norm)) for norm in zip(*errors)])


def main(device, path):
    runtime = Runtime(device)
    package = Package(runtime, path)
    for name, rows in json.load(sys.stdin):
        report(start=[name, rows])
        try:
            run(package, name, rows)
        except GretaError as error:
            report(case=name, rows=rows, problem=str(error))
    runtime.lib.greta_package_destroy(package.handle)
    runtime.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
