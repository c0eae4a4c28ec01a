"""Benchmark results as CSV files that grow by a run at a time."""

import csv
import sys


def write(path, columns, rows):
    """The file anew, of `rows` (dicts)."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def append(path, columns, rows):
    """Appends `rows` (dicts) to the file, which gets a header when it is new and new columns where it lacks them. A run of a tree with
    changes is left out: nobody could repeat it."""
    if any(str(row.get("commit", "")).endswith("-dirty") for row in rows):
        print(f"not recorded in {path}: the tree had changes that no commit has", file=sys.stderr)
        return
    old = []
    if path.exists():
        with path.open(newline="") as file:
            old = list(csv.DictReader(file))
    if gone := set(old[0] if old else ()) - set(columns):
        sys.exit(f"{path} has columns that are no longer measured: {', '.join(sorted(gone))}; give another file")
    write(path, columns, old + rows)
