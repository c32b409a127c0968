"""How many nodes of what was asked for are still on their way."""

from datetime import timedelta

from pilotlight.facts.nodes.pool_state import Booting, InFlight, PoolState
from pilotlight.flow.records.ledger import still_booting
from pilotlight.world.world_clock import VirtualClock


def test_no_more_of_an_entry_boots_than_it_asked_for(clock: VirtualClock) -> None:
    """What else a pool boots was asked for by others."""
    now = clock.now()
    entry = InFlight(
        decision="d",
        offering="t4",
        pool="t4",
        count=1,
        requested_at=now,
        ready_by=now + timedelta(minutes=5),
        demands=(),
    )
    booting = tuple(Booting(instance=f"i{n}", requested_at=now + timedelta(seconds=n)) for n in range(3))
    assert still_booting([entry], (), [PoolState(name="t4", desired=3, booting=booting)]) == [1]


def test_what_was_refused_is_not_on_its_way(clock: VirtualClock) -> None:
    """It counts in the size until it is called off, and comes for nobody."""
    now = clock.now()
    entry = InFlight(decision="d", offering="t4", pool="t4", count=2, requested_at=now, ready_by=now)
    booting = (Booting(instance="i", requested_at=now),)
    assert still_booting([entry], (), [PoolState(name="t4", desired=2, booting=booting, refused=("x",))]) == [1]
