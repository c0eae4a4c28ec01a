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

    def with_layout(theirs: Any, position: int) -> Any:
        def fake(mode: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
            result = theirs(mode, op, *args, **kwargs)
            x = args[position] if len(args) > position else kwargs["input"]
            if x.fake_device.type != NAME:
                return result
            with mode:
                if position == 0:
                    return result.contiguous(memory_format=format_of(x))
                weight = args[2] if len(args) > 2 else kwargs["weight"]
                likes = (x, weight)
                return (*(None if one is None else torch.empty_like(like) for one, like in zip(result, likes)), result[2])

        return fake

    for op in aten.convolution.default, aten._convolution.default, aten._convolution.deprecated:
        table[op] = with_layout(table[op], 0)
    table[aten.convolution_backward.default] = with_layout(table[aten.convolution_backward.default], 1)
