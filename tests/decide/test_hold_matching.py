"""Which hold is whose: instances take the holds that were bought for them, and no other."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from pilotlight.decide.money.budget import opened
from pilotlight.decide.money.holds import OF_WORKLOAD, Lit, match
from pilotlight.facts.budget import Hold, Terms
from pilotlight.facts.capacity import PoolState

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def hold(name: str, pool: str = "one", at: datetime = NOON, decision: str = "d") -> Hold:
    """A hold for a node of a pool, bought at a moment."""
    terms = Terms(
        pool=pool, usd_per_hour=Decimal(1), gpus=1, boot_s=180, idle_s=300, run_s=3600, run_source="", typical_s=600
    )
    return opened(name, decision, terms, at)


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
