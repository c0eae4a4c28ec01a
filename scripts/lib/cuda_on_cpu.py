"""torch's device `cuda` as the CPU: tests and libraries name the one, GRETA's kernels take tensors of the other.

Some name the device as Triton's active back end, `greta`.
"""

import contextlib
import types

import torch
import torch.utils._triton

PROPERTIES = types.SimpleNamespace(
    name="GRETA", major=0, minor=0, multi_processor_count=4, total_memory=1 << 34, warp_size=32, max_threads_per_multi_processor=1024, shared_memory_per_block=32768, L2_cache_size=1 << 20
)


class OnTheCPU(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = {name: self.on_cpu(value) if name == "device" else value for name, value in (kwargs or {}).items()}
        if function is torch.Tensor.cuda:
            return args[0]
        if function in (torch.Tensor.to, torch.device):
            args = tuple(self.on_cpu(one) for one in args)
        return function(*args, **kwargs)

    @staticmethod
    def on_cpu(device):
        return "cpu" if isinstance(device, (str, torch.device)) and str(device).startswith(("cuda", "greta")) else device


def install(capability=(0, 0), synchronize=lambda: None):
    """For the rest of the process."""
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 1
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_name = lambda device=None: PROPERTIES.name
    torch.cuda.get_device_capability = lambda device=None: capability
    torch.cuda.get_device_properties = lambda device=None: PROPERTIES
    torch.cuda.synchronize = lambda device=None: synchronize()
    torch.cuda.device = lambda device: contextlib.nullcontext()
    torch.utils._triton.has_triton = lambda: True
    torch.cuda.default_generators = (torch.default_generator,)
    torch.utils.rename_privateuse1_backend("greta")
    torch.cuda.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
    torch._register_device_module("greta", torch.cuda)
    OnTheCPU().__enter__()
