"""The live meter in the state: every look counts what nodes cost since the look before, each microsecond once.

Keys: ``metering/<cluster>/<day>/<part>`` holds the nodes of a day as far as they are counted, in parts by instance;
``meter/<cluster>/<day>`` a whole day's lines once it is over; ``metered/<cluster>`` the day from which on counting
goes on. Every part is changed by compare-and-set and carries its nodes' own marks, so the same look twice, two looks at
once or a crash between two parts count nothing twice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from zlib import crc32

import msgspec

from pilotlight.codec.records import Format
from pilotlight.decide.money.holds import lit
from pilotlight.decide.money.meter import Look, counted, cuts, day_start, lines, metered, stopped
from pilotlight.errors import Conflict
from pilotlight.facts.bill import CostLine, MeterDay, MeteredNode, MeterPart
from pilotlight.flow.billing import lives
from pilotlight.flow.deps import Deps
from pilotlight.ports import ABSENT, LARGEST, State
from pilotlight.units import HOUR

PARTS = 16
"""A day's nodes lie in so many records: at 300 KB each they hold some thousands of nodes."""

CATCH_UP = 35
"""Days that are gone back to at most: for a meter that stood still, and for nodes whose price was not known."""

KEEP_PARTS_S, KEEP_DAYS_S = 40 * 24 * HOUR, 800 * 24 * HOUR
DAY = timedelta(days=1)


class CountFrom(msgspec.Struct, frozen=True, kw_only=True):
    """The earliest day in which there may be something left to count."""

    day: date


METERING, METER, METERED = Format(MeterPart), Format(MeterDay), Format(CountFrom)


def count(deps: Deps) -> MeterDay:
    """Look, and count up to now. Today's lines."""
    look = _look(deps)
    today = look.at.date()
    from_ = _count_from(deps.state, deps.name)
    first = max(from_ or today, today - CATCH_UP * DAY)
    days = [first + n * DAY for n in range((today - first).days + 1)]
    keys = {_part(instance) for instance in (*look.lit, *look.over)}
    for day in days:
        keys |= {key.rpartition("/")[2] for key, _ in _parts(deps.state, deps.name, day)}
    parts: dict[date, list[MeterPart]] = {day: [] for day in days}
    for key in sorted(keys):
        for part in _count_part(deps, key, days, _only(look, key)):
            parts[part.day].append(part)
    for day in days[:-1]:
        _close(deps, day)
    goes_on = next((day for day in days if _waits_for_a_price(deps, parts[day])), today)
    if goes_on != from_:
        deps.state.put(f"metered/{deps.name}", METERED.write(CountFrom(day=goes_on)))
    return _summed(today, parts[today], look.at)


def days(state: State, cluster: str, first: date, last: date) -> list[MeterDay]:
    """The days from the first to the last that were metered, today's as far as it is counted."""
    found: dict[date, MeterDay] = {}
    after = f"meter/{cluster}/{first - DAY}"
    while True:
        page = state.scan(f"meter/{cluster}/", after=after)
        found |= {day.day: day for day in (METER.read(key, stored.value) for key, stored in page.items)}
        if not page.next:
            break
        after = page.next
    day = max(first, _count_from(state, cluster) or last + DAY)
    while day <= last:
        if day not in found and any(_parts(state, cluster, day)):
            found[day] = _day(state, cluster, day)
        day += DAY
    return [one for day, one in sorted(found.items()) if first <= day <= last]


def _look(deps: Deps) -> Look:
    now = deps.clock.now()
    over = lives.over(deps)
    # Pools first: an instance that joins meanwhile is in both, never in neither.
    pools, view = deps.pools.describe(), deps.cluster.observe()
    offerings = {offering.pool: offering for offering in deps.offerings}
    # A node object is younger than its instance, which is paid for from its launch.
    launched = {booting.instance: booting.requested_at for pool in pools for booting in pool.booting}
    seen = [one._replace(since=min(one.since, launched.get(one.instance, one.since))) for one in lit(view.nodes, pools)]
    return Look(
        at=now,
        lit={one.instance: metered(one, offerings.get(one.pool)) for one in seen},
        over={life.instance: stopped(life, offerings.get(life.pool)) for life in over},
        offerings=offerings,
    )


def _part(instance: str) -> str:
    return f"{crc32(instance.encode()) % PARTS:02d}"


def _only(look: Look, key: str) -> Look:
    """The instances of one part."""
    lit_ = {instance: node for instance, node in look.lit.items() if _part(instance) == key}
    over = {instance: node for instance, node in look.over.items() if _part(instance) == key}
    return Look(look.at, lit_, over, look.offerings)


def _count_part(deps: Deps, key: str, days: list[date], look: Look) -> Iterator[MeterPart]:
    """One part of the nodes, day after day. Whoever was faster makes it count again from what that one wrote."""
    zones = [budget.timezone for budget in deps.policy.budgets]
    before: dict[str, MeteredNode] = {}
    for day in days:
        name, cut_at = f"metering/{deps.name}/{day}/{key}", cuts(day, zones)
        while True:
            stored = deps.state.get(name)
            was = METERING.read(name, stored.value) if stored else MeterPart(day=day, seen=day_start(day))
            part = counted(was, before, look, cut_at)
            try:
                if part != was:
                    version = stored.version if stored else ABSENT
                    deps.state.put(name, METERING.write(part), if_version=version, ttl_s=KEEP_PARTS_S)
                break
            except Conflict:
                continue
        before = part.nodes
        yield part


def _close(deps: Deps, day: date) -> None:
    """Write a day that is over, over what was there before its parts were read: so the last one written has all."""
    key = f"meter/{deps.name}/{day}"
    while True:
        stored = deps.state.get(key)
        record = _fitted(_day(deps.state, deps.name, day))
        if stored is not None and stored.value == record:
            return
        try:
            deps.state.put(key, record, if_version=stored.version if stored else ABSENT, ttl_s=KEEP_DAYS_S)
            return
        except Conflict:
            continue


def _count_from(state: State, cluster: str) -> date | None:
    stored = state.get(f"metered/{cluster}")
    return METERED.read(f"metered/{cluster}", stored.value).day if stored else None


def _parts(state: State, cluster: str, day: date) -> Iterator[tuple[str, MeterPart]]:
    for key, stored in state.scan(f"metering/{cluster}/{day}/").items:
        yield key, METERING.read(key, stored.value)


def _waits_for_a_price(deps: Deps, parts: Iterable[MeterPart]) -> bool:
    """Whether a day has nodes of the policy's pools without a price: it is counted once they have one."""
    nodes = (node for part in parts for node in part.nodes.values())
    return any(n.usd_per_hour is None and n.stretches and n.pool in deps.policy.pools for n in nodes)


def _day(state: State, cluster: str, day: date) -> MeterDay:
    """A day's lines from its parts in the state."""
    return _summed(day, [part for _, part in _parts(state, cluster, day)], day_start(day))


def _summed(day: date, parts: Sequence[MeterPart], until: datetime) -> MeterDay:
    found, unpriced = lines(node for part in parts for node in part.nodes.values())
    seen = max((part.seen for part in parts), default=until)
    return MeterDay(day=day, until=seen, lines=found, unpriced=unpriced)


def _fitted(day: MeterDay) -> bytes:
    """A day's record: by node where that fits, else without nodes, else without projects too."""
    written = METER.write(day)
    for left_out in ({"node": ""}, {"node": "", "project": ""}):
        if len(written) > LARGEST:
            written = METER.write(_coarser(day, left_out))
    return written


def _coarser(day: MeterDay, left_out: Mapping[str, str]) -> MeterDay:
    """A day's lines summed over what is left out."""
    sums: dict[CostLine, tuple[Decimal, Decimal]] = {}
    for line in day.lines:
        key = msgspec.structs.replace(line, usd=Decimal(0), gpu_hours=Decimal(0), **left_out)
        usd, hours = sums.get(key, (Decimal(0), Decimal(0)))
        sums[key] = usd + line.usd, hours + line.gpu_hours
    summed = tuple(msgspec.structs.replace(line, usd=usd, gpu_hours=hours) for line, (usd, hours) in sums.items())
    return msgspec.structs.replace(day, lines=summed, unpriced=day.unpriced[:100])
