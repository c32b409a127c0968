"""Which placement a cluster gets, and what it is worth, as a check-up says it."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from small_fleet import A100, FLEET, NOW, T4, offering, policy

from pilotlight.facts.capacity import Offering
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import Policy
from pilotlight.tools.checkup.placement_worth import placement_checks
from pilotlight.tools.checkup.survey_facts import Limit, Survey, Trial

WORTH = "keeps a A100x8 lit at $32.00 an hour where a T4x1 is $1.00"


def homed(**rules: Any) -> Policy:
    """A policy by which A100 nodes are born closed."""
    made = policy(**rules)
    dear = msgspec.structs.replace(made.pools["a100"], taints=(BIRTH_TAINT,))
    return msgspec.structs.replace(made, pools={**made.pools, "a100": dear})


SAID: dict[str, tuple[Policy, bool, str, str]] = {
    "none": (homed(placement="none"), False, "warning", "take placement: none out"),
    "homes, and no pool is born closed": (policy(), False, "warning", "NoSchedule at pools a100, v100x4 in the policy"),
    "by homes, and watched": (homed(), True, "ok", ""),
    "by homes, and nobody watches": (homed(), False, "fault", "watchman.yaml"),
}


@pytest.mark.parametrize(("rules", "watched", "verdict", "fix"), SAID.values(), ids=SAID.keys())
def test_what_a_cluster_gets(rules: Policy, watched: bool, verdict: str, fix: str) -> None:
    """One line with dollars an hour, and what to do where it is not as it should be."""
    survey = Survey(server="s", version="v", at=NOW, watched=watched)
    [check] = placement_checks(survey, rules, FLEET)
    assert (check.code, check.verdict, bool(check.fix)) == ("placement", verdict, verdict != "ok")
    assert WORTH in check.what
    assert fix in check.fix


HOLDS = Limit(policy="there", bound=True, patches=True)
LIMITS = {
    "it holds": (HOLDS, "ok"),
    "it was not looked at": (None, "ok"),
    "it is not there": (Limit(policy="absent", patches=True), "fault"),
    "it is not bound": (msgspec.structs.replace(HOLDS, bound=False), "fault"),
    "our account may not patch pods": (msgspec.structs.replace(HOLDS, patches=False), "fault"),
    "it lets a label through": (
        msgspec.structs.replace(HOLDS, trials=(Trial(what="label", of="p", allowed=True),)),
        "fault",
    ),
    "it lets a home through": (
        msgspec.structs.replace(HOLDS, trials=(Trial(what="home", of="p", allowed=True),)),
        "ok",
    ),
}


@pytest.mark.parametrize(("limit", "verdict"), LIMITS.values(), ids=LIMITS.keys())
def test_homes_need_their_limit(limit: Limit | None, verdict: str) -> None:
    """Without the policy that limits our account to tolerations of homes nobody is given one, and that is a fault."""
    survey = Survey(server="s", version="v", at=NOW, watched=True, pod_limit=limit)
    [check] = placement_checks(survey, homed(), FLEET)
    assert check.verdict == verdict


@pytest.mark.parametrize(
    "offered",
    [(), (A100,), (T4, offering("big", "T4", 4, "4"))],
    ids=["nothing is offered", "one type", "types of equal price a GPU"],
)
def test_nothing_is_said_where_nothing_is_to_be_gained(offered: Sequence[Offering]) -> None:
    """Without a dearer type small work costs the same everywhere."""
    survey = Survey(server="s", version="v", at=NOW)
    assert not list(placement_checks(survey, policy(), offered))
