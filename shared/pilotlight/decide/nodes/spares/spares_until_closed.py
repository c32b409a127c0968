"""Spares that keep pods off dear nodes until those are closed.

A node takes pods from the moment it is ready, and is closed to those that belong elsewhere a reaction later. A pod
that waits just then for a node of its own starts on it, and keeps it lit for as long as it runs. So while a node with
room to spare is on its way, the pools where such pods belong have as many spares as are likely to be asked for within
a lead time, if that chance x the dear node's price x half a run's length is more than such a spare costs meanwhile.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from pilotlight.decide.demand.run_lengths import expected_run_s
from pilotlight.decide.fit.fit import Bin
from pilotlight.decide.nodes.spares.demand_rates import lead_s
from pilotlight.decide.nodes.spares.nodes_ahead import with_more_warm
from pilotlight.decide.nodes.spares.spare_nodes import Spares
from pilotlight.decide.place.provision import Provisioner
from pilotlight.facts.capacity import Offering
from pilotlight.facts.cluster_view import ClusterView
from pilotlight.facts.demand.worker_queues import NodesAhead
from pilotlight.facts.memory import Memory
from pilotlight.facts.workload import PodShape
from pilotlight.units import HOUR, cents, human

if TYPE_CHECKING:
    from pilotlight.decide.place.node_closing import Homes
    from pilotlight.decide.work import Work

LIKELY = 0.05
"""What is asked for in fewer cases is not waited for: no more than twenty nodes are launched for one that is."""
MOST = 8
"""No more spares than so many."""
CLOSED_BY = timedelta(minutes=2)
"""A node that is open so long after it was ready will not be closed soon."""
WHOM = "pods that would start on a dear node before it is closed"


class Guards(NamedTuple):
    """Spares by pool: those that stay, and those of them that are bought because they come in time."""

    keep: dict[str, NodesAhead]
    buy: dict[str, NodesAhead]


def guards(
    run: Provisioner,
    view: ClusterView,
    offerings: Mapping[str, Offering],
    spares: Mapping[str, Spares],
    pools: Collection[str],
) -> Guards:
    """Guards of a look. ``pools`` are those whose nodes are closed, each with an offering; ``offerings`` and what pays,
    ``spares``, are by pool: where nothing is bought ahead for a pool, this is not either.
    """
    found = Guards({}, {})
    here = [*_booting(run.booting, pools), *_fresh(run, view, offerings, pools)]
    bought = [*_booting((b for _, p in sorted(run.purchases.items()) for b in p.bins), pools)]
    coming = [*here, *bought]
    if not coming or not spares or run.homes is None:
        return found
    for shape in _shapes(view):
        home = min((pool for pool in run.homes.pools_for(shape) or () if pool in spares), default="")
        for pool in _open_to(shape, run.homes, coming) if home else ():
            ahead = _ahead(run.memory, shape, spares[home], offerings[pool], run.now)
            _more(found.keep, home, ahead)
            if offerings[home].boot_s <= offerings[pool].boot_s and any(b.pool == pool for b in bought):
                _more(found.buy, home, ahead)
    return found


def guard_dear_nodes(work: "Work") -> None:
    """Keep and buy spares beyond the warm ones until dear nodes are closed."""
    policy, closing = work.policy, _to_be_closed(work)
    found = guards(work.run, work.view, work.relit, work.spares, closing)
    work.guards_kept, work.guards_bought = (
        {name: ahead for name, ahead in each.items() if ahead.nodes > policy.pools[name].warm} for each in found
    )


def keep_guards(work: "Work") -> None:
    """Keep as many warm as guard dear nodes."""
    work.policy = with_more_warm(work.policy, work.guards_kept)


def _open_to(shape: PodShape, homes: "Homes", coming: Iterable[Bin]) -> list[str]:
    """The pools of nodes that come, on which a shape would start though it belongs elsewhere."""
    strange = homes.stray_in(shape)
    return sorted({b.pool for b in coming if b.pool in strange and b.room_for(shape)})


def _to_be_closed(work: "Work") -> set[str]:
    """The pools whose nodes are closed when they come: those that are grown now, and that others stray into."""
    memory, by_pool = work.memory, work.by_pool
    able = {p for p in work.steered if p in memory.strays and p not in work.look.unsettled and p in by_pool}
    return {pool for pool in able if memory.live_backoff(by_pool[pool].name, work.now) is None}


def _booting(bins: Iterable[Bin], pools: Collection[str]) -> Iterator[Bin]:
    """Nodes on their way that pods wait for."""
    return (b for b in bins if b.pool in pools and b.taken and not b.full)


def _fresh(
    run: Provisioner, view: ClusterView, offerings: Mapping[str, Offering], pools: Collection[str]
) -> Iterator[Bin]:
    """Nodes that are ready since shortly and will be closed."""
    bins = {b.where: b for b in run.ready if b.pool in pools}
    for node in view.nodes if bins else ():
        bin_ = bins.get(node.name)
        if bin_ is not None and not node.closed and not node.unserved and (node.gpu_pods or bin_.taken):
            booted = node.created_at + timedelta(seconds=offerings[node.pool].boot_s)
            if run.now - (node.ready_since or booted) <= CLOSED_BY:
                yield bin_


def _shapes(view: ClusterView) -> Iterable[PodShape]:
    """Of the pods here, in an order of their own."""
    running = [pod.shape for node in view.nodes for pod in node.gpu_pods if pod.shape is not None]
    found = {shape.key: shape for shape in (*running, *(pod.shape for pod in view.pending))}
    return [found[key] for key in sorted(found)]


def _ahead(memory: Memory, shape: PodShape, own: Spares, dear: Offering, now: datetime) -> NodesAhead | None:
    """So many spares that the last pays: the chance that it is asked for in a lead time, x what a stray costs."""
    run_s, hours = expected_run_s(memory, shape, now) / 2, lead_s(own.offering) / HOUR
    stray_usd = float(dear.usd_per_hour) * run_s / HOUR
    costs = float(own.offering.usd_per_hour) * max(lead_s(own.offering), dear.boot_s) / HOUR
    most, last = 0, 0.0
    for k in range(1, MOST + 1):
        rate = own.hits_per_hour(k)
        if rate is None:
            continue
        chance = 1 - math.exp(-rate * hours)
        if chance <= LIKELY or chance * stray_usd <= costs:
            break
        most, last = k, chance
    if not most:
        return None
    saves = f"{last:.0%} x {human(run_s)} x {cents(dear.usd_per_hour)}/h of {dear.pool}"
    return NodesAhead(nodes=most, whom=WHOM, why=f"{saves} > {cents(own.offering.usd_per_hour)}/h meanwhile")


def _more(found: dict[str, NodesAhead], pool: str, ahead: NodesAhead | None) -> None:
    if ahead is not None and (pool not in found or found[pool].nodes < ahead.nodes):
        found[pool] = ahead
