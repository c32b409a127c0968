"""Updates of a cluster's memory by a decision's effects, and the waits of pods that nodes were bought for."""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from pilotlight.decide.nodes.spares import standby
from pilotlight.errors import BadRequest, Denied, Forbidden, NoCapacity, QuotaExceeded
from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.decisions import Buy
from pilotlight.facts.memory import Backoff, Flaps, Memory, RefusedRelease, Tally
from pilotlight.facts.nodes.first_work import with_seen
from pilotlight.facts.nodes.pool_state import AskedNode, InFlight
from pilotlight.facts.workload import PodDemand
from pilotlight.flow.records.ledger import CLOUD_SKEW
from pilotlight.units import Seconds, clock_seconds

FIRST_REST_S: dict[type[Denied], Seconds] = {
    NoCapacity: 60.0,
    QuotaExceeded: 600.0,
    Forbidden: 1800.0,
    BadRequest: 1800.0,
}
"""An offering that was refused rests so long at first, by the kind of refusal; twice as long after each in a row."""

FIRST_RELEASE_REST_S, MOST_RELEASE_REST_S = 60.0, 600.0
"""A refused release rests so long at first and at most, whatever it was refused for: its node costs money meanwhile."""

MOST_REST_S, MOST_DOUBLINGS = 1800.0, 10
ZONE_REST_S = 180.0
"""A zone among several that had no capacity rests no longer: to ask costs nothing, and the others serve meanwhile.

Karpenter's cache of unavailable offerings holds as long (its documentation, "Troubleshooting", insufficient capacity).
"""
NEVER_READY_REST_S = 3600.0
FLOOR = timedelta(days=1)
"""A cloud that kept a pool's last node is asked again after so long."""
FLAPS, FLAP_WINDOW = 3, timedelta(hours=1)


LOST = "its answers are lost, and what was asked for is not there"
LATE: dict[str, type[Denied]] = {"no-capacity": NoCapacity, "quota": QuotaExceeded, "other": Denied}


def note_late_refusal(
    memory: Memory,
    offerings: Sequence[Offering],
    pool: str,
    zone: str,
    reason: str,
    message: str,
    now: datetime,
    *,
    again: bool = False,
) -> Memory:
    """A launch that a pool's cloud took on failed, as it tells later: what it sells rests, in ``zone`` or at all.

    A quota counts a region: it holds for every zone. ``again``: it was noted before, without this reason.
    """
    no, several = LATE[reason](message), several_zones(offerings, pool)
    for offering in offerings:
        if offering.pool == pool and (zone in ("", offering.zone or zone) or reason == "quota"):
            memory = note_refusal(memory, offering.name, no, now, several=several, again=again)
    return memory


def note_asked(memory: Memory, pool: str, asked: Sequence[AskedNode], now: datetime) -> Memory:
    """These were asked for by their names."""
    fresh = (*memory.asked.get(pool, ()), *(msgspec.structs.replace(one, asked_at=now) for one in asked))
    return msgspec.structs.replace(memory, asked={**memory.asked, pool: fresh})


def forget_asked(memory: Memory, pool: str, instance: str) -> Memory:
    """It is given back by us, by its name or its instance: gone, it is no refusal."""
    left = tuple(one for one in memory.asked.get(pool, ()) if not one.is_called(instance))
    return msgspec.structs.replace(memory, asked={**memory.asked, pool: left}) if pool in memory.asked else memory


def note_size(memory: Memory, pool: str, size: int) -> Memory:
    """We left a pool at this size."""
    return msgspec.structs.replace(memory, sizes={**memory.sizes, pool: size})


def note_started(memory: Memory, pool: str, size: int, count: int, now: datetime) -> Memory:
    """A pool whose nodes can be stopped was grown by ``count`` nodes to this size."""
    fresh = standby.start_times(memory.started.get(pool, ()), size, count, clock_seconds(now))
    return msgspec.structs.replace(memory, started={**memory.started, pool: fresh})


def note_floor(memory: Memory, pool: str, now: datetime) -> Memory:
    """The cloud kept a pool's last node."""
    return msgspec.structs.replace(memory, floors={**memory.floors, pool: now + FLOOR})


def note_growth(memory: Memory, buy: Buy, size: int, now: datetime) -> tuple[Memory, bool]:
    """A purchase left its pool at this size. Whether the breaker trips, as ``note_flap`` says."""
    return note_flap(note_purchase(note_size(memory, buy.pool, size), buy, now), buy.pool, now)


def note_purchase(memory: Memory, buy: Buy, now: datetime) -> Memory:
    """A purchase was made."""
    pool_class = memory.pool_class
    if buy.workload_class:
        pool_class = {**pool_class, buy.pool: buy.workload_class}  # type: ignore[dict-item]
    return msgspec.structs.replace(memory, last_buy={**memory.last_buy, buy.pool: now}, pool_class=pool_class)


def count_waits(
    tally: Tally, pending: Sequence[PodDemand], demands: Sequence[str], now: datetime, sent_at: datetime | None
) -> Tally:
    """A purchase was sent: how old each of its pods was at the look (``now``), and what deciding took."""
    own = set(demands)
    for pod in pending:
        if pod.uid in own:
            tally = tally.count_duration("detect", (now - pod.created_at).total_seconds())
    return tally.count_duration("decide", (sent_at - now).total_seconds()) if sent_at else tally


def count_arrival(memory: Memory, entry: InFlight, nodes: Sequence[Node]) -> Memory:
    """A purchase is over: when the nodes became ready that its pods are on, and when those began."""
    own, tally, boots = set(entry.demands), memory.tally, memory.first_work.boots.get(entry.pool, ())
    for node in nodes:
        began = node.ready_since or node.created_at
        if node.pool != entry.pool or began < entry.requested_at - CLOUD_SKEW:
            continue
        held = [pod for pod in node.pods if pod.uid in own]
        if not held:
            continue
        boot_s = (began - entry.requested_at).total_seconds()
        tally = tally.count_duration("boot", boot_s)
        if boot_s > 0 and not entry.woken and node.ready_since is not None:
            boots = with_seen(boots, boot_s)
        for pod in held:
            if pod.started_at is not None:
                tally = tally.count_duration("bind", (pod.started_at - began).total_seconds())
                if pod.created_at is not None:
                    tally = tally.count_bound((pod.started_at - pod.created_at).total_seconds())
    known = memory.first_work
    if boots:
        known = msgspec.structs.replace(known, boots={**known.boots, entry.pool: boots})
    return msgspec.structs.replace(memory, tally=tally, first_work=known)


def note_flap(memory: Memory, pool: str, now: datetime) -> tuple[Memory, bool]:
    """A pool was bought of again. Whether the breaker trips: too soon after a release, three times in an hour."""
    old = memory.flaps.get(pool)
    if old is None or (now - old.released_at).total_seconds() > old.idle_s:
        return memory, False
    times = (*(t for t in old.times if now - t < FLAP_WINDOW), now)
    trips = len(times) >= FLAPS
    fresh = msgspec.structs.replace(old, times=() if trips else times, stretch=old.stretch * (2 if trips else 1))
    return msgspec.structs.replace(memory, flaps={**memory.flaps, pool: fresh}), trips


def note_release(memory: Memory, pool: str, idle_s: Seconds, now: datetime) -> Memory:
    """A node of a pool went out after its idle time."""
    old = memory.flaps.get(pool)
    fresh = Flaps(released_at=now, idle_s=idle_s, times=old.times if old else (), stretch=old.stretch if old else 1)
    return msgspec.structs.replace(memory, flaps={**memory.flaps, pool: fresh})


def several_zones(offerings: Sequence[Offering], pool: str) -> bool:
    """True where a pool is sold in more than one zone."""
    return sum(offering.pool == pool for offering in offerings) > 1


def note_refusal(
    memory: Memory, offering: str, no: Denied, now: datetime, *, several: bool = False, again: bool = False
) -> Memory:
    """The cloud refused an offering: it rests, longer after each refusal in a row, with a jitter of its own.

    ``several``: its pool has other zones. ``again``: the last refusal is told once more.
    """
    old = _in_a_row(memory, offering, now)
    tries = old.tries + (not again) if old else 1
    most_s = ZONE_REST_S if several and isinstance(no, NoCapacity) else MOST_REST_S
    rest_s = min(most_s, FIRST_REST_S.get(type(no), 60.0) * 2 ** min(tries - 1, MOST_DOUBLINGS))
    rest_s *= 1 + _jitter(offering, tries)
    began = old.short_since if old and tries > 1 else now
    short_since = began if isinstance(no, NoCapacity) else None
    return _resting(memory, offering, rest_s, str(no), now, tries, short_since)


def note_lost(memory: Memory, offering: str, sent_at: datetime, now: datetime) -> Memory:
    """An answer was lost and nothing is there, where refusals leave no trace. One heard since is noted already."""
    old = _in_a_row(memory, offering, now)
    heard = old is not None and old.at is not None and old.at > sent_at
    return memory if heard else note_not_made(memory, offering, LOST, now)


def note_not_made(memory: Memory, offering: str, why: str, now: datetime) -> Memory:
    """Nothing was made, which need say nothing of the next try: the second in a row counts as a refusal.

    The first rests nothing.
    """
    if _in_a_row(memory, offering, now) is None:
        return _resting(memory, offering, 0.0, why, now, 1)
    return note_refusal(memory, offering, Denied(why), now)


def note_refused_release(memory: Memory, instance: str, why: str, now: datetime, *, certain: bool = True) -> Memory:
    """An instance was not given back: its next release rests, longer after each in a row.

    The first rests nothing where it is not ``certain`` that the cloud refuses: it said "not now", or its answer is
    lost.
    """
    old = memory.refusals.get(instance)
    tries = old.tries + 1 if old is not None and (now - old.until).total_seconds() < MOST_REST_S else 1
    rest_s = min(MOST_RELEASE_REST_S, FIRST_RELEASE_REST_S * 2 ** min(tries - 1, MOST_DOUBLINGS)) * (
        1 + _jitter(instance, tries)
    )
    until = now + timedelta(seconds=rest_s if certain or tries > 1 else 0.0)
    fresh = RefusedRelease(until=until, why=why, tries=tries)
    return msgspec.structs.replace(memory, refusals={**memory.refusals, instance: fresh})


def tries_of(memory: Memory, offering: str) -> int:
    """How often in a row an offering was refused."""
    return next((b.tries for b in memory.backoffs if b.offering == offering), 0)


def _in_a_row(memory: Memory, offering: str, now: datetime) -> Backoff | None:
    """The last refusal of an offering, where one now comes so soon after it that it counts as the next."""
    old = next((b for b in memory.backoffs if b.offering == offering), None)
    return old if old and (now - old.until).total_seconds() < MOST_REST_S else None


def never_ready(memory: Memory, offering: str, why: str, now: datetime) -> Memory:
    """Capacity of an offering was paid for and did not help."""
    return _resting(memory, offering, NEVER_READY_REST_S, why, now, 1)


def _resting(
    memory: Memory,
    offering: str,
    rest_s: Seconds,
    why: str,
    now: datetime,
    tries: int,
    short_since: datetime | None = None,
) -> Memory:
    until = now + timedelta(seconds=rest_s)
    backoff = Backoff(offering=offering, until=until, why=why, tries=tries, short_since=short_since, at=now)
    others = tuple(b for b in memory.backoffs if b.offering != offering)
    return msgspec.structs.replace(memory, backoffs=(*others, backoff))


def _jitter(offering: str, tries: int) -> float:
    """Up to a tenth more, drawn from the name: clusters that share a shortage do not ask at the same moment."""
    return hashlib.blake2b(f"{offering}/{tries}".encode(), digest_size=1).digest()[0] / 2550
