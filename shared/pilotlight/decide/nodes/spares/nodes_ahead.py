"""Nodes that a pool keeps warm beyond its policy: for workers of queues, and for pods that would stray otherwise."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pilotlight.facts.demand.worker_queues import NodesAhead
from pilotlight.facts.policy import Policy

if TYPE_CHECKING:
    from pilotlight.decide.work import Work


def keep_nodes_ahead(work: "Work") -> None:
    """Keep as many warm as queues will ask for."""
    work.policy = with_more_warm(work.policy, work.look.ahead)


def with_more_warm(policy: Policy, ahead: Mapping[str, NodesAhead]) -> Policy:
    """The policy with so many nodes warm in each pool at least, no more than it may have."""
    pools = dict(policy.pools)
    for name, asked in ahead.items():
        pool = pools[name]
        pools[name] = replace(pool, warm=max(pool.warm, min(asked.nodes, pool.max)))
    return replace(policy, pools=pools)
