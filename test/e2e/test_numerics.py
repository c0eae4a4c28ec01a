"""Numerics of every op, element type and shape against float64 (docs/internals/numerics.md), in the variant that a device prefers and some in each that it takes (worker.py):
on this machine's Vulkan driver (lavapipe where there is no GPU), on testing's lavapipe under its validation layer, on the CPU (`host`),
and a smaller set on the simulated AMD chips.
"""

import functools

import pytest

import cases
import harness
from harness import AMD_CHIPS, AMD_FAMILIES, check, check_together
from registry import Special

AMD_COLUMNS = (1, 4096, 7, 1000)  # a family takes another of them for each type
AMD_SIBLING_COLUMNS = (1000,)
AMD_ROWS = (1, 3)
AMD_MANY = (7, 300)  # columns and rows, of which no workgroup takes all
SMALL_COLUMNS = (7, 1000, 4096)
SPECIAL_COLUMNS = (7, 1000)


class Suite:
    """One package and what its cases gave on the devices they ran on."""

    def __init__(self, directory, dtype, targets, columns, rows):
        functions = cases.cases(dtype, columns)
        self.work = [c.name for c in cases.cases(dtype, columns, rows=rows)]
        self.work += [special(c.op, dtype, c.columns).name for c in functions if c.columns in SPECIAL_COLUMNS]
        self.package = harness.compile_package(directory, f"numerics_{dtype}", "\n".join(c.mlir() for c in functions), targets)
        self.results = {}

    def on(self, device, launcher=()):
        key = device, launcher
        if key not in self.results:
            self.results[key] = harness.run_cases(device, self.package, self.work, launcher)
        return self.results[key]


@pytest.fixture(scope="session")
def suites(tmp_path_factory):
    made = {}

    def suite(dtype, targets, columns, rows):
        key = dtype, targets, columns, rows
        if key not in made:
            made[key] = Suite(tmp_path_factory.mktemp("numerics"), *key)
        return made[key]

    return suite


def special(op, dtype, columns):
    return Special(cases.RowOp(op, dtype, columns, 8))


def with_rows(rows, op, dtype, columns):
    return [cases.RowOp(op, dtype, columns, r) for r in rows]


def columns_for(dtype):
    """The columns that a type takes on drivers and the CPU: every third, so that one type takes each. GRETA_TEST_WHOLE=1: all."""
    return cases.COLUMNS if harness.WHOLE else cases.COLUMNS[cases.ELEMENT_TYPES.index(dtype) :: len(cases.ELEMENT_TYPES)]


def validated_columns_for(dtype):
    """The columns that a type takes on testing's lavapipe, one of them. GRETA_TEST_WHOLE=1: all."""
    return SMALL_COLUMNS if harness.WHOLE else (SMALL_COLUMNS[cases.ELEMENT_TYPES.index(dtype) % len(SMALL_COLUMNS)],)


def validated_special_columns_for(dtype):
    return tuple(c for c in SPECIAL_COLUMNS if c in validated_columns_for(dtype))


def special_columns_of(chip, dtype):
    return tuple(c for c in SPECIAL_COLUMNS if c in columns_of(chip, dtype))


def special_columns_for(dtype):
    return tuple(c for c in SPECIAL_COLUMNS if c in columns_for(dtype))


def grid(columns, *extra, types=cases.ELEMENT_TYPES):
    """pytest parameters of all cases (columns: of every type, or a function of it); those that share a package and a device stay in one process (xdist group)."""
    return [
        pytest.param(*e, dtype, op, c, id="-".join([*e, op, dtype, str(c)]), marks=pytest.mark.xdist_group("-".join([*e, dtype])))
        for e in (extra or [()])
        for dtype in types
        for op in cases.SINGLE_OPS
        for c in (columns(dtype) if callable(columns) else columns)
    ]


def together(*devices):
    return [pytest.param(d, t, id=f"{d}-{t}", marks=pytest.mark.xdist_group(f"{d}-{t}")) for d in devices for t in types_of(d)]


def everywhere(suites, device, dtype):
    return suites(dtype, "vulkan,host", columns_for(dtype), cases.ROWS).on(device)


def validated(suites, driver_parts, dtype):
    if "lavapipe" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no lavapipe here")
    return suites(dtype, "vulkan", validated_columns_for(dtype), (3,)).on("vulkan", harness.lavapipe_launcher())


def simulated(suites, chip, dtype):
    return suites(dtype, chip, columns_of(chip, dtype), AMD_ROWS).on(f"sim:{chip}")


@pytest.mark.parametrize("device, dtype, op, columns", grid(columns_for, ("vulkan",), ("host",)))
def test_every_shape(suites, device, dtype, op, columns):
    check(everywhere(suites, device, dtype), *with_rows(cases.ROWS, op, dtype, columns))


@pytest.mark.parametrize("dtype, op, columns", grid(validated_columns_for))
def test_validated_on_newer_lavapipe(suites, driver_parts, dtype, op, columns):
    check(validated(suites, driver_parts, dtype), *with_rows((3,), op, dtype, columns))


def types_of(chip):
    """Every type on one chip of each family, one on each of the others."""
    return harness.share_of(cases.ELEMENT_TYPES, chip, len(cases.ELEMENT_TYPES)) if chip in harness.AMD_SIBLINGS else cases.ELEMENT_TYPES


def columns_of(chip, dtype):
    """GRETA_TEST_WHOLE=1: a family takes all."""
    if chip not in AMD_FAMILIES:
        return AMD_SIBLING_COLUMNS
    number = AMD_FAMILIES.index(chip) + cases.ELEMENT_TYPES.index(dtype)
    return AMD_COLUMNS if harness.WHOLE else (AMD_COLUMNS[number % len(AMD_COLUMNS)],)


@pytest.mark.parametrize("chip, dtype, op, columns", [p for chip in AMD_CHIPS for p in grid(functools.partial(columns_of, chip), (chip,), types=types_of(chip))])
def test_simulated(suites, chip, dtype, op, columns):
    check(simulated(suites, chip, dtype), *with_rows(AMD_ROWS, op, dtype, columns))


def types_of_many_rows(family):
    return harness.share_of(cases.ELEMENT_TYPES, family, 3)


@pytest.mark.parametrize("chip, dtype, op, columns", [p for chip in AMD_FAMILIES for p in grid(AMD_MANY[:1], (chip,), types=types_of_many_rows(chip))])
def test_many_rows_simulated(suites, chip, dtype, op, columns):
    suite = suites(dtype, chip, AMD_MANY[:1], AMD_MANY[1:])
    check(suite.on(f"sim:{chip}"), *with_rows(AMD_MANY[1:], op, dtype, columns))


@pytest.mark.parametrize("device, dtype, op, columns", grid(special_columns_for, ("vulkan",), ("host",)))
def test_special_values(suites, device, dtype, op, columns):
    """Infinities, NaNs and denormals in some rows: what the definition makes of them, and the other rows as ever."""
    check(everywhere(suites, device, dtype), special(op, dtype, columns))


@pytest.mark.parametrize("dtype, op, columns", grid(validated_special_columns_for))
def test_special_values_validated(suites, driver_parts, dtype, op, columns):
    check(validated(suites, driver_parts, dtype), special(op, dtype, columns))


@pytest.mark.parametrize("chip, dtype, op, columns", [p for chip in AMD_FAMILIES for p in grid(functools.partial(special_columns_of, chip), (chip,))])
def test_special_values_simulated(suites, chip, dtype, op, columns):
    check(simulated(suites, chip, dtype), special(op, dtype, columns))


@pytest.mark.parametrize("device, dtype", together("vulkan", "host"))
def test_together(suites, device, dtype):
    check_together(everywhere(suites, device, dtype))


@pytest.mark.parametrize("chip, dtype", together(*AMD_CHIPS))
def test_together_simulated(suites, chip, dtype):
    check_together(simulated(suites, chip, dtype))
