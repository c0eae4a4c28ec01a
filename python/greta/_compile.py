"""From sources to packages: the compiler, and Triton's kernels ahead of time."""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from . import _compiler, _runtime
from ._compiler import Form
from ._devices import is_checked
from ._package import Package
from ._runtime import Error


class CompileError(Error):
    """The compiler's complaint about a source, with the line it is about."""


def compile_source(text: str, targets: str, *, name: str = "source", triton: bool = False, grid: str = "", num_warps: int = 0, num_stages: int = 0, form: Form = Form.Package, line_tables: bool = False) -> bytes:
    """MLIR of GRETA's dialects, or Triton IR, as a package or in another form."""
    return compile_sources([(text, grid)], targets, name=name, triton=triton, num_warps=num_warps, num_stages=num_stages, form=form, line_tables=line_tables)


def compile_sources(sources: Sequence[tuple[str, str]], targets: str, **options: Any) -> bytes:
    """Texts with their grids, in one package."""
    succeeded, result, messages = _compiler.compile(sources, targets, **options)
    if not succeeded:
        raise CompileError(messages.strip())
    return result


def user_cache() -> pathlib.Path:
    """The user's folder of what is compiled once."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "greta"


@functools.lru_cache(None)
def build_key(folder: pathlib.Path = pathlib.Path(__file__).parent) -> str:
    """Differs between any two builds of the compiler, and between any two texts of this package: what either has made is cached by it."""
    key = hashlib.sha256(_compiler.build_id().encode())
    for path in sorted(folder.rglob("*.py")):
        key.update(f"{path.relative_to(folder)} {path.stat().st_size}\n".encode() + path.read_bytes())
    return key.hexdigest()


def compile_cached(text: str, target: str, **options: Any) -> bytes:
    """The package of this source, from the user's cache where it is there."""
    parts = (_compiler.build_id(), target, text, *(f"{name}={value}" for name, value in sorted(options.items())))
    path = user_cache() / "packages" / f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()}.greta"
    try:
        return Package(path.read_bytes()).data
    except (OSError, Error):
        pass  # there is none, or a machine that lost its power has left a part
    data = compile_source(text, target, **options)
    try:
        path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        Package(data).save(path)
    except OSError:
        pass  # a cache that cannot be written is none
    return data


class _Symbol:
    """An integer argument in a grid, and what is computed of it: an affine expression."""

    def __init__(self, text: str):
        self.text = text

    def _with(self, op: str, other: Any, swapped: bool = False) -> _Symbol:
        sides = [self, other if isinstance(other, _Symbol) else _Symbol(str(int(other)))]
        a, b = reversed(sides) if swapped else sides
        return _Symbol(f"({a.text} {op} {b.text})")

    def __add__(self, other: Any) -> _Symbol:
        return self._with("+", other)

    def __radd__(self, other: Any) -> _Symbol:
        return self._with("+", other, True)

    def __sub__(self, other: Any) -> _Symbol:
        return self._with("-", other)

    def __rsub__(self, other: Any) -> _Symbol:
        return self._with("-", other, True)

    def __mul__(self, other: Any) -> _Symbol:
        return self._with("*", other)

    def __rmul__(self, other: Any) -> _Symbol:
        return self._with("*", other, True)

    def __floordiv__(self, other: Any) -> _Symbol:
        return self._with("floordiv", other)

    def __mod__(self, other: Any) -> _Symbol:
        return self._with("mod", other)

    def __neg__(self) -> _Symbol:
        return self._with("*", -1)

    def _not_affine(self, *_: Any) -> Any:
        raise Error("a grid is affine over the kernel's integers: +, -, *, // and % by constants; leave it out, and launches say it")

    __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __int__ = __index__ = __float__ = __truediv__ = __rfloordiv__ = __rmod__ = _not_affine


def grid_text(grid: Any, arguments: Mapping[str, Any]) -> str:
    """A grid as the compiler takes it; `arguments` has the kernel's constants and, by name, None for its other integers."""
    if grid is None or isinstance(grid, str):
        return grid or ""
    if callable(grid):
        grid = grid({name: _Symbol(name) if value is None else value for name, value in arguments.items()})
    extents = grid if isinstance(grid, Sequence) else (grid,)
    return ", ".join(extent.text if isinstance(extent, _Symbol) else str(int(extent)) for extent in extents)


class Assembly(Mapping[str, Any]):
    """The forms of a kernel on its way to the device, made when it is asked for: `asm["amdgcn"]`, of the first target that has it, or `asm["amdgcn", "gfx1100"]`."""

    FORMS = {"ttir": None, "tile": Form.Tile, "llvmir": Form.LLVMIR, "amdgcn": Form.Assembly, "hsaco": Form.Object, "spirv": Form.Object}

    def __init__(self, text: str, targets: Sequence[str], **options: Any):
        self._text, self._targets = text, targets
        self._make = functools.lru_cache(None)(lambda form, target: compile_source(text, target, form=form, **options))

    def __getitem__(self, key: str | tuple[str, str]) -> Any:
        form, target = key if isinstance(key, tuple) else (key, None)
        if form not in self.FORMS:
            raise KeyError(f"{form}; there are {', '.join(self.FORMS)}")
        if form == "ttir":
            return self._text
        fitting = [one for one in self._targets if form == "tile" or one.startswith("vulkan") == (form == "spirv")]
        if (target or (fitting or [None])[0]) not in fitting:
            raise KeyError(f"{form}: the package is for {', '.join(self._targets)}")
        # The Vulkan family that runs everywhere.
        chosen = target or fitting[0]
        result = self._make(self.FORMS[form], "vulkan:portable" if chosen == "vulkan" else chosen)
        return result if form in ("hsaco", "spirv") else result.decode()

    def __iter__(self) -> Iterator[str]:
        return iter(self.FORMS)

    def __len__(self) -> int:
        return len(self.FORMS)


class Compiled(Package):
    """A package with what led to it: `.save(path)`, `.asm[...]`, `.report()`, and its functions. With several specialisations `.asm` has one by name of the function."""

    def __init__(self, data: bytes, asm: Assembly | dict[str, Assembly]):
        super().__init__(data)
        self.asm = asm

    def report(self) -> str:
        """Registers, shared memory, spills and occupancy of every variant, as greta-run --inspect prints them."""
        return _runtime.describe(self._package.manifest)


def compile(
    fn: Any,
    signature: str | Mapping[str, Any],
    targets: str | Sequence[str],
    grid: str | Callable[[dict[str, Any]], Any] | Sequence[int] | None = None,
    pointer_range: int = 64,
    **options: Any,
) -> Compiled:
    """One of Triton's kernels as a package; neither torch nor a GPU is needed.

    `signature` has the type of each parameter in their order: "*fp16:16, *fp16:16, i32, 1024" are two pointers to multiples of 16 bytes, an integer
    and the value of a constexpr. A dictionary will do, by name of the parameter; or one from names of functions to such signatures, each a
    specialisation of the kernel, side by side in the package. `grid` is how many programs there are over the kernel's integers, as a function of them
    (lambda m: (triton.cdiv(m["n"], m["BLOCK"]),)) or in words ("n ceildiv 1024"); without it the function takes grid_x, grid_y and grid_z.
    With `pointer_range=32` every tensor has less than 2 GiB, which each launch checks, nothing before its pointer is read or written, and addresses are
    offsets of 32 bits: that is what launches from Python compile for tensors that begin their memory and are that small. `options` are a launch's: num_warps=4, num_stages=2.
    """
    from .triton.source import ahead_of_time, specialisations

    names = [one.strip() for one in targets.split(",")] if isinstance(targets, str) else list(targets)
    several = specialisations(fn, signature)
    sources, assemblies = [], {}
    for function, one in (several or {None: signature}).items():
        text, name, launch, arguments = ahead_of_time(fn, one, names, options, function, pointer_range)
        settings: dict[str, Any] = dict(name=f"{name}.ttir", triton=True, line_tables=is_checked(), **launch)
        sources.append((text, grid_text(grid, arguments)))
        assemblies[name] = Assembly(text, names, grid=sources[-1][1], **settings)
    return Compiled(compile_sources(sources, ",".join(names), **settings), assemblies if several else assemblies[name])
