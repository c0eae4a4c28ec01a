"""Gradients of interpolation, pooling and shrinking on torch.device("rdna") (_resize.py, _pooling.py)."""

import pytest

from narrow_types import in_types

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use

RESIZED = {
    "linear, aligned": ((2, 3, 5), lambda F, x: F.interpolate(x, size=9, mode="linear", align_corners=True)),
    "bilinear, to less": ((1, 2, 6, 5), lambda F, x: F.interpolate(x, size=(4, 11), mode="bilinear")),
    "bicubic, by factors": ((1, 2, 3, 4), lambda F, x: F.interpolate(x, scale_factor=(1.7, 2.5), mode="bicubic")),
    "trilinear": ((1, 2, 3, 2, 4), lambda F, x: F.interpolate(x, size=(5, 4, 3), mode="trilinear")),
    "nearest": ((2, 3, 5), lambda F, x: F.interpolate(x, scale_factor=1.7, mode="nearest")),
    "nearest-exact": ((2, 3, 5), lambda F, x: F.interpolate(x, size=8, mode="nearest-exact")),
    "means": ((2, 3, 7, 5), lambda F, x: F.adaptive_avg_pool2d(x, (3, 4))),
    "means of three dimensions": ((2, 5, 3, 4), lambda F, x: F.adaptive_avg_pool3d(x, (2, 5, 3))),
    "means that reach over the end": ((2, 3, 7, 6), lambda F, x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True)),
    "means without padding": ((2, 7, 6), lambda F, x: F.avg_pool2d(x, (2, 4), (2, 3), (0, 2), ceil_mode=True, count_include_pad=False)),
    "means of large windows": ((2, 3, 13, 15), lambda F, x: F.avg_pool2d(x, (6, 7), (4, 5), (3, 1), ceil_mode=True)),
    "means of large windows, not padded": ((3, 13, 15), lambda F, x: F.avg_pool2d(x, 8, 3, 2, count_include_pad=False)),
    "means by a divisor": ((2, 5, 5, 4), lambda F, x: F.avg_pool3d(x, 2, ceil_mode=True, divisor_override=3)),
    "means of a long signal": ((1, 1, 30011), lambda F, x: F.avg_pool1d(x, 64, 3, 32, ceil_mode=True)),
    "means of three dimensions, large windows": ((1, 7, 6, 9), lambda F, x: F.avg_pool3d(x, (3, 2, 5), (2, 1, 3), (1, 1, 2))),
    "maxima of columns that lie behind each other": ((1, 2, 9, 13), lambda F, x: F.max_pool2d(x.mT.contiguous().mT, (7, 5), (2, 3), (3, 0), return_indices=True)[0]),
    "maxima of planes of such columns": ((2, 5, 6, 7), lambda F, x: F.max_pool3d(x.mT.contiguous().mT, (3, 4, 3), 2, 1, return_indices=True)[0]),
    "maxima of three dimensions": ((2, 3, 4, 5, 4), lambda F, x: F.max_pool3d(x, 3, 2, 1)),
    "adaptive maxima": ((2, 3, 7, 5), lambda F, x: F.adaptive_max_pool2d(x, (3, 4))),
    "hardshrink": ((5, 7), lambda F, x: F.hardshrink(x)),
    "softshrink": ((5, 7), lambda F, x: F.softshrink(x, 0.75)),
}


@pytest.mark.parametrize("word, case", in_types([(case,) for case in RESIZED]))
def test_gradients_of_resized_images(rdna, word, case):
    """Beside the CPU's in float64."""
    torch = rdna
    shape, function = RESIZED[case]
    dtype, tolerance = getattr(torch, word), {"float32": 1e-5, "float16": 1e-3, "bfloat16": 8e-3}[word]  # results are rounded once, by half of the last bit
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    exact = x.double().requires_grad_()
    expected = function(torch.nn.functional, exact)
    weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    expected.backward(weights.double())
    there = x.to("rdna").requires_grad_()
    result = function(torch.nn.functional, there)
    result.backward(weights.to("rdna"))
    torch.testing.assert_close(result.detach().cpu().double(), expected.detach(), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(there.grad.cpu().double(), exact.grad, rtol=tolerance, atol=tolerance)
    assert not torch.rdna.fallbacks()
