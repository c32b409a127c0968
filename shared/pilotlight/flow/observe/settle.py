"""Settling before a reconcile decides: capacity that came or never came, and idle nodes that were taken.

Launches that a cloud took on and that failed are heard once, as their event would be, as its pools tell them. What a
pool's cloud still owes it may launch at any time: it is told while it is owed, and no pod waits for it.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from pilotlight.decide.demand.run_lengths import with_runs
from pilotlight.decide.fit.fit import Allowed, fill, of_node
from pilotlight.decide.nodes.failed_capacity import REST_S
from pilotlight.decide.nodes.scale_down import idle_from
from pilotlight.decide.nodes.spares.demand_rates import REACTION_S, add_demand, at_work, return_idle
from pilotlight.decide.nodes.spares.standby import measure_start
from pilotlight.decide.offers.joined_nodes import of_other_types, with_learnt
from pilotlight.errors import Denied, NoCapacity
from pilotlight.facts.capacity import Node
from pilotlight.facts.memory import Hits, Memory, Quarantine
from pilotlight.facts.messages import STALE_S
from pilotlight.facts.nodes.pool_state import InFlight, PoolState
from pilotlight.facts.workload import Finding, PodDemand
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe import known_instances
from pilotlight.flow.observe.pool_findings import pool_findings
from pilotlight.flow.observe.remembered_pools import remember
from pilotlight.flow.observe.snapshot import GRAIN, Snapshot, any_may_come, ending_instances, ready_for_s
from pilotlight.flow.observe.vanished_claims import gone_mark
from pilotlight.flow.records import flight_log, lease, ledger, memory_updates, node_marks
from pilotlight.flow.records.memory_updates import note_late_refusal, note_refusal
from pilotlight.state_schema.marks import EVENT, Mark
from pilotlight.units import EPOCH, Seconds, clock_seconds, count_of

BIND_GRACE_S = 120.0
"""The scheduler has so long to bind a pod to the node bought for it, before that purchase counts as no help."""

QUARANTINE_S = 6 * 3600.0
SILENCE_S = 600.0
"""Nothing is bought for a shape that a node was ready for in vain while the scheduler says nothing: for so long."""

CLOCKS = timedelta(minutes=5)
MOST_QUARANTINE = timedelta(seconds=QUARANTINE_S) + CLOCKS
MOST_REST = timedelta(seconds=max(REST_S, memory_updates.MOST_REST_S)) + CLOCKS


def settle(deps: Deps, snapshot: Snapshot, last: datetime | None = None) -> Snapshot:
    """Close what came, quarantine what came and did not help, forget what is over. The look with its new memory.

    ``last`` is when the last look before began that was settled.
    """
    memory = _idle(_fresh(snapshot.memory, snapshot), snapshot, deps, last)
    memory = with_runs(memory, snapshot.view.nodes, snapshot.now)
    memory = with_learnt(memory, snapshot.view.nodes, deps.policy)
    counted_to = memory.first_work.counted_to or EPOCH
    if any(node.works_since > counted_to for node in snapshot.view.nodes):
        from pilotlight.flow.observe.first_work import learn

        memory = learn(deps, memory, snapshot.view.nodes, snapshot.now)
    if any(o.zone and o.capacity_type == "spot" for o in deps.offerings):
        from pilotlight.decide.offers.spot_lifetimes import learn_from_look

        lives = learn_from_look(memory.lives, snapshot.view.nodes, deps.offerings, snapshot.now)
        memory = replace(memory, lives=dict(lives)) if lives != memory.lives else memory
    late = snapshot.now - timedelta(seconds=deps.policy.gpu_ready_deadline)
    odd = of_other_types(snapshot.view.nodes, deps.offerings)
    memory, came = _close_flights(deps, snapshot, memory, late, odd)
    if snapshot.memory.in_flight:
        _note_vain(deps, snapshot)
    memory, heard = hear_refusals(deps, memory, snapshot.pools, snapshot.now)
    memory, findings = _sizes(memory, snapshot.pools)
    memory = remember(memory, snapshot.pools, snapshot.now)
    there, ending = (*snapshot.view.nodes, *snapshot.going), ending_instances(snapshot.pools)
    rests, opened = node_marks.settle(deps, there, snapshot.leaving, snapshot.now, ending)
    memory, findings = replace(memory, rests=rests), findings + opened
    findings += known_instances.nodes_without_instance(snapshot.view.nodes, snapshot.pools)
    findings += known_instances.kept_in_doubt(snapshot.pools, late) + other_types(odd)
    findings += pool_findings(snapshot.pools, snapshot.now)
    was = ledger.remember(deps.state, deps.name, snapshot.was, memory)
    for claim, pool in heard.items():
        EVENT.put(deps.state, claim, Mark(note=pool))
    known_instances.learn(deps, snapshot.pools, snapshot.view.nodes, snapshot.now)
    return replace(snapshot, memory=replace(memory, came=came), was=was, findings=(*snapshot.findings, *findings))


def _close_flights(
    deps: Deps, snapshot: Snapshot, memory: Memory, late: datetime, odd: Sequence[Node]
) -> tuple[Memory, tuple[InFlight, ...]]:
    """Close what came or never came; the entries that are kept while the scheduler may still bind their pods.

    None is kept for a pod that does not fit on what came as another type: its offering rests, as one that was refused.
    """
    flights = _landed(deps, snapshot)
    pending = {p.uid: p for p in snapshot.view.pending} if flights else {}
    came: list[InFlight] = []
    for key, entry in flights:
        unserved = [pending[uid] for uid in entry.demands if uid in pending]
        idle_s = ready_for_s(entry, snapshot.view.nodes, memory, snapshot.now) if unserved else None
        gang_waits = unserved and entry.gangs and snapshot.now < entry.requested_at + _patience(deps)
        gang_waits = gang_waits and any_may_come(snapshot, entry.gangs)
        misfit = _misfit(entry, unserved, snapshot.view.nodes, odd) if odd else ""
        if gang_waits or (idle_s is not None and idle_s < BIND_GRACE_S and not misfit):
            came.append(entry)
            continue
        if misfit:
            memory = note_refusal(memory, entry.offering, Denied(misfit), snapshot.now)
        elif idle_s is not None and not entry.gangs:
            memory = _no_help(deps, snapshot, memory, entry, unserved, idle_s)
        memory = waited_in_vain(memory, entry, snapshot.pools, snapshot.now, late)
        memory = memory_updates.count_arrival(memory, entry, snapshot.view.nodes)
        if entry.woken:
            memory = measure_start(memory, entry, snapshot.view.nodes)
        flight_log.forget_flight(deps.state, key)
    return memory, tuple(came)


def _misfit(entry: InFlight, pods: Sequence[PodDemand], nodes: Sequence[Node], odd: Sequence[Node]) -> str:
    """What is wrong where a ready node of a purchase came as another type, and a pod fits on none that came."""
    since = entry.requested_at - ledger.CLOUD_SKEW
    came = [node for node in nodes if node.pool == entry.pool and node.ready and node.created_at >= since]
    other = next((node for node in odd if node in came), None)
    away = other and [pod for pod in pods if not fill(pod.shape, 1, [of_node(node) for node in came], Allowed())]
    return f"its node {other.name} came as {other.instance_type}" if other and away else ""


def other_types(odd: Sequence[Node]) -> tuple[Finding, ...]:
    """A finding for each pool with nodes of a type that it does not sell."""
    found = {node.pool: node for node in odd}
    return tuple(
        Finding(
            subject=f"pool {pool}",
            code="other-type",
            message=f"node {node.name} came as {node.instance_type}, not as the policy has it. See the instance types "
            "of its node group or launch template; pods that do not fit on it are bought for elsewhere",
        )
        for pool, node in sorted(found.items())
    )


def _landed(deps: Deps, snapshot: Snapshot) -> list[tuple[str, InFlight]]:
    """Entries that are not on their way any more; what is left of a broken purchase stays until its deadline."""
    live = {(e.decision, e.offering) for e in snapshot.memory.in_flight}
    return [
        (key, entry)
        for key, entry in snapshot.flights
        if (entry.decision, entry.offering) not in live
        and entry.decision not in snapshot.unresolved
        and not (entry.broken and snapshot.now < entry.requested_at + _patience(deps))
    ]


def _note_vain(deps: Deps, snapshot: Snapshot) -> None:
    """Note of what is on its way since when none of the pods that it was bought for waits or runs."""
    nodes = (*snapshot.view.nodes, *snapshot.going)
    alive = {pod.uid for pod in snapshot.view.pending} | {pod.uid for node in nodes for pod in node.gpu_pods}
    for key, entry in snapshot.flights:
        vain = bool(entry.demands) and alive.isdisjoint(entry.demands)
        if vain != (entry.vain_since is not None) and entry in snapshot.memory.in_flight:
            since = snapshot.now if vain else None
            flight_log.write_flight(deps.state, key, replace(entry, vain_since=since))


def foreseen(deps: Deps, snapshot: Snapshot) -> Snapshot:
    """The look with the idle times that a cycle would settle now, and its words on pools; nothing is written."""
    memory = _idle(snapshot.memory, snapshot, deps, lease.last_settled(deps.state, deps.name))
    findings = (*snapshot.findings, *pool_findings(snapshot.pools, snapshot.now))
    return replace(snapshot, memory=memory, findings=findings)


def _sizes(memory: Memory, pools: tuple[PoolState, ...]) -> tuple[Memory, tuple[Finding, ...]]:
    """Note the pools' sizes; what another hand added is reported, not fought. A smaller pool is told by its nodes."""
    sizes = {p.name: memory.sizes.get(p.name, 0) if p.unread else p.desired for p in pools}
    if sizes == memory.sizes:
        return memory, ()
    findings = tuple(
        Finding(
            subject=f"pool {name}",
            code="pool-resized",
            message=f"another hand raised it from {memory.sizes[name]} to {count_of(size, 'node')}: let one autoscaler "
            "own a pool",
        )
        for name, size in sorted(sizes.items())
        if size > memory.sizes.get(name, size)
    )
    return replace(memory, sizes=sizes), findings


def _patience(deps: Deps) -> timedelta:
    """A gang's entry is kept a little past its deadline, so that the plan after it can roll the gang back."""
    return timedelta(seconds=deps.policy.gpu_ready_deadline + 2 * BIND_GRACE_S)


def _fresh(memory: Memory, snapshot: Snapshot) -> Memory:
    """Without quarantines that are over or refuted, and back-offs so old that their count of tries means nothing.

    One that lasts for longer than any does was written by a clock that was wrong.
    """
    if not memory.quarantines and not memory.backoffs and not memory.refusals:
        return memory
    if memory.quarantines:
        from pilotlight.decide.fit.fit_mismatch import drop_refuted

        memory = drop_refuted(memory, snapshot.view.pending, snapshot.view.nodes)
    now = snapshot.now
    return replace(
        memory,
        quarantines=tuple(q for q in memory.quarantines if timedelta(0) < q.until - now <= MOST_QUARANTINE),
        backoffs=tuple(b for b in memory.backoffs if -timedelta(hours=1) < b.until - now <= MOST_REST),
        refusals={name: r for name, r in memory.refusals.items() if -MOST_REST < r.until - now <= MOST_REST},
    )


def _idle(memory: Memory, snapshot: Snapshot, deps: Deps, last: datetime | None) -> Memory:
    """Remember since when nodes are idle; count those that were idle at the last look and were taken, or came back.

    A node that was bought for the pod that took it was counted then.
    """
    was, now = memory.idle_since, snapshot.now
    unknown = None if last is None else max(last, now - GRAIN)
    free = [node for node in snapshot.view.nodes if node.ready and not node.gpu_pods]
    idle = {node.name: was[node.name] for node in snapshot.going if node.name in was and not node.gpu_pods}
    idle |= {node.name: idle_from(was.get(node.name, unknown), node.idle_since, now) for node in free}
    if idle == was:
        return memory
    return replace(memory, idle_since=idle, hits=_hits(memory, snapshot, deps, idle, unknown))


def _hits(
    memory: Memory, snapshot: Snapshot, deps: Deps, idle: Mapping[str, datetime], unknown: datetime | None
) -> dict[str, Hits]:
    """Demand on spare nodes, by pool, after nodes were taken or came back. ``idle`` are those of now, since when."""
    was, now_s, hits = memory.idle_since, clock_seconds(snapshot.now), dict(memory.hits)
    boots, taken = {o.pool: o.boot_s for o in deps.offerings}, _taken(snapshot, memory.idle_since, idle, deps)
    for pool in sorted(taken.keys() & boots.keys()):
        hits[pool] = add_demand(hits.get(pool), len(taken[pool]), sum(taken[pool]), now_s, boots[pool] + REACTION_S)
    free = [node for node in snapshot.view.nodes if node.name in idle]
    back = Counter[str]()
    for node in free:
        worked = node.created_at + timedelta(seconds=boots.get(node.pool, 0) + WORKED_S)
        if was.get(node.name, unknown) and idle[node.name] > was.get(node.name, worked):
            back[node.pool] += 1
    for pool in sorted(back.keys() & hits.keys()):
        hits[pool] = return_idle(hits[pool], back[pool], now_s)
    lit = Counter({pool.name: pool.desired for pool in snapshot.pools})
    lit.subtract(node.pool for node in free)
    return {pool: at_work(known, max(0, lit[pool]), now_s) for pool, known in hits.items()}


def _taken(
    snapshot: Snapshot, was: Mapping[str, datetime], idle: Mapping[str, datetime], deps: Deps
) -> dict[str, list[float]]:
    """By pool, the worth of each wait that an idle node saved since: one that works now, or that is idle anew."""
    bought_for = {uid for _, entry in snapshot.flights for uid in entry.demands}
    taken: dict[str, list[float]] = defaultdict(list)
    for node in snapshot.view.nodes:
        if node.name in was and bought_for.isdisjoint(pod.uid for pod in node.gpu_pods):
            if node.gpu_pods:
                taken[node.pool].append(_worth(node, deps))
            elif node.name in idle and idle[node.name] > was[node.name]:
                taken[node.pool].append(1.0)
    return taken


WORKED_S = 30.0
"""A node that is idle since so long after its boot has worked in between."""


def _worth(node: Node, deps: Deps) -> float:
    """The worth of the wait that a spare saved, of the class of its first pod."""
    name = node.gpu_pods[0].workload_class or "batch"
    return float(deps.policy.of_class(name).wait_scale)  # type: ignore[arg-type]


def _no_help(
    deps: Deps, snapshot: Snapshot, memory: Memory, entry: InFlight, pods: Sequence[PodDemand], idle_s: Seconds
) -> Memory:
    """The memory that keeps shapes off a pool whose node stood ready for their pods in vain: for long by the word of a
    scheduler that was heard since, for a little while where it is silent.
    """
    from pilotlight.decide.fit.fit_mismatch import MOST_PODS, Heard
    from pilotlight.flow.observe.scheduler_heartbeat import last_heard

    heard = last_heard(deps, snapshot.view.nodes, snapshot.now) if any(pod.said for pod in pods) else Heard()
    ready_at = snapshot.now - timedelta(seconds=idle_s)
    shapes: dict[str, list[PodDemand]] = {}
    for pod in pods:
        shapes.setdefault(pod.shape.key, []).append(pod)
    fresh = []
    for shape, alike in sorted(shapes.items()):
        said = heard.heard_after(ready_at, alike)
        ready = f"a node bought for it by decision {entry.decision} was ready"
        why = f"{ready} and the pod still could not be scheduled" if said else f"{ready} and the scheduler is silent"
        until = snapshot.now + timedelta(seconds=QUARANTINE_S if said else SILENCE_S)
        uids = tuple(pod.uid for pod in alike[:MOST_PODS])
        fresh.append(Quarantine(shape=shape, pool=entry.pool, until=until, why=why, pods=uids))
    named = {(one.shape, one.pool) for one in fresh}
    others = [one for one in memory.quarantines if (one.shape, one.pool) not in named]
    return replace(memory, quarantines=(*others, *fresh))


def hear_refusals(
    deps: Deps, memory: Memory, pools: Sequence[PoolState], now: datetime
) -> tuple[Memory, Mapping[str, str]]:
    """The memory with what could not be launched, and is not too old to still hold; and the pool by the claim of each,
    to be marked as heard once that memory is written."""
    heard: dict[str, str] = {}
    for pool in pools:
        late = pool.refusal
        if late is None or (late.at and (now - late.at).total_seconds() > STALE_S):
            continue
        claim = f"{deps.name}/{late.identity}"
        if EVENT.get(deps.state, claim) is None:
            gone = EVENT.get(deps.state, f"{deps.name}/{gone_mark(late.identity.partition('/')[0])}")
            zone, again = gone.value.note if gone else late.zone, gone is not None
            memory = note_late_refusal(
                memory, deps.offerings, pool.name, zone, late.reason, late.message, now, again=again
            )
            heard[claim] = pool.name
    return memory, heard


def waited_in_vain(
    memory: Memory, entry: InFlight, pools: Sequence[PoolState], now: datetime, late: datetime
) -> Memory:
    """The memory after an entry that was asked for before ``late``: where its cloud still owes the pool, and tried
    nothing since, it rests."""
    owes = entry.requested_at < late and any(pool.owed for pool in pools if pool.name == entry.pool)
    return (
        note_refusal(memory, entry.offering, NoCapacity("nothing of it was launched by its deadline"), now)
        if owes
        else memory
    )
