"""Walks through the house; ``python bench/cold_start/purchase_files.py`` prints them, ``--names`` the files of one."""

import pytest

from purchase_files import WALKS, Walked, walked

MOST_FILES = {"plain purchase": 53, "reconcile": 76, "billing tick": 13, "notice": 30}
MORE_WITH_EVERYTHING_ON, MOST_CALLS = 13, 505
"""Bounds of the purchase under a hard budget, taints and a schedule."""


@pytest.fixture(scope="module")
def found() -> dict[str, Walked]:
    """Every walk, walked once."""
    return {name: walked(name) for name in WALKS}


@pytest.mark.parametrize("name", MOST_FILES)
def test_an_event_enters_few_files(found: dict[str, Walked], name: str) -> None:
    """From an event's body to its answer, no more files are entered than its walk may."""
    assert {"doorway/door.py", "doorway/functions.py"} <= set(found[name].files)
    assert len(found[name].files) <= MOST_FILES[name], "\n".join(found[name].files)


def test_a_purchase_goes_through_the_cycle_and_the_plan(found: dict[str, Walked]) -> None:
    """The walk of a purchase is one: its look is planned, and its call is made."""
    assert {"flow/cycle/cycle.py", "decide/plan.py", "flow/cycle/act.py"} <= set(found["plain purchase"].files)


def test_a_purchase_with_everything_on_costs_little_more(found: dict[str, Walked]) -> None:
    """A hard budget, taints and a schedule add few files to those of a plain purchase, and few calls between files."""
    plain, whole = found["plain purchase"], found["everything on"]
    assert len(whole.files) <= len(plain.files) + MORE_WITH_EVERYTHING_ON, sorted({*whole.files} - {*plain.files})
    assert whole.calls <= MOST_CALLS
