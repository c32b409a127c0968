"""A look, the plan made of it and the metered days, as the live page has them; and what is new since it was sent."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

from pilotlight.decide.money.metering import day_start
from pilotlight.decide.money.spend import forecast
from pilotlight.facts.capacity import BoundPod, ClusterView, Node, Offering
from pilotlight.facts.decisions import NodeVerdict
from pilotlight.facts.money.bill import LineKind, MeterDay
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.tools.glance.action_items import action_items
from pilotlight.tools.glance.glance import Glance, PausedPools
from pilotlight.tools.serve.live.live_view import GpuDay, Live, Spending, TeamSpend, Tile, TileState, Todo, Wait
from pilotlight.units import HOUR, MILLI_PER_GPU, Usd

NAMED = 12
"""So many pods of a node are named."""

WEEK = 7

DAY_S = 24 * HOUR

LEAST_OF_DAY = 0.01
"""A day's pace is told of no smaller part of it."""


def tiles(
    view: ClusterView, pools: Sequence[PoolState], verdicts: Iterable[NodeVerdict], offerings: Iterable[Offering]
) -> dict[str, Tile]:
    """Every node that is paid for, by its name; what boots is named by its instance."""
    by_node = {verdict.node: verdict for verdict in verdicts}
    by_pool = {offering.pool: offering for offering in offerings}
    found = {node.name: _tile(node, by_node.get(node.name), by_pool.get(node.pool)) for node in view.nodes}
    for pool in pools:
        sold = by_pool.get(pool.name)
        found |= {boots.instance: _booting(pool.name, sold, boots.requested_at) for boots in pool.booting}
    return found


def _tile(node: Node, verdict: NodeVerdict | None, sold: Offering | None) -> Tile:
    pods = node.gpu_pods
    usd = verdict.usd_per_hour if verdict else sold.usd_per_hour if sold else None
    return Tile(
        pool=node.pool,
        type=node.instance_type,
        capacity=node.capacity_type,
        zone=node.zone,
        state=_state(node, verdict),
        gpus=node.gpus or (sold.gpus if sold else 0),
        used=node.used_milli / MILLI_PER_GPU,
        usd=usd,
        pods=tuple(_holds(pod) for pod in pods[:NAMED]),
        more=max(0, len(pods) - NAMED),
        teams=tuple(sorted({pod.team for pod in pods if pod.team})),
        why=verdict.why if verdict else "",
    )


def _state(node: Node, verdict: NodeVerdict | None) -> TileState:
    if (verdict is not None and verdict.verdict == "release") or node.marked or node.conditions:
        return "going"
    if not node.ready:
        return "not-ready"
    if not node.schedulable:
        return "closed"
    return "working" if node.gpu_pods else "idle"


def _holds(pod: BoundPod) -> str:
    return f"{pod.namespace}/{pod.name}, {pod.gpu}"


def _booting(pool: str, sold: Offering | None, since: datetime) -> Tile:
    why = f"asked for at {since:%H:%M:%S} UTC, not in the cluster yet"
    if sold is None:
        return Tile(pool=pool, state="booting", why=why)
    return Tile(
        pool=pool,
        type=sold.instance_type,
        capacity=sold.capacity_type,
        zone=sold.zone,
        state="booting",
        gpus=sold.gpus,
        usd=sold.usd_per_hour,
        why=why,
    )


def spending(days: Sequence[MeterDay], now: datetime) -> Spending:
    """Sums of metered days. A day that was not metered cost nothing that the meter knows."""
    today = now.date()
    by_day = {found.day: _day(found) for found in days}
    unpriced = {node for found in days for node in found.unpriced}
    first = today.replace(day=1)
    week = [today - timedelta(days=back) for back in range(WEEK - 1, -1, -1)]
    nothing = Decimal(0)
    month = sum((each.usd for day, each in by_day.items() if first <= day <= today), nothing)
    return Spending(
        today=by_day[today].usd if today in by_day else nothing,
        month=month,
        likely=_likely(by_day, month, now),
        teams=tuple(teams(days, today)),
        unpriced=len(unpriced),
        week=tuple(by_day.get(day) or GpuDay(day=day, paid=0, used=0, usd=nothing) for day in week),
    )


def _likely(by_day: Mapping[date, GpuDay], month: Usd, now: datetime) -> Usd:
    """The month's dollars at its end, by the last whole days, or by today's pace where fewer than two are known."""
    today, begins = now.date(), day_start(now.date())
    gone = (now - begins).total_seconds() / DAY_S
    a_day = by_day[today].usd / Decimal(f"{gone:.9f}") if today in by_day and gone > LEAST_OF_DAY else Decimal(0)
    whole = [each.usd for day, each in sorted(by_day.items()) if day < today and day != min(by_day)]
    following = (today.replace(day=1) + timedelta(days=32)).replace(day=1)
    return forecast(month, Decimal(0), whole, now, day_start(following), a_day).likely


def teams(days: Iterable[MeterDay], today: date) -> Iterator[TeamSpend]:
    """Dollars by team, idle and shared time of this month, the dearest first; they add up to the month's."""
    sums: dict[tuple[LineKind, str], list[Usd]] = {}
    for found in days:
        if found.day < today.replace(day=1) or found.day > today:
            continue
        for line in found.lines:
            one = sums.setdefault((line.kind, line.team), [Decimal(0), Decimal(0)])
            one[0] += line.usd if found.day == today else Decimal(0)
            one[1] += line.usd
    for (kind, team), (day, month) in sorted(sums.items(), key=lambda item: (-item[1][1], item[0])):
        yield TeamSpend(team=team, kind=kind, today=day, month=month)


def _day(found: MeterDay) -> GpuDay:
    paid = sum((line.gpu_hours for line in found.lines), Decimal(0))
    used = sum((line.gpu_hours for line in found.lines if line.kind == "used"), Decimal(0))
    usd = sum((line.usd for line in found.lines), Decimal(0))
    return GpuDay(day=found.day, paid=round(float(paid), 3), used=round(float(used), 3), usd=usd)


def todo(seen: Glance) -> Iterator[Todo]:
    """Lines that need a person, the most urgent first."""
    for want in action_items(seen):
        text = want.what if want.command else want.what + want.how
        yield Todo(text=text, command=shlex.join(want.command))


def pauses(paused: Iterable[PausedPools]) -> Iterator[Todo]:
    """Pauses: who stopped what, and what takes that back."""
    for one in paused:
        what = "all pools" if one.pool == "*" else f"pool {one.pool}"
        whom = f" by {one.by}" if one.by else ""
        words = ("pilotlight", "resume", *(() if one.pool == "*" else ("--pool", one.pool)))
        yield Todo(text=f"{what} since {one.at:%m-%d %H:%M} UTC{whom}: {one.reason}", command=shlex.join(words))


def waits(seen: Glance) -> Iterator[Wait]:
    """Pods without a node."""
    for group in seen.waiting:
        command = shlex.join(("pilotlight", "why", group.first))
        yield Wait(
            pods=group.pods,
            first=group.first,
            verdict=group.verdict,
            where=group.where,
            why=group.why,
            command=command,
            team=group.team,
            pool=group.where.partition("/")[0] if "/" in group.where else "",
        )


def changes(was: Live, now: Live) -> dict[str, object]:
    """The fields that are not as they were; of nodes only those that changed, None for one that is gone."""
    new = {name: getattr(now, name) for name in Live.__struct_fields__ if getattr(was, name) != getattr(now, name)}
    if "nodes" in new:
        new["nodes"] = _nodes(was.nodes, now.nodes)
    return new


def _nodes(was: Mapping[str, Tile], now: Mapping[str, Tile]) -> dict[str, Tile | None]:
    gone: dict[str, Tile | None] = {name: None for name in was if name not in now}
    return gone | {name: tile for name, tile in now.items() if was.get(name) != tile}
