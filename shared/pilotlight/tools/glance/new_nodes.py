"""New nodes, for people: those that boot, and the usual time until a pod works there, as far as it was learned."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from pilotlight.decide.offers.first_work import usual
from pilotlight.facts.decisions import NodeVerdict, Plan
from pilotlight.facts.nodes.first_work import FirstWork
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.units import Seconds, UsdPerHour


def booting(plan: Plan, pools: Iterable[PoolState], prices: Mapping[str, UsdPerHour]) -> Iterator[NodeVerdict]:
    """Every instance that is paid for and not in the cluster yet, by ``prices`` of pools: no plan judges it."""
    judged = {name for node in plan.nodes for name in (node.node, node.instance)}
    for pool in pools:
        for one in pool.booting:
            if one.instance not in judged:
                yield NodeVerdict(
                    node=one.instance,
                    pool=pool.name,
                    instance=one.instance,
                    verdict="keep",
                    why=f"asked for at {one.requested_at:%H:%M:%S} UTC",
                    usd_per_hour=prices.get(pool.name),
                    registered=False,
                )


class NewNode(msgspec.Struct, frozen=True, kw_only=True):
    """Usual seconds of a pool's new node until a pod works there, step by step, as far as they were learned."""

    pool: str
    boot_s: Seconds | None
    plugin_s: Seconds | None
    pull_s: Seconds | None
    start_s: Seconds | None
    images: tuple[str, ...] = ()


def new_nodes(known: FirstWork, types: Mapping[str, str]) -> Iterator[NewNode]:
    """New nodes of each pool of which anything was learned; ``types`` are the instance types by pool."""
    for pool, instance_type in types.items():
        steps = usual(known, pool, instance_type)
        if steps.known:
            yield NewNode(
                pool=pool,
                boot_s=steps.boot,
                plugin_s=steps.plugin,
                pull_s=steps.pull,
                start_s=steps.start,
                images=steps.images,
            )
