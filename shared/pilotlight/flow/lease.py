"""One worker a cluster at a time. A delivery that finds the lease held marks "look again" and leaves."""

from dataclasses import dataclass

import msgspec

from pilotlight.errors import Conflict
from pilotlight.ports import ABSENT, State

LEASE_S = 60.0
"""A dead holder's lease ends after so long."""


class _Lease(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    fence: int
    holder: str


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease that is held. ``fence`` grows with every holder of this cluster."""

    key: str
    fence: int
    version: int


def acquire(state: State, cluster: str, holder: str) -> Lease | None:
    """The cluster's lease, or None where another holds it (then it is asked to look again)."""
    key = f"lease/{cluster}"
    fence = _next_fence(state, cluster)
    value = msgspec.json.encode(_Lease(fence=fence, holder=holder))
    try:
        return Lease(key, fence, state.put(key, value, if_version=ABSENT, ttl_s=LEASE_S))
    except Conflict:
        state.put(f"look-again/{cluster}", b"1", ttl_s=LEASE_S)
        return None


def asked_again(state: State, cluster: str) -> bool:
    """Whether a delivery left a mark since the last look; takes the mark away."""
    key = f"look-again/{cluster}"
    if state.get(key) is None:
        return False
    state.delete(key)
    return True


def release(state: State, lease: Lease) -> None:
    """Give the lease back. One that was lost to its expiry is left to its new holder."""
    try:
        state.delete(lease.key, if_version=lease.version)
    except Conflict:
        return


def _next_fence(state: State, cluster: str) -> int:
    key = f"fence/{cluster}"
    stored = state.get(key)
    fence = int(stored.value) + 1 if stored else 1
    try:
        state.put(key, str(fence).encode(), if_version=stored.version if stored else ABSENT)
    except Conflict:
        return _next_fence(state, cluster)
    return fence
