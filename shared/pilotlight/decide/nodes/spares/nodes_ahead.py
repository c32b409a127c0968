"""Nodes that a pool keeps warm beyond its policy, for workers of queues."""

from msgspec.structs import replace

from pilotlight.decide.work import Work


def keep_nodes_ahead(work: Work) -> None:
    """Keep as many warm as queues will ask for, no more than a pool may have."""
    pools = dict(work.policy.pools)
    for name, asked in work.look.ahead.items():
        pool = pools[name]
        pools[name] = replace(pool, warm=max(pool.warm, min(asked.nodes, pool.max)))
    work.policy = replace(work.policy, pools=pools)
