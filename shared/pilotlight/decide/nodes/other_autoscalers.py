"""Other scalers of a pool, by evidence alone: then nothing is bought or given back there. Tags alone prove nothing.

cluster-autoscaler: its status or its Lease, while fresh. Karpenter and EKS Auto Mode: nodes of theirs in the pool. A
pool that was handed back is another's by our own tag. One that its cloud tells closed is bought from no more; what its
rules name goes back all the same, or a stock-out would be bought hours later and an idle node would stay for ever.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from pilotlight.facts.capacity import ClusterView, Scaler
from pilotlight.facts.labels import AUTO_MODE, KARPENTER_NODE_POOL
from pilotlight.facts.nodes.instance_groups import pool_of_group
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import Policy

FRESH = timedelta(minutes=5)
"""Evidence that is older proves nothing: cluster-autoscaler writes its status every ten seconds."""
HAND_OVER = 'see "Hand a pool over" of pilotlight show docs/guides/eks.md'


def other_autoscalers(
    policy: Policy, view: ClusterView, pools: Sequence[PoolState], now: datetime
) -> Mapping[str, str]:
    """Why each pool that another scales is left alone, in one line with how it is handed over."""
    given = dict(_given_back(policy, pools))
    gated = {pool: f"Karpenter's NodePool {name} buys here, within budgets" for pool, name in policy.gates.items()}
    scaled = dict(_by_autoscaler(policy, view.scalers, pools, now))
    for state in pools:
        if state.rules and state.rules.queues:  # The autoscaler answers what we ask of it.
            scaled.pop(state.name, None)
    return {**dict(_by_nodes(policy, view)), **scaled, **given, **gated}


class Others(NamedTuple):
    """Why each pool is left alone; and by instance the pool of those that go back from one all the same."""

    left: Mapping[str, str] = {}
    gives: Mapping[str, str] = {}

    def stays(self, pool: str, instance: str) -> bool:
        """True where an instance is of such a pool and does not go back all the same."""
        return pool in self.left and self.gives.get(instance) != pool


def others_at(policy: Policy, view: ClusterView, pools: Sequence[PoolState], now: datetime) -> Others:
    """Pools that are left alone, with what goes back where none but their cloud keeps them from being bought from."""
    why = other_autoscalers(policy, view, pools, now)
    return Others(why, {name: state.name for state in pools for name in _gives(policy, state)})


def _gives(policy: Policy, state: PoolState) -> Sequence[str]:
    """Instances that go back from a pool which its cloud alone keeps from being bought from, or which Karpenter buys
    for: those are ours from before, and it ends none of them."""
    if state.rules is None or state.rules.handed_back:
        return ()
    return state.rules.gives if state.name in policy.gates or _closed(policy, state) else ()


def _given_back(policy: Policy, pools: Sequence[PoolState]) -> Iterator[tuple[str, str]]:
    for state in pools:
        if state.rules and state.rules.handed_back:
            again = f"pilotlight takeover --pool {state.name} takes it again"
            yield state.name, f"it was handed back at {state.rules.handed_back[:20]}: {again}"
        elif why := _closed(policy, state):
            yield state.name, why


def _closed(policy: Policy, state: PoolState) -> str:
    if state.rules and not state.rules.closed and state.rules.names_zone and not policy.pools[state.name].zones:
        zones = ", ".join(state.rules.zones)
        return f"its node pool has zones {zones}: name those to buy in, in pools.{state.name}.zones"
    return state.rules.closed if state.rules else ""


def _by_nodes(policy: Policy, view: ClusterView) -> Iterator[tuple[str, str]]:
    for node in view.nodes:
        labels = node.labels
        if KARPENTER_NODE_POOL not in labels and AUTO_MODE[0] not in labels:
            continue
        auto, owner = labels.get(AUTO_MODE[0]) == AUTO_MODE[1], labels.get(KARPENTER_NODE_POOL)
        if not (auto or owner) or node.pool not in policy.pools:
            continue
        if auto:
            yield node.pool, f"EKS Auto Mode made its node {node.name}: give the pool a label that no node of it has"
        else:
            why = f"Karpenter's NodePool {owner} made its node {node.name}: give one of them other labels"
            yield node.pool, f"{why}, or make the NodePool static"


def _by_autoscaler(
    policy: Policy, scalers: Sequence[Scaler], pools: Sequence[PoolState], now: datetime
) -> Iterator[tuple[str, str]]:
    alive = [scaler for scaler in scalers if now - scaler.seen_at < FRESH]
    told = [scaler for scaler in alive if scaler.groups]
    called = {pool.cluster_pool or name: name for name, pool in policy.pools.items()}
    of_group = {state.rules.group: state.name for state in pools if state.rules}
    for scaler in told:
        for group in scaler.groups:
            pool = of_group.get(group) or called.get(pool_of_group(group, called))
            if pool:
                yield pool, _line(scaler, f"scales its group {group}")
    for scaler in alive if not told else ():
        for state in pools:
            if state.rules and state.rules.claimed:
                yield state.name, _line(scaler, f"finds its group {state.rules.group} by a tag")


def _line(scaler: Scaler, what: str) -> str:
    return f"{scaler.name} was alive at {scaler.seen_at:%H:%M} UTC and {what}: {HAND_OVER}"
