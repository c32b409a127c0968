"""One worker a cluster at a time. A delivery that finds the lease held marks "look again" and leaves."""

from datetime import datetime

import msgspec

from pilotlight.codec.records import MARK, Format, Mark
from pilotlight.errors import Busy, Conflict
from pilotlight.ports import ABSENT, Clock, State

LEASE_S = 60.0
"""A dead holder's lease ends after so long."""

AT_WORK = "another delivery is at work on this cluster; it will look again"

RENEW_S = LEASE_S / 4
"""A holder that works for longer renews as often."""


class _Lease(msgspec.Struct, frozen=True, kw_only=True):
    fence: int
    holder: str


class _Fence(msgspec.Struct, frozen=True, kw_only=True):
    fence: int


# Schema 1 was the bare number.
LEASE, FENCE = Format(_Lease), Format(_Fence, lambda number: {"fence": int(number)})


class Lease:
    """A lease that is held. ``fence`` grows with every holder of this cluster."""

    def __init__(self, state: State, clock: Clock, key: str, value: _Lease, version: int) -> None:
        self.fence = value.fence
        self._state, self._clock, self._key, self._value, self._version = state, clock, key, value, version
        self._renewed: datetime = clock.now()

    def keep(self, *, sure: bool = False) -> None:
        """Make sure, before an effect, that the lease is still ours; renew it when not fresh, or to be ``sure``.

        Raises ``Busy`` when it was lost: whoever holds it now goes on with what was recorded.
        """
        if not sure and (self._clock.now() - self._renewed).total_seconds() < RENEW_S:
            return
        try:
            value = LEASE.write(self._value)
            self._version = self._state.put(self._key, value, if_version=self._version, ttl_s=LEASE_S)
        except Conflict:
            raise Busy("the cluster's lease was lost to another worker, which goes on from the record") from None
        self._renewed = self._clock.now()

    def release(self) -> None:
        """Give the lease back. One that was lost to its expiry is left to its new holder."""
        try:
            self._state.delete(self._key, if_version=self._version)
        except Conflict:
            return


def acquire(state: State, clock: Clock, cluster: str, holder: str) -> Lease | None:
    """The cluster's lease, or None where another holds it (then it is asked to look again)."""
    key = f"lease/{cluster}"
    if state.get(key) is None:
        value = _Lease(fence=_next_fence(state, cluster), holder=holder)
        try:
            version = state.put(key, LEASE.write(value), if_version=ABSENT, ttl_s=LEASE_S)
            return Lease(state, clock, key, value, version)
        except Conflict:
            pass
    # Whoever takes the mark away looks after that: one that is still there speaks for this delivery too.
    if state.get(f"look-again/{cluster}") is None:
        state.put(f"look-again/{cluster}", MARK.write(Mark()))
    return None


def spoken_for(state: State, cluster: str) -> bool:
    """Whether another holds the lease and is asked to look again already: two reads, and nothing is left to do."""
    return state.get(f"lease/{cluster}") is not None and state.get(f"look-again/{cluster}") is not None


def asked_again(state: State, cluster: str) -> bool:
    """Whether a delivery left a mark since the last look; takes the mark away."""
    key = f"look-again/{cluster}"
    if state.get(key) is None:
        return False
    state.delete(key)
    return True


def _next_fence(state: State, cluster: str) -> int:
    key = f"fence/{cluster}"
    while True:
        stored = state.get(key)
        fence = FENCE.read(key, stored.value).fence + 1 if stored else 1
        try:
            state.put(key, FENCE.write(_Fence(fence=fence)), if_version=stored.version if stored else ABSENT)
        except Conflict:
            continue
        return fence
