"""Which running pod could give way to one that waits for money or capacity, and which of them consent to it.

A pod is weighed against every running pod whose place would hold it, by ``preemption.should_preempt``. In doubt nothing
gives way: what waits is taken at its long side (P90), what runs at its median, by runs of a trace, else by those that
the look remembers of their kind or class. Where few are known, both are the mean of their kind, as the purchase takes
it; one that waits, and names its longest run, is taken at that. Of a pod on the same node only GPUs are counted where
its CPU and memory are not known: then the node's whole room is taken.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import islice
from typing import NamedTuple

import msgspec

from pilotlight.decide.fit.fit import Allowed, Bin, of_node, pods_that_fit
from pilotlight.decide.interruption.drain_plan import moves_on
from pilotlight.decide.interruption.preemption import Contender, Queue, should_preempt
from pilotlight.decide.interruption.time_left import Foretells, Lengths, TimeLeft
from pilotlight.decide.money.economics import RESTORE_S
from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.decisions import Plan
from pilotlight.facts.memory import Memory
from pilotlight.facts.place.pod_verdicts import Code, PodGroup
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import PodDemand, PodShape
from pilotlight.units import MILLI_PER_GPU, Seconds, Usd, UsdPerHour

SHORT: tuple[Code, ...] = ("cap", "budget", "unpaid", "step", "quota", "backoff", "zone", "paid", "spot-share")
"""Why pods wait whom another could help: a cap, a budget, or capacity that cannot be had."""
PASSES: tuple[Code, ...] = ("step",)
"""Waits among these that the next look may end: for them nobody is preempted."""
MOST = 50
"""Running pods that are weighed for one that waits: those of the lowest priority, with the fewest GPUs."""
WEIGHED = 100
"""Pods that wait, each the first of its shape, that are weighed in a look: those of the highest priority."""


class GiveWay(msgspec.Struct, frozen=True, kw_only=True):
    """One pair: ``pod`` waits, ``running`` is on ``node``. What is not known is None, and then nothing gives way."""

    pod: str  # The pod that waits, as namespace/name.
    waits: str
    """Why it waits."""
    priority: int  # Of the pod that waits.
    needs: TimeLeft | None  # How long the waiting pod runs; None where nothing says so.
    running: str  # The pod that would give way, or those of its gang.
    node: str  # The node that it runs on.
    pool: str  # The node's pool.
    running_priority: int  # Of the pod that runs.
    ran_s: Seconds  # Seconds that it has run so far.
    left: TimeLeft | None  # How long it still runs; None where nothing says so.
    give_way: bool  # True where it should.
    why: str  # The verdict's reason, in words.
    waiting_usd: Usd | None = None  # Dollars where the pod waits on.
    preempting_usd: Usd | None = None  # Dollars where it takes the place at once.
    consents: bool = (
        False  # True where the class of the running pod says `may_move: [preempt]`, and it saves when asked.
    )
    pod_uid: str = ""  # Of the pod that waits.
    running_uid: str = ""  # Of the pod that runs.

    @property
    def acts(self) -> bool:
        """True where it is preempted, once its pool acts: it should give way, it consents, and the need is known."""
        return self.give_way and self.consents and self.needs is not None and self.needs.known


def short_of(plan: Plan) -> list[PodGroup]:
    """The pods that wait because of a cap, a budget or a shortage."""
    return [group for group in plan.pods if group.verdict in ("waiting", "refused") and group.code in SHORT]


def count_unweighed(plan: Plan) -> int:
    """Count of pods, each the first of its shape, that wait beyond those that are weighed."""
    return max(0, len(short_of(plan)) - WEIGHED)


def give_way(
    plan: Plan,
    view: ClusterView,
    memory: Memory,
    policy: Policy,
    now: datetime,
    known: Foretells | None = None,
    named: str = "",
    *,
    consenting: bool = False,
) -> list[GiveWay]:
    """For the first pod of each shape that waits so (``WEIGHED`` of them), or the one that is ``named`` (by namespace
    and name, name or uid), each running pod whose place would do; those that could give way first. ``consenting``:
    only those who consent and are of a lower priority, and only where the wait does not pass by itself.
    """
    pods = _short_pods(plan, view, named, consenting)
    if not pods:
        return []
    prices = {node.node: node.usd_per_hour for node in plan.nodes}
    lengths, allowed = Lengths(memory, known, now), Allowed()
    places = sorted(
        _places(view.nodes, prices, lengths), key=lambda one: (one.priority, one.gpus, one.name, one.node.name)
    )
    offered = [place for place in places if not consenting or _place_consents(place, policy)]
    if not offered:
        return []
    line, found = sorted(pod.shape.priority for pod in view.pending), []
    for group, pod in pods:
        below = pod.shape.priority if consenting else None
        able = list(islice(_holding(offered, pod.shape, allowed, below), MOST))
        if not able:
            continue
        needs, turns = lengths.of_waiting(pod), _Turns(places, line, pod, allowed)
        pairs = [_weighed(pod, group.why, place, needs, turns.queue_at(place), policy) for place in able]
        found += sorted(pairs, key=lambda one: (not one.give_way, one.preempting_usd or Decimal(0), one.running))
    return found


def _short_pods(plan: Plan, view: ClusterView, named: str, consenting: bool) -> list[tuple[PodGroup, PodDemand]]:
    """The first pod of each group that waits so; ``consenting``: but for waits that pass by themselves."""
    waiting = {pod.uid: pod for pod in view.pending if not named or named in (pod.full_name, pod.name, pod.uid)}
    found = [
        (group, pod)
        for group in short_of(plan)
        if not (consenting and group.code in PASSES)
        and (pod := next((waiting[uid] for uid in group.uids if uid in waiting), None)) is not None
    ]
    return found if len(found) <= WEIGHED else sorted(found, key=lambda one: -one[1].shape.priority)[:WEIGHED]


class _Place(NamedTuple):
    """A node that takes pods, one pod on it (or those of one gang), and what stops with them: the whole gang."""

    node: Node  # The node.
    room: Bin  # What is left of it for others.
    pods: tuple[BoundPod, ...]  # Those that would stop together.
    name: str  # The pod's, or its gang's.
    priority: int  # The highest of them.
    gpus: int  # GPUs that they hold.
    blocked: str  # Why they may not be evicted; empty where they may.
    ran_s: Seconds  # Seconds that they have run so far.
    left: TimeLeft | None  # How long they still run; None where nothing says so.
    unsaved_s: Seconds  # Seconds of work that would be done again.
    price: UsdPerHour | None  # Dollars an hour of the node; None where not known.
    devices: Sequence[int]  # Free thousandths of the node's devices once these are gone.
    slices: Mapping[str, int]  # Its free slices then.

    def holds(self, wanted: PodShape, allowed: Allowed) -> bool:
        """True where the node would hold a pod of the shape once these are gone."""
        node = self.node
        fits = pods_that_fit(wanted, node.resource, self.devices, self.slices, node.room or node.free) > 0
        return fits and allowed(wanted, self.room)


def _without(node: Node, pods: Iterable[BoundPod]) -> tuple[list[int], dict[str, int]]:
    """Free thousandths of a node's devices, and its free slices, once some of its pods are gone."""
    devices, slices = list(node.devices), dict(node.slices)
    for gpu in (pod.gpu for pod in pods if pod.gpu is not None):
        if gpu.resource != node.resource:
            slices[gpu.resource] = slices.get(gpu.resource, 0) + gpu.count
            continue
        for _ in range(gpu.count):
            taken = [n for n, free in enumerate(devices) if free + gpu.milli <= MILLI_PER_GPU]
            if taken:
                devices[min(taken, key=lambda n: devices[n])] += gpu.milli
    return devices, slices


def _places(nodes: Iterable[Node], prices: Mapping[str, UsdPerHour | None], lengths: Lengths) -> Iterator[_Place]:
    nodes = [node for node in nodes if node.ready and node.schedulable]
    gangs: dict[tuple[str, str], list[BoundPod]] = defaultdict(list)
    for pod in (pod for node in nodes for pod in node.gpu_pods):
        gangs[_together(pod)].append(pod)
    for node in nodes:
        room = of_node(node)
        here: dict[tuple[str, str], list[BoundPod]] = defaultdict(list)
        for pod in node.gpu_pods:
            here[_together(pod)].append(pod)
        for key, pods in here.items():
            yield _place(node, room, tuple(pods), gangs[key], prices.get(node.name), lengths)


def _together(pod: BoundPod) -> tuple[str, str]:
    return pod.namespace, f"gang {pod.gang}" if pod.gang else pod.uid


def _place(
    node: Node,
    room: Bin,
    pods: tuple[BoundPod, ...],
    together: Sequence[BoundPod],
    price: UsdPerHour | None,
    lengths: Lengths,
) -> _Place:
    left = [lengths.of_running(one) for one in pods]
    devices, slices = _without(node, pods)
    return _Place(
        node=node,
        room=room,
        pods=pods,
        name=f"{pods[0].namespace}/{pods[0].name}",
        priority=max(one.priority for one in together),
        gpus=sum(one.gpu.count for one in together if one.gpu is not None),
        blocked=next((one.blocks for one in together if one.blocks), ""),
        ran_s=max(lengths.ran_s(one) for one in pods),
        left=None if None in left else max((one for one in left if one is not None), key=lambda one: one.p50_s),
        unsaved_s=max(_unsaved_s(one, lengths) for one in together),
        price=price,
        devices=devices,
        slices=slices,
    )


def _holding(places: Iterable[_Place], shape: PodShape, allowed: Allowed, below: int | None) -> Iterator[_Place]:
    """Places that would hold a shape; with ``below``, those of a lower priority."""
    return (one for one in places if (below is None or one.priority < below) and one.holds(shape, allowed))


class _Turns:
    """When places that would hold a pod come free by themselves, and how many wait beside it for such ones."""

    def __init__(self, places: Iterable[_Place], line: Sequence[int], pod: PodDemand, allowed: Allowed) -> None:
        """``line``: priorities of all pods that wait, ascending."""
        timed = ((place, place.left) for place in places if place.left is not None)
        left = [left.p50_s for place, left in timed if place.holds(pod.shape, allowed)]
        self._next_s = min(left, default=float("inf"))
        self._each_s = sum(left) / len(left) ** 2 if left else 0.0  # Places come free one after another.
        self._line, self._own = line, pod.shape.priority

    def queue_at(self, place: _Place) -> Queue:
        """The queue for a pod in a place: pods of its priority, or a higher one, that wait already are before it."""
        ahead = len(self._line) - bisect_left(self._line, place.priority) - (self._own >= place.priority)
        return Queue(self._next_s, ahead * self._each_s)


def _weighed(
    pod: PodDemand, waits: str, place: _Place, needs: TimeLeft | None, queue: Queue, policy: Policy
) -> GiveWay:
    gives, why, waiting_usd, preempting_usd = _judged(pod, place, needs, queue, policy)
    return GiveWay(
        pod=pod.full_name,
        waits=waits,
        priority=pod.shape.priority,
        needs=needs,
        running=place.name,
        node=place.node.name,
        pool=place.node.pool,
        running_priority=place.priority,
        ran_s=place.ran_s,
        left=place.left,
        give_way=gives,
        why=why,
        waiting_usd=waiting_usd,
        preempting_usd=preempting_usd,
        consents=_place_consents(place, policy),
        pod_uid=pod.uid,
        running_uid=place.pods[0].uid,
    )


def _place_consents(place: _Place, policy: Policy) -> bool:
    return all(is_consenting(pod, policy) for pod in place.pods)


def is_consenting(pod: BoundPod, policy: Policy) -> bool:
    """True for a pod whose class consents to be preempted, and which saves when it is asked: no other is touched."""
    return pod.checkpoint_takes_s > 0 and moves_on(pod, policy, "preempt")


def _judged(
    pod: PodDemand, place: _Place, needs: TimeLeft | None, queue: Queue, policy: Policy
) -> tuple[bool, str, Usd | None, Usd | None]:
    """Verdict on a pair: yes or no, why, and dollars both ways where they are known."""
    if pod.shape.gang is not None:
        return (
            False,
            f"{pod.full_name} is one of a gang of {pod.shape.gang.size}: one place does not help it",
            None,
            None,
        )
    if place.blocked:
        return False, f"{place.name} may not be evicted: {place.blocked}", None, None
    if needs is None or place.left is None:
        who = pod.full_name if needs is None else place.name
        return False, f"nothing says when {who} ends: it serves, or is a notebook", None, None
    if place.price is None:
        return False, f"the price of {place.node.name} is not known", None, None
    shape, an_hour = pod.shape, place.price / max(1, place.node.gpus)
    waiting = Contender(
        pod.full_name, shape.priority, needs.p90_s, shape.gpu.count, Decimal(0), never_preempts=pod.never_preempts
    )
    unsaved_s = 0.0 if _place_consents(place, policy) else place.unsaved_s  # A pod that consents saves first.
    worth = policy.wait(place.pods[0].workload_class or "batch")  # type: ignore[arg-type]
    running = Contender(
        place.name, place.priority, place.left.p50_s, place.gpus, an_hour, unsaved_s, RESTORE_S, worth=worth
    )
    found = should_preempt(waiting, running, policy.wait(shape.workload_class), queue)
    return found.preempt, found.why, found.waiting_usd, found.preempting_usd


def _unsaved_s(pod: BoundPod, lengths: Lengths) -> Seconds:
    """Seconds that it would run again: since its last checkpoint, else up to one interval, else all that it ran."""
    ran = lengths.ran_s(pod)
    if pod.checkpointed_at is not None:
        return min(ran, max(0.0, (lengths.now - pod.checkpointed_at).total_seconds()))
    return min(ran, pod.checkpoint_s) if pod.checkpoint_s else ran
