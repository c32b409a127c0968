"""Costs of nodes that are over: each is filed, and put into the audit chain behind the decision that bought the node.

The figures are the meter's. A node waits an hour after its end, for a look may have missed it, and be wrong. What is
filed is never filed again: a tick that comes twice finds the record, and one beside it the link.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import NamedTuple

import msgspec

from pilotlight.decide.money.metering import day_start
from pilotlight.decide.money.node_cost import FAR_BEHIND, Bought, Lived, bought_by, metered_usd
from pilotlight.decide.money.node_tally import paid_until
from pilotlight.facts.decisions import Buy
from pilotlight.facts.money.bill import Bill, MeteredNode, NodeCost
from pilotlight.flow.billing import meter_nodes
from pilotlight.flow.billing.meter_nodes import CATCH_UP, DAY
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe import instance_lifetimes
from pilotlight.flow.records import ledger
from pilotlight.ports.state import State
from pilotlight.state_schema.billing_records import COST, COST_FROM, CostFrom
from pilotlight.state_schema.decision_records import DECISION
from pilotlight.units import clock_seconds

SETTLED = timedelta(hours=1)
"""A node that was missed by a look is over once it has stayed away for so long."""

AT_ONCE = 200
"""Costs that one tick files; the next goes on."""

CORRECTIONS = 5
"""So often a bill's word on one node is filed: it may be corrected."""


class Ended(NamedTuple):
    """A node whose life is over."""

    instance: str
    node: MeteredNode
    ended_at: datetime


def file(deps: Deps, now: datetime) -> tuple[str, ...]:
    """File what the nodes came to that are over; a line on it."""
    found, today = COST_FROM.get(deps.state, deps.name), now.date()
    first = max(found.value.day if found else today - DAY, today - CATCH_UP * DAY)
    over = _ended(deps, first, today)
    filed = _filed(deps.state, deps.name, min([first, *(one.ended_at.date() for one in over)]))
    left, apart = [one for one in over if not _is_filed(filed, one)], deps.set_apart("node")
    sure = [one for one in left if apart.isdisjoint((one.instance, one.node.name))]
    ready = [one for one in sure if one.node.usd_per_hour is not None and _settled(one) <= now]
    costs = _costs(deps, ready[:AT_ONCE])
    for cost in costs:
        put(deps.state, deps.name, _name(cost), cost, now)
    waits = {(one.instance, one.ended_at) for one in left} - {(cost.instance, cost.ended_at) for cost in costs}
    goes_on = min([today, *(max(first, end.date()) for _, end in waits)])
    if found is None or found.value.day != goes_on:
        COST_FROM.put(deps.state, deps.name, CostFrom(day=goes_on))
    return (f"filed what {len(costs)} node{'s' if len(costs) > 1 else ''} came to",) if costs else ()


def file_billed(deps: Deps, bill: Bill, now: datetime) -> int:
    """File what a bill says of nodes that it names by their instance, once it has all of their days; how many."""
    rows: dict[str, dict[date, Decimal]] = {}
    for row in bill.days:
        if row.resource:
            days = rows.setdefault(row.resource, {})
            days[row.day] = days.get(row.day, Decimal(0)) + row.usd
    if not rows or bill.horizon is None:
        return 0
    known: dict[str, list[NodeCost]] = {}
    words: dict[tuple[str, datetime], list[NodeCost]] = {}
    for cost in (entry.value for entry in COST.scan(deps.state, f"{deps.name}/")):
        if cost.instance in rows and cost.billed_usd is None:
            known.setdefault(cost.instance, []).append(cost)
        elif cost.instance in rows:
            words.setdefault((cost.instance, cost.since), []).append(cost)
    count = 0
    for lives in known.values():
        (cost, *others), said = lives, words.get((lives[0].instance, lives[0].since), [])
        usd = _billed(cost, rows[cost.instance], bill)
        if others or usd is None or len(said) >= CORRECTIONS or (said and said[-1].billed_usd == usd):
            continue  # Of an instance that lived twice nobody can say which life a row is of.
        word = msgspec.structs.replace(cost, billed_usd=usd, source=bill.source)
        put(deps.state, deps.name, f"{_name(cost)}/billed-{len(said) + 1}", word, now)
        count += 1
    return count


def buyers(deps: Deps, lit: Mapping[Lived, str], today: date) -> dict[Lived, Bought]:
    """The call that bought each life of an instance: of those that the meter has of today and yesterday, and of those
    that are ``lit`` and not metered yet (pools by life)."""
    lives = dict(lit)
    for day in (today - DAY, today):
        for instance, node in meter_nodes.nodes(deps.state, deps.name, day).items():
            lives = {life: pool for life, pool in lives.items() if life[0] != instance}
            lives[instance, node.since] = node.pool
    within = timedelta(seconds=2 * deps.policy.gpu_ready_deadline)
    spans = _merged((since - within, since + FAR_BEHIND) for _, since in lives)
    return bought_by(lives, [call for first, last in spans for call in _calls(deps, first, last)], within)


def put(state: State, cluster: str, name: str, cost: NodeCost, now: datetime) -> None:
    """Into the chain, then under its name, where it is not yet: as a decision is filed, whoever dies in between."""
    if COST.get(state, f"{cluster}/{name}") is not None:
        return
    digest = sha256(COST.format.write(cost)).hexdigest()
    ledger.chain(state, cluster, "cost", name, now, digest)
    COST.put(state, f"{cluster}/{name}", cost)


def _name(cost: NodeCost) -> str:
    return f"{cost.ended_at:%Y-%m-%d}/{cost.instance}/{clock_seconds(cost.since):.0f}"


def _ended(deps: Deps, first: date, last: date) -> list[Ended]:
    """The nodes of some days that are over and have a price, or may get one; the first that ended first."""
    found: dict[tuple[str, datetime], Ended] = {}
    nodes: dict[str, MeteredNode] = {}
    for day in _days(first, last):
        for instance, node in meter_nodes.nodes(deps.state, deps.name, day).items():
            nodes[instance] = node
            if node.gone_at is None:
                found.pop((instance, node.since), None)
            elif node.usd_per_hour is not None or node.pool in deps.policy.pools:
                found[instance, node.since] = Ended(instance, node, node.gone_at)
    for life in instance_lifetimes.ended_since(deps, day_start(first)):
        now = nodes.get(life.instance)
        if now is not None and now.since > life.ended_at:  # It was stopped and started again between two looks.
            was = msgspec.structs.replace(now, since=life.since, gone_at=life.ended_at)
            found.setdefault((life.instance, life.since), Ended(life.instance, was, life.ended_at))
    return sorted(found.values(), key=lambda one: (one.ended_at, one.instance))


def _settled(one: Ended) -> datetime:
    return max(one.ended_at + SETTLED, paid_until(one.node))


def _filed(state: State, cluster: str, first: date) -> dict[str, list[NodeCost]]:
    out: dict[str, list[NodeCost]] = {}
    # A life told of late ended on an earlier day than was thought.
    for entry in COST.scan(state, f"{cluster}/", after=f"{cluster}/{first - DAY}"):
        out.setdefault(entry.value.instance, []).append(entry.value)
    return out


def _is_filed(filed: Mapping[str, Sequence[NodeCost]], one: Ended) -> bool:
    """True where that life's cost is there: one of the same instance that does not end before this one began."""
    return any(cost.ended_at > one.node.since and cost.since < one.ended_at for cost in filed.get(one.instance, ()))


def _costs(deps: Deps, over: Sequence[Ended]) -> list[NodeCost]:
    if not over:
        return []
    lived = {day for one in over for day in _days(_begin(one), paid_until(one.node).date())}
    days = {day: meter_nodes.nodes(deps.state, deps.name, day) for day in sorted(lived)}
    bought = _bought(deps, over, days)
    return [_cost(one, bought.get((one.instance, one.node.since), ""), days) for one in over]


def _begin(one: Ended) -> date:
    return max(one.node.since.date(), one.ended_at.date() - CATCH_UP * DAY)


def _cost(one: Ended, decision: str, days: Mapping[date, Mapping[str, MeteredNode]]) -> NodeCost:
    node = one.node
    return NodeCost(
        decision=decision,
        instance=one.instance,
        node=node.name,
        pool=node.pool,
        instance_type=node.instance_type,
        capacity_type=node.capacity_type,
        since=node.since,
        ended_at=one.ended_at,
        paid_until=paid_until(node),
        usd=metered_usd(node, {day: nodes[one.instance] for day, nodes in days.items() if one.instance in nodes}),
    )


def _bought(deps: Deps, over: Sequence[Ended], days: Mapping[date, Mapping[str, MeteredNode]]) -> dict[Lived, str]:
    """The decisions that bought the nodes. All that began about then are looked at: each call has its own."""
    within = timedelta(seconds=2 * deps.policy.gpu_ready_deadline)
    spans = _merged((one.node.since - within, one.node.since + FAR_BEHIND) for one in over)
    calls = [call for first, last in spans for call in _calls(deps, first, last)]
    begun = {(instance, node.since): node.pool for nodes in days.values() for instance, node in nodes.items()}
    begun |= {(one.instance, one.node.since): one.node.pool for one in over}
    return {life: call.decision for life, call in bought_by(begun, calls, within).items()}


def _calls(deps: Deps, first: datetime, last: datetime) -> Iterator[Bought]:
    """The calls that grew a pool between two moments, by the decisions that are kept."""
    after = f"{deps.name}/{int(clock_seconds(first) * 1000):014d}"
    for entry in DECISION.scan(deps.state, f"{deps.name}/", after=after):
        record = entry.value
        if record.at > last:
            return
        for call, step in record.calls_with_steps:
            if isinstance(call, Buy) and step.state == "done" and step.count:
                yield Bought(record.id, step.pool, step.count, step.sent_at or record.at, step.n)


def _merged(spans: Iterable[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    out: list[tuple[datetime, datetime]] = []
    for first, last in sorted(spans):
        if out and first <= out[-1][1]:
            out[-1] = out[-1][0], max(last, out[-1][1])
        else:
            out.append((first, last))
    return out


def _days(first: date, last: date) -> Iterator[date]:
    return (first + n * DAY for n in range((last - first).days + 1))


def _billed(cost: NodeCost, days: Mapping[date, Decimal], bill: Bill) -> Decimal | None:
    """The bill's dollars for a node's days; None where it has not all of them, or nothing: what is paid ahead is no
    machine's."""
    first, last = cost.since.date(), cost.paid_until.date()
    whole = bill.horizon is not None and bill.horizon >= day_start(last + DAY)
    known = [usd for day, usd in days.items() if first <= day <= last]
    whole = whole and min(row.day for row in bill.days) <= first and not {*_days(first, last)} & {*bill.doubtful}
    return (sum(known, Decimal(0)) or None) if whole else None
