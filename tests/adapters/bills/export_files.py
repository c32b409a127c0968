"""Files of an export, as old as a test wants them."""

import csv
import os
from collections.abc import Iterable, Mapping
from pathlib import Path


def write_export(path: Path, rows: Iterable[Mapping[str, str]], *, age: int = 0) -> Path:
    """An export's file, ``age`` days old."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = list(rows)
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, list(lines[0]))
        out.writeheader()
        out.writerows(lines)
    age_file(path, age)
    return path


def age_file(path: Path, age: int) -> None:
    """Make a file ``age`` days old."""
    when = 1_800_000_000 - age * 86_400
    os.utime(path, (when, when))
