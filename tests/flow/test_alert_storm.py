"""A small storm of alerts over real HTTP; ``python bench/alert_storm.py`` is the large one."""

import pytest

from alert_storm import KINDS, storm


@pytest.mark.parametrize("grouped", [False, True], ids=["each by itself", "grouped"])
def test_a_storm_loses_and_doubles_nothing(grouped: bool) -> None:
    """With three requests in ten failing, every alert is told once or is a dead letter, and no secret shows."""
    found = storm(60, seed=7, grouped=grouped)
    assert (found.lost, found.doubled, found.shown) == (0, 0, 0)
    assert found.told + found.dead >= 60 * len(KINDS)
    assert sum(found.met.values()) > found.met["taken"]
