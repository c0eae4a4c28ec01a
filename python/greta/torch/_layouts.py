"""How the results of convolutions lie in memory, which torch's fake kernels must know: it takes a device like ours for one whose results are contiguous.

In: convolutions' images. Out: the memory format of results, for the kernels (_convolution.py) and for the fake ones (_inductor.py).
"""

from __future__ import annotations

from typing import Any

import torch

from ._device import NAME


def format_of(images: torch.Tensor) -> torch.memory_format:
    """The format of a convolution's result: that of its images, [B, C, ..]."""
    near = torch.channels_last
    isNear = images.dim() == 4 and images.is_contiguous(memory_format=near) and not images.is_contiguous()
    return near if isNear else torch.contiguous_format


def tell(fake_impls: Any) -> None:
    """Changes torch's fake convolutions: those of rdna lie as ours do."""
    aten = torch.ops.aten
    table = fake_impls.op_implementations_dict

    def with_layout(theirs: Any, first: int) -> Any:
        def fake(mode: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
            result = theirs(mode, op, *args, **kwargs)
            x, weight = (args[place] if len(args) > place else kwargs[name] for place, name in enumerate(("input", "weight"), first))
            if x.fake_device.type != NAME:
                return result
            with mode:
                if isinstance(result, torch.Tensor):
                    return result.contiguous(memory_format=format_of(x))
                likes = (x, weight, result[2])
                return tuple(None if one is None else torch.empty_like(like) for one, like in zip(result, likes))

        return fake

    # The images' place among the arguments. torch 2.11 has no fake kernel of its own for `_convolution`: it runs the device's.
    for op, first in (aten.convolution.default, 0), (aten._convolution.default, 0), (aten._convolution.deprecated, 0), (aten.convolution_backward.default, 1):
        if op in table:
            table[op] = with_layout(table[op], first)
