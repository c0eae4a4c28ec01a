"""Benchmark results as CSV files: some grow by a run at a time, some hold the newest run alone. Every row has the date and the commit of its run."""

import csv
import datetime
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def origin():
    """The date of today and the commit of this checkout, which ends in -dirty where tracked files have changes. Who measures with build/ builds it first."""
    commit = subprocess.run(["git", "describe", "--always", "--exclude=*", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    return dict(date=datetime.date.today().isoformat(), commit=commit)


def build(*targets):
    """Builds what is measured, so that build/ holds the commit that `origin` names."""
    subprocess.run(["ninja", "-C", ROOT / "build", *targets], check=True, stdout=subprocess.DEVNULL)


def install():
    """The same for the Python package of this interpreter."""
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-build-isolation", "--no-deps", "--force-reinstall", ROOT]
    subprocess.run(command, check=True)


def is_repeatable(path, rows):
    """Whether a commit has what was measured. The repository's tables take no run of a tree with changes, which nobody could repeat; files elsewhere do."""
    is_dirty = ROOT in pathlib.Path(path).resolve().parents and any("-dirty" in str(row["commit"]) for row in rows)
    if is_dirty:
        print(f"not recorded in {path}: the tree had changes that no commit has", file=sys.stderr)
    return not is_dirty


def write(path, columns, rows):
    """The file anew, of `rows` (dicts)."""
    if not is_repeatable(path, rows):
        return
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def recorded(path):
    """The rows of the file, none where there is no file."""
    path = pathlib.Path(path)
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def same_columns(path, columns, rows):
    """These rows of the file, which must have no columns but `columns`."""
    if gone := set(rows[0] if rows else ()) - set(columns):
        sys.exit(f"{path} has columns that are no longer measured: {', '.join(sorted(gone))}; give another file")
    return rows


def renew(path, columns, rows):
    """Writes `rows` (dicts, each of a chip) in place of those that the file has of the same chips. Rows of other chips stay, and chips have the file's order."""
    old = recorded(path)
    if old and "chip" not in old[0]:
        sys.exit(f"{path} is no table of chips; give another file")
    place = {chip: at for at, chip in enumerate(dict.fromkeys(row["chip"] for row in [*old, *rows]))}
    chips = {row["chip"] for row in rows}
    kept = same_columns(path, columns, [row for row in old if row["chip"] not in chips])
    write(path, columns, sorted(kept + rows, key=lambda row: place[row["chip"]]))


def collect(rows, path, columns):
    """Prints each of `rows` (dicts, each of a chip) as a line of JSON when it is there, and renews the file's rows of these chips, if it has a name."""
    table, start = [], origin()
    for row in rows:
        print(json.dumps(row), flush=True)
        table.append(start | row)
    if path:
        renew(path, columns, table)


def append(path, columns, rows):
    """Appends `rows` (dicts) to the file, which gets a header when it is new and new columns where it lacks them."""
    write(path, columns, same_columns(path, columns, recorded(path)) + rows)
