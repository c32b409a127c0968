"""Which hold is whose: instances take the holds that were bought for them, and no other."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from small_fleet import node

from pilotlight.decide.money.budget_limits import open_hold
from pilotlight.decide.money.holds import OF_WORKLOAD, Lit, match
from pilotlight.facts.money.budgets import Hold, Terms
from pilotlight.facts.nodes.pool_state import PoolState

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def hold(name: str, pool: str = "one", at: datetime = NOON, decision: str = "d") -> Hold:
    """A hold for a node of a pool, bought at a moment."""
    terms = Terms(
        pool=pool, usd_per_hour=Decimal(1), gpus=1, boot_s=180, idle_s=300, run_s=3600, run_source="", typical_s=600
    )
    return open_hold(name, decision, terms, at)


def pool(desired: int, name: str = "one") -> PoolState:
    """A pool of a size that names none of its instances yet."""
    return PoolState(name=name, desired=desired)


def test_an_instance_takes_no_hold_of_another_pool() -> None:
    """The hold of a dear node stays its own, though a cheap one comes first."""
    cheap = Lit("i-1", "one", NOON, None)
    found = match([hold("dear", "eight")], [cheap], [pool(1), pool(1, "eight")], NOON)
    assert found.strange == (cheap,)
    assert [(h.id, one) for h, one in found.live] == [("dear", None)]


@pytest.mark.parametrize(
    ("older", "its"),
    [(timedelta(0), True), (timedelta(minutes=5), True), (timedelta(minutes=5, seconds=1), False)],
    ids=["it came after", "its cloud's clock is behind", "it was there before"],
)
def test_an_instance_that_was_there_before_takes_no_hold(older: timedelta, its: bool) -> None:
    """A node that is older than a purchase, by more than clocks differ, is not what was bought."""
    found = match([hold("h")], [Lit("i-1", "one", NOON - older, None)], [pool(2)], NOON)
    assert [one is not None for _, one in found.live] == [its]
    assert len(found.strange) == (not its)


def test_a_cloud_that_owes_one_instance_keeps_one_hold() -> None:
    """Two holds are old enough to have come: of the second it is known that nothing will."""
    late = NOON + timedelta(minutes=5)
    found = match([hold("a"), hold("b")], [], [pool(1)], late)
    assert [h.id for h, _ in found.live] == ["a"]
    assert [h.id for h in found.over] == ["b"]


def test_the_hold_of_a_queued_workload_takes_nothing_of_what_a_cloud_owes() -> None:
    """Another makes its nodes: the purchase beside it is waited for as if it were alone."""
    late = NOON + timedelta(minutes=5)
    queued = hold("q", at=NOON - timedelta(minutes=1), decision=f"{OF_WORKLOAD}ml/job")
    found = match([queued, hold("a")], [], [pool(1)], late)
    assert sorted(h.id for h, _ in found.live) == ["a", "q"]


@pytest.mark.parametrize(
    ("age_s", "unresolved", "stays"),
    [(59, False, True), (60, False, False), (600, True, True)],
    ids=["its call may be under way", "a lease is over", "its call may still land"],
)
def test_a_hold_waits_for_a_call_that_may_be_under_way(age_s: float, unresolved: bool, stays: bool) -> None:
    """The cloud owes nothing yet: what another worker is buying just now keeps its hold."""
    asked = frozenset({"d"}) if unresolved else frozenset()
    found = match([hold("h")], [], [pool(0)], NOON + timedelta(seconds=age_s), asked)
    assert [h.id for h, _ in found.live] == ["h"] * stays
    assert [h.id for h in found.over] == ["h"] * (not stays)


def test_a_look_from_before_an_instance_was_found_ends_no_hold() -> None:
    """A later look gave the hold its instance: this one is older than that and does not see it yet."""
    matched = replace(hold("h"), instance="i-1", matched_at=NOON + timedelta(minutes=5))
    for now, stays in ((NOON + timedelta(minutes=5), True), (NOON + timedelta(minutes=6), False)):
        found = match([matched], [], [pool(0)], now)
        assert [h.id for h, _ in found.live] == ["h"] * stays


def test_of_two_holds_with_one_instance_the_older_keeps_it() -> None:
    """Two workers' looks gave it to both: the other waits for another, and is not charged for this one."""
    first, second = (replace(hold(n, at=NOON + timedelta(seconds=s)), instance="i-1") for n, s in (("b", 0), ("a", 1)))
    found = match([second, first], [Lit("i-1", "one", NOON, None)], [pool(2)], NOON)
    assert {h.id: h.instance for h, _ in found.live} == {"b": "i-1", "a": ""}


def test_an_instance_that_is_older_by_its_clouds_clock_moves_its_hold_back_with_it() -> None:
    """It holds no more than was granted, and ends as much earlier as it began."""
    own, early = hold("h"), timedelta(seconds=90)
    ((found, _),) = match([own], [Lit("i-1", "one", NOON - early, None)], [pool(1)], NOON).live
    assert (found.since, found.binds_until, found.until) == (NOON - early, own.binds_until - early, own.until - early)
    ((found, _),) = match([own], [Lit("i-1", "one", NOON + early, None)], [pool(1)], NOON).live
    assert (found.since, found.until) == (own.since, own.until)


@pytest.mark.parametrize(
    ("made_s", "registered", "since_s"),
    [(300, False, 0), (4 * 3600, False, 4 * 3600 - 300), (4 * 3600, True, 4 * 3600 - 300 - 180)],
    ids=["within what clocks differ by", "hours later", "hours later, a node by now, which booted first"],
)
def test_an_instance_made_long_after_it_was_asked_for_costs_from_then_on(
    made_s: int, registered: bool, since_s: int
) -> None:
    """A group tried for hours: its hold begins no more than the clocks' difference, and a boot, before its instance."""
    own, made = hold("h"), NOON + timedelta(seconds=made_s)
    there = node("n", created_at=made) if registered else None
    now = made + timedelta(minutes=1)
    ((found, _),) = match([own], [Lit("i-1", "one", made, there)], [pool(1)], now).live
    assert found.since == NOON + timedelta(seconds=since_s)
    assert (found.binds_until, found.until) == (own.binds_until, own.until)


@given(made_s=st.integers(-300, 90_000), seen_s=st.integers(0, 90_000), boot_s=st.integers(0, 3_600))
def test_a_hold_begins_before_its_instance_and_never_after_the_look_that_found_it(
    made_s: int, seen_s: int, boot_s: int
) -> None:
    """Whatever its cloud's clock says, a hold spans all that its instance may have cost, and never lies ahead."""
    own = hold("h")
    own = replace(own, terms=replace(own.terms, boot_s=boot_s))
    made = NOON + timedelta(seconds=made_s)
    now = max(NOON, NOON + timedelta(seconds=seen_s))
    for there in (None, node("n", created_at=made)):
        ((found, _),) = match([own], [Lit("i-1", "one", made, there)], [pool(1)], now).live
        assert found.since <= max(own.since, now)
        assert found.since <= max(own.since, made)
