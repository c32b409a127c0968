"""Where pods belong, which ready nodes are closed to those that belong elsewhere, and which are opened for whom.

Pods belong on the types that cost least a GPU for them. A node is closed by a NoSchedule taint of ours where pods were
seen that may use it and belong elsewhere. It is opened for a pod that waits, belongs there and fits: until it is bound,
``OPEN_S`` at most; whoever takes the room first has it. A pod for which nothing is bought opens whatever it fits, for
as long as it waits.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from pilotlight.decide.fit.fit import Bin, model_allowed, pods_that_fit
from pilotlight.decide.offers.selection import Eligible, rank_candidates
from pilotlight.decide.offers.shortage import short_zones
from pilotlight.facts.capacity import Node
from pilotlight.facts.cluster_view import ClusterView
from pilotlight.facts.decisions import Plan
from pilotlight.facts.fit.matching import selects, untolerated_taint
from pilotlight.facts.labels import GPU_MODEL
from pilotlight.facts.limits.brakes import ALL, Brakes
from pilotlight.facts.memory import Memory
from pilotlight.facts.place.closed_nodes import Opening, PlacementTaints
from pilotlight.facts.place.pod_verdicts import NOT_HELPED
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import PodDemand, PodShape
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.decide.work import Work

MOST_LOST = 2
"""A pod for which others took the room so often is bought for."""

PoolNames = frozenset[str]


class Homes:
    """The pools that each shape belongs to. ``steered`` are pools whose nodes may be closed, ``closed`` the nodes that
    are. ``able`` tells what a shape may be bought.
    """

    def __init__(
        self,
        policy: Policy,
        able: Callable[[PodShape], Eligible],
        steered: Collection[str],
        closed: Collection[str],
    ) -> None:
        self._policy, self._ask, self._steered, self.closed = policy, able, steered, closed
        self._eligible: dict[str, Eligible] = {}
        self._known: dict[str, PoolNames | None] = {}

    def pools_for(self, shape: PodShape) -> PoolNames | None:
        """The pools whose types are the cheapest a GPU for a shape; None: any it may use.

        They are those of the type that one such pod would be bought, and what costs no more: of the same model, or not
        to be had now. A type that is sold in several zones and short in all of them counts: it is back soon.
        Where nothing can be bought for it, it belongs wherever it fits.
        """
        if shape.key not in self._known:
            self._known[shape.key] = self._found(shape)
        return self._known[shape.key]

    def stray_in(self, shape: PodShape) -> set[str]:
        """The pools that a shape may use and does not belong to."""
        homes = self.pools_for(shape)
        if homes is None:
            return set()
        able = self._able(shape)
        pools = {c.offering.pool for c in (*able.candidates, *(c for c, _, _ in able.held))}
        return pools - homes

    def welcome(self, bin_: Bin, homes: PoolNames | None, *, lost: bool) -> bool:
        """True where a pod may be planned on a node: of its homes, or open to all.

        Once it has ``lost`` too often it is not sent to a closed one again.
        """
        if homes is None:
            return True
        if bin_.kind == "ready":
            return bin_.where not in self.closed or (bin_.pool in homes and not lost)
        return bin_.pool in homes or bin_.pool not in self._steered

    def shuts(self, bin_: Bin) -> bool:
        """True for a node that is closed now."""
        return bin_.kind == "ready" and bin_.where in self.closed

    def strange(self, shape: PodShape, pool: str) -> bool:
        """True for a shape that belongs elsewhere than in a pool."""
        homes = self.pools_for(shape)
        return homes is not None and pool not in homes

    def _able(self, shape: PodShape) -> Eligible:
        if shape.key not in self._eligible:
            self._eligible[shape.key] = self._ask(shape)
        return self._eligible[shape.key]

    def _found(self, shape: PodShape) -> PoolNames | None:
        able = self._able(shape)
        order = rank_candidates(able, shape, 1, self._policy)
        first = order[0][1] if order else None
        short = short_zones(able) if able.held else ()
        cheapest = min(short, key=lambda c: (c.rate, c.offering.name), default=first)
        if first is None or (cheapest is not None and cheapest.rate < first.rate):
            first = cheapest
        if first is None:
            return None
        most, model = first.rate, first.offering.gpu_model
        own = {c.offering.pool for c in able.candidates if c.offering.gpu_model == model and c.rate <= most}
        return frozenset(own | {c.offering.pool for c, _, _ in able.held if c.rate <= most})


OPEN_S: Seconds = 15.0
"""The scheduler binds a pod to a node that was opened for it within this."""

STRAY = timedelta(days=7)
"""A pool's nodes are closed for so long after a pod was seen that may use them and belongs elsewhere."""
SEEN = timedelta(hours=1)
"""A pool of which that is known so freshly is not asked about again."""
STARTED = timedelta(minutes=5)
"""Pods that started within this are looked at, beside those that wait."""


def steered_pools(view: ClusterView, policy: Policy, brakes: Brakes) -> set[str]:
    """The pools whose nodes may be closed: in ``act``, not paused, as one that another scales is too.

    None where nobody would open them again in our place.
    """
    if policy.placement != "taint" or ALL in brakes.paused or not view.watched:
        return set()
    modes = {name: brakes.modes.get(name) or rules.acts_as or "act" for name, rules in policy.pools.items()}
    return {name for name, mode in modes.items() if mode == "act"} - set(brakes.paused)


def tainted_nodes(nodes: Collection[Node]) -> set[str]:
    """The nodes that carry our placement taint."""
    return {node.name for node in nodes if node.closed}


def count_openings(memory: Memory, view: ClusterView, now: datetime) -> Memory:
    """The memory with openings that are over taken off, and those that others took counted by pod."""
    nodes = {node.name: node for node in view.nodes}
    waiting = {pod.uid: pod for pod in view.pending}
    lost = {uid: times for uid, times in memory.lost.items() if uid in waiting}
    openings: dict[str, Opening] = {}
    for name, opening in memory.openings.items():
        here = [waiting[uid] for uid in opening.pods if uid in waiting]
        failed = [pod for pod in here if _failed(opening, nodes.get(name), pod, now)]
        for pod in failed:
            lost[pod.uid] = lost.get(pod.uid, 0) + 1
        if len(failed) < len(here):
            openings[name] = opening
    return msgspec.structs.replace(memory, openings=openings, lost=lost)


def strays(
    homes: Homes, view: ClusterView, memory: Memory, pools: Collection[str], now: datetime
) -> dict[str, datetime]:
    """By pool, when a pod was last seen that may run there and belongs elsewhere."""
    unsure = {pool for pool in pools if pool not in memory.strays or now - memory.strays[pool] > SEEN}
    found = {pool: at for pool, at in memory.strays.items() if now - at <= STRAY}
    if unsure:
        for shape in {shape.key: shape for shape in _lately(view, now)}.values():
            found |= dict.fromkeys(homes.stray_in(shape) & unsure, now)
    return found


def placement(
    view: ClusterView, plan: Plan, pools: Collection[str], seen: Mapping[str, datetime], memory: Memory, now: datetime
) -> PlacementTaints:
    """Doors of a look, opened and closed. ``plan`` says who fits where, ``pools`` are steered, ``seen`` the strays."""
    shut, closed = {pool for pool in pools if pool in seen}, tainted_nodes(view.nodes)
    if not shut and not closed:
        return PlacementTaints(strays=dict(seen))
    doors = {node.name for node in view.nodes if node.pool in shut and not node.unserved}
    openings = {name: o for name, o in _openings(view, plan, memory, now).items() if name in doors}
    barred = doors - openings.keys()
    able = {node.name for node in view.nodes if node.ready and node.schedulable}
    close, open_ = sorted(barred & able - closed), sorted(closed - barred)
    return PlacementTaints(close=tuple(close), open=tuple(open_), openings=openings, strays=dict(seen))


def steer(work: "Work") -> None:
    """Keep nodes of the pools that are steered for pods that belong there."""
    work.steered = steered_pools(work.view, work.policy, work.look.brakes)


def place_taints(work: "Work") -> None:
    """Open and close nodes by the plan; pods that stray are looked for where nodes are steered."""
    homes, view, memory, shut, now = work.run.homes, work.view, work.memory, work.steered, work.now
    seen = strays(homes, view, memory, shut, now) if homes is not None else memory.strays
    placed = placement(view, work.plan, shut, seen, memory, now)
    if placed != work.plan.placement:
        work.plan = msgspec.structs.replace(work.plan, placement=placed)


def _openings(view: ClusterView, plan: Plan, memory: Memory, now: datetime) -> dict[str, Opening]:
    """By node, whom it is to be open for: pods planned on it, and pods that nothing is bought for."""
    pods = {pod.uid: pod for pod in view.pending}
    broken = {
        gang
        for group in plan.pods
        if group.verdict != "fits"
        for uid in group.uids
        if uid in pods and (gang := pods[uid].shape.gang)
    }
    planned: dict[str, list[str]] = {}
    for group in plan.pods:
        if group.verdict == "fits":
            here = [uid for uid in group.uids if uid in pods and pods[uid].shape.gang not in broken]
            planned.setdefault(group.where, []).extend(here)
    out = {name: _opening(tuple(uids), memory.openings.get(name), now) for name, uids in planned.items() if uids}
    return out | _for_the_unhelped(view, plan, pods)


def _opening(uids: tuple[str, ...], was: Opening | None, now: datetime) -> Opening:
    """For the same pods it goes on until it was to end; for others it begins anew."""
    if was is not None and was.until is not None and was.until > now and set(uids) <= set(was.pods):
        return Opening(pods=uids, until=was.until)
    return Opening(pods=uids, until=now + timedelta(seconds=OPEN_S))


def _for_the_unhelped(view: ClusterView, plan: Plan, pods: Mapping[str, PodDemand]) -> dict[str, Opening]:
    """Nodes that pods fit for which nothing is bought: open to them as long as they wait. Pods without GPUs too.

    Not to those that wait for a zone, because a dearer node would cost more than their waiting.
    """
    left = (group for group in plan.pods if group.verdict in NOT_HELPED and group.code != "zone")
    unhelped = [pods[uid] for group in left for uid in group.uids if uid in pods]
    by_shape = {pod.shape.key: pod for pod in (*view.others, *reversed(unhelped))}
    if not by_shape:
        return {}
    return {
        node.name: Opening(pods=(pod.uid,))
        for node in view.nodes
        for pod in by_shape.values()
        if node.ready and _fits(node, pod.shape)
    }


def _fits(node: Node, shape: PodShape) -> bool:
    """True where the scheduler would bind such a pod to a node, our placement taint ignored."""
    return (
        bool(pods_that_fit(shape, node.resource, node.devices, node.slices, node.free))
        and selects(node.labels, shape.terms)
        and untolerated_taint(node.taints, shape.tolerations) is None
        and model_allowed(shape, node.labels.get(GPU_MODEL, ""))
    )


def _failed(opening: Opening, node: Node | None, pod: PodDemand, now: datetime) -> bool:
    """True where an opening is over and its pod still waits. One without an end is nobody's to lose."""
    if opening.until is None:
        return False
    return now >= opening.until or node is None or not _fits(node, pod.shape)


def _lately(view: ClusterView, now: datetime) -> Iterator[PodShape]:
    """The shapes of pods that wait or started lately."""
    yield from (pod.shape for pod in view.pending)
    since = now - STARTED
    for node in [node for node in view.nodes if node.last_start >= since]:
        for pod in node.gpu_pods:
            if pod.shape is not None and (pod.started_at is None or pod.started_at >= since):
                yield pod.shape
