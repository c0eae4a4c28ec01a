"""What tests of the Python package share: the devices that Triton's kernels run on."""

import pytest

import greta


@pytest.fixture(params=("vulkan", "sim:gfx942", "sim:gfx1100"))
def device(request):
    """Triton's active driver is this device's for a test."""
    greta.triton.activate(request.param)
    yield request.param
    greta.triton.deactivate()
