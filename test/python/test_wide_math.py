"""Functions of f64 in Triton's kernels against NumPy's in 80 bits and mpmath's, in units of the last place."""

import mpmath
import numpy as np
import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402
from triton.language.extra import libdevice  # noqa: E402


@triton.jit
def one_argument(x, out, NAME: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, getattr(libdevice, NAME)(tl.load(x + i)))


@triton.jit
def two_arguments(x, y, out, NAME: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, getattr(libdevice, NAME)(tl.load(x + i), tl.load(y + i)))


def by_mpmath(function):
    def all_of(x):
        with mpmath.workdps(40):
            return np.array([np.longdouble(mpmath.nstr(function(mpmath.mpf(float(one))), 25)) for one in x])

    return all_of


everything = np.concatenate([np.linspace(-30, 30, 300), np.geomspace(1e-300, 1e300, 200), -np.geomspace(1e-20, 1e3, 92)])
positive = np.concatenate([np.geomspace(5e-324, 1.7e308, 300), np.linspace(0.5, 2, 292)])
near = np.concatenate([np.linspace(-1, 1, 300), np.geomspace(1e-300, 1, 146), -np.geomspace(1e-20, 1, 146)])

# By name: NumPy's or mpmath's function, arguments, units in the last place.
FUNCTIONS = {
    "exp": (np.exp, np.clip(everything, -745, 709), 2),
    "exp2": (np.exp2, np.clip(everything, -1074, 1023), 2),
    "expm1": (np.expm1, np.clip(everything, -745, 709), 4),
    "log": (np.log, positive, 2),
    "log2": (np.log2, positive, 3),
    "log10": (np.log10, positive, 4),
    "log1p": (np.log1p, np.abs(everything), 4),
    "tan": (np.tan, near * 1.5, 4),
    "asin": (np.arcsin, near, 6),
    "acos": (np.arccos, near, 4),
    "atan": (np.arctan, everything, 3),
    "sinh": (np.sinh, np.clip(everything, -709, 709), 6),
    "cosh": (np.cosh, np.clip(everything, -709, 709), 6),
    "tanh": (np.tanh, everything, 4),
    "asinh": (np.arcsinh, everything, 4),
    "acosh": (np.arccosh, 1 + np.abs(everything), 4),
    "atanh": (np.arctanh, near * 0.999, 6),
    "erf": (by_mpmath(mpmath.erf), everything[::3], 3),
    "erfc": (by_mpmath(mpmath.erfc), np.linspace(-6, 26, 200), 8),
    "cbrt": (np.cbrt, everything, 3),
    "rsqrt": (lambda x: 1 / np.sqrt(x), positive, 2),
}


def run(kernel, name, *arguments):
    out = np.zeros(-(-len(arguments[0]) // 128) * 128)
    padded = [np.resize(one, len(out)) for one in arguments]
    kernel[len(out) // 128,](*padded, out, NAME=name, BLOCK=128)
    return out[: len(arguments[0])]


def taken(x, device):
    """Vulkan devices may take denormals for zero."""
    return x[~((x != 0) & (np.abs(x) < np.finfo(float).tiny))] if device == "vulkan" else x


def units(got, want):
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(got.astype(np.longdouble) - want) / np.spacing(np.abs(want.astype(np.float64)))
    return np.where((got == want) | (np.isnan(got) & np.isnan(want)) | (got == want.astype(np.float64)), 0, error)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name, triton_device):
    function, x, limit = FUNCTIONS[name]
    x = taken(x, triton_device)
    with np.errstate(all="ignore"):
        error = units(run(one_argument, name, x), function(x.astype(np.longdouble)))
    assert error.max() <= limit, f"{name}({x[error.argmax()]!r}) is off by {float(error.max()):.2f} ulp"


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_circles(name, triton_device):
    x = np.concatenate([near * 4, np.linspace(-1e6, 1e6, 400)])
    error = np.abs(run(one_argument, name, x) - getattr(np, name)(x.astype(np.longdouble)))
    assert error.max() < 2.0**-51


SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 2.5, 1e300, -1e-310])


@pytest.mark.parametrize("name", [*FUNCTIONS, "sin", "cos"])
def test_special_values(name, triton_device):
    x = taken(SPECIAL, triton_device)
    if name in ("erf", "erfc"):
        want = torch.special.__dict__[name](torch.from_numpy(x)).numpy()
    else:
        with np.errstate(all="ignore"):
            want = (FUNCTIONS[name][0] if name in FUNCTIONS else getattr(np, name))(x)
    got = run(one_argument, name, x)
    if name in ("sin", "cos", "tan"):
        got, want = got[np.abs(x) != 1e300], want[np.abs(x) != 1e300]
    np.testing.assert_allclose(got, want, rtol=1e-14)
    if name not in ("cosh", "cos", "acos", "erfc", "acosh"):
        np.testing.assert_array_equal(np.signbit(got[~np.isnan(want)]), np.signbit(want[~np.isnan(want)]))


def test_powers_and_angles(triton_device):
    x, y = (grid.ravel() for grid in np.meshgrid(*2 * [taken(SPECIAL, triton_device)]))
    with np.errstate(all="ignore"):
        power, angle = np.power(x, y), np.arctan2(x, y)
    np.testing.assert_allclose(run(two_arguments, "atan2", x, y), angle, rtol=1e-15)
    # 1e300 and its like lose what their exponent has.
    np.testing.assert_allclose(run(two_arguments, "pow", x, y), power, rtol=1e-12)
