"""The tables of docs/benchmarks that hold a run for each chip (scripts/lib/records.py): a run of some chips keeps the rows of the others."""

import csv
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))
import records  # noqa: E402

COLUMNS = ["date", "commit", "chip", "kernel", "cycles"]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    first = [dict(chip=chip, kernel=kernel, cycles=1) for chip in ("gfx90a", "gfx942", "gfx1100") for kernel in ("plain", "stored")]
    records.collect(first, path, COLUMNS)
    return path


def read(path):
    with path.open(newline="") as file:
        return [(row["chip"], row["kernel"], row["cycles"]) for row in csv.DictReader(file)]


def test_rows_of_other_chips_stay(table):
    records.collect([dict(chip="gfx1201", kernel="plain", cycles=3), dict(chip="gfx942", kernel="plain", cycles=2)], str(table), COLUMNS)
    others = {chip: [(chip, "plain", "1"), (chip, "stored", "1")] for chip in ("gfx90a", "gfx1100")}
    assert read(table) == [*others["gfx90a"], ("gfx942", "plain", "2"), *others["gfx1100"], ("gfx1201", "plain", "3")]


def test_columns_that_are_no_longer_measured(table):
    """Kept rows would lose a column; where every chip is measured again, nothing is kept."""
    chips = [dict(chip=chip, kernel="plain") for chip in ("gfx90a", "gfx942", "gfx1100")]
    before = table.read_text()
    with pytest.raises(SystemExit, match="no longer measured: cycles"):
        records.collect(chips[:1], table, COLUMNS[:-1])
    assert table.read_text() == before
    records.collect(chips, table, COLUMNS[:-1])
    assert table.read_text().startswith("date,commit,chip,kernel\n") and len(table.read_text().splitlines()) == 4


def test_a_file_that_is_no_table_of_chips(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("kernel,cycles\nplain,1\n")
    with pytest.raises(SystemExit, match="no table of chips"):
        records.collect([dict(chip="gfx942", kernel="plain")], path, COLUMNS)
    assert path.read_text() == "kernel,cycles\nplain,1\n"
