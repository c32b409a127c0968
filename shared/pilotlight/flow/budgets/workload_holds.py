"""Holds for queued work whose nodes another makes, or another's budget holds: from before it is let in until it ends.

Each is a hold of a node of the pool that it would be bought for, by the Workload's turn. A node of that pool that is
seen takes it over, where nobody holds for it or its owner's pods are on it, and it is settled as that node's. One that
has no node yet ends with its Workload, or after the longest run that this names: where nodes of its pool are seen they
carry the cost, else it is charged by the clock.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from pilotlight.decide.money.budget_limits import most
from pilotlight.decide.money.holds import OF_WORKLOAD, Lit, of_workload, workload_ends
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.money.budgets import Hold, Terms
from pilotlight.facts.workload import PodDemand, Reserving
from pilotlight.flow.budgets import budget_accounts, budget_holds
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.flow.records import brake_records
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.state_schema.table import Kept
from pilotlight.units import cents


class WorkloadHolds(msgspec.Struct, frozen=True, kw_only=True):
    """Workloads' holds after a look: ``over`` ended now, those of ``decisions`` stay and are to end at ``due``."""

    over: frozenset[str]
    decisions: frozenset[str]
    due: tuple[datetime, ...]


def makers(deps: Deps, snapshot: Snapshot) -> Mapping[str, str]:
    """The pools whose nodes another makes, and who: what another autoscaler scales, and what we only advise on.

    A pool that a person has paused is nobody's: its work waits.
    """
    told = {
        pool: f"nothing is bought here: the mode of {pool} is {mode}"
        for pool in deps.policy.pools
        if (mode := deps.mode_of(pool)) in ("observe", "advise")
    }
    found = {**told, **snapshot.others}
    return {pool: why for pool, why in found.items() if not brake_records.pause_reason(deps.state, deps.name, pool)}


def hold(deps: Deps, turn: str, nodes: tuple[Terms, ...], now: datetime) -> str:
    """Hold what these nodes may cost, all or nothing: the refusal, or empty. Again is once."""
    return budget_holds.reserve(deps, f"{OF_WORKLOAD}{turn}", 0, nodes, now)


def held_pools(deps: Deps, turn: str) -> set[str]:
    """The pools of nodes that a Workload's dollars are held for: by a look that could not tell Kueue."""
    found = HOLD.scan(deps.state, f"{deps.name}/{OF_WORKLOAD}{turn}.")
    return {entry.value.terms.pool for entry in found if entry.value.ended_at is None}


def held_instances(deps: Deps) -> dict[str, Terms]:
    """The terms on which nodes are held for, by instance."""
    holds = (entry.value for entry in budget_accounts.every_hold(deps))
    return {hold.instance: hold.terms for hold in holds if hold.instance and hold.ended_at is None}


def describe_holds(nodes: tuple[Terms, ...]) -> str:
    """The dollars and nodes that are held, as people read them."""
    pools = ", ".join(dict.fromkeys(node.pool for node in nodes))
    total = cents(sum((most(node) for node in nodes), start=0 * nodes[0].usd_per_hour))
    return f"{total} for {len(nodes)} node{'s' if len(nodes) > 1 else ''} of {pools}"


def keep(deps: Deps, snapshot: Snapshot, known: Mapping[str, Kept[Hold]], lit: Iterable[Lit]) -> WorkloadHolds:
    """End those whose Workload is over, and say which stay."""
    alive = {f"{OF_WORKLOAD}{work.turn}" for work in snapshot.view.reserving}
    seen = {one.pool for one in lit}
    over: set[str] = set()
    due: list[datetime] = []
    for entry in known.values():
        own = entry.value
        if not of_workload(own) or own.ended_at is not None:
            continue
        ends = workload_ends(own)
        if own.decision in alive and (ends is None or snapshot.now < ends):
            due += [ends] if ends else []
            continue
        at = min(snapshot.now, ends) if ends else snapshot.now
        budget_holds.end(deps, entry, at, void=own.terms.pool in seen)
        over.add(own.id)
    return WorkloadHolds(over=frozenset(over), decisions=frozenset(alive), due=tuple(due))


def without_held(deps: Deps, snapshot: Snapshot, holds: Iterable[Hold]) -> ClusterView:
    """The view without pods that wait for nodes which another makes and whose dollars are held: they are no demand."""
    waiting = {hold.decision: hold.terms.pool for hold in holds if of_workload(hold) and hold.ended_at is None}
    pools = makers(deps, snapshot)
    ours = [work for work in snapshot.view.reserving if waiting.get(f"{OF_WORKLOAD}{work.turn}") in pools]
    queued = {uid for work in snapshot.view.queued for each in work.sets for uid in each.uids}
    left = [pod for pod in snapshot.view.pending if pod.uid in queued or not any(_of(pod, work) for work in ours)]
    return msgspec.structs.replace(snapshot.view, pending=tuple(left))


def _of(pod: PodDemand, work: Reserving) -> bool:
    return bool(work.owner) and (pod.namespace, pod.owner) == (work.namespace, work.owner)
