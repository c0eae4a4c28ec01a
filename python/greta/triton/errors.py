"""The compiler's refusal, as Triton's autotuner understands it: a configuration that is passed over."""

from __future__ import annotations

from triton.runtime.errors import OutOfResources

from .._compile import CompileError


class ConfigurationError(CompileError, OutOfResources):
    """A kernel that does not compile for a device as it is configured."""

    def __init__(self, message: str):
        Exception.__init__(self, message)

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[type[ConfigurationError], tuple[str]]:
        return (ConfigurationError, (str(self),))
