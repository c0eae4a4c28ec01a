"""From a kernel in Python to Triton IR as text, by Triton's own frontend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._runtime import Error
from . import check_version


def parse_signature(fn: Any, signature: str | Mapping[str, str]) -> tuple[dict[str, str], dict[tuple[int, ...], Any], dict[tuple[int, ...], Any]]:
    """The types, constants and attributes of a kernel's parameters, as ASTSource takes them."""
    names = fn.arg_names
    if isinstance(signature, Mapping):
        given = [str(signature[name]) if name in signature else None for name in names]
        if unknown := set(signature) - set(names):
            raise Error(f"kernel '{fn.__name__}' has no parameter {', '.join(sorted(unknown))}; it has {', '.join(names)}")
    else:
        words = [word.strip() for word in signature.split(",")]
        if len(words) > len(names):
            raise Error(f"kernel '{fn.__name__}' has {len(names)} parameters ({', '.join(names)}), the signature has {len(words)}")
        given = [*words, *[None] * (len(names) - len(words))]
    types, constants, attributes = {}, {}, {}
    for index, (name, word) in enumerate(zip(names, given)):
        kind, _, hint = (word or "").partition(":")
        if word is None:
            default = fn.signature.parameters[name].default
            if default is fn.signature.empty:
                raise Error(f"the signature of kernel '{fn.__name__}' has nothing for its parameter '{name}'")
            types[name], constants[index,] = "constexpr", default
        elif not _is_type(kind):
            types[name], constants[index,] = "constexpr", _constant(name, word)
        elif fn.params[index].is_constexpr:
            raise Error(f"parameter '{name}' of kernel '{fn.__name__}' is a constexpr: the signature has its value, not the type '{kind}'")
        elif hint == "1" and not kind.startswith("*"):
            types[name], constants[index,] = "constexpr", 1
        elif hint in ("", "16"):
            types[name] = kind
            if hint:
                attributes[index,] = [["tt.divisibility", 16]]
        else:
            raise Error(f"'{word}' of parameter '{name}': a hint is 16, divisible by 16, or of an integer 1, its value")
    return types, constants, attributes


_TYPES = {"i1", "i8", "i16", "i32", "i64", "u1", "u8", "u16", "u32", "u64", "fp16", "bf16", "fp32", "fp64", "fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16"}


def _is_type(kind: str) -> bool:
    return kind.lstrip("*") in _TYPES or kind.startswith("tensordesc<")


def _constant(name: str, word: str) -> Any:
    import ast

    import triton.language as tl

    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError):
        # A type, such as tl.float16; anything else is a word of the kernel's own.
        kind = getattr(tl, word.removeprefix("tl."), None)
        if isinstance(kind, tl.dtype):
            return kind
        if word.startswith("*") or not word.isidentifier():
            raise Error(f"'{word}' of parameter '{name}' is neither a type nor a value; types are {', '.join(sorted(_TYPES))}, pointers *fp16") from None
        return word


def make_ir(source: Any, target: Any, backend: Any, options: Any) -> Any:
    """A kernel's module of Triton IR, after Triton's own passes."""
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context)
    return backend.make_ttir(module), context


def kernel_of(fn: Any) -> Any:
    """The function that Triton compiles, without what was decorated around it."""
    check_version()
    import triton

    while not isinstance(fn, triton.runtime.JITFunction) and hasattr(fn, "fn"):
        fn = fn.fn  # heuristics and autotune: the signature has what they would choose
    if not isinstance(fn, triton.runtime.JITFunction):
        raise Error(f"{fn!r} is no kernel; decorate it with @triton.jit or @greta.jit")
    return fn


def specialisations(fn: Any, signature: Any) -> Mapping[str, Any]:
    """The signatures by name of their functions, where that is what `signature` has; nothing where it is one."""
    if not isinstance(signature, Mapping) or set(signature) & set(kernel_of(fn).arg_names):
        return {}
    if wrong := [name for name in signature if not name.isidentifier()]:
        raise Error(f"'{wrong[0]}' is no name of a function; specialisations are signatures by name")
    return signature


def ahead_of_time(fn: Any, signature: str | Mapping[str, str], targets: Sequence[str], options: Mapping[str, Any], function: str | None, pointer_range: int) -> tuple[str, str, dict[str, int], dict[str, Any]]:
    """The kernel's text, in which it has the name `function`, its name, the launch's options that the compiler takes, and its arguments as a grid takes them."""
    fn = kernel_of(fn)
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from .compiler import POINTER_RANGE, GretaBackend, GretaOptions

    if unknown := set(options) - set(GretaOptions.__dataclass_fields__):
        raise Error(f"no launch has the option {', '.join(sorted(unknown))}; there are num_warps, num_stages and those of Triton's back ends")
    types, constants, attributes = parse_signature(fn, signature)
    if pointer_range not in (32, 64):
        raise Error(f"pointer_range is {pointer_range}; it is 64, or 32 where every tensor has less than 2 GiB")
    if pointer_range == 32:
        for index, kind in enumerate(types.values()):
            if kind.startswith("*"):
                attributes.setdefault((index,), []).append(POINTER_RANGE)
    target = GPUTarget("greta", ",".join(targets), 32)
    backend = GretaBackend(target)
    parsed = backend.parse_options(dict(options))
    module, _context = make_ir(ASTSource(fn, types, constants, attributes), target, backend, parsed)
    arguments = {name: constants.get((index,)) for index, (name, kind) in enumerate(types.items()) if kind == "constexpr" or kind[0] in "iu"}
    text, name = str(module), module.get_entry_func_name()
    if function:
        text, name = text.replace(f"tt.func public @{name}(", f"tt.func public @{function}(", 1), function
    return text, name, parsed.for_compiler(), arguments
