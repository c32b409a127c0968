"""Which placement a cluster gets, and what it is worth, as a check-up says it."""

from collections.abc import Sequence

import pytest
from small_fleet import A100, FLEET, NOW, T4, offering, policy

from pilotlight.facts.capacity import Offering
from pilotlight.facts.policy import Placement
from pilotlight.tools.checkup.placement_worth import placement_checks
from pilotlight.tools.checkup.survey_facts import Survey

WORTH = "keeps a A100x8 lit at $32.00 an hour where a T4x1 is $1.00"
SAID: dict[str, tuple[Placement, bool, str]] = {
    "none": ("none", False, "warning"),
    "by taint, and watched": ("taint", True, "ok"),
    "by taint, and nobody watches": ("taint", False, "fault"),
}


@pytest.mark.parametrize(("placement", "watched", "verdict"), SAID.values(), ids=SAID.keys())
def test_what_a_cluster_gets(placement: Placement, watched: bool, verdict: str) -> None:
    """One line with dollars an hour, and what to do where it is not as it should be."""
    survey = Survey(server="s", version="v", at=NOW, watched=watched)
    [check] = placement_checks(survey, policy(placement=placement), FLEET)
    assert (check.code, check.verdict, bool(check.fix)) == ("placement", verdict, verdict != "ok")
    assert WORTH in check.what


@pytest.mark.parametrize(
    "offered",
    [(), (A100,), (T4, offering("big", "T4", 4, "4"))],
    ids=["nothing is offered", "one type", "types of equal price a GPU"],
)
def test_nothing_is_said_where_nothing_is_to_be_gained(offered: Sequence[Offering]) -> None:
    """Without a dearer type small work costs the same everywhere."""
    survey = Survey(server="s", version="v", at=NOW)
    assert not list(placement_checks(survey, policy(), offered))
