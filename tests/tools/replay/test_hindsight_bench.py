"""`bench/replays/hindsight.py`: which rule each part of the jobs gets."""

import math

import pytest
from msgspec.structs import replace

import hindsight
from hindsight import Choice, Way
from pilotlight.tools.cli.lab.replay_command import load_catalog
from pilotlight.tools.replay.traces.trace_job import Job

SLOW, QUICK, WASTE = Way("slow", 10, 900, 9), Way("quick", 30, 100, 1), Way("waste", 31, 100, 2)
CHEAP, DEAR = Way("cheap", 5, 300, 2), Way("dear", 50, 0, 0)


@pytest.mark.parametrize(
    ("waited_s", "late", "rules"),
    [
        pytest.param(math.inf, math.inf, ("slow", "cheap"), id="without a limit each part takes what costs least"),
        pytest.param(500, math.inf, ("quick", "cheap"), id="a mean is held by the part where that is cheapest"),
        pytest.param(math.inf, 3, ("quick", "cheap"), id="so is a number of late jobs"),
        pytest.param(100, 1, ("quick", "dear"), id="both limits ask for more of both parts"),
    ],
)
def test_the_cheapest_rules_that_hold_the_limits_are_chosen(waited_s: float, late: float, rules: tuple[str]) -> None:
    """One rule a part, together within the limits, at the fewest dollars."""
    choice = hindsight.cheapest([(SLOW, QUICK, WASTE), (CHEAP, DEAR)], waited_s, late)
    assert choice is not None
    assert tuple(way.rule for way in choice.ways) == rules


def test_where_no_rules_hold_a_limit_there_is_no_choice() -> None:
    """A wait that every rule of a part exceeds cannot be held."""
    assert hindsight.cheapest([(SLOW, QUICK), (CHEAP, DEAR)], 50, 0) is None


def test_what_another_rule_beats_is_not_tried() -> None:
    """A rule with more dollars and no less waiting is left out."""
    assert hindsight.worth_trying([WASTE, QUICK, SLOW]) == [SLOW, QUICK]


def test_jobs_are_parted_by_the_types_that_they_may_use_and_none_is_lost() -> None:
    """Jobs of one cheapest model are one part, whatever else they could use."""
    one = Job(job_id="a", submit_s=0.0, duration_s=60.0, gpus=1, models=("T4",))
    jobs = [one, replace(one, job_id="b", models=("T4", "V100")), replace(one, job_id="c", models=("V100",))]
    parts = hindsight.parted(jobs, load_catalog(None))
    assert [[job.job_id for job in part] for part in parts.values()] == [["a", "b"], ["c"]]


def test_a_choice_says_what_its_parts_come_to_together() -> None:
    """Dollars, waits and late jobs are sums over the parts."""
    choice = Choice((QUICK, CHEAP))
    assert (choice.usd, choice.waited_s, choice.late) == (35, 400, 3)
