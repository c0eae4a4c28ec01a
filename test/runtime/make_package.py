"""Writes a package without the compiler: y = 2 * x + 1 over [m, n], from the fixtures of test/unit/runtime.

usage: make_package.py FILE; or make(path, change, objects), where change(manifest) may edit it before the hashes are filled in.
"""

import hashlib
import json
import pathlib
import platform
import sys
import zipfile

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "build" / "test" / "unit" / "runtime" / "fixtures"
HOST = {"x86_64": "x86-64"}.get(platform.machine(), platform.machine())


def kernel(file, entry, block=64, dims=("m", "n")):
    return {
        "file": f"objects/{file}",
        "entry": entry,
        "block": [block, 1, 1],
        "grid": [["ceildiv", ["*", *dims], 64] if block > 1 else 1, 1, 1],
        "lds_bytes": 0,
        "args": [{"kind": "arg", "index": 0}, {"kind": "result", "index": 0}, {"kind": "i32", "value": ["*", *dims]}],
    }


def variant(name, requires):
    """One more Vulkan variant of the same kernel."""
    needs = {"features": ["bufferDeviceAddress"], **requires}
    return {"id": name, "target": "vulkan", "backend": "vulkan", "requires": needs, "kernels": [kernel("scale.spv", "scale")]}


def manifest():
    host = {"id": "host", "target": "host", "backend": "host", "requires": {"arch": HOST}, "kernels": [kernel("host_scale.so", "scale", block=1)]}
    function = {
        "name": "scale",
        "symbols": [{"name": "m", "arg": 0, "dim": 0}, {"name": "n", "arg": 0, "dim": 1}],
        "args": [{"name": "x", "dtype": "f32", "shape": ["m", "n"], "access": "read"}],
        "results": [{"name": "y", "dtype": "f32", "shape": ["m", "n"], "access": "write"}],
        "variants": [variant("vulkan-portable", {}), host],
    }
    return {"schema": 1, "compiler": {"greta": "0.1.0", "llvm": "22.1.8"}, "functions": [function]}


def make(path, change=lambda manifest: None, objects={}):
    """`objects`: the bytes of some files, instead of the fixtures'."""
    value = manifest()
    change(value)
    members = {}
    for function in value["functions"]:
        for entry in function["variants"]:
            for code in entry["kernels"]:
                name = code["file"].removeprefix("objects/")
                data = objects[name] if name in objects else (FIXTURES / name).read_bytes()
                code["sha256"] = hashlib.sha256(data).hexdigest()
                members[code["file"]] = data
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("manifest.json", json.dumps(value))
        for name, data in members.items():
            archive.writestr(name, data)
    return path


if __name__ == "__main__":
    make(sys.argv[1])
