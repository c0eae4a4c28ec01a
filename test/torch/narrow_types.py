"""Which of the types each case of a list is run in."""

from harness import WHOLE

TYPES = "float32", "float16", "bfloat16"


def in_types(cases):
    """(type, *case): each in float32, and every other one in float16, the rest in bfloat16, whose kernels differ in conversions alone."""
    return [(one, *case) for index, case in enumerate(cases) for one in (TYPES if WHOLE else (TYPES[0], TYPES[1 + index % 2]))]
