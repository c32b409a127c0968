"""Capacity that was paid for and did not help: what never became ready, and what a gang waited for in vain.

A purchase whose pods all ended while it boots is taken back before it joins: by name, as all that goes. It stays where
another pod is planned on it, where it is a spare that is kept, or where it is paid for some time yet.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from pilotlight.decide.money.economics import billed_cost, paid_until_s
from pilotlight.decide.work import Work
from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.decisions import NodeVerdict
from pilotlight.facts.memory import Backoff, Memory
from pilotlight.facts.nodes.pool_state import Booting, InFlight, PoolState
from pilotlight.facts.workload import PodDemand
from pilotlight.units import Seconds, cents, human

CLOUD_SKEW = timedelta(seconds=5)
"""The cloud's clock may be so far behind the store's."""

REST_S = 3600.0
"""An offering that failed so rests for so long."""


def failed_capacity(
    nodes: Sequence[Node],
    pools: Sequence[PoolState],
    offerings: Mapping[str, Offering],
    pending: Sequence[PodDemand],
    memory: Memory,
    deadline_s: Seconds,
    now: datetime,
) -> list[NodeVerdict]:
    """Nodes and instances to give back because they failed; ``offerings`` by pool.

    An instance or a node without GPU pods that is not ready ``deadline_s`` after its request; and the ready, idle
    nodes of a gang whose other nodes did not come by then: all of a gang's nodes, or none. An instance that may be a
    node which this look does not show stays. What a cloud could not launch is called off at once, where it has a name.
    """
    out: list[NodeVerdict] = []
    late = now - timedelta(seconds=deadline_s)
    for state in pools:
        offering = offerings.get(state.name)
        if offering is not None:
            out += [
                _overdue(offering, b, now) for b in state.booting if b.requested_at < late and not (b.doubt or b.going)
            ]
            out += [_called_off(offering, name) for name in state.refused]
    for node in nodes:
        offering = offerings.get(node.pool)
        if offering is not None and not node.ready and not node.gpu_pods and node.created_at < late:
            why = _never(node.created_at, now)
            out.append(_verdict(offering, node.name, node.instance, node.created_at, now, why, True))
    taken = {verdict.instance for verdict in out}
    nodes = [
        node for node in nodes if memory.rests.get(node.name, now) <= now
    ]  # A person keeps the others for a while.
    for entry in memory.overdue:
        if entry.broken:
            out += _given_back(entry, nodes, pools, offerings, taken, now)
    waited = [entry for entry in memory.overdue if not entry.broken]
    if waited:
        out += _broken_gangs(nodes, offerings, pending, waited, now)
    return out


def in_doubt(nodes: Sequence[Node], pools: Sequence[PoolState], deadline_s: Seconds, now: datetime) -> Counter[str]:
    """By pool the instances past the deadline that stay because they may be nodes: no room comes of them.

    Those that are shown as nodes without an instance are not counted twice.
    """
    late = now - timedelta(seconds=deadline_s)
    held = Counter({p.name: sum(bool(b.doubt) and b.requested_at < late for b in p.booting) for p in pools})
    held.subtract(Counter(node.pool for node in nodes if not node.instance and node.pool in held))
    return +held


def give_failed_back(work: Work) -> None:
    """Give back capacity that never worked; its offering rests."""
    pools, now, deadline_s, memory = work.look.pools, work.now, work.policy.gpu_ready_deadline, work.memory
    failed = failed_capacity(work.staying, pools, work.by_pool, work.view.pending, memory, deadline_s, now)
    work.failed = [f for f in failed if f.node not in work.look.leaving]
    work.in_doubt = in_doubt(work.staying, pools, deadline_s, now)
    if work.failed:
        work.memory = resting(memory, work.failed, now)


def give_broken_gangs_back(work: Work) -> None:
    """Give back what a gang that lacks a part has, whoever looks."""
    work.nodes = [failed for failed in work.failed if failed.flight]


VAIN = timedelta(seconds=45)
"""A controller makes the next pod in place of one that is gone well within this; looks come every minute."""

PAID_S: Seconds = 120.0
"""What is paid for so much longer anyhow boots on."""


def take_back(work: Work) -> None:
    """Give back what boots and nobody waits for any more, as far as no pod is planned on it and no spare is wanted.

    Only before it is expected: later it may be a node that a look does not show, with the very pod on it. What waits in
    its cloud's queue is no node, however long it waits.
    """
    taken = {failed.instance for failed in work.failed}.union(work.look.leaving)
    free = Counter(bin_.where for bin_ in work.run.booting if bin_.coming and not bin_.taken)
    queues = {pool.name for pool in work.look.pools if pool.queued}
    for entry in sorted(work.memory.in_flight, key=lambda e: (e.requested_at, e.decision, e.n), reverse=True):
        offering, since = work.by_pool.get(entry.pool), entry.vain_since
        if offering is None or since is None or work.now < since + VAIN:
            continue
        age_s = (work.now - entry.requested_at).total_seconds()
        waits = entry.pool in queues
        if not waits and (work.now >= entry.ready_by or paid_until_s(offering, age_s) - age_s > PAID_S):
            continue
        most = min(entry.count, free[entry.offering], _beyond_spares(work, entry.pool))
        some = msgspec.structs.replace(entry, count=most)
        pools = [msgspec.structs.replace(pool, booting=()) for pool in work.look.pools] if waits else work.look.pools
        for one in _given_back(some, (), pools, work.by_pool, taken, work.now, "all that it was bought for ended"):
            free[entry.offering] -= 1
            work.nodes = [*work.nodes, msgspec.structs.replace(one, failed=False)]


def _beyond_spares(work: Work, pool: str) -> int:
    """How many of a pool's nodes on their way without pods are neither warm, nor spares that pay, nor its least."""
    rules, spares = work.policy.pools[pool], work.spares.get(pool)
    gone = sum(node.pool == pool and node.verdict == "release" for node in work.nodes)
    lit = [node for node in work.standing if node.pool == pool]
    idle = sum(node.ready and not node.gpu_pods and node.name not in work.reserved for node in lit)
    coming = [bin_ for bin_ in work.run.booting if bin_.pool == pool]
    free = sum(not bin_.taken for bin_ in coming)
    warm = max(rules.spares.warm, spares.count if spares is not None else 0)
    return min(idle + free - warm, len(lit) + sum(bin_.coming for bin_ in coming) - rules.min) - gone


def _given_back(
    entry: InFlight,
    nodes: Sequence[Node],
    pools: Sequence[PoolState],
    offerings: Mapping[str, Offering],
    taken: set[str],
    now: datetime,
    said: str = "",
) -> list[NodeVerdict]:
    """Nodes that came for an entry: the newest of the pool that began since, without GPU pods."""
    waits = {b.instance for pool in pools if pool.name == entry.pool for b in pool.queued}
    came = _came_for(entry, nodes, pools)
    out: list[NodeVerdict] = []
    for begun, _, name, instance, registered in sorted(came, reverse=True):
        if instance not in taken and len(out) < entry.count and entry.pool in offerings:
            taken.add(instance)
            why = said or f"gang {', '.join(entry.gangs)}: not all nodes could be had"
            verdict = _verdict(offerings[entry.pool], name, instance, begun, now, why, registered)
            if instance in waits:  # It cost nothing.
                verdict = msgspec.structs.replace(verdict, why=why, spent_usd=Decimal(0))
            out.append(msgspec.structs.replace(verdict, offering="", flight=f"{entry.decision}.{entry.n}"))
    return out


def _came_for(
    entry: InFlight, nodes: Sequence[Node], pools: Sequence[PoolState]
) -> list[tuple[datetime, int, str, str, bool]]:
    """What may be an entry's: begun when, the length of its name, that, its instance, and whether it is a node."""
    since = entry.requested_at - CLOUD_SKEW
    every = [b for pool in pools if pool.name == entry.pool for b in (*pool.booting, *pool.queued)]
    every = [b for b in every if not (b.doubt or b.going)]
    came = [(b.requested_at, len(b.instance), b.instance, b.instance, False) for b in every]
    came += [
        (n.created_at, len(n.name), n.name, n.instance or n.name, True)
        for n in nodes
        if n.pool == entry.pool and not n.gpu_pods
    ]
    return [one for one in came if one[0] >= since]


def _broken_gangs(
    nodes: Sequence[Node],
    offerings: Mapping[str, Offering],
    pending: Sequence[PodDemand],
    overdue: Sequence[InFlight],
    now: datetime,
) -> list[NodeVerdict]:
    waiting = {p.uid: p.shape.gang.key for p in pending if p.shape.gang is not None}
    out: dict[str, NodeVerdict] = {}
    for entry in overdue:
        gangs = sorted({waiting[uid] for uid in entry.demands if uid in waiting})
        idle = [
            n
            for n in nodes
            if gangs
            and n.pool == entry.pool in offerings
            and n.ready
            and not n.gpu_pods
            and n.created_at >= entry.requested_at
        ]
        for node in sorted(idle, key=lambda n: n.name)[: entry.count]:
            why = f"gang {gangs[0]} did not come together by its deadline: all its nodes, or none"
            out[node.name] = _verdict(offerings[node.pool], node.name, node.instance, node.created_at, now, why, True)
    return list(out.values())


def resting(memory: Memory, failed: Sequence[NodeVerdict], now: datetime) -> Memory:
    """The memory with the offerings of failed capacity at rest: what replaces it is another offering."""
    until = now + timedelta(seconds=REST_S)
    fresh = {f.offering: Backoff(offering=f.offering, until=until, why=f.why) for f in failed if f.offering}
    if not fresh:
        return memory
    others = tuple(b for b in memory.backoffs if b.offering not in fresh)
    return msgspec.structs.replace(memory, backoffs=(*others, *fresh.values()))


def _called_off(offering: Offering, name: str) -> NodeVerdict:
    """What was never made cost nothing. Its offering rests by the cloud's own words."""
    return NodeVerdict(
        node=name,
        pool=offering.pool,
        instance=name,
        verdict="release",
        why="its cloud could not launch it and would go on trying: called off",
        usd_per_hour=offering.usd_per_hour,
        failed=True,
        registered=False,
    )


def _overdue(offering: Offering, one: Booting, now: datetime) -> NodeVerdict:
    if one.unmade:
        return _unmade(offering, one, now)
    why = _never(one.requested_at, now)
    return _verdict(offering, one.instance, one.instance, one.requested_at, now, why, False)


def _unmade(offering: Offering, one: Booting, now: datetime) -> NodeVerdict:
    """What has only a name past its deadline cost nothing either, and nobody said why: its offering rests."""
    waited = human((now - one.requested_at).total_seconds())
    why = f"its cloud took it on and says nothing: no machine {waited} later (gpu_ready_deadline): called off"
    return msgspec.structs.replace(_called_off(offering, one.instance), why=why, offering=offering.name)


def _never(since: datetime, now: datetime) -> str:
    return f"no ready GPU {human((now - since).total_seconds())} after the request (gpu_ready_deadline)"


def _verdict(
    offering: Offering, name: str, instance: str, since: datetime, now: datetime, why: str, registered: bool
) -> NodeVerdict:
    wasted = billed_cost(offering, (now - since).total_seconds())
    return NodeVerdict(
        node=name,
        pool=offering.pool,
        instance=instance,
        verdict="release",
        why=f"{why}; {cents(wasted)} wasted",
        usd_per_hour=offering.usd_per_hour,
        failed=True,
        registered=registered,
        offering=offering.name,
        spent_usd=wasted,
    )
