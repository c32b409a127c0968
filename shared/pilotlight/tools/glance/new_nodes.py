"""Usual time of new nodes until a pod works there, for people: each step apart, as far as it was learned."""

from collections.abc import Iterator, Mapping

import msgspec

from pilotlight.decide.offers.first_work import usual
from pilotlight.facts.nodes.first_work import FirstWork
from pilotlight.units import Seconds


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
