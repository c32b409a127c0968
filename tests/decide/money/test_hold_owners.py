"""Owners of a shared node: whose pods leave it, and since when it idles."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec
import pytest

from pilotlight.decide.money.budget_limits import meters
from pilotlight.decide.money.hold_owners import in_gangs, visited_since, without_room
from pilotlight.decide.money.holds import Away
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.money.budgets import Hold, Payer, Terms
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.policy import ClassPolicy, Policy
from pilotlight.facts.workload import GpuRequest

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
POLICY = Policy(
    version=1,
    budgets=tuple(Budget(name=team, scope=BudgetScope(team=team), usd=Decimal(9), period="day") for team in "ac"),
    classes={"batch": ClassPolicy(may_move=("hard-cap",)), "training": ClassPolicy()},
)
TERMS = Terms(
    pool="eight",
    usd_per_hour=Decimal(32),
    gpus=8,
    boot_s=60,
    idle_s=300,
    run_s=3600,
    run_source="max_runtime",
    typical_s=600,
)


def bound(name: str, team: str, kind: str = "batch", gang: str = "", made: int = 0) -> BoundPod:
    """A pod of one GPU, made so many minutes after noon."""
    at = NOW + timedelta(minutes=made)
    return BoundPod(
        uid=name,
        namespace="ml",
        name=name,
        team=team,
        workload_class=kind,
        gang=gang,
        gpu=GpuRequest(count=1),
        created_at=at,
    )


@pytest.mark.parametrize(
    ("teams", "kind", "leave"),
    [
        (["c", "a"], "batch", ["c0"]),
        (["c", "a", "c"], "batch", ["c0", "c2"]),
        (["c", "a"], "training", []),
        (["c"], "batch", []),
        (["c", "b"], "batch", []),
        (["a"], "batch", []),
    ],
    ids=[
        "two owners",
        "each of its pods",
        "may not be stopped",
        "alone by now",
        "beside no owner",
        "no pods of its own",
    ],
)
def test_pods_leave_for_their_owner_s_want_only_where_another_owner_stays(
    teams: list[str], kind: str, leave: list[str]
) -> None:
    """Team c's budget has no room for a node that it shares with team a: where a has pods on it those of c leave, else
    the node is to be stopped, within what it holds."""
    owners = tuple(Payer(team=team, workload_class=kind, part=Decimal("0.5")) for team in "ca")
    terms = msgspec.structs.replace(TERMS, team="c", workload_class=kind, owners=owners)
    pods = [bound(f"{team}{n}", team, kind) for n, team in enumerate(teams)]
    refused = [meter for meter in meters(POLICY.budgets, NOW) if meter.budget.name == "c"]
    assert [pod.name for pod in without_room(pods, terms, refused, POLICY)] == leave


def test_gangs_are_asked_for_whole_and_the_oldest_first() -> None:
    """Two pods of a gang go together, by when the first of them was made."""
    pods = [bound("d", "c", made=9), bound("b", "c", gang="g", made=5), bound("c", "c", made=3)]
    pods += [bound("a", "c", gang="g", made=2)]
    assert [[pod.name for pod in some] for some in in_gangs(pods)] == [["a", "b"], ["c"], ["d"]]


@pytest.mark.parametrize(
    ("since", "on", "leaving", "then"),
    [
        (None, [], [], None),
        (None, ["x"], ["x"], 0),
        (None, ["x"], [], None),
        (None, ["x", "y"], ["x"], None),
        (-30, ["x"], ["x"], -30),
        (-30, [], [], -30),
        (-30, ["x", "y"], ["x", "y"], -30),
        (-30, ["x"], [], None),
    ],
)
def test_a_node_idles_from_its_first_visit_until_a_pod_that_is_paid_for_is_on_it(
    since: int | None, on: list[str], leaving: list[str], then: int | None
) -> None:
    """In minutes from now, by the pods on it and those that leave it for want of dollars."""
    hold = Hold(id="h", decision="", terms=TERMS, since=NOW, binds_until=NOW, until=NOW)
    hold = msgspec.structs.replace(hold, visited_since=None if since is None else NOW + timedelta(minutes=since))
    away = Away(tuple(bound(name, "c") for name in leaving), "no room") if leaving else None
    found = visited_since(hold, [bound(name, "c") for name in on], away, NOW)
    assert found == (None if then is None else NOW + timedelta(minutes=then))
