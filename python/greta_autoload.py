"""Makes `rdna` known to whoever imports torch, if GRETA_TORCH_AUTOLOAD is 1: torch calls `load` (entry point torch.backends) when it has been imported.

A module by itself, because importing `greta` takes time that who has not asked for it should not pay.
"""

import os


def load() -> None:
    if os.environ.get("GRETA_TORCH_AUTOLOAD") == "1":
        import greta.torch  # noqa: F401
