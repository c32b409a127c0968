"""One worker a cluster at a time. A delivery that finds the lease held marks "look again" and leaves.

A lease ends by the store's time, which no worker's clock can bend, and its holder reckons what is left of it by that
too. That keeps two workers from doing the same work; what keeps them from harm where one of them stalled all the same
are the states of steps (``call_steps``).
"""

from contextlib import suppress
from datetime import datetime, timedelta

from msgspec.structs import replace

from pilotlight.errors import Busy, Conflict
from pilotlight.ports.state import ABSENT, KnowsLooks, State
from pilotlight.state_schema.lease_records import FENCE, LEASE, LEASE_S, Fence, LeaseHolder
from pilotlight.state_schema.marks import LOOK_AGAIN, Mark
from pilotlight.units import EPOCH, Seconds

AT_WORK = "another delivery is at work on this cluster; it will look again"

RENEW_S = LEASE_S / 4
"""A holder that works for longer renews as often."""

MARGIN_S = 5.0
"""A call begins only where the lease outlasts its deadline by so long."""

UNKNOWN = timedelta(minutes=2)
"""Looks come once a minute: a state that lacks the last of them was not restored."""

LOST = "the cluster's lease was lost to another worker, which goes on from the record"


class Lease:
    """A lease that is held. ``fence`` grows with every holder of this cluster.

    ``settled`` is when the last look before began that settles what it sees; None where none is known. ``lost_since``:
    what was written from then on is gone, as after a restore.
    """

    def __init__(
        self,
        state: State,
        cluster: str,
        value: LeaseHolder,
        settled: datetime | None = None,
        lost_since: datetime | None = None,
    ) -> None:
        self.fence, self.settled, self.lost_since = value.fence, settled, lost_since
        self._state, self._cluster, self._value = state, cluster, value
        self._version = ABSENT
        self._put()

    @property
    def left_s(self) -> Seconds:
        """Seconds for which it is still ours for certain, by the store's time: from before it was last written."""
        return LEASE_S - (self._state.now() - self._written).total_seconds()

    def keep(self, *, sure: bool = False, for_s: Seconds = 0.0) -> None:
        """Make sure, before an effect of ``for_s``, that the lease is still ours; renew it when not fresh, or ``sure``.

        Raises ``Busy`` when it was lost: whoever holds it now goes on with what was recorded.
        """
        if not sure and self.left_s > max(LEASE_S - RENEW_S, for_s + MARGIN_S):
            return
        try:
            self._put()
        except Conflict:
            raise Busy(LOST) from None
        if self.left_s < for_s + MARGIN_S:
            raise Busy("this worker stood still while it renewed the cluster's lease: nothing was sent")

    def _put(self) -> None:
        written = self._state.now()
        self._version = LEASE.put(self._state, self._cluster, self._value, if_version=self._version)
        self._written = written

    def forget_loss(self) -> None:
        """Forget since when the state lacks what was written: that is counted and told by now."""
        if self.lost_since is None:
            return
        gone, self.lost_since = self.lost_since, None

        def without(last: Fence | None) -> Fence:
            assert last is not None  # It was written when this lease was taken.
            return replace(last, lost_since=None) if last.lost_since == gone else last

        FENCE.change(self._state, self._cluster, without)

    def release(self) -> None:
        """Give the lease back. One that was lost to its expiry is left to its new holder."""
        with suppress(Conflict):
            LEASE.delete(self._state, self._cluster, if_version=self._version)


def acquire(state: State, cluster: str, holder: str, *, settles: bool = False) -> Lease | None:
    """The cluster's lease, or None where another holds it (then it is asked to look again).

    ``settles``: what this holder sees is settled. That is noted before it looks, so that no write is for it alone.
    """
    if LEASE.get(state, cluster) is None:
        last, fence = _next_fence(state, cluster, settles=settles)
        with suppress(Conflict):
            settled, holds = last.settled if last else None, LeaseHolder(fence=fence.fence, holder=holder)
            return Lease(state, cluster, holds, settled, fence.lost_since)
    # Whoever takes the mark away looks after that: one that is still there speaks for this delivery too.
    if LOOK_AGAIN.get(state, cluster) is None:
        LOOK_AGAIN.put(state, cluster, Mark())
    return None


def last_settled(state: State, cluster: str) -> datetime | None:
    """When the last look began that was settled."""
    fence = FENCE.get(state, cluster)
    return fence.value.settled if fence else None


def last_look(state: State, cluster: str) -> datetime | None:
    """When the last look began, by the store's time; None where none is known."""
    fence = FENCE.get(state, cluster)
    return fence.value.at if fence else None


def spoken_for(state: State, cluster: str) -> bool:
    """True where another holds the lease and is asked to look again already: two reads, and nothing is left to do."""
    return LEASE.get(state, cluster) is not None and LOOK_AGAIN.get(state, cluster) is not None


def asked_again(state: State, cluster: str) -> bool:
    """True where a delivery left a mark since the last look; takes the mark away."""
    if LOOK_AGAIN.get(state, cluster) is None:
        return False
    LOOK_AGAIN.delete(state, cluster)
    return True


def _next_fence(state: State, cluster: str, *, settles: bool) -> tuple[Fence | None, Fence]:
    """The last fence and the next one."""
    now = state.now()
    looks = state if isinstance(state, KnowsLooks) else None
    seen = looks.last_look(cluster) if looks is not None else None
    before: list[Fence | None] = []

    def after(last: Fence | None) -> Fence:
        before.append(last)
        settled, number = (last.settled, last.fence + 1) if last else (None, 1)
        return Fence(fence=number, at=now, settled=now if settles else settled, lost_since=_lost(last, seen, now))

    fence = FENCE.change(state, cluster, after)
    if looks is not None:
        looks.note_look(cluster, now)
    return before[-1], fence


def _lost(last: Fence | None, seen: datetime | None, now: datetime) -> datetime | None:
    """Since when what was written is gone: looks were ``seen`` that the state knows nothing of."""
    if last is not None and last.lost_since is not None:
        return last.lost_since
    wrote = (last.at if last else None) or EPOCH
    return wrote if seen is not None and seen <= now + UNKNOWN and seen - wrote > UNKNOWN else None
