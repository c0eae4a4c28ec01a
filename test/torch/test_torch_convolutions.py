"""Convolutions on torch.device("rdna") by packages of greta.conv2d, and of groups of few channels by kernels of their own (docs/guide/torch.md, "Convolutions")."""

import collections

import pytest

from narrow_types import in_types

pytestmark = pytest.mark.xdist_group("torch_device")  # what one has compiled the others use


@pytest.fixture
def packages(rdna, monkeypatch):
    """The module of packages, which lavapipe takes, too, and has none of. Random numbers begin anew."""
    from greta import _torch
    from greta.torch import _convolution_packages

    monkeypatch.setattr(_convolution_packages, "ON_CPU_DRIVER", True)
    monkeypatch.setattr(_convolution_packages, "_kernels", {})
    _torch.forget_call_plans()
    rdna.manual_seed(0)
    return _convolution_packages


@pytest.mark.parametrize(
    "dtype, shape, weight, options, gradient",
    in_types((
        ((2, 24, 9, 8), (40, 24, 3, 3), dict(padding=1), True),
        ((2, 16, 11, 7), (24, 16, 3, 2), dict(stride=2, padding=(1, 0)), True),  # four phases
        ((1, 24, 9, 12), (16, 24, 2, 3), dict(dilation=(3, 2), padding=(0, 2)), True),
        ((2, 32, 6, 5), (24, 32, 1, 1), dict(stride=2), True),  # most of x is read by no position
        ((1, 8, 17, 14), (16, 8, 7, 7), dict(stride=2, padding=3), True),
        ((2, 16, 12, 9), (8, 16, 2, 3), dict(stride=(3, 1), padding=(1, 2), dilation=(1, 2)), True),  # rows behind the last that is read, no tap in a third of them
        ((1, 16, 9, 9), (8, 16, 3, 3), dict(stride=2, padding=2, dilation=2), True),  # zeros between taps
        ((2, 16, 5, 5), (16, 16, 2, 2), dict(padding=3), False),  # padding beyond the kernel, whose gradient of x would be one of less than nothing
        ((2, 20, 6, 5), (24, 20, 3, 3), dict(padding=1), False),  # channels that do not divide 16 bytes are patches in memory
        ((2, 3, 17, 14), (16, 3, 7, 5), dict(stride=(2, 1), padding=3, dilation=(1, 2)), False),
    )),
)
def test_convolutions_by_packages(rdna, packages, dtype, shape, weight, options, gradient):
    """Channels next to each other: results and gradients are those of float64, and packages compute what they should; also when the call is launched again."""
    torch = rdna
    from greta import _torch

    kind = getattr(torch, dtype)
    limit = dict(float32=1e-5, float16=2e-3, bfloat16=1.6e-2)[dtype]
    for _ in range(3):
        x, w, b = (torch.randn(size).to(kind) for size in (shape, weight, weight[:1]))
        x, w = (one.contiguous(memory_format=torch.channels_last) for one in (x, w))
        results = []
        for convert in (lambda one: one.double(), lambda one: one.to("rdna")):
            arguments = [convert(one).detach().requires_grad_() for one in (x, w, b)]
            out = torch.nn.functional.conv2d(*arguments, **options)
            grad = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(kind)
            out.backward(grad.to(out.dtype).contiguous(memory_format=torch.channels_last).to(out.device))
            results.append([out, *(one.grad for one in arguments)])
        for one, other in zip(*results):
            error = (other.cpu().double() - one).norm() / one.norm()
            assert error < limit, error
    assert len(packages._kernels) == (1 + gradient if shape[1] % 8 == 0 else 0)
    plans = _torch.call_plans()
    assert all(plans[f"aten::{name}_overrideable"] == (1, 1) for name in ("convolution", "convolution_backward")), plans


@pytest.mark.parametrize(
    "dtype, shape, weight, options, made",
    (
        ("float16", (2, 24, 9, 8), (40, 24, 3, 3), dict(padding=1), 2),
        ("float32", (2, 24, 9, 8), (16, 24, 1, 1), {}, 0),  # a product
        ("float16", (2, 16, 11, 7), (24, 16, 3, 2), dict(stride=2, padding=(1, 0)), 2),
        ("float32", (2, 3, 17, 14), (16, 3, 7, 5), dict(stride=(2, 1), padding=3), 0),  # patches in memory
        ("bfloat16", (3, 16, 21), (8, 16, 5), dict(stride=2, padding=2, dilation=1), 2),
        ("float32", (2, 8, 19), (16, 8, 3), dict(dilation=3), 2),
    ),
)
def test_convolutions_of_channels_that_lie_apart(rdna, packages, dtype, shape, weight, options, made):
    """As images (NCHW) and signals lie unless somebody asks for another order: they are turned around in memory, before and behind the same packages."""
    torch = rdna
    from greta import _torch

    kind = getattr(torch, dtype)
    function = torch.conv1d if len(shape) == 3 else torch.conv2d
    for _ in range(3):
        x, w, b = (torch.randn(size).to(kind) for size in (shape, weight, weight[:1]))
        results = []
        for convert in (lambda one: one.double(), lambda one: one.to("rdna")):
            arguments = [convert(one).detach().requires_grad_() for one in (x, w, b)]
            out = function(*arguments, **options)
            out.backward(torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(kind).to(out))
            results.append([out, *(one.grad for one in arguments)])
        for one, other in zip(*results):
            assert other.is_contiguous() and (other.cpu().double() - one).norm() < dict(float32=1e-5, float16=2e-3, bfloat16=1.6e-2)[dtype] * one.norm()
    assert len(packages._kernels) == made
    plans = _torch.call_plans()
    assert all(plans[f"aten::{name}_overrideable"] == (1, 1) for name in ("convolution", "convolution_backward")), plans


def test_few_sizes_of_a_layer_have_packages(rdna, packages, monkeypatch):
    torch = rdna
    for name, value in (("_sizes", collections.Counter()), ("MOST_SIZES", 2)):
        monkeypatch.setattr(packages, name, value)
    w, v = torch.randn(16, 8, 3), torch.randn(8, 16, 3)
    for length in (9, 12, 15, 9):
        x = torch.randn(2, 8, length)
        got = torch.conv1d(torch.conv1d(x.to("rdna"), w.to("rdna")), v.to("rdna"))
        torch.testing.assert_close(got.cpu(), torch.conv1d(torch.conv1d(x, w), v), rtol=1e-4, atol=1e-4)
    assert len(packages._kernels) == 4


def test_transposed_convolution_by_a_package(rdna, packages):
    """With a stride of 1 it is a convolution by the weight turned around, and has a bias."""
    torch = rdna
    x, w, b = torch.randn(2, 16, 6, 5).contiguous(memory_format=torch.channels_last), torch.randn(16, 24, 3, 2), torch.randn(24)
    got, expected = (torch.nn.functional.conv_transpose2d(*map(convert, (x, w, b)), padding=1) for convert in (lambda one: one.to("rdna"), torch.Tensor.double))
    assert (got.cpu().double() - expected).norm() < 1e-5 * expected.norm() and len(packages._kernels) == 1


# Transposed or not, the shapes of x and of the weight, options, and how many packages there are for the result and the gradient of x.
FORMS = {
    "3 dimensions": (False, (1, 8, 4, 5, 6), (16, 8, 3, 3, 3), dict(padding=1), 2),
    "3 dimensions, strides and dilation": (False, (2, 8, 5, 6, 7), (8, 8, 3, 2, 3), dict(stride=(2, 1, 2), padding=(1, 0, 1), dilation=(1, 2, 1)), 2),
    "planes": (False, (1, 8, 3, 6, 7), (8, 8, 1, 3, 3), dict(padding=(0, 1, 1)), 2),
    "depth": (False, (1, 8, 5, 3, 4), (8, 8, 3, 1, 1), dict(padding=(1, 0, 0), dilation=(2, 1, 1)), 0),  # products
    "3 dimensions, groups": (False, (1, 16, 4, 5, 6), (16, 8, 2, 3, 3), dict(padding=1, groups=2), 2),
    "3 dimensions, transposed": (True, (1, 8, 3, 4, 4), (8, 16, 3, 3, 3), dict(stride=2, padding=1, output_padding=1), 2),
    "3 dimensions, transposed, groups": (True, (1, 16, 3, 4, 4), (16, 8, 2, 2, 2), dict(stride=(2, 1, 2), groups=2), 2),
    "groups": (False, (2, 16, 6, 5), (32, 8, 3, 3), dict(padding=1, groups=2), 2),
    "groups, strides": (False, (2, 24, 7, 6), (24, 8, 3, 2), dict(stride=2, padding=1, groups=3), 2),
    "1 dimension, groups": (False, (2, 16, 9), (16, 8, 3), dict(padding=1, groups=2), 2),
    "transposed, strides": (True, (2, 16, 5, 4), (16, 8, 3, 3), dict(stride=2, padding=1, output_padding=1), 2),
    "transposed, strides, groups": (True, (2, 16, 5, 4), (16, 8, 3, 3), dict(stride=(2, 3), padding=1, groups=2), 2),
    "transposed, 1 dimension": (True, (2, 16, 7), (16, 8, 4), dict(stride=2, padding=1), 2),
    "depthwise": (False, (2, 16, 6, 5), (16, 1, 3, 3), dict(padding=1, groups=16), 0),
    "depthwise, two for each": (False, (2, 16, 7, 6), (32, 1, 3, 3), dict(stride=2, padding=1, groups=16), 0),
    "depthwise, 1 dimension": (False, (2, 16, 40), (16, 1, 4), dict(padding=3, dilation=2, groups=16), 0),
    "depthwise, 3 dimensions": (False, (1, 6, 4, 5, 6), (6, 1, 3, 3, 3), dict(padding=1, groups=6), 0),
    "depthwise, transposed": (True, (2, 16, 5, 4), (16, 2, 3, 3), dict(stride=2, padding=1, output_padding=1, groups=16), 0),
    "groups of four": (False, (3, 12, 33, 35), (6, 4, 1, 3), dict(groups=3), 0),  # the weight's gradient is a sum of parts
}


@pytest.mark.parametrize("dtype, name", in_types([(one,) for one in FORMS]))
def test_every_form_has_kernels(rdna, packages, monkeypatch, dtype, name):
    """Three dimensions, groups, depthwise and transposed with strides and a bias: results and gradients are those of float64, in both orders of memory, and no form takes the
    kernels that serve whatever has no other."""
    torch = rdna
    from greta.torch import _convolution

    for word in ("convolution_kernel", "weight_kernel"):
        monkeypatch.setattr(_convolution, word, None)
    isTransposed, shape, weight, options, made = FORMS[name]
    dims = len(shape) - 2
    function = getattr(torch.nn.functional, f"conv{'_transpose' if isTransposed else ''}{dims}d")
    limit = dict(float32=1e-5, float16=2e-3, bfloat16=1.6e-2)[dtype]
    orders = [torch.contiguous_format] + ([torch.channels_last if dims == 2 else torch.channels_last_3d] if dims > 1 else [])
    for seed, order in enumerate((*orders, *orders[-1:])):  # the last one is launched by what the one before has left
        torch.manual_seed(seed)
        channels = weight[1] * options.get("groups", 1) if isTransposed else weight[0]
        x, w, b = (torch.randn(size).to(getattr(torch, dtype)) for size in (shape, weight, (channels,)))
        results = []
        for convert in (lambda one: one.double(), lambda one: one.to("rdna")):
            arguments = [convert(one).detach() for one in (x, w, b)]
            arguments = [one.contiguous(memory_format=order).requires_grad_() if one.dim() > 1 else one.requires_grad_() for one in arguments]
            out = function(*arguments, **options)
            out.backward(torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(x.dtype).to(out).contiguous(memory_format=order))
            results.append([out, *(one.grad for one in arguments)])
        for one, other in zip(*results):
            assert other.shape == one.shape and (other.cpu().double() - one).norm() < limit * one.norm()
    assert len(packages._kernels) == made and not torch.rdna.fallbacks()


def test_integers_in_groups(rdna):
    """Types that no matrix unit has."""
    torch = rdna
    x, w = torch.randint(-9, 9, (2, 6, 5, 4)), torch.randint(-9, 9, (6, 1, 3, 3))
    for dtype in (torch.int32, torch.float64):
        got = torch.conv2d(x.to("rdna", dtype), w.to("rdna", dtype), padding=1, groups=6)
        assert torch.equal(got.cpu(), torch.conv2d(x.double(), w.double(), padding=1, groups=6).to(dtype))
