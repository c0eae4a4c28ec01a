"""What torch.compile on rdna takes from torch that torch makes no promise about, in one table, and the versions of torch that it was tried with.

In: a name, as in `from ._private import lowering`. Out: torch's module or object of that place. It is imported at the first question, as Inductor takes long to import, so who asks does so in a function. A torch that has moved a place is told with
the place's name. No other file of this package names one (test/torch/test_torch_private.py); _inductor.py, _graphs.py and _layouts.py change what some of these hold, in checked versions alone.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch

CHECKED_WITH = ("2.11", "2.13")

# Modules, and objects of modules behind a colon.
PLACES = {
    "benchmarking": "torch._inductor.runtime.benchmarking",
    "compile_fx": "torch._inductor.compile_fx",
    "config": "torch._inductor.config",
    "cudagraph_utils": "torch._inductor.cudagraph_utils",
    "device_interface": "torch._dynamo.device_interface",
    "eval_frame": "torch._dynamo.eval_frame",
    "fake_impls": "torch._subclasses.fake_impls",
    "lowering": "torch._inductor.lowering",
    "strategies": "torch._C._dynamo:eval_frame",
    "triton_heuristics": "torch._inductor.runtime.triton_heuristics",
    "triton_utils": "torch.utils._triton",
    "utils": "torch._inductor.utils",
    "V": "torch._inductor.virtualized:V",
    "ConstantSource": "torch._dynamo.source:ConstantSource",
    "CustomGraphModulePass": "torch._inductor.custom_graph_pass:CustomGraphModulePass",
    "DeviceOpOverrides": "torch._inductor.codegen.common:DeviceOpOverrides",
    "DimDynamic": "torch.fx.experimental.symbolic_shapes:DimDynamic",
    "FakeTensorMode": "torch._subclasses.fake_tensor:FakeTensorMode",
    "PythonWrapperCodegen": "torch._inductor.codegen.wrapper:PythonWrapperCodegen",
    "ShapeEnv": "torch.fx.experimental.symbolic_shapes:ShapeEnv",
    "StatelessSymbolicContext": "torch.fx.experimental.symbolic_shapes:StatelessSymbolicContext",
    "TracingContext": "torch._guards:TracingContext",
    "TritonKernel": "torch._inductor.codegen.triton:TritonKernel",
    "TritonScheduling": "torch._inductor.codegen.triton:TritonScheduling",
    "WrapperFxCodegen": "torch._inductor.codegen.wrapper_fxir:WrapperFxCodegen",
    "decomposition_table": "torch._decomp:decomposition_table",
    "decompositions": "torch._inductor.decomposition:decompositions",
    "make_fx": "torch.fx.experimental.proxy_tensor:make_fx",
    "register_backend_for_device": "torch._inductor.codegen.common:register_backend_for_device",
    "register_device_op_overrides": "torch._inductor.codegen.common:register_device_op_overrides",
    "select_decomp_table": "torch._inductor.decomposition:select_decomp_table",
    "statically_known_true": "torch.fx.experimental.symbolic_shapes:statically_known_true",
    "tracing": "torch._guards:tracing",
}


def is_checked() -> bool:
    """Whether this torch is of a version that the places were tried with."""
    return ".".join(torch.__version__.split(".")[:2]) in CHECKED_WITH


def refusal() -> str:
    return f"torch.compile on rdna was written for torch {' and '.join(CHECKED_WITH)}; this is {torch.__version__}"


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"{__name__} has no place '{name}'")
    module, _, attribute = PLACES[name].partition(":")
    try:
        place = importlib.import_module(module)
        return getattr(place, attribute) if attribute else place
    except (ImportError, AttributeError) as error:
        raise ImportError(f"{refusal()}, which has no {PLACES[name].replace(':', '.')}") from error
