"""Benchmark results as CSV files that grow by a run at a time."""

import csv


def append(path, columns, rows):
    """Appends `rows` (dicts) to the file, which gets a header when it is new."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns)
        if new:
            writer.writeheader()
        writer.writerows(rows)
