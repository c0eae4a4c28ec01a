"""How tests start programs on the virtual Radeon."""

import os
import pathlib

import pytest

from conftest import BUILD, ROOT

SCRIPT = ROOT / "scripts" / "virtual-radeon"
CHIPS = {"phoenix": "gfx1103", "navi21": "gfx1030", "navi31": "gfx1100", "gfx1151": "gfx1151", "gfx1201": "gfx1201"}
PARTS = {"backports": "radv", "testing": "lavapipe"}  # what scripts/vulkan-drivers calls them


def launcher(driver_parts, chip, mesa="backports", *options):
    """The words before a command; a machine that cannot download Mesa skips."""
    assert (BUILD / "lib" / "libgreta_virtual_radeon.so").exists()
    if PARTS[mesa] not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no RADV here")
    return (SCRIPT, f"--mesa={mesa}", *options, chip)


def fresh(cache, **variables):
    """The environment of a user without a cache, but for the drivers."""
    drivers = os.environ.get("GRETA_CACHE") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "greta"
    return {**os.environ, "GRETA_CACHE": str(drivers), "XDG_CACHE_HOME": str(cache), **variables}
