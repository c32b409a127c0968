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


def test_what_waits_in_a_queue_is_of_the_entry_that_asked_for_it(clock: VirtualClock) -> None:
    """Of two that were asked for one waits, and it was asked for before the second was: the first still comes."""
    asked = [clock.now(), clock.now() + timedelta(seconds=100)]
    entries = [
        InFlight(decision=f"d{n}", offering="t4", pool="t4", count=1, requested_at=at, ready_by=at, demands=())
        for n, at in enumerate(asked)
    ]
    queued = (Booting(instance="r.0", requested_at=asked[0] + timedelta(seconds=3)),)
    assert still_booting(entries, (), [PoolState(name="t4", desired=1, queued=queued)]) == [1, 0]
