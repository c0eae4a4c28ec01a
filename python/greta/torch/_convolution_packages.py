"""Convolutions as packages of greta.conv2d: two dimensions, one group, channels next to each other (NHWC), f16, bf16 and f32.

A package knows all extents, as a layer of a model sees the same images at each step. Everything else is a kernel of _convolution.py.

The gradient of x is a convolution of the result's gradient with the weight turned around. With a stride s, the positions of x that leave the same remainder when
divided by s are a convolution of their own, by every s-th tap. All of them are one convolution, whose outputs are channels of each phase, one phase after the other,
and whose window has the taps of all phases; the phases' positions are spread behind it. A kernel of 3 taps with stride 2 and padding 1, grad g:

    x[2m] = g[m] w[1],  x[2m + 1] = g[m + 1] w[0] + g[m] w[2]:  a window of 2 taps, g[m] and g[m + 1], by [[w[1], 0], [w[2], w[0]]]
"""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from .. import _torch
from .._compile import compile_cached
from .._trace import Shape, Trace, tensor_type
from ._device import target_of
from ._epilogues import Epilogue, computed, narrowed, parsed, written
from ._operators import implements
from ._products import NAMES, row_by_row

MOST_PACKAGES = 256
MOST_SIZES = 16  # that have packages, of images of one layer: images of another size each time, or signals of another length, would compile one each time
ON_CPU_DRIVER = False  # lavapipe takes longer to compile a package than the kernel that serves all extents saves; tests try it nevertheless


class Window(NamedTuple):
    """A convolution: x [B, H, W, C] by w [KO, R, S, C], extents and settings of rows and columns."""

    type: str
    images: int
    x: tuple[int, int]
    inputs: int
    outputs: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    before: tuple[int, int]  # the padding
    behind: tuple[int, int]
    dilation: tuple[int, int]
    hasBias: bool
    epilogue: Epilogue = Epilogue()
    result: str = ""  # the result's type if not `type`

    def out(self) -> tuple[int, int]:
        rows, columns = ((x + p + q - d * (k - 1) - 1) // s + 1 for x, k, s, p, q, d in zip(self.x, self.kernel, self.stride, self.before, self.behind, self.dilation))
        return rows, columns

    def text(self) -> str:
        trace = Trace()
        operands = [trace.argument((self.images, *self.x, self.inputs), self.type), trace.argument((self.outputs, *self.kernel, self.inputs), self.type)]
        if self.hasBias:
            operands.append(trace.argument((self.outputs,), self.type))
        attributes = f"strides = {list(self.stride)}, padding = {[*self.before, *self.behind]}, dilations = {list(self.dilation)}"
        shape = (self.images, *self.out(), self.outputs)
        isPlain = not self.epilogue.steps and self.result in ("", self.type)
        result = trace.op("conv2d", operands, attributes, shape, self.type if isPlain else "f32")
        if not isPlain:
            lies: dict[str, Shape] = {"scalar": (), "row": shape[-1:], "matrix": shape}
            more = [trace.argument(lies[kind], type_) for kind, type_ in zip(self.epilogue.kinds, self.epilogue.types)]
            result = written(trace, self.epilogue, result, more, lambda kind: trace.add(f"tensor.empty() : {tensor_type(lies[kind], 'f32')}", lies[kind], "f32"))
        return trace.text("convolution", [narrowed(trace, result, self.result or self.type)])


_kernels: dict[tuple[Window, str], _torch.Kernel] = {}  # by convolution and target
_sizes: collections.Counter[Window] = collections.Counter()  # packages by layer


def lies_near(x: torch.Tensor) -> bool:
    """Whether x [B, C, H, W] lies as packages take it: channels next to each other, from a multiple of 16 bytes on."""
    return x.numel() > 0 and x.permute(0, 2, 3, 1).is_contiguous() and x.data_ptr() % 16 == 0


def has_package(inputs: int, outputs: int, target: str) -> bool:
    """Whether such convolutions have packages: other channels would be loaded element by element."""
    return (target != "vulkan:lavapipe" or ON_CPU_DRIVER) and inputs % 8 == 0 and outputs % 8 == 0


def _kernel(window: Window, target: str) -> _torch.Kernel | None:
    key = window, target
    if key not in _kernels:
        layer = window._replace(images=0, x=(0, 0), before=(0, 0), behind=(0, 0))
        if not has_package(window.inputs, window.outputs, target) or len(_kernels) >= MOST_PACKAGES or _sizes[layer] >= MOST_SIZES:
            return None
        _sizes[layer] += 1
        _kernels[key] = _torch.Kernel(compile_cached(window.text(), target), "convolution")
    return _kernels[key]


def convolve(out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: list[int], padding: list[int], dilation: list[int]) -> bool:
    """Fills out [B, KO, Ho, Wo] from x [B, C, H, W] and weight [KO, C, R, S]; False where no package does that."""
    if out.dtype not in NAMES or not (lies_near(x) and lies_near(out)):
        return False
    return _convolve(_window(x, weight, stride, padding, dilation, bias is not None), out, x, weight, [] if bias is None else [bias])


def _window(x: torch.Tensor, weight: torch.Tensor, stride: list[int], padding: list[int], dilation: list[int], hasBias: bool) -> Window:
    extents, taps = tuple(x.shape[2:]), tuple(weight.shape[2:])
    return Window(NAMES[x.dtype], x.shape[0], extents, x.shape[1], weight.shape[0], taps, tuple(stride), tuple(padding), tuple(padding), tuple(dilation), hasBias)


def _convolve(window: Window, out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, operands: list[torch.Tensor]) -> bool:
    kernel = _kernel(window, target_of(out.device.index)) if window.out() == tuple(out.shape[2:]) else None
    if kernel is None:
        return False
    with torch.rdna.device(out.device):
        _launch(kernel, x, row_by_row(weight.permute(0, 2, 3, 1)), operands, out)
    return True


@implements(torch.ops.greta.convolution.default)
def _with_epilogue(
    x: torch.Tensor, weight: torch.Tensor, operands: list[torch.Tensor], epilogue: str, stride: list[int], padding: list[int], dilation: list[int], dtype: torch.dtype
) -> Any:
    made = parsed(epilogue)
    window = _window(x, weight, stride, padding, dilation, False)._replace(epilogue=made._replace(types=tuple(NAMES[one.dtype] for one in operands)), result=NAMES[dtype])
    out = torch.empty((x.shape[0], weight.shape[0], *window.out()), dtype=dtype, device=x.device, memory_format=torch.channels_last)
    if out.numel() == 0:
        return out
    near = x.contiguous(memory_format=torch.channels_last)
    laid = [one.reshape(-1) if kind == "row" else one.permute(0, 2, 3, 1) if kind == "matrix" else one for kind, one in zip(made.kinds, operands)]
    if not (lies_near(near) and lies_near(out) and _convolve(window, out, near, weight, laid)):
        sums = torch.ops.aten.convolution.default(x, weight, None, stride, padding, dilation, False, [0, 0], 1)
        out.copy_(computed(made, sums, operands, axis=-3))
    return out


def _launch(kernel: _torch.Kernel, x: torch.Tensor, weight: torch.Tensor, operands: list[torch.Tensor], out: torch.Tensor) -> None:
    """x and out are [B, channels, rows, columns], the weight and the operands lie as the package has them."""
    kernel([x.permute(0, 2, 3, 1), weight, *map(row_by_row, operands)], [out.permute(0, 2, 3, 1)])


class _Phases(NamedTuple):
    """One dim of a gradient of x by phases: phase f has the positions i with (i + padding) % stride == f, which taps f, f + stride, .. reach."""

    count: int
    turn: int  # i % stride of phase 0
    taps: int  # of the window
    before: int  # padding of the result's gradient
    behind: int
    first: int  # the tap that the window's first one would be, were it of a position i = -padding
    step: int  # from a tap of the window to the weight's tap that the next one is, downwards


def _phases(extent: int, grad: int, taps: int, stride: int, padding: int, dilation: int) -> _Phases | None:
    """None where a window cannot compute that."""
    if stride == 1:
        before = dilation * (taps - 1) - padding
        return _Phases(1, 0, taps, before, before, taps - 1 - padding, 1) if before >= 0 else None
    if dilation > 1 and taps > 1:
        return None
    # Position i = r + stride * m reads g[m + o] by tap r + padding - stride * o.
    count = min(stride, taps)
    phases = [(phase, (phase - padding) % stride) for phase in range(count)]
    last = max((r + padding) // stride for _, r in phases)
    least = min((r + padding - phase) // stride - (taps - 1 - phase) // stride for phase, r in phases)
    if least > 0:
        return None
    behind = max(0, -(-extent // stride) - grad + last)
    return _Phases(count, -padding % stride, last - least + 1, -least, behind, -stride * least, stride)


def input_gradient(out: torch.Tensor, grad: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: list[int], padding: list[int], dilation: list[int]) -> bool:
    """Fills out, the gradient of x, from that of the result and weight [KO, C, R, S]; a bias is a transposed convolution's. False where no package does that."""
    phases = [_phases(*one) for one in zip(out.shape[2:], grad.shape[2:], weight.shape[2:], stride, padding, dilation)]
    rows, columns = phases
    if rows is None or columns is None or out.dtype not in NAMES or not (lies_near(grad) and lies_near(out)):
        return False
    isSpread = max(stride) > 1
    if isSpread and bias is not None:
        return False
    outputs, inputs = weight.shape[:2]
    channels = rows.count * columns.count * inputs
    taps, before, behind = ((one(rows), one(columns)) for one in (lambda dim: dim.taps, lambda dim: dim.before, lambda dim: dim.behind))
    steps = tuple(1 if s > 1 else d for s, d in zip(stride, dilation))
    window = Window(NAMES[out.dtype], grad.shape[0], tuple(grad.shape[2:]), outputs, channels, taps, (1, 1), before, behind, steps, bias is not None)
    kernel = _kernel(window, target_of(out.device.index)) if isSpread or window.out() == tuple(out.shape[2:]) else None
    if kernel is None:
        return False
    with torch.rdna.device(out.device):
        turned = torch.empty((channels, *taps, outputs), dtype=out.dtype, device=out.device)
        block = 32
        turn_kernel[(triton.cdiv(inputs, block), triton.cdiv(outputs, block), rows.count * columns.count * taps[0] * taps[1])](
            turned,
            weight,
            inputs,
            outputs,
            *weight.stride(),
            *padding,
            *(value for dim in phases for value in (dim.turn, dim.first)),
            KERNEL_H=weight.shape[2],
            KERNEL_W=weight.shape[3],
            STEP_H=rows.step,
            STEP_W=columns.step,
            TAPS_H=taps[0],
            TAPS_W=taps[1],
            PHASES_W=columns.count,
            BLOCK=block,
        )
        if not isSpread:
            _launch(kernel, grad, turned, [] if bias is None else [bias], out)
            return True
        parts = torch.empty((grad.shape[0], channels, *window.out()), dtype=out.dtype, device=out.device, memory_format=torch.channels_last)
        _launch(kernel, grad, turned, [], parts)
        positions = out.numel() // inputs
        width = min(triton.next_power_of_2(inputs), 128)
        height = max(1, 2048 // width)
        spread_kernel[(triton.cdiv(positions, height),)](
            out,
            parts,
            positions,
            *out.shape[2:],
            *window.out(),
            *padding,
            STRIDE_H=stride[0],
            STRIDE_W=stride[1],
            PHASES_H=rows.count,
            PHASES_W=columns.count,
            CHANNELS=inputs,
            BLOCK_M=height,
            BLOCK_N=width,
        )
    return True


@triton.jit(do_not_specialize=["padding_h", "padding_w", "turn_h", "first_h", "turn_w", "first_w"])
def turn_kernel(
    turned,
    w,
    inputs,
    outputs,
    w_out,
    w_in,
    w_h,
    w_w,
    padding_h,
    padding_w,
    turn_h,
    first_h,
    turn_w,
    first_w,
    KERNEL_H: tl.constexpr,
    KERNEL_W: tl.constexpr,
    STEP_H: tl.constexpr,
    STEP_W: tl.constexpr,
    TAPS_H: tl.constexpr,
    TAPS_W: tl.constexpr,
    PHASES_W: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """turned [phases, inputs, TAPS_H, TAPS_W, outputs] of w [outputs, inputs, KERNEL_H, KERNEL_W]: rows are inputs, columns outputs, of phase and tap program_id(2)."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tap = tl.program_id(2) % (TAPS_H * TAPS_W)
    phase = tl.program_id(2) // (TAPS_H * TAPS_W)
    h = (phase // PHASES_W + turn_h) % STEP_H + padding_h + first_h - tap // TAPS_W * STEP_H
    w_at = (phase % PHASES_W + turn_w) % STEP_W + padding_w + first_w - tap % TAPS_W * STEP_W
    isTap = (h >= 0) & (h < KERNEL_H) & (w_at >= 0) & (w_at < KERNEL_W)
    mask = (c[:, None] < inputs) & (o[None, :] < outputs)
    values = tl.load(w + o[None, :].to(tl.int64) * w_out + c[:, None] * w_in + h * w_h + w_at * w_w, mask=mask & isTap, other=0.0)
    row = ((phase * inputs + c) * (TAPS_H * TAPS_W) + tap).to(tl.int64)
    tl.store(turned + row[:, None] * outputs + o[None, :], values, mask=mask)


@triton.jit(do_not_specialize=["positions", "out_h", "out_w", "parts_h", "parts_w", "padding_h", "padding_w"])
def spread_kernel(
    out,
    parts,
    positions,
    out_h,
    out_w,
    parts_h,
    parts_w,
    padding_h,
    padding_w,
    STRIDE_H: tl.constexpr,
    STRIDE_W: tl.constexpr,
    PHASES_H: tl.constexpr,
    PHASES_W: tl.constexpr,
    CHANNELS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Rows are positions of out [B, out_h, out_w, CHANNELS], each of a phase of parts [B, parts_h, parts_w, PHASES_H, PHASES_W, CHANNELS] or of none, then 0."""
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    h = row // out_w % out_h
    w = row % out_w
    phase_h = (h + padding_h) % STRIDE_H
    phase_w = (w + padding_w) % STRIDE_W
    isPhase = (phase_h < PHASES_H) & (phase_w < PHASES_W) & (row < positions)
    place = ((row // (out_h * out_w)).to(tl.int64) * parts_h + h // STRIDE_H) * parts_w + w // STRIDE_W
    source = ((place * PHASES_H + phase_h) * PHASES_W + phase_w) * CHANNELS
    for start in range(0, CHANNELS, BLOCK_N):
        c = start + tl.arange(0, BLOCK_N)
        near = c < CHANNELS
        values = tl.load(parts + source[:, None] + c[None, :], mask=isPhase[:, None] & near[None, :], other=0.0)
        tl.store(out + row.to(tl.int64)[:, None] * CHANNELS + c[None, :], values, mask=(row < positions)[:, None] & near[None, :])
