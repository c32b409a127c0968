"""Random hours of a cluster, with six kinds of trouble each at least, are lived through as tables have them."""

from pathlib import Path

import pytest
from random_stories import story
from state_tables import differing

SEEDS = 60


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_story_goes_as_its_table_has_it(seed: int) -> None:
    """Every answer, alert, call and record, under deaths, lost answers, late workers, people, notices and edits."""
    assert differing(Path(__file__).with_name(f"{seed:02}.txt"), story(seed))[:9] == []
