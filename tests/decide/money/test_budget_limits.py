"""Budgets: their windows, what a node takes of them, and what a plan buys under them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import NOW, bought, gang, offering, plan, pod, policy, unused_balances

from pilotlight.decide.money.budget_balance import Purse
from pilotlight.decide.money.budget_limits import (
    MOST_WINDOWS,
    applies,
    held_amount,
    life,
    longest_run,
    meters,
    open_hold,
    refusal,
    used_amount,
    window,
    windows,
)
from pilotlight.decide.money.holds import lit_instances, match
from pilotlight.decide.place.provision import covers
from pilotlight.decide.place.purchase import Group
from pilotlight.facts.money.budgets import Meter, Terms
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.nodes.pool_state import Booting, PoolState
from pilotlight.facts.policy import ClassPolicy, Policy
from pilotlight.facts.workload import PodDemand
from pilotlight.units import HOUR, per_hour

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
RESEARCH = BudgetScope(team="research")


def terms(**fields: object) -> Terms:
    """A $2 node of two GPUs for team research: 5 minutes of boot, 10 of idling, a run of 2 hours."""
    known: dict[str, object] = {
        "pool": "t4",
        "team": "research",
        "workload_class": "batch",
        "usd_per_hour": Decimal(2),
        "gpus": 2,
        "boot_s": 300,
        "idle_s": 600,
        "run_s": 2 * HOUR,
        "run_source": "classes.batch.max_runtime",
        "typical_s": HOUR,
    }
    return Terms(**{**known, **fields})  # type: ignore[arg-type]


def meter(now: datetime = NOON, **fields: object) -> Meter:
    """The one meter of a budget, by default $400 a day in UTC."""
    known: dict[str, object] = {"name": "b", "period": "day", "scope": RESEARCH}
    if not fields.keys() & {"usd", "gpu_hours", "usd_per_hour"}:
        known["usd"] = Decimal(400)
    (found,) = meters([Budget(**{**known, **fields})], now)  # type: ignore[arg-type]
    return found


WINDOWS = {
    "a day in UTC": ("day", "UTC", "2026-11-20T12:00", "2026-11-20T00:00", "2026-11-21T00:00"),
    "a day that began yesterday in UTC": (
        "day", "Asia/Tokyo", "2026-11-20T12:00", "2026-11-19T15:00", "2026-11-20T15:00",
    ),
    "a day of 25 hours when clocks go back": (
        "day", "America/New_York", "2026-11-01T12:00", "2026-11-01T04:00", "2026-11-02T05:00",
    ),
    "a day of 23 hours when clocks go forward": (
        "day", "America/New_York", "2026-03-08T12:00", "2026-03-08T05:00", "2026-03-09T04:00",
    ),
    "a day whose midnight the clocks skip": (
        "day", "America/Santiago", "2026-09-06T12:00", "2026-09-06T04:00", "2026-09-07T03:00",
    ),
    "a week from Monday": ("week", "UTC", "2026-11-22T23:59", "2026-11-16T00:00", "2026-11-23T00:00"),
    "a month of 30 days": ("month", "UTC", "2026-11-30T23:59", "2026-11-01T00:00", "2026-12-01T00:00"),
    "February of a leap year": ("month", "UTC", "2028-02-29T12:00", "2028-02-01T00:00", "2028-03-01T00:00"),
    "the last minute of a month": ("month", "UTC", "2026-12-31T23:59", "2026-12-01T00:00", "2027-01-01T00:00"),
}  # fmt: skip


@pytest.mark.parametrize(("period", "zone", "at", "start", "end"), WINDOWS.values(), ids=WINDOWS.keys())
def test_windows(period: str, zone: str, at: str, start: str, end: str) -> None:
    """A window goes from midnight to midnight of the budget's zone."""
    budget = Budget(name="b", usd=Decimal(1), period=period, timezone=zone)  # type: ignore[arg-type]
    moment, first, last = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (at, start, end))
    assert window(budget, moment) == (first, last)


ZONES = st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata", "America/Havana", "Asia/Beirut", "Pacific/Apia"])
PERIODS = st.sampled_from(["day", "week", "month"])
MOMENTS = st.integers(1_262_304_000, 2_051_222_400).map(lambda s: datetime.fromtimestamp(s, UTC))


@given(MOMENTS, ZONES, PERIODS)
def test_windows_follow_one_another(at: datetime, zone: str, period: str) -> None:
    """Every moment lies in exactly one window: the next begins where one ends."""
    budget = Budget(name="b", usd=Decimal(1), period=period, timezone=zone)  # type: ignore[arg-type]
    start, end = window(budget, at)
    assert start <= at < end
    assert window(budget, end)[0] == end
    assert window(budget, start) == (start, end)


@given(MOMENTS, ZONES, PERIODS, st.lists(st.integers(0, 900), min_size=1, max_size=5))
def test_windows_that_are_kept_are_those_made_anew(at: datetime, zone: str, period: str, days: list[int]) -> None:
    """Whoever asks again, for sooner or later moments, gets the same windows, up to the most that are followed."""
    budget = Budget(name="b", usd=Decimal(1), period=period, timezone=zone)  # type: ignore[arg-type]
    (own,) = meters([budget], at)
    made = [own]
    for until in (at + timedelta(days=n) for n in days):
        assert list(windows(own, until, made)) == list(windows(own, until))
    assert len(made) <= MOST_WINDOWS + 2


HELD = {
    "boot, longest run and idle time": (meter(), {}, 2 * Decimal("2.25")),
    "cut at the end of the period": (meter(), {"run_s": 30 * HOUR}, 2 * Decimal(12)),
    "a soft budget holds the typical run": (meter(hard=False), {}, 2 * Decimal("1.25")),
    "GPU-hours": (meter(gpu_hours=Decimal(100)), {}, 2 * Decimal("2.25")),
    "dollars an hour are the price": (meter(usd=Decimal(9), period="hour"), {"run_s": 30 * HOUR}, Decimal(2)),
    "a node billed by the hour holds whole hours": (meter(), {"increment_s": HOUR}, 2 * Decimal(3)),
}


@pytest.mark.parametrize(("of", "changed", "amount"), HELD.values(), ids=HELD.keys())
def test_what_a_purchase_holds(of: Meter, changed: dict[str, object], amount: Decimal) -> None:
    """A purchase holds all that its node can cost if a pod binds at the last moment and runs the longest."""
    assert held_amount(of, open_hold("h", "d", terms(**changed), NOON)) == amount


def test_a_refusal_gives_the_figures() -> None:
    """A refusal says whose money it is, how much would be held of how much, and the run it reckons with."""
    assert refusal(meter(), Decimal("412.104"), terms(), NOON) == (
        "team research: $412.10 of $400.00 a day would be held (a run may take 2 h: classes.batch.max_runtime)"
    )
    assert refusal(meter(usd=Decimal(9), period="hour"), Decimal(10), terms(), NOON) == (
        "team research: $10.00 of $9.00 an hour would be held"
    )
    whole = meter(gpu_hours=Decimal(100), period="week", scope="all", name="everyone", hard=False)
    assert refusal(whole, Decimal("100.5"), terms(), NOON) == (
        "budget everyone: 100.5 of 100.0 GPU-hours a week would be held (a run may take 1 h: the typical run)"
    )


SCOPES = {
    "all": ("all", True),
    "its team": (RESEARCH, True),
    "another team": (BudgetScope(team="ads"), False),
    "its class": (BudgetScope(workload_class="batch"), True),
    "another class": (BudgetScope(workload_class="serving"), False),
    "its pool": (BudgetScope(pool="t4"), True),
    "another pool": (BudgetScope(pool="a100"), False),
}


@pytest.mark.parametrize(("scope", "counted"), SCOPES.values(), ids=SCOPES.keys())
def test_scopes(scope: object, counted: bool) -> None:
    """A budget counts the nodes bought for its team, its class or in its pool."""
    assert applies(meter(scope=scope), terms()) is counted


RUNS = {
    "the pod's own deadline": (1800, "batch", (1800, "activeDeadlineSeconds")),
    "its class's": (0, "batch", (7200, "classes.batch.max_runtime")),
    "a class the policy does not name has 24 hours": (0, "training", (86_400, "classes.training has no max_runtime")),
    "a pod nobody knows yet": (0, None, (86_400, "classes.training has no max_runtime")),
}


@pytest.mark.parametrize(("max_run_s", "kind", "expected"), RUNS.values(), ids=RUNS.keys())
def test_longest_runs(max_run_s: float, kind: object, expected: tuple[float, str]) -> None:
    """The longest run is the pod's deadline, else its class's max_runtime, and says which."""
    policy = Policy(version=1, classes={"batch": ClassPolicy(max_runtime=7200)})
    assert longest_run(max_run_s, kind, policy) == expected  # type: ignore[arg-type]


@given(MOMENTS, st.integers(0, 80 * 3600), ZONES, PERIODS, st.sampled_from([1, 60, 3600]))
def test_charges_add_up_to_the_bill(since: datetime, lived: int, zone: str, period: str, step: int) -> None:
    """Over all windows of its life a node is charged what the cloud bills for it, to the cent."""
    hold = open_hold("h", "d", terms(minimum_s=60, increment_s=step), since)
    budget = Budget(name="b", usd=Decimal(1), period=period, timezone=zone)  # type: ignore[arg-type]
    until = since + timedelta(seconds=lived)
    charges = [used_amount(m, hold, until) for m in life([budget], hold, until)]
    bill = per_hour(Decimal(2), max(60, -(-lived // step) * step))
    assert abs(sum(charges, Decimal(0)) - bill) < Decimal("0.0001")


@given(MOMENTS, st.integers(0, 40 * 3600))
def test_what_is_held_covers_the_longest_run(since: datetime, late: int) -> None:
    """Whatever binds before ``binds_until`` and runs its longest costs no more than is held, in every window."""
    hold = open_hold("h", "d", terms(run_s=30 * HOUR), since)
    bound = min(hold.binds_until, since + timedelta(seconds=late))
    now = meter(since)
    assert used_amount(now, hold, bound + timedelta(hours=30)) <= held_amount(now, hold)


def test_a_plan_takes_from_its_purse() -> None:
    """Each node a plan takes leaves less room, in every budget that counts it and in no other."""
    both = [
        Budget(name="mine", usd=Decimal(10), scope=RESEARCH),
        Budget(name="theirs", usd=Decimal(1), scope=BudgetScope(team="ads")),
    ]
    purse = Purse(unused_balances(both, NOON), NOON, Policy(version=1))
    assert [left for left, *_ in purse.room(terms())] == [2]
    purse.take(terms(), 1)
    assert [left for left, *_ in purse.room(terms())] == [1]
    kept = purse.copy()
    purse.take(terms(), 1)
    ((left, why, _),) = purse.room(terms())
    assert (left, why.partition(" a month")[0]) == (0, "team research: $13.50 of $10.00")
    assert [left for left, *_ in kept.room(terms())] == [1]


def test_a_refusal_names_a_window_that_is_not_this_one() -> None:
    """Dollars left are told of the window that runs now: without its day the figure would contradict that."""
    late = NOON + timedelta(hours=11)
    purse = Purse(unused_balances([Budget(name="b", period="day", usd=Decimal("2.2"))], NOON), late, Policy(version=1))
    (_, today, _), (left, tomorrow, _) = purse.room(terms())
    assert left == 0
    assert " in the day" not in today
    assert " of $2.20 a day would be held in the day from 11-21 00:00 UTC (a run may take " in tomorrow


def test_a_run_over_midnight_needs_room_in_both_days() -> None:
    """An hour of the run is today's and fits; what it takes of tomorrow is more than a day has: none is bought."""
    for usd, left in ((Decimal("2.2"), 0), (Decimal("2.7"), 1)):
        purse = Purse(
            unused_balances([Budget(name="b", period="day", usd=usd)], NOON),
            NOON + timedelta(hours=11),
            Policy(version=1),
        )
        assert min(room for room, *_ in purse.room(terms())) == left


SHARED = {
    "the same team and class": ({}, True),
    "a shorter run": ({"max_run_s": 60.0}, True),
    "a longer run": ({"max_run_s": 3 * HOUR}, False),
    "another team": ({"team": "ads"}, False),
    "another class": ({"workload_class": "training"}, False),
    "a longer stop": ({"grace_s": 3600.0}, False),
}


@pytest.mark.parametrize(("changed", "may"), SHARED.values(), ids=SHARED.keys())
def test_who_may_share_a_new_node(changed: dict[str, Any], may: bool) -> None:
    """A node to be bought is shared only by pods that its hold covers."""
    traits: dict[str, Any] = {"team": "research", "workload_class": "batch", "max_run_s": 2 * HOUR, **changed}
    grace_s = traits.pop("grace_s", 30)
    own = msgspec.structs.replace(pod("p", **traits), grace_s=grace_s)
    held = terms(stop_s=Group(pod("q").shape, [pod("q")]).stop_s)
    assert covers(held, Group(own.shape, [own]), policy()) is may


@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["", "n0", "n1", "n2", "n3"])), max_size=6),
    st.lists(st.integers(0, 30), max_size=4),
    st.integers(0, 6),
)
def test_no_hold_and_no_instance_is_matched_twice(
    holds: list[tuple[int, str]], instances: list[int], desired: int
) -> None:
    """Each hold is live or over, each instance has one hold or is strange, and the cloud owes all that is awaited."""
    seen: set[str] = set()
    made = []
    for n, (ago, instance) in enumerate(holds):
        bound = "" if instance in seen else instance
        seen.add(bound)
        since = NOON - timedelta(minutes=ago)
        made.append(msgspec.structs.replace(open_hold(f"h{n}", "d", terms(), since), binds_until=since, instance=bound))
    booting = tuple(
        Booting(instance=f"n{n}", requested_at=NOON - timedelta(minutes=ago)) for n, ago in enumerate(instances)
    )
    pools = [PoolState(name="t4", desired=desired, booting=booting)]
    found = match(made, lit_instances([], pools), pools, NOON)
    assert sorted([h.id for h, _ in found.live] + [h.id for h in found.over]) == sorted(h.id for h in made)
    named = [one.instance for _, one in found.live if one] + [one.instance for one in found.strange]
    assert sorted(named) == sorted(b.instance for b in booting)
    awaited = [h for h, one in found.live if one is None and h.since < NOON - timedelta(minutes=1)]
    assert len(awaited) <= max(0, desired - len(booting))


BUDGETS = (
    Budget(name="all", usd=Decimal(150), period="day"),
    Budget(name="now", usd=Decimal(40), period="hour"),
    Budget(name="red", scope=BudgetScope(team="red"), gpu_hours=Decimal(60), period="week"),
    Budget(name="soft", scope=BudgetScope(workload_class="training"), usd=Decimal(20), hard=False),
)
WAITING = st.lists(
    st.builds(
        lambda n, gpus, team, kind, run_h, priority: pod(
            f"p{n}", gpus, team=team, workload_class=kind, max_run_s=run_h * HOUR, priority=priority
        ),
        st.integers(0, 10**9),
        st.sampled_from([1, 2, 4, 8]),
        st.sampled_from(["red", "blue"]),
        st.sampled_from(["batch", "training"]),
        st.sampled_from([0, 1, 5]),
        st.sampled_from([0, 10]),
    ),
    max_size=8,
    unique_by=lambda p: p.uid,
)


@given(WAITING, st.booleans())
def test_no_plan_passes_a_budget(waiting: list[PodDemand], together: bool) -> None:
    """Whatever waits, alone or as a gang, what the purchases of a plan hold stays within every budget."""
    pending = (*waiting, *(gang("g", 2, team="red", max_run_s=HOUR) if together else ()))
    made = plan(pending, rules=policy(budgets=BUDGETS), money=unused_balances(BUDGETS, NOW))
    for balance in unused_balances(BUDGETS, NOW).balances:
        own = [open_hold("", "", t, NOW) for buy in made.buys for t in buy.terms if applies(balance.meter, t)]
        assert sum((held_amount(balance.meter, hold) for hold in own), Decimal(0)) <= balance.meter.limit
    assert all(len(buy.terms) == buy.count for buy in made.buys)


@given(WAITING)
def test_the_order_of_pods_changes_nothing(waiting: list[PodDemand]) -> None:
    """With budgets too, the order in which pods are listed does not change what is bought."""
    money = unused_balances(BUDGETS, NOW)
    there = plan(waiting, rules=policy(budgets=BUDGETS), money=money)
    back = plan(waiting[::-1], rules=policy(budgets=BUDGETS), money=money)
    assert there.buys == back.buys


def test_a_gang_is_held_for_whole_or_refused() -> None:
    """A gang whose nodes do not all fit a budget gets none, and the refusal gives the figures."""
    budget = Budget(name="all", usd=Decimal(40), period="hour")
    made = plan(gang("g", 2), rules=policy(budgets=(budget,)), money=unused_balances([budget], NOW))
    assert made.buys == ()
    assert "budget all: $64.00 of $40.00 an hour would be held" in made.pods[0].why


def test_teams_do_not_share_a_node_that_is_bought() -> None:
    """Two teams' pods that one new node could hold get a node each: each is held for with its own money."""
    budget = Budget(name="all", usd=Decimal(10_000))
    big = offering("v100x4", "V100", 4, "12")
    two = [pod("a", 2, team="red"), pod("b", 2, team="blue")]
    made = plan(two, offerings=[big], rules=policy([big], budgets=(budget,)), money=unused_balances([budget], NOW))
    assert bought(made) == {"v100x4": 2}
    assert {t.team for t in made.buys[0].terms} == {"red", "blue"}
    assert bought(plan(two, offerings=[big], rules=policy([big]))) == {"v100x4": 1}
