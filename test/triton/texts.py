"""Writes the Triton IR of kernels.py as the installed Triton prints it: python texts.py OUT [--locations]

Locations have the kernels' path relative to this folder; the texts of 3.9 have them. Neither torch nor a GPU is needed, but the Triton of
test/requirements-triton.txt (scripts/setup --triton); the texts of older versions come from environments with those.
"""

import pathlib
import sys
import types

sys.modules.setdefault("torch", types.ModuleType("torch"))  # Triton's driver looks for it and is not used
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend

from kernels import KERNELS

TARGETS = {"hip": GPUTarget("hip", "gfx950", 64), "cuda": GPUTarget("cuda", 90, 32)}


def text(function, signature, constants, backend, num_warps, locations):
    """What kernel.asm["ttir"] would hold."""
    place = {name: k for k, name in enumerate(function.arg_names)}
    types_ = {name: "constexpr" if name in constants else signature[name] for name in function.arg_names}
    attrs = {(place[name],): [["tt.divisibility", 16]] for name, type_ in signature.items() if type_.startswith("*")}
    source = ASTSource(function, types_, {(place[name],): value for name, value in constants.items()}, attrs)
    target = TARGETS[backend]
    compiler = make_backend(target)
    options = compiler.parse_options({"num_warps": num_warps, "debug": True, "sanitize_overflow": False})
    context = ir.context()
    ir.load_dialects(context)
    compiler.load_dialects(context)
    module = source.make_ir(target, options, compiler.get_codegen_implementation(options), compiler.get_module_map(), context)
    module = compiler.make_ttir(module, {}, options, *([target.arch] if backend == "cuda" else []))
    here = pathlib.Path(__file__).parent
    return str(module).replace(f'"{here}/', '"') if locations else module.str_nodebug()


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name, kernel in KERNELS.items():
        (out / f"{name}.ttir").write_text(text(**kernel, locations="--locations" in sys.argv))
