"""`import greta.language as gl` is triton.language."""

import sys

from .triton import check_version

check_version()

import triton.language  # noqa: E402

sys.modules[__name__] = triton.language
