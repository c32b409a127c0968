"""Spares that keep pods off dear nodes until those are closed.

A node takes pods from the moment it is ready, and is closed to those that belong elsewhere a reaction later. A pod
that waits just then for a node of its own starts on it, and keeps it lit for as long as it runs. So while a node with
room to spare is on its way, the pools where such pods belong have as many spares as are likely to be asked for within
a lead time, if that chance x the dear node's price x half a run's length is more than such a spare costs meanwhile.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from pilotlight.decide.capacity.demand_rates import Outlook, aged, lead_s, learned
from pilotlight.decide.capacity.fit import Bin
from pilotlight.decide.capacity.placement import Homes
from pilotlight.decide.capacity.provision import Provisioner
from pilotlight.decide.capacity.run_lengths import expected_run_s
from pilotlight.facts.capacity import ClusterView, Offering
from pilotlight.facts.memory import Memory
from pilotlight.facts.queues import NodesAhead
from pilotlight.facts.workload import PodShape
from pilotlight.units import HOUR, clock_seconds

LIKELY = 0.05
"""What is asked for in fewer cases is not waited for: no more than twenty nodes are launched for one that is."""
MOST = 8
"""No more spares than so many."""


class Guards(NamedTuple):
    """Spares by pool: those that stay, and those of them that are bought because they come in time."""

    keep: dict[str, NodesAhead]
    buy: dict[str, NodesAhead]


def guards(
    run: Provisioner,
    view: ClusterView,
    memory: Memory,
    offerings: Mapping[str, Offering],
    pools: Collection[str],
    now: datetime,
) -> Guards:
    """What a look does. ``pools`` are those whose nodes are closed, ``offerings`` are by pool."""
    found = Guards({}, {})
    coming = dict.fromkeys(_with_room(run.booting, pools), False)
    coming |= {n.pool: False for n in view.nodes if n.pool in pools and n.ready and not n.closed and n.gpu_pods}
    coming |= dict.fromkeys(_with_room((b for p in run.purchases.values() for b in p.bins), pools), True)
    coming = {pool: new for pool, new in coming.items() if pool in offerings}
    if not coming or run.homes is None:
        return found
    for shape, home in _homes(run.homes, _shapes(view), memory, offerings):
        for pool in coming.keys() & run.homes.stray_in(shape) - {home}:
            count = _worth(memory, shape, offerings[home], offerings[pool], now)
            if not count:
                continue
            ahead = NodesAhead(nodes=count, whom="pods that would start on a node before it is closed", why=pool)
            _more(found.keep, home, ahead)
            if coming[pool] and offerings[home].boot_s <= offerings[pool].boot_s:
                _more(found.buy, home, ahead)
    return found


def _with_room(bins: Iterable[Bin], pools: Collection[str]) -> Iterator[str]:
    """The pools of nodes on their way that pods wait for and that have GPUs left beside them."""
    return (b.pool for b in bins if b.pool in pools and b.taken and not b.full and any(b.devices))


def _shapes(view: ClusterView) -> Iterable[PodShape]:
    running = [pod.shape for node in view.nodes for pod in node.gpu_pods if pod.shape is not None]
    return {shape.key: shape for shape in (*running, *(pod.shape for pod in view.pending))}.values()


def _homes(
    homes: Homes, shapes: Iterable[PodShape], memory: Memory, offerings: Mapping[str, Offering]
) -> Iterator[tuple[PodShape, str]]:
    """Each shape with the first of the pools where it belongs, if that was asked for often enough to be judged."""
    for shape in shapes:
        home = min(homes.of(shape) or ("",))
        if home in offerings and learned(memory.hits.get(home)):
            yield shape, home


def _worth(memory: Memory, shape: PodShape, own: Offering, dear: Offering, now: datetime) -> int:
    """How many spares pay: the chance that the k-th is asked for in a lead time, x what a stray costs."""
    outlook, hours = Outlook(aged(memory.hits[own.pool], clock_seconds(now))), lead_s(own) / HOUR
    stray_usd = float(dear.usd_per_hour) * expected_run_s(memory, shape, now) / HOUR / 2
    least = max(LIKELY, float(own.usd_per_hour) * hours / stray_usd) if stray_usd else 1.0
    for k in range(1, MOST + 1):
        rate = outlook.hits_per_hour(k)
        if rate is not None and 1 - math.exp(-rate * hours) <= least:
            return k - 1
    return MOST


def _more(found: dict[str, NodesAhead], pool: str, ahead: NodesAhead) -> None:
    if pool not in found or found[pool].nodes < ahead.nodes:
        found[pool] = ahead
