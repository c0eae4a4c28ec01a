"""Convolutions as packages of greta.conv2d: two dimensions, channels next to each other (NHWC), any groups of channels in eights, f16, bf16 and f32.

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
from ._operators import MOST_PROGRAMS, implements
from ._products import NAMES, row_by_row

MOST_PACKAGES = 256
MOST_SIZES = 16  # that have packages, of images of one layer: images of another size each time, or signals of another length, would compile one each time
ON_CPU_DRIVER = False  # lavapipe takes longer to compile a package than the kernel that serves all extents saves; tests try it nevertheless


class Window(NamedTuple):
    """A convolution: x [B, H, W, C] by w [KO, R, S, C / groups], extents and settings of rows and columns."""

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
    groups: int = 1

    def out(self) -> tuple[int, int]:
        rows, columns = ((x + p + q - d * (k - 1) - 1) // s + 1 for x, k, s, p, q, d in zip(self.x, self.kernel, self.stride, self.before, self.behind, self.dilation))
        return rows, columns

    def text(self) -> str:
        trace = Trace()
        operands = [trace.argument((self.images, *self.x, self.inputs), self.type), trace.argument((self.outputs, *self.kernel, self.inputs // self.groups), self.type)]
        if self.hasBias:
            operands.append(trace.argument((self.outputs,), self.type))
        attributes = f"strides = {list(self.stride)}, padding = {[*self.before, *self.behind]}, dilations = {list(self.dilation)}" + (f", groups = {self.groups}" if self.groups > 1 else "")
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
    """Whether convolutions of so many channels, each group's, have packages: others would be loaded element by element."""
    return (target != "vulkan:lavapipe" or ON_CPU_DRIVER) and inputs % 8 == 0 and outputs % 8 == 0


def _kernel(window: Window, target: str) -> _torch.Kernel | None:
    key = window, target
    if key not in _kernels:
        layer = window._replace(images=0, x=(0, 0), before=(0, 0), behind=(0, 0))
        if not has_package(window.inputs // window.groups, window.outputs // window.groups, target) or len(_kernels) >= MOST_PACKAGES or _sizes[layer] >= MOST_SIZES:
            return None
        _sizes[layer] += 1
        _kernels[key] = _torch.Kernel(compile_cached(window.text(), target), "convolution")
    return _kernels[key]


def convolve(out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: list[int], padding: list[int], dilation: list[int], groups: int = 1) -> bool:
    """Fills out [B, KO, Ho, Wo] from x [B, C, H, W] and weight [KO, C / groups, R, S]; False where no package does that."""
    if out.dtype not in NAMES or not (lies_near(x) and lies_near(out)):
        return False
    return _convolve(_window(x, weight, stride, padding, dilation, bias is not None)._replace(groups=groups), out, x, weight, [] if bias is None else [bias])


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
    # Position i = r + stride * m reads g[m + o] by tap r + padding - stride * o.
    count = min(stride, taps)
    phases = [(phase, (phase - padding) % stride) for phase in range(count)]
    last = max((r + padding) // stride for _, r in phases)
    least = min((r + padding - phase) // stride - (taps - 1 - phase) // stride for phase, r in phases)
    if least > 0:
        return None
    behind = max(0, -(-extent // stride) - grad + last)
    return _Phases(count, -padding % stride, last - least + 1, -least, behind, -stride * least, stride)


def input_gradient(
    out: torch.Tensor, grad: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: list[int], padding: list[int], dilation: list[int], groups: int = 1
) -> bool:
    """Fills out, the gradient of x, from that of the result and weight [KO, C / groups, R, S]; a bias is a transposed convolution's. False where no package does that."""
    # With a stride and a dilation the window has zeros between the weight's taps.
    gaps = [d if s > 1 else 1 for s, d in zip(stride, dilation)]
    dense = [gap * (taps - 1) + 1 for gap, taps in zip(gaps, weight.shape[2:])]
    dilation = [d // gap for d, gap in zip(dilation, gaps)]
    phases = [_phases(*one) for one in zip(out.shape[2:], grad.shape[2:], dense, stride, padding, dilation)]
    rows, columns = phases
    if rows is None or columns is None or out.dtype not in NAMES or not (lies_near(grad) and lies_near(out)):
        return False
    isSpread = max(stride) > 1
    outputs, inputs = len(weight) // groups, weight.shape[1]  # of a group
    count = rows.count * columns.count
    channels = groups * count * inputs
    taps, before, behind = ((one(rows), one(columns)) for one in (lambda dim: dim.taps, lambda dim: dim.before, lambda dim: dim.behind))
    steps = tuple(1 if s > 1 else d for s, d in zip(stride, dilation))
    window = Window(NAMES[out.dtype], grad.shape[0], tuple(grad.shape[2:]), len(weight), channels, taps, (1, 1), before, behind, steps, bias is not None and not isSpread, groups=groups)
    if isSpread and bias is not None:
        window = window._replace(result="f32")  # the bias is added behind it
    programs = groups * count * taps[0] * taps[1]
    if programs > MOST_PROGRAMS:
        return False
    kernel = _kernel(window, target_of(out.device.index)) if isSpread or window.out() == tuple(out.shape[2:]) else None
    if kernel is None:
        return False
    with torch.rdna.device(out.device):
        turned = torch.empty((channels, *taps, outputs), dtype=out.dtype, device=out.device)
        block = 32
        turn_kernel[(triton.cdiv(inputs, block), triton.cdiv(outputs, block), programs)](
            turned,
            weight,
            inputs,
            outputs,
            *weight.stride(),
            *padding,
            *(value for dim in phases for value in (dim.turn, dim.first)),
            KERNEL_H=dense[0],
            KERNEL_W=dense[1],
            GAP_H=gaps[0],
            GAP_W=gaps[1],
            STEP_H=rows.step,
            STEP_W=columns.step,
            TAPS_H=taps[0],
            TAPS_W=taps[1],
            PHASES=count,
            PHASES_W=columns.count,
            BLOCK=block,
        )
        if not isSpread:
            _launch(kernel, grad, turned, [] if bias is None else [bias], out)
            return True
        parts = torch.empty((grad.shape[0], channels, *window.out()), dtype=out.dtype if bias is None else torch.float32, device=out.device, memory_format=torch.channels_last)
        _launch(kernel, grad, turned, [], parts)
        positions = out.numel() // out.shape[1]
        width = min(triton.next_power_of_2(out.shape[1]), 128)
        height = max(1, 2048 // width)
        spread_kernel[(triton.cdiv(positions, height),)](
            out,
            parts,
            out if bias is None else bias,
            positions,
            *out.shape[2:],
            *window.out(),
            *padding,
            STRIDE_H=stride[0],
            STRIDE_W=stride[1],
            PHASES_H=rows.count,
            PHASES_W=columns.count,
            CHANNELS=out.shape[1],
            GROUP=inputs,
            HAS_BIAS=bias is not None,
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
    GAP_H: tl.constexpr,
    GAP_W: tl.constexpr,
    STEP_H: tl.constexpr,
    STEP_W: tl.constexpr,
    TAPS_H: tl.constexpr,
    TAPS_W: tl.constexpr,
    PHASES: tl.constexpr,
    PHASES_W: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """turned [groups, phases, inputs, TAPS_H, TAPS_W, outputs] of w [groups, outputs, inputs, ..], which has KERNEL_H x KERNEL_W places, a tap at each GAP_H x GAP_W of them: rows are
    inputs, columns outputs, of group, phase and tap program_id(2)."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tap = tl.program_id(2) % (TAPS_H * TAPS_W)
    number = tl.program_id(2) // (TAPS_H * TAPS_W)  # of the phases of all groups
    phase = number % PHASES
    w += (number // PHASES).to(tl.int64) * outputs * w_out
    h = (phase // PHASES_W + turn_h) % STEP_H + padding_h + first_h - tap // TAPS_W * STEP_H
    w_at = (phase % PHASES_W + turn_w) % STEP_W + padding_w + first_w - tap % TAPS_W * STEP_W
    isTap = (h >= 0) & (h < KERNEL_H) & (w_at >= 0) & (w_at < KERNEL_W)
    if GAP_H > 1 or GAP_W > 1:
        isTap = isTap & (h % GAP_H == 0) & (w_at % GAP_W == 0)
        h, w_at = h // GAP_H, w_at // GAP_W
    mask = (c[:, None] < inputs) & (o[None, :] < outputs)
    values = tl.load(w + o[None, :].to(tl.int64) * w_out + c[:, None] * w_in + h * w_h + w_at * w_w, mask=mask & isTap, other=0.0)
    row = ((number * inputs + c) * (TAPS_H * TAPS_W) + tap).to(tl.int64)
    tl.store(turned + row[:, None] * outputs + o[None, :], values, mask=mask)


@triton.jit(do_not_specialize=["positions", "out_h", "out_w", "parts_h", "parts_w", "padding_h", "padding_w"])
def spread_kernel(
    out,
    parts,
    bias,
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
    GROUP: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Rows are positions of out [B, out_h, out_w, CHANNELS], each of a phase of parts [B, parts_h, parts_w, CHANNELS / GROUP, PHASES_H, PHASES_W, GROUP] or of none, then 0."""
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    h = row // out_w % out_h
    w = row % out_w
    phase_h = (h + padding_h) % STRIDE_H
    phase_w = (w + padding_w) % STRIDE_W
    isPhase = (phase_h < PHASES_H) & (phase_w < PHASES_W) & (row < positions)
    place = ((row // (out_h * out_w)).to(tl.int64) * parts_h + h // STRIDE_H) * parts_w + w // STRIDE_W
    source = place * (PHASES_H * PHASES_W * CHANNELS) + (phase_h * PHASES_W + phase_w) * GROUP
    for start in range(0, CHANNELS, BLOCK_N):
        c = start + tl.arange(0, BLOCK_N)
        near = c < CHANNELS
        at = c
        if GROUP < CHANNELS:
            at = c // GROUP * (PHASES_H * PHASES_W * GROUP) + c % GROUP
        values = tl.load(parts + source[:, None] + at[None, :], mask=isPhase[:, None] & near[None, :], other=0.0)
        if HAS_BIAS:
            values += tl.load(bias + c, mask=near, other=0.0).to(tl.float32)[None, :]
        tl.store(out + row.to(tl.int64)[:, None] * CHANNELS + c[None, :], values.to(out.dtype.element_ty), mask=(row < positions)[:, None] & near[None, :])
