"""What a seed decides of single calls: which fails, how, and whether before or after it took effect."""

from random import Random
from typing import Literal, NamedTuple

from pilotlight.errors import (
    BadRequest,
    Busy,
    Conflict,
    NoCapacity,
    PilotlightError,
    QuotaExceeded,
    Throttled,
    Unavailable,
    Unsure,
)
from pilotlight.ports.clouds import CALL_S
from pilotlight.units import Seconds

LEASE_S: Seconds = 60.0
"""How long a worker that says nothing keeps a cluster to itself."""

Port = Literal["state", "pools", "cluster", "outbox", "channel"]

RATES: dict[Port, tuple[float, ...]] = {
    "state": (0.0, 0.0, 0.01, 0.03),
    "pools": (0.0, 0.05, 0.2),
    "cluster": (0.0, 0.0, 0.02, 0.1),
    "outbox": (0.0, 0.0, 0.1, 0.3),
    "channel": (0.0, 0.1, 0.3),
}
"""Shares of a port's calls that fail; each seed draws one for each port."""
DEATHS = (0.0, 0.004, 0.01, 0.03)
"""Shares of calls before which the caller dies."""
STALLS = (0.0, 0.0, 0.004, 0.015)
"""Shares of points at which a worker stands still, between two calls or within one."""
STALLS_S = ((0.0, 20.0), (LEASE_S - 5, LEASE_S + 30), (LEASE_S, 10 * LEASE_S))
"""How long: what any network does, about a lease, up to ten of them."""
UNGUARDED = (0.0, 0.0, 0.0, 0.6)
"""Shares of changes of a cloud whose worker stands still after its last check and before the first byte."""
OUTAGE_S = (30.0, 900.0)
WITHIN_S = 1200.0
"""An outage begins within so long of the start."""

When = Literal["before", "half", "after", "late"]


class Fault(NamedTuple):
    """An error of one call. "after" is a call that worked and whose answer was lost; "half" did a part
    of it; one that is "late" arrives within its deadline, after its caller gave up."""

    when: When
    error: PilotlightError


class Outage(NamedTuple):
    """A port that answers nothing from ``start_s`` to ``end_s``."""

    port: Port
    start_s: Seconds
    end_s: Seconds


class Luck:
    """One seed's faults. ``calm()`` ends them."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._rates = {port: rng.choice(rates) for port, rates in RATES.items()}
        self.death = rng.choice(DEATHS)
        self._stall, self._unguarded = rng.choice(STALLS), rng.choice(UNGUARDED)
        self.thinned = False
        self.outages = tuple(outage(rng, port) for port in RATES if rng.random() < 0.15)

    def begin(self, rng: Random) -> None:
        """Draw from now on from another generator, as a worker in a process of its own does."""
        self._rng = rng

    def thin(self, by: float) -> None:
        """From now on everything but the cloud's answers fails so much more seldom, and for a shorter time."""
        self.thinned = True
        self._rates = {port: rate if port == "pools" else rate / by for port, rate in self._rates.items()}
        self.death, self._stall = self.death / by, self._stall / by
        self.outages = tuple(o._replace(end_s=o.start_s + (o.end_s - o.start_s) / by) for o in self.outages)

    def calm(self) -> None:
        """From now on nothing fails."""
        self._rates = dict.fromkeys(RATES, 0.0)
        self.death, self._stall, self._unguarded, self.outages = 0.0, 0.0, 0.0, ()

    def stall_s(self, rng: Random) -> Seconds:
        """How long a worker stands still where it is now; mostly not at all."""
        return rng.uniform(*rng.choice(STALLS_S)) if self._stall and rng.random() < self._stall else 0.0

    def drip_s(self, rng: Random) -> Seconds:
        """How long a request that was let out is on its way. Beyond ``CALL_S`` its worker stood still before it."""
        if self._unguarded and rng.random() < self._unguarded:
            return rng.uniform(CALL_S + 1, 10 * LEASE_S)
        return rng.choice((0.0, 0.0, rng.uniform(0, CALL_S))) if self._stall else 0.0

    def late_s(self) -> Seconds:
        """How long after its caller gave up a request still arrives."""
        return self._rng.uniform(0, CALL_S)

    def fault(self, port: Port, method: str, conditional: bool, now_s: Seconds) -> Fault | None:
        """What befalls this call, if anything. ``conditional`` calls may also lose a compare-and-set."""
        if any(o.port == port and o.start_s <= now_s < o.end_s for o in self.outages):
            return Fault("before", Unavailable(f"{port} does not answer"))
        if not self._rates[port] or self._rng.random() >= self._rates[port]:
            return None
        return self._rng.choice(_faults(method, conditional))


def outage(rng: Random, port: Port) -> Outage:
    """One that is drawn."""
    start_s = rng.uniform(0, WITHIN_S)
    return Outage(port, start_s, start_s + rng.uniform(*OUTAGE_S))


def _faults(method: str, conditional: bool) -> list[Fault]:
    lost = Unavailable(f"{method} timed out")
    if method in ("get", "scan", "observe", "bound_pods"):
        return [Fault("before", lost)]
    if method == "describe":
        return [Fault("before", lost), Fault("before", Throttled("too many requests"))]
    if method == "deliver":
        return _UNTOLD
    timeouts = [Fault("before", lost), Fault("after", lost)]
    if conditional:
        # A client that retries by itself loses to its own write: "after".
        return [
            *timeouts,
            Fault("before", Conflict("another was there")),
            Fault("after", Conflict("another was there")),
        ]
    unsure = [Fault("before", lost), Fault("after", Unsure(f"{method} was sent, its answer is lost"))]
    if method == "grow":
        return [*unsure, *_REFUSALS]
    if method == "release":
        return [*unsure, Fault("before", Busy("the pool is being changed"))]
    if method == "publish":
        return [*timeouts, Fault("half", lost)]
    return timeouts


_UNTOLD = [
    Fault("before", Unavailable("the channel does not answer")),
    Fault("before", Throttled("429", 30.0)),
    Fault("after", Unsure("the connection broke")),
    Fault("before", Unsure("the connection broke")),
    Fault("before", BadRequest("400")),
]

_REFUSALS = (
    Fault("before", NoCapacity("out of stock")),
    Fault("half", NoCapacity("out of stock after the first")),
    Fault("before", QuotaExceeded("the account's quota")),
    Fault("before", Throttled("too many requests")),
    Fault("before", Busy("the pool is being changed")),
)
