"""Cases of torchao: block-scaled 8-bit floats and their GEMM, and a GEMM on weights of 4 bits, against their definitions in torch."""

import torch
from torchao.kernel.blockwise_quantization import blockwise_fp8_gemm, fp8_blockwise_act_quant, fp8_blockwise_weight_dequant, fp8_blockwise_weight_quant
from torchao.prototype.hqq.mixed_mm import pack_2xint4, triton_mixed_mm

ROWS, COLUMNS, DEPTH, BLOCK = 16, 64, 128, 32


def scaled(x, rows):
    """x in blocks of `rows` by BLOCK, divided by their scales, and the scales."""
    blocks = x.float().reshape(x.shape[0] // rows, rows, -1, BLOCK)
    scales = blocks.abs().amax((1, 3)) / 448
    return (blocks / scales[:, None, :, None]).reshape(x.shape), scales


def steps_apart(numbers, expected):
    """The numbers that are more than a neighbour of what is expected: a tie falls to either side by the last bit of a quotient."""
    return ((numbers.view(torch.int8).int() - expected.to(numbers.dtype).view(torch.int8).int()).abs() > 1).int()


def quantize_rows(dtype):
    x = torch.randn(ROWS, DEPTH).to(dtype)
    numbers, scales = fp8_blockwise_act_quant(x, BLOCK)
    expected, of = scaled(x, 1)
    apart = steps_apart(numbers, expected)
    return [(scales, of), (apart, torch.zeros_like(apart))]


def quantize_blocks(dtype):
    x = torch.randn(COLUMNS, DEPTH).to(dtype)
    numbers, scales = fp8_blockwise_weight_quant(x, BLOCK)
    expected, of = scaled(x, BLOCK)
    apart = steps_apart(numbers, expected)
    return [(scales, of), (apart, torch.zeros_like(apart))]


def spread(numbers, scales, rows):
    return numbers.float() * scales.repeat_interleave(rows, 0).repeat_interleave(BLOCK, 1)


def dequantize_blocks(dtype):
    expected, scales = scaled(torch.randn(COLUMNS, DEPTH).to(dtype), BLOCK)
    numbers = expected.to(torch.float8_e4m3fn)
    return [(fp8_blockwise_weight_dequant(numbers, scales, BLOCK), spread(numbers, scales, BLOCK))]


def gemm(dtype):
    a, a_scales = scaled(torch.randn(ROWS, DEPTH).to(dtype), 1)
    b, b_scales = scaled(torch.randn(COLUMNS, DEPTH).to(dtype), BLOCK)
    a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    expected = spread(a, a_scales, 1) @ spread(b, b_scales, BLOCK).T
    return [(blockwise_fp8_gemm(a, a_scales, b, b_scales, BLOCK).to(torch.bfloat16), expected.to(torch.bfloat16))]


def mixed_gemm(dtype):
    """Weights of 4 bits in groups along K, of which the smallest configuration takes one at a time."""
    group = 32
    weights = torch.randint(0, 15, (DEPTH, COLUMNS))
    scales, zeros = torch.rand(DEPTH // group, COLUMNS).to(dtype) + 0.5, torch.randint(0, 15, (DEPTH // group, COLUMNS)).to(dtype)
    x = torch.randn(ROWS, DEPTH).to(dtype)
    wide = (weights - zeros.float().repeat_interleave(group, 0)) * scales.float().repeat_interleave(group, 0)
    got = triton_mixed_mm(x, pack_2xint4(weights.to(torch.uint8)), scales, zeros, group_size=group, kernel_type="max_autotune")
    return [(got, x.float() @ wide)]


CASES = {
    "fp8_blockwise_act_quant": quantize_rows,
    "fp8_blockwise_weight_quant": quantize_blocks,
    "fp8_blockwise_weight_dequant": dequantize_blocks,
    "blockwise_fp8_gemm": gemm,
    "mixed_mm": mixed_gemm,
}
