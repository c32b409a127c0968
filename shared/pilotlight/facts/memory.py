"""Memory of a cluster's decisions from one to the next. Small: it is one record of the state store, under the lease."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from math import ceil
from typing import Literal

import msgspec

from pilotlight.facts.capacity import Resources
from pilotlight.facts.fit.claimed_devices import DeviceKind
from pilotlight.facts.nodes.first_work import FirstWork
from pilotlight.facts.nodes.pool_state import AskedNode, InFlight
from pilotlight.facts.offers.spot_history import Lives
from pilotlight.facts.workload import WorkloadClass
from pilotlight.units import Seconds


class Quarantine(msgspec.Struct, frozen=True, kw_only=True):
    """A pool that was lit for a shape and did not help it: never again for that shape until ``until``, or until one of
    these ``pods`` of the shape is bound there.
    """

    shape: str
    pool: str
    until: datetime
    why: str
    pods: tuple[str, ...] = ()


class FitMismatch(msgspec.Struct, frozen=True, kw_only=True):
    """A node on which a shape was believed to fit and the scheduler did not bind it, not believed again ``until``."""

    shape: str
    node: str
    pool: str
    until: datetime
    why: str
    apart: bool = False  # A pod of the shape was bound elsewhere since: nothing is said of other pools.


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """An offering that the cloud just refused. ``tries`` refusals in a row make ``until`` move away.

    ``short_since`` is when the first of them came, where each was for want of capacity; None where it rests for more.
    ``at`` is when the last came, None in records older than that.
    """

    offering: str
    until: datetime
    why: str
    tries: int = 1
    short_since: datetime | None = None
    at: datetime | None = None


class RefusedRelease(msgspec.Struct, frozen=True, kw_only=True):
    """An instance that its cloud did not give back: ``tries`` refusals in a row make ``until`` move away."""

    until: datetime
    why: str
    tries: int = 1


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of pods of one kind: when each that is watched ``began`` (seconds from the epoch, the earliest first), how
    many have ``ended`` and what those ran together, and the ``lengths`` of the last of them, the newest last.
    """

    began: tuple[int, ...] = ()
    ended: float = 0.0
    ended_s: Seconds = 0.0
    lengths: tuple[int, ...] = ()


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """Demand on a pool until ``until``, since ``2 ** size`` nodes or more were on their way for demands.

    ``net`` are the nodes asked for since then less those that fell idle, ``most`` the most that this came to.
    """

    size: int
    until: Seconds
    net: int = 0
    most: int = 0


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """Demand after demand of one size: ``count`` windows were seen, ``shares`` of them asked for so many more."""

    count: int = 0
    shares: tuple[float, ...] = ()


class Quiet(msgspec.Struct, frozen=True, kw_only=True):
    """Hits of a spare by how long its pool had been quiet: those foretold, and those that came.

    The lengths are those of ``decide.nodes.spares.quiet_time``. ``meanwhile`` are those foretold since the present
    quiet began: they count when it ends.
    """

    foretold: tuple[float, ...] = ()
    came: tuple[float, ...] = ()
    meanwhile: tuple[float, ...] = ()


class Hits(msgspec.Struct, frozen=True, kw_only=True):
    """Hits of the k-th spare node of a pool: how often it is asked for, as of ``at`` (seconds from the epoch).

    ``coming`` is when the nodes come that would replace the spares taken so far, the soonest first. ``rates[k-1]`` are
    the k-th spare's hits an hour, and ``there[k-1]`` the share of the time that it would have been there, each faded
    by every half-life of ``decide.nodes.spares.demand_rates``; ``losses`` say how badly each half-life foretold.
    ``count`` is how often nodes were ever asked for, ``worth`` what one is worth in waits of a job of scale 1.
    ``windows`` are those that are open, at most one of a size, and ``followed`` what those that ended came to, by size.
    ``asked_at`` is when nodes were last asked for, 0 where an earlier version did not write it down. ``out`` are nodes
    asked for that have not fallen idle since. While some were out, ``again`` times more were asked for, and in
    ``spare_s`` those that were to replace them would have been there; so it was in ``spells`` stretches. The pool is
    quiet since ``quiet_from``, when a node was asked for or fell idle; ``quiets[k-1]`` are the k-th spare's hits in
    quiets.
    """

    at: Seconds  # Seconds from the epoch.
    # Seconds from the epoch of the last demand; 0 where an earlier version did not write it down.
    asked_at: Seconds = 0.0
    # Seconds from the epoch at which the spares taken so far are replaced, the soonest first.
    coming: tuple[Seconds, ...] = ()
    rates: tuple[tuple[float, ...], ...] = ()  # Hits an hour of the k-th spare, faded by each half-life.
    # Share of the time that the k-th spare would have been there, faded likewise.
    there: tuple[tuple[float, ...], ...] = ()
    losses: tuple[float, ...] = ()  # How badly each half-life foretold.
    count: int = 0  # Times that nodes were ever asked for.
    worth: float = 1.0  # One node's worth in waits of a job of scale 1.
    out: int = 0  # Nodes asked for that have not fallen idle since.
    spells: int = 0  # Stretches in which some were out.
    again: float = 0.0  # Times that more were asked for while some were out.
    spare_s: Seconds = 0.0  # Seconds of those stretches in which the replacements would have been there.
    windows: tuple[Window, ...] = ()  # Those that are open, at most one of a size.
    followed: tuple[Followed, ...] = ()  # What those that ended came to, by size.
    quiet_from: Seconds = 0.0  # Seconds from the epoch at which a node was last asked for, or fell idle.
    quiets: tuple[Quiet, ...] = ()  # Hits foretold and hits that came, by length of the quiet: of the first spares.


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes added or removed by one call, for the limits of ten minutes."""

    at: datetime
    added: int = 0
    removed: int = 0
    usd_per_hour: Decimal = Decimal(0)


class Flaps(msgspec.Struct, frozen=True, kw_only=True):
    """A pool's flapping: when a node was last released and how long it might idle, when it was bought again too soon.

    ``stretch`` multiplies the pool's idle time: it doubles each time the breaker trips.
    """

    released_at: datetime
    idle_s: Seconds
    times: tuple[datetime, ...] = ()
    stretch: int = 1


BOUNDS: tuple[Seconds, ...] = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 180, 300, 600, 1800, 3600)
"""Upper bounds of what durations are sorted into; what is longer has a place of its own."""

Phase = Literal["detect", "decide", "boot", "bind", "cycle"]
"""Of a pod that a node was bought for: from its creation to the look that buys (``detect``), from that look to the
call (``decide``), from the look to the node that is ready (``boot``), and from then to the pod on it (``bind``).
``cycle`` is a whole look that made calls."""


class Durations(msgspec.Struct, frozen=True, kw_only=True):
    """Durations counted up to each of ``BOUNDS`` and above the last (each counted once), and their seconds in all."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    total_s: Seconds = 0.0


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Counters for the figures, sums that only rise. ``durations`` are by phase, ``calls`` by "grow/done"
    and the like, ``refusals`` by the kind of error, ``verdicts`` of decisions that made calls or told something,
    ``operations`` on the state by kind; ``again`` are looks that were taken again for deliveries that had found the
    lease held; ``takers`` are pods that tolerate homes which nobody gave them. ``bound`` are pods that a node was
    bought for and that were bound on the UTC ``day`` of the last look, by the seconds that each waited.
    """

    durations: dict[Phase, Durations] = {}
    calls: dict[str, int] = {}
    refusals: dict[str, int] = {}
    verdicts: dict[str, int] = {}
    operations: dict[str, int] = {}
    again: int = 0
    takers: int = 0
    day: date | None = None
    bound: dict[str, int] = {}

    def count_look(self, day: date, *, again: bool) -> "Tally":
        """With one more look, on that day; ``again``: for a delivery that had found the lease held."""
        bound = self.bound if self.day == day else {}
        return msgspec.structs.replace(self, day=day, bound=bound, again=self.again + again)

    def count_bound(self, waited_s: Seconds) -> "Tally":
        """With one more pod that waited so long, to two figures above: a day has few of those, however many pods."""
        step = 10 ** max(0, len(str(ceil(waited_s))) - 2)
        seconds = str(max(0, ceil(waited_s / step) * step))
        return msgspec.structs.replace(self, bound={**self.bound, seconds: self.bound.get(seconds, 0) + 1})

    def count_duration(self, phase: Phase, seconds: Seconds) -> "Tally":
        """With one more. Two clocks are read: what would be below zero is zero."""
        was, took = self.durations.get(phase, Durations()), max(0.0, seconds)
        place = bisect_left(BOUNDS, took)
        counts = tuple(count + (n == place) for n, count in enumerate(was.counts))
        one = Durations(counts=counts, total_s=round(was.total_s + took, 3))
        return msgspec.structs.replace(self, durations={**self.durations, phase: one})

    def count_call(self, call: str, outcome: str) -> "Tally":
        """With one more call that ended so."""
        name = f"{call}/{outcome}"
        return msgspec.structs.replace(self, calls={**self.calls, name: self.calls.get(name, 0) + 1})

    def count_decision(self, verdicts: Iterable[str], operations: Mapping[str, int]) -> "Tally":
        """With one more decision, by its verdicts, and what was asked of the state since the one before."""
        return msgspec.structs.replace(
            self,
            verdicts=dict(Counter(self.verdicts) + Counter(set(verdicts))),
            operations=dict(Counter(self.operations) + Counter(operations)),
        )

    def count_refusal(self, kind: str) -> "Tally":
        """With one more purchase that was refused."""
        return msgspec.structs.replace(self, refusals={**self.refusals, kind: self.refusals.get(kind, 0) + 1})


class Learnt(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of a pool and type as they really were, however well predicted: the least room, and common labels.

    ``kinds`` are devices that drivers published of them, for claims; empty where none did. ``resource`` is by what
    their whole GPUs are counted then.
    """

    room: Resources
    labels: dict[str, str] = {}
    kinds: tuple[DeviceKind, ...] = ()
    resource: str = ""


class DueJob(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a job with a deadline: its checkpoints keep ``saved_s`` of run, ``base_s`` of it from before the
    run that ``began``. ``at`` is when that was last moved on, in seconds from the epoch.
    """

    at: Seconds
    saved_s: Seconds = 0.0
    base_s: Seconds = 0.0
    began: datetime | None = None


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """All that decisions of a cluster remember."""

    quarantines: tuple[Quarantine, ...] = ()  # Pools that did not help a shape.
    misfits: tuple[FitMismatch, ...] = ()  # Nodes that a shape was not bound to.
    believing: bool = False  # There are pods that should fit where they are not bound.
    backoffs: tuple[Backoff, ...] = ()  # Offerings that the cloud refused.
    refusals: dict[str, RefusedRelease] = {}  # By instance (its node, where it has none), releases that it refused.
    idle_since: dict[str, datetime] = {}  # Nodes without a GPU pod, since when.
    # Since when they were seen: instances that are only names, and "POOL/" that lags behind its size.
    unmade: dict[str, datetime] = {}
    silent: dict[str, datetime] = {}  # Pools of which a part does not answer, since when.
    last_buy: dict[str, datetime] = {}  # By pool.
    pool_class: dict[str, WorkloadClass] = {}  # By pool, the class that it was last lit for.
    hits: dict[str, Hits] = {}  # Demand on spare nodes, by pool.
    ran: dict[str, Ran] = {}  # Run lengths, by class, team and GPUs.
    # By pool whose nodes can be stopped: seconds from the epoch of the first, second ... start at once.
    started: dict[str, tuple[Seconds, ...]] = {}
    counted_to: datetime | None = None  # Creation of the youngest pod whose demand is in ``hits``.
    sizes: dict[str, int] = {}  # The pools' desired sizes as we left them.
    gates: tuple[str, ...] = ()  # NodePools of Karpenter with a limit of ours.
    gates_silent: datetime | None = None  # Since when those do not answer.
    asked: dict[str, tuple[AskedNode, ...]] = {}  # By pool, what was asked for by name and is no node yet.
    turns: tuple[Turn, ...] = ()  # Changes of the last ten minutes.
    flaps: dict[str, Flaps] = {}  # By pool.
    in_flight: tuple[InFlight, ...] = ()  # AskedNode for, and still boots.
    came: tuple[InFlight, ...] = ()  # Ready, and its pods are not bound yet: nothing more is bought for them.
    overdue: tuple[InFlight, ...] = ()  # What a gang waits for past its deadline.
    floors: dict[str, datetime] = {}  # Pools whose cloud keeps their last node, and until when that is believed.
    rests: dict[str, datetime] = {}  # Nodes that a person opened while they were given back, and until when they stay.
    learnt: dict[str, Learnt] = {}  # By "pool/type", of nodes that joined.
    lives: dict[str, Lives] = {}  # By "type/zone", of spot.
    # By pool, seconds that its latest starts of stopped nodes took, the newest last.
    wakes: dict[str, tuple[Seconds, ...]] = {}
    first_work: FirstWork = FirstWork()  # Boot, device plugin, pull and start of new nodes.
    due: dict[str, DueJob] = {}  # Jobs with a deadline, by ``Due.job``.
    periods: dict[str, str] = {}  # Those of budgets, by what each is kept under.
    tally: Tally = Tally()  # For the figures: no decision reads it.

    def live_quarantine(self, shape: str, pool: str, now: datetime) -> Quarantine | None:
        """The live quarantine of a shape in a pool, if any."""
        return next((q for q in self.quarantines if q.shape == shape and q.pool == pool and q.until > now), None)

    def has_mismatch(self, shape: str, node: str, now: datetime) -> bool:
        """True where a shape is known not to be bound to a node."""
        return any(m.shape == shape and m.node == node and m.until > now for m in self.misfits)

    def live_backoff(self, offering: str, now: datetime) -> Backoff | None:
        """The live back-off of an offering, if any."""
        return next((b for b in self.backoffs if b.offering == offering and b.until > now), None)

    def live_refusal(self, node: str, instance: str, now: datetime) -> RefusedRelease | None:
        """The refused release of an instance that rests, if any."""
        found = self.refusals.get(instance or node)
        return found if found is not None and found.until > now else None
