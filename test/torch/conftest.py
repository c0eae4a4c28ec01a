"""torch's device rdna on Vulkan, in one process: what one test has compiled the others use."""

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if "/torch/" in str(item.path):
            item.add_marker(pytest.mark.xdist_group("torch_device"))


@pytest.fixture
def rdna():
    """torch with the device; no operator runs on the CPU in a test that does not allow it."""
    torch = pytest.importorskip("torch")
    import greta.torch  # noqa: F401

    before = torch.rdna.set_fallback(False)
    torch.rdna.fallbacks(True)
    yield torch
    torch.rdna.set_fallback(before)
