"""The back end that Triton finds: from its IR to packages for one device.

Triton imports this module with itself, whatever is used: what fails here would break Triton.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import pathlib
from types import ModuleType
from typing import Any

from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget

from .._devices import is_checked
from . import check_version


@dataclasses.dataclass(frozen=True)
class GretaOptions:
    """Options of a launch. Triton refuses keywords that are not here, so keywords of its other back ends are here, and mean nothing."""

    num_warps: int = 4
    num_stages: int = 0  # the compiler chooses
    num_ctas: int = 1
    warp_size: int = 32
    arch: str | None = None
    debug: bool = False
    sanitize_overflow: bool = True
    backend_name: str = "greta"
    extern_libs: tuple[tuple[str, str], ...] = ()
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e4nv", "fp8e5", "fp8e5b16", "fp8e4b8")
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 0
    enable_fp_fusion: bool = True
    launch_cooperative_grid: bool = False
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False
    ir_override: str | None = None
    check: bool = False
    # NVIDIA's and AMD's.
    maxnreg: int | None = None
    launch_pdl: bool = False
    ptx_version: int | None = None
    ptx_options: str | None = None
    waves_per_eu: int = 0
    matrix_instr_nonkdim: int = 0
    kpack: int = 1
    allow_flush_denorm: bool = False
    schedule_hint: str = ""

    def __post_init__(self) -> None:
        if self.num_warps <= 0 or self.num_warps & (self.num_warps - 1):
            raise AssertionError(f"num_warps is {self.num_warps}; it must be a power of 2")  # as Triton's back ends say it
        if self.num_ctas != 1:
            raise ValueError(f"num_ctas is {self.num_ctas}; GRETA's devices have no clusters, so it is 1")

    def hash(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()

    def for_compiler(self) -> dict[str, int]:
        return {"num_warps": self.num_warps, "num_stages": self.num_stages}


# As Triton's AMD back end writes it: what a pointer reaches is below 2^31 bytes, and offsets have 32 bits.
POINTER_RANGE = ["tt.pointer_range", 32]


def _reach(tensor: Any) -> int:
    """Bytes of the memory that a tensor, or what wraps one, begins. If memory lies before it, offsets may be negative: 2^31, which promises nothing."""
    if hasattr(tensor, "ptr_range"):
        return tensor.ptr_range()
    tensor = getattr(tensor, "base", tensor)
    if not hasattr(tensor, "storage_offset") or tensor.storage_offset():  # some libraries' wrappers have a storage and say nothing of where they begin
        return 1 << 31
    return tensor.untyped_storage().nbytes()


@functools.lru_cache(None)
def _build_key() -> str:
    from .._compile import build_key

    return build_key(pathlib.Path(__file__).parent)


def _run_passes(module: Any) -> Any:
    manager = ir.pass_manager(module.context)
    manager.enable_debug()
    passes.common.add_inliner(manager)
    if hasattr(passes.ttir, "add_rewrite_tensor_pointer"):  # block pointers, which Triton 3.6 and 3.7 have
        passes.ttir.add_rewrite_tensor_pointer(manager)
    passes.common.add_canonicalizer(manager)
    passes.ttir.add_combine(manager)
    passes.ttir.add_reorder_broadcast(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    passes.ttir.add_loop_unroll(manager)
    manager.run(module, "make_ttir")
    return module


class GretaBackend(BaseBackend):
    """`target.arch` is what to compile for, as in greta.compile."""

    binary_ext = "greta"

    def __init__(self, target: GPUTarget):
        check_version()
        super().__init__(target)

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend in ("greta", "rdna")  # rdna is torch's name of our devices, as Inductor passes it on

    def hash(self) -> str:
        return f"greta-{_build_key()}-{self.target.arch}"

    @property
    def supports_native_tensor_specialization(self) -> bool:
        # Triton's own says nothing of a tensor's memory; asking costs a launch 0.3 us a tensor and gives offsets of 32 bits.
        return False

    @staticmethod
    def get_tensor_specialization(arg: Any, **kwargs: Any) -> str:
        return BaseBackend.get_tensor_specialization(arg, **kwargs) + ("S" if _reach(arg) < 1 << 31 else "")

    @staticmethod
    def parse_attr(desc: str) -> list[list[Any]]:
        return BaseBackend.parse_attr(desc) + ([POINTER_RANGE] if "S" in desc else [])

    def parse_options(self, opts: dict[str, Any]) -> GretaOptions:
        known = {name: value for name, value in opts.items() if name in GretaOptions.__dataclass_fields__ and value is not None}
        if isinstance(known.get("extern_libs"), dict):
            known["extern_libs"] = tuple(known["extern_libs"].items())
        return GretaOptions(**{"arch": self.target.arch, "warp_size": self.target.warp_size, **known, "check": is_checked()})

    def pack_metadata(self, metadata: Any) -> tuple[Any, ...]:
        return (metadata.num_warps, metadata.num_ctas, metadata.shared)

    def get_codegen_implementation(self, options: GretaOptions) -> dict[str, Any]:
        def convert_custom_types(*_: Any, **__: Any) -> Any:
            raise NotImplementedError("fp8e4b15 is NVIDIA's alone; use fp8e4nv or fp8e4b8")

        return {"min_dot_size": lambda lhs, rhs: (1, 1, 1), "convert_custom_types": convert_custom_types}

    def get_module_map(self) -> dict[str, ModuleType]:
        # NVIDIA's table has the most names; the importer maps its symbols.
        from triton.language.extra.cuda import libdevice

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, ctx: Any) -> None:
        pass

    def make_ttir(self, module: Any) -> Any:
        return _run_passes(module)

    def make_package(self, module: Any, metadata: dict[str, Any], options: GretaOptions) -> bytes:
        from .._compile import CompileError, compile_source
        from .errors import ConfigurationError

        name = module.get_entry_func_name()
        metadata.update(name=name, shared=0, global_scratch_size=0, global_scratch_align=1, profile_scratch_size=0, profile_scratch_align=1)
        try:
            return compile_source(str(module), self.target.arch, name=f"{name}.ttir", triton=True, line_tables=options.check, **options.for_compiler())
        except CompileError as error:
            raise ConfigurationError(str(error)) from None

    def add_stages(self, stages: dict[str, Any], options: GretaOptions, language: Any = None) -> None:
        if getattr(language, "name", "TRITON") != "TRITON":
            raise NotImplementedError("Gluon's kernels are for one vendor's layouts; GRETA takes those in triton.language")
        stages["ttir"] = lambda module, metadata: self.make_ttir(module)
        stages["greta"] = lambda module, metadata: self.make_package(module, metadata, options)
