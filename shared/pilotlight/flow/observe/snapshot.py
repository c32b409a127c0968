"""One look at a cluster: what was read of it, of its cloud and of the state, at one moment."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from pilotlight.decide.nodes.other_autoscalers import Others, others_at
from pilotlight.facts.capacity import ClusterView, Node, digest
from pilotlight.facts.decisions import Basis, BudgetSeen, Plan, PriceUsed
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.budgets import Money
from pilotlight.facts.nodes.pool_state import InFlight, PoolState
from pilotlight.facts.workload import Finding
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe import known_instances
from pilotlight.flow.observe.remembered_pools import as_remembered
from pilotlight.flow.records import flight_log, ledger, node_marks
from pilotlight.flow.records.ledger import CLOUD_SKEW, Remembered
from pilotlight.units import Seconds


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One look, at a moment of the store's time: no two workers' clocks have to agree."""

    view: ClusterView
    """The cluster's nodes and pods, without nodes that are ``going``."""
    pools: tuple[PoolState, ...]
    """The pools as the cloud tells them, less what has become nodes."""
    memory: Memory
    """The memory with what this look knows by now; it has capacity in flight by how far that has come."""
    was: Remembered
    """The memory as it was read, with its versions."""
    flights: tuple[tuple[str, InFlight], ...]
    """All entries of capacity in flight, by name."""
    now: datetime
    """The store's time before anything was read."""
    findings: tuple[Finding, ...] = ()
    """What the look itself found odd."""
    unsettled: Mapping[str, str] = {}
    """By pool why it is not grown meanwhile: the outcome of a call for it is not known yet."""
    leaving: Mapping[str, str] = {}
    """The decision by node, of nodes that may go at any moment: their release's outcome is not known yet."""
    going: tuple[Node, ...] = ()
    """Nodes that are still seen though their instance was given back or stopped: no pool's size counts them."""
    unresolved: frozenset[str] = frozenset()
    """Decisions with calls whose outcome is not known yet: their holds stay."""
    moving: frozenset[str] = frozenset()
    """Pods, by uid, that count as waiting though they still run, on a node that goes."""
    doubted: frozenset[str] = frozenset()
    """Nodes that are closed only for a notice which nobody confirms."""
    others: Mapping[str, str] = {}
    """Pools that another autoscaler is at, each with the evidence: nothing is bought or given back there."""
    gives: Mapping[str, str] = {}
    """Instances of those pools that go back all the same, by which."""
    lost_since: datetime | None = None
    """What the state was told from then on is gone, as after a restore."""

    def is_gone(self, pool: str, name: str) -> bool:
        """True for no node, nor one that boots, waits, was asked for or not made: of a pool that was read whole."""
        unread = any(one.name == pool and one.unread for one in self.pools)
        return (
            not unread
            and not any(name == node.name for node in self.view.nodes)
            and not self.is_asked_for(name, going=True)
        )

    def is_asked_for(self, name: str, *, going: bool) -> bool:
        """True for an instance that boots, waits, could not be made, or is there by the name that it was asked for;
        ``going``: also for one that its cloud is ending."""
        return any(
            name in pool.refused
            or any(name == b.instance and (going or not b.going) for b in (*pool.booting, *pool.queued))
            or any(name == asked.name for asked in pool.asked)
            for pool in self.pools
        )

    def stays(self, pool: str, instance: str) -> bool:
        """True where an instance is of a pool that another is at, and does not go back all the same."""
        return Others(self.others, self.gives).stays(pool, instance)


def look(deps: Deps, *, monitored: bool = False) -> Snapshot:
    """One read; ``monitored``: with what monitoring says. The time is taken first: nothing seen is older than it."""
    now = deps.state.now()
    flights = tuple(flight_log.in_flight(deps.state, deps.name))
    was = ledger.recall(deps.state, deps.name)
    view = deps.observe()
    told = deps.pools.describe()
    if any(pool.asked for pool in told):
        from pilotlight.flow.observe.asked_nodes import with_asked

        told = with_asked(told, was.memory, now)
        view = known_instances.in_their_pools(view, told)
    standing: tuple[Node, ...] = ()
    if any(pool.stops or pool.stopped for pool in told):
        view, standing = known_instances.without_stopped(view, told)
    there = {node.instance for node in view.nodes}
    since = now - timedelta(seconds=deps.policy.gpu_ready_deadline)
    entries = [entry for _, entry in flights]
    known = (as_remembered(pool, entries, view.nodes, was.memory, now, since) for pool in told)
    pools = tuple(_without(pool, there) for pool in known)
    if any(b.requested_at < since for pool in pools for b in pool.booting) or any(
        e.broken or e.vain_since for _, e in flights
    ):
        pools = known_instances.with_doubts(deps, pools, view.nodes)
    snapshot = Snapshot(
        view=view, pools=pools, memory=was.memory, was=was, flights=flights, now=now, going=standing
    )  # fmt: skip
    snapshot = _with_others(deps, _without_seen(without_going(deps, snapshot)))
    return _with_told(deps, snapshot) if monitored and snapshot.view.nodes else snapshot


def _with_told(deps: Deps, snapshot: Snapshot) -> Snapshot:
    from pilotlight.flow.observe.gpu_health import with_told

    return replace(snapshot, view=with_told(deps, snapshot.view))


def _with_others(deps: Deps, snapshot: Snapshot) -> Snapshot:
    """The look that knows of other autoscalers, where there is anything that one could have left."""
    view = snapshot.view
    rules = [pool.rules for pool in snapshot.pools if pool.rules]
    given = any(one.handed_back or one.closed or one.names_zone for one in rules)
    if not (view.nodes or view.scalers or given or deps.policy.gates):
        return snapshot
    found = others_at(deps.policy, view, snapshot.pools, snapshot.now)
    return replace(snapshot, others=found.left, gives=found.gives)


def basis(deps: Deps, snapshot: Snapshot, plan: Plan, money: Money) -> Basis:
    """The basis of a plan over this look. Equal facts have equal digests, in whatever order they were read."""
    nodes = [node.digest for node in snapshot.view.nodes]
    named = {buy.offering for buy in plan.buys} | {option.offering for group in plan.pods for option in group.rejected}
    return Basis(
        facts=digest((nodes, replace(snapshot.view, nodes=()), snapshot.pools, snapshot.memory)),
        policy=deps.policy.digest,
        prices=tuple(
            PriceUsed(offering=one.name, usd_per_hour=one.usd_per_hour, priced_at=one.priced_at)
            for one in deps.offerings
            if one.name in named
        ),
        budgets=tuple(
            BudgetSeen(meter=one.meter.key, limit=one.meter.limit, total=one.total) for one in money.balances
        ),
    )


def without_going(deps: Deps, snapshot: Snapshot) -> Snapshot:
    """The look without the nodes whose instance was given back, and with those open that are closed for a notice which
    nobody confirms: its pods wait for them, and nothing is bought. Reads nothing where no node is marked.
    """
    if not any(node.marked for node in snapshot.view.nodes):
        return snapshot
    found = tuple(node_marks.every(deps))
    doubted = node_marks.in_doubt(found)
    if doubted:
        nodes = tuple(replace(n, schedulable=True) if n.name in doubted else n for n in snapshot.view.nodes)
        snapshot = replace(snapshot, view=replace(snapshot.view, nodes=nodes), doubted=doubted)
    names = node_marks.released_nodes(found, snapshot.view.nodes, snapshot.now, ending_instances(snapshot.pools))
    if not names:
        return snapshot
    view = replace(snapshot.view, nodes=tuple(node for node in snapshot.view.nodes if node.name not in names))
    going = tuple(node for node in snapshot.view.nodes if node.name in names)
    return replace(snapshot, view=view, going=(*snapshot.going, *going))


def with_taken_nodes(deps: Deps, snapshot: Snapshot) -> Snapshot:
    """The look that remembers which idle nodes have a GPU pod by now, also where that is gone when one is settled."""
    idle = snapshot.memory.idle_since
    if not idle:
        return snapshot
    old = snapshot.now - GRAIN
    names = [node.name for node in snapshot.view.nodes if node.gpu_pods and idle.get(node.name, snapshot.now) < old]
    if not names:
        return snapshot
    memory = replace(snapshot.memory, idle_since={**idle, **dict.fromkeys(names, snapshot.now)})
    was = ledger.remember(
        deps.state, deps.name, snapshot.was, replace(snapshot.was.memory, idle_since=memory.idle_since)
    )
    return replace(snapshot, memory=memory, was=was)


GRAIN = timedelta(seconds=60)
"""A tick: what was noted so lately is not written again."""


def with_flights(deps: Deps, snapshot: Snapshot) -> Snapshot:
    """The look with what its memory knows of capacity in flight: once it is settled what was asked for."""
    if not snapshot.flights:
        return snapshot
    entries = [entry for _, entry in snapshot.flights]
    return replace(
        snapshot, memory=_with_flights(deps, snapshot.memory, entries, snapshot.view, snapshot.pools, snapshot.now)
    )


def with_due_jobs(snapshot: Snapshot) -> Snapshot:
    """The look that knows how far jobs with a deadline have come."""
    if not (any_due(snapshot.view) or snapshot.memory.due):
        return snapshot
    from pilotlight.decide.job_deadlines.job_progress import with_due

    memory = with_due(snapshot.memory, snapshot.view.nodes, snapshot.view.pending, snapshot.now)
    return replace(snapshot, memory=memory)


def with_promised_jobs(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """The look that remembers the deadlines that are promised to pods which wait."""
    if not any(pod.shape.due for pod in snapshot.view.pending):
        return snapshot
    from pilotlight.decide.job_deadlines.job_progress import taken_on

    refused = {found.uid for found in plan.findings if found.code in ("deadline", "bad-deadline")}
    promised = [pod for pod in snapshot.view.pending if pod.shape.due is not None and pod.uid not in refused]
    return replace(snapshot, memory=taken_on(snapshot.memory, promised, snapshot.now))


_DUE = attrgetter("has_due_job")


def any_due(view: ClusterView) -> bool:
    """True where a pod on a node has a deadline."""
    return any(map(_DUE, view.nodes))


def ending_instances(pools: Iterable[PoolState]) -> frozenset[str]:
    """Instances that their cloud is ending, however long that takes it."""
    return frozenset(b.instance for pool in pools for b in pool.booting if b.going is not None)


def _without_seen(snapshot: Snapshot) -> Snapshot:
    """The look in which what its cloud is ending is a node, or, once it was given back, costs beside them."""
    seen = {node.instance for node in snapshot.view.nodes}
    if seen.isdisjoint(ending_instances(snapshot.pools)):
        return snapshot
    return replace(snapshot, pools=tuple(_with_ending(pool, seen) for pool in snapshot.pools))


def _with_ending(pool: PoolState, nodes: set[str]) -> PoolState:
    leaves = (b.instance for b in pool.booting if b.going is not None and b.instance in nodes)
    return replace(_without(pool, nodes, ending=True), leaves=(*pool.leaves, *leaves))


def _without(pool: PoolState, nodes: set[str], *, ending: bool = False) -> PoolState:
    """The pool with what is really on its way: a cloud does not know which of its instances have become nodes."""
    booting = tuple(b for b in pool.booting if b.instance not in nodes or (b.going is not None and not ending))
    return pool if len(booting) == len(pool.booting) else replace(pool, booting=booting)


def _with_flights(
    deps: Deps,
    memory: Memory,
    entries: list[InFlight],
    view: ClusterView,
    pools: tuple[PoolState, ...],
    now: datetime,
) -> Memory:
    """The memory with what still boots, what came and is not used yet, and what a gang misses past its deadline."""
    patience = timedelta(seconds=deps.policy.gpu_ready_deadline)
    booting = ledger.still_booting(entries, view.nodes, pools)
    late = [entry.broken or now > _asked_at(entry, view.nodes, pools, now) + patience for entry in entries]
    live = tuple(e for e, left, over in zip(entries, booting, late, strict=True) if left and not over)
    waiting = {p.uid for p in view.pending}
    came = tuple(
        e
        for e, left, over in zip(entries, booting, late, strict=True)
        if not (left or over)
        and not waiting.isdisjoint(e.demands)
        and ready_for_s(e, view.nodes, memory, now) is not None
    )
    overdue = tuple(e for e, over in zip(entries, late, strict=True) if over and e.gangs)
    return replace(memory, in_flight=live, came=came, overdue=overdue)


def _asked_at(entry: InFlight, nodes: Sequence[Node], pools: Sequence[PoolState], now: datetime) -> datetime:
    """When an entry's nodes were asked for; of a pool with a queue, when they left that, as far as it is seen: what may
    wait in one that cannot be read was asked for just now."""
    pool = next((p for p in pools if p.name == entry.pool and p.rules and p.rules.queues), None)
    if pool is None:
        return entry.requested_at
    begun = [b.requested_at for b in pool.booting] + [n.created_at for n in nodes if n.pool == entry.pool]
    return now if pool.queued or pool.unread else max([entry.requested_at, *begun])


def ready_for_s(entry: InFlight, nodes: Sequence[Node], memory: Memory, now: datetime) -> Seconds | None:
    """Seconds for which what the entry asked for is known to be ready without work; None when nothing is.

    Its own nodes are the oldest since. The last of them counts, so that each keeps its grace; where all of them work,
    the first of the others.
    """
    later = (node for node in nodes if node.pool == entry.pool and node.created_at >= entry.requested_at - CLOUD_SKEW)
    ranked = sorted(later, key=lambda node: (node.created_at, node.name))
    idle = [n for n in ranked if n.ready and n.schedulable and not n.gpu_pods]
    own = [now - memory.idle_since.get(n.name, now) for n in idle if n in ranked[: entry.count]]
    others = [now - memory.idle_since.get(n.name, now) for n in idle]
    return (min(own) if own else max(others)).total_seconds() if idle else None


def any_may_come(snapshot: Snapshot, gangs: Sequence[str]) -> bool:
    """True where some node that was asked for for these gangs is on its way, has come, or may have: else all was
    refused, and nobody waits for the rest."""
    return any(_may_come(snapshot, entry) for _, entry in snapshot.flights if not set(entry.gangs).isdisjoint(gangs))


def _may_come(snapshot: Snapshot, entry: InFlight) -> bool:
    if any((one.decision, one.offering) == (entry.decision, entry.offering) for one in snapshot.memory.in_flight):
        return True
    pools = [pool for pool in snapshot.pools if pool.name == entry.pool]
    begun = [node.created_at for node in (*snapshot.view.nodes, *snapshot.going) if node.pool == entry.pool]
    begun += [one.requested_at for pool in pools for one in (*pool.booting, *pool.queued)]
    return any(pool.unread for pool in pools) or any(at >= entry.requested_at - CLOUD_SKEW for at in begun)
