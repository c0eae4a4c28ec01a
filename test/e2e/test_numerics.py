"""Numerics of every op, element type and shape against float64 (docs/numerics.md), in every variant that a device takes:
on this machine's Vulkan driver (lavapipe where there is no GPU), on testing's lavapipe under its validation layer, on the CPU (`host`),
and a smaller set on the simulated AMD chips.
"""

import pytest

import cases
import harness

AMD_CHIPS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
AMD_COLUMNS = (1, 7, 1000, 4096)
AMD_ROWS = (1, 3)
SMALL_COLUMNS = (7, 1000, 4096)


class Suite:
    """One package and what its cases gave on the devices they ran on."""

    def __init__(self, directory, dtype, targets, columns, rows):
        self.cases = cases.cases(dtype, columns)
        self.work = [[case.name, r] for case in self.cases for r in rows]
        self.package = harness.compile_package(directory, f"numerics_{dtype}", "\n".join(c.mlir() for c in self.cases), targets)
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


def check(results, case, rows):
    for r in rows:
        lines = results[case.name, r]
        assert lines, f"{case.name}, {r} rows: no result"
        for line in lines:
            assert "problem" not in line, f"{case.name}, {r} rows, {line.get('variant')}: {line['problem']}"
            assert all(e <= limit for e, limit in zip(line["errors"], case.tolerances, strict=True)), f"{line} is over {case.tolerances}"


def grid(columns, *extra):
    """pytest parameters of all cases; those that share a package and a device stay in one process (xdist group)."""
    return [
        pytest.param(*e, dtype, op, c, id="-".join([*e, op, dtype, str(c)]), marks=pytest.mark.xdist_group("-".join([*e, dtype])))
        for e in (extra or [()])
        for dtype in cases.ELEMENT_TYPES
        for op in cases.SINGLE_OPS
        for c in columns
    ]


@pytest.mark.parametrize("device, dtype, op, columns", grid(cases.COLUMNS, ("vulkan",), ("host",)))
def test_every_shape(suites, device, dtype, op, columns):
    suite = suites(dtype, "vulkan,host", cases.COLUMNS, cases.ROWS)
    check(suite.on(device), cases.Case(op, dtype, columns), cases.ROWS)


@pytest.mark.parametrize("dtype, op, columns", grid(SMALL_COLUMNS))
def test_validated_on_newer_lavapipe(suites, driver_parts, dtype, op, columns):
    if "lavapipe" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no lavapipe here")
    suite = suites(dtype, "vulkan", SMALL_COLUMNS, (3,))
    check(suite.on("vulkan", harness.lavapipe_launcher()), cases.Case(op, dtype, columns), (3,))


@pytest.mark.parametrize("chip, dtype, op, columns", grid(AMD_COLUMNS, *[(chip,) for chip in AMD_CHIPS]))
def test_simulated(suites, chip, dtype, op, columns):
    suite = suites(dtype, chip, AMD_COLUMNS, AMD_ROWS)
    check(suite.on(f"sim:{chip}"), cases.Case(op, dtype, columns), AMD_ROWS)
