"""Jobs with a deadline on spot: never late whatever spot does, and at the least expected cost."""

from collections.abc import Sequence
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.decide.job_deadlines.deadline_capacity import Chances, DeadlinePlan
from pilotlight.tools.replay.deadline_runs import DeadlineJob, Now, Rule, Step, learnt, play

CHANCE = st.floats(0.01, 0.95)
CHANCES = st.builds(Chances, lost=CHANCE, back=CHANCE, gone=CHANCE, elsewhere=st.floats(0, 1))
HALF = Chances(lost=0.25, back=0.5)


def following(plan: DeadlinePlan) -> Rule:
    """The rule that a plan is, in one zone."""
    return lambda now: (plan.step(now.work, now.time, now.where, now.restart_left, now.up[0]), 0)


def cost(log: Sequence[Step], price: float) -> float:
    """Ticks of on-demand that were paid for."""
    return sum({"spot": price, "on-demand": 1.0, "none": 0.0}[where] for where, _ in log)


@given(
    work=st.integers(1, 12), slack=st.integers(0, 10), restart=st.integers(1, 4), price=st.floats(0.01, 1.2),
    chances=CHANCES, up=st.lists(st.booleans(), min_size=30, max_size=30),
)  # fmt: skip
def test_no_job_is_late(work: int, slack: int, restart: int, price: float, chances: Chances, up: list[bool]) -> None:
    """Whatever spot does and whatever was believed of it, a job that on-demand could end in time ends in time."""
    plan = DeadlinePlan(work, restart + slack, restart, price, chances)
    played = play([up], DeadlineJob(work, work + restart + slack, restart), following(plan))
    assert played.work_left == 0
    assert all(up[tick] for tick, (where, _) in enumerate(played.log) if where == "spot")


@given(price=st.floats(0.05, 0.95), restart=st.integers(1, 2), slack=st.integers(0, 3), work=st.integers(1, 4))
def test_the_expected_cost_is_the_mean_of_all_that_may_come(price: float, restart: int, slack: int, work: int) -> None:
    """Every course that spot may take, weighed by its chance: the plan costs what it says, and greedy no less."""
    job = DeadlineJob(work, work + restart + slack, restart)
    plan = DeadlinePlan(work, restart + slack, restart, price, HALF)
    courses = [(True, *rest) for rest in product((True, False), repeat=job.time - 1)]

    def mean(rule: Rule) -> float:
        return sum(_chance(course) * cost(play([course], job, rule).log, price) for course in courses)

    assert mean(following(plan)) == pytest.approx(plan.cost(spot_up=True))
    assert plan.cost(spot_up=True) <= mean(_greedy(job)) + 1e-9


def _chance(course: Sequence[bool]) -> float:
    found = 1.0
    for before, after in pairwise(course):
        changes = HALF.lost if before else HALF.back
        found *= changes if before != after else 1 - changes
    return found


def _greedy(job: DeadlineJob) -> Rule:
    def rule(now: Now) -> Step:
        safe = now.time - now.work > job.restart or (now.where == "spot" and not now.restart_left)
        if now.where == "on-demand" or not safe:
            return "on-demand", 0
        return ("spot" if now.up[0] else "none"), 0

    return rule


@pytest.mark.parametrize(
    ("up", "paid"),
    [
        pytest.param(True, 0.3 * 12, id="spot that stays: the work and one start, at its price"),
        pytest.param(False, 12.0, id="spot that never comes: the work and one start on on-demand"),
    ],
)
def test_spot_that_never_changes(up: bool, paid: float) -> None:
    """Ten ticks of work, two of a start, by fifteen."""
    plan = DeadlinePlan(10, 5, 2, 0.3, Chances(lost=0.01, back=0.3))
    played = play([[up]], DeadlineJob(10, 15, 2), following(plan))
    assert cost(played.log, 0.3) == pytest.approx(paid)


def test_a_deadline_that_on_demand_cannot_meet_has_no_plan() -> None:
    """With less slack than a start takes nothing is promised, and the least late is tried."""
    plan = DeadlinePlan(10, 1, 2, 0.3, HALF)
    assert plan.cost(spot_up=True) == float("inf")
    assert plan.step(10, 11, "none", 0, True) == "on-demand"
    assert plan.step(10, 9, "none", 0, True) == "on-demand"


def test_spot_dearer_than_on_demand_is_never_taken() -> None:
    """A price above on-demand's buys nothing."""
    plan = DeadlinePlan(10, 8, 1, 1.1, HALF)
    played = play([[True, False]], DeadlineJob(10, 18, 1), following(plan))
    assert {where for where, _ in played.log} == {"on-demand"}


def test_what_is_learnt_follows_the_history() -> None:
    """Spot that was lost often is taken to be lost sooner; nothing known is four hours up, two away."""
    often, never = learnt([[True, False] * 50], 0, 600), learnt([[True] * 100], 0, 600)
    assert never.lost < 600 / (4 * 3600) < often.lost
    unknown = learnt([[]], 0, 600)
    assert (unknown.lost, unknown.back) == pytest.approx((1 / 24, 1 / 12))


def test_another_zone_that_is_up_counts() -> None:
    """Where one zone goes while another is up, a job is seldom without any."""
    one, two = [True, True, False, False] * 20, [False, False, True, True] * 20
    chances = learnt([one, two], 0, 600)
    assert chances.elsewhere > 0.9
    assert chances.none_left < chances.lost
