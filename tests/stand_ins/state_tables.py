"""State tables: what a room answers in each of many states, a line a state, kept beside the test that asks it.

A line that differs is a change of behaviour: ``WRITE_TABLES=1 pytest FILE`` writes the table anew, and its diff says
what would be otherwise. States are drawn from few values a field, boundaries among them, by a seed.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

from pilotlight.units import EPOCH


def states(count: int, choices: Mapping[str, Sequence[Any]], seed: int = 1) -> Iterator[dict[str, Any]]:
    """So many states, each with one of the values of every field; the first value of a field is its usual one."""
    draw = Random(seed)
    for _ in range(count):
        yield {name: values[0] if draw.random() < 0.3 else draw.choice(values) for name, values in choices.items()}


def line(choices: Mapping[str, Sequence[Any]], state: Mapping[str, Any], answer: object) -> str:
    """A state by what is not as usual in it, and what it is answered by, as a table has it."""
    unusual = (f"{name}={value}" for name, value in state.items() if value != choices[name][0])
    return f"{' '.join(unusual)} -> {answer}"


def minutes(at: datetime | None, since: datetime) -> str:
    """A moment as so many minutes after another."""
    if at is None:
        return "-"
    return f"{(at - since).total_seconds() / 60:g}" if at.year < 9000 and at != EPOCH else f"{at.year}"


def differing(path: Path, found: Sequence[str]) -> list[str]:
    """The lines found that are not as a table has them, which is written first where that is asked for."""
    lines = [each.rstrip() for each in found]
    if os.environ.get("WRITE_TABLES"):
        path.write_text("\n".join(lines) + "\n", "utf-8")
    kept = path.read_text("utf-8").splitlines()
    return [f"{was} BECAME {now}" for was, now in zip_longest(kept, lines) if was != now]


def measured(measure: str, limit: Decimal) -> dict[str, Any]:
    """Fields of a budget that limits a measure: dollars an hour are those of period "hour"."""
    return {"usd": limit, "period": "hour"} if measure == "usd_per_hour" else {measure: limit}
