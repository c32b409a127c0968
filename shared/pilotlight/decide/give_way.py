"""Which running pod could give way to one that waits for money or capacity: advice with its figures, never an act.

A pod is weighed against every running pod whose place would hold it, by ``preemption.should_preempt``. In doubt nothing
gives way: what waits is taken at its long side (P90), what runs at its median. Without recorded runs both are the mean
of their kind, as the purchase takes it. Of a pod on the same node only GPUs are counted where its CPU and memory are
not known: then the node's whole room is taken.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal

import msgspec

from pilotlight.decide.capacity.fit import Allowed, of_node
from pilotlight.decide.capacity.run_lengths import expected_run_s
from pilotlight.decide.money.economics import RESTORE_S
from pilotlight.decide.preemption import Work, should_preempt
from pilotlight.decide.run_groups import ALL
from pilotlight.decide.run_lengths import RunLengths
from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.decisions import Code, Plan, PodGroup
from pilotlight.facts.memory import Memory
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import GpuRequest, PodDemand, PodShape, WorkloadClass
from pilotlight.units import MILLI_PER_GPU, Seconds, Usd, UsdPerHour

SHORT: tuple[Code, ...] = ("cap", "budget", "step", "quota", "backoff", "zone", "paid", "spot-share")
"""Why pods wait whom another could help: a cap, a budget, or capacity that cannot be had."""
ENDLESS = ("serving", "notebook")
"""Classes whose pods do not end by themselves."""


class TimeLeft(msgspec.Struct, frozen=True, kw_only=True):
    """How long a pod still runs: the median and P90 (alike where only a mean is known), and what says so."""

    p50_s: Seconds
    p90_s: Seconds
    by: str


class GiveWay(msgspec.Struct, frozen=True, kw_only=True):
    """One pair: ``pod`` waits, ``running`` is on ``node``. What is not known is None, and then nothing gives way."""

    pod: str
    waits: str
    """Why it waits."""
    priority: int
    needs: TimeLeft | None
    running: str
    node: str
    pool: str
    running_priority: int
    ran_s: Seconds
    left: TimeLeft | None
    give_way: bool
    why: str
    waiting_usd: Usd | None = None
    preempting_usd: Usd | None = None


def short_of(plan: Plan) -> list[PodGroup]:
    """The pods that wait because of a cap, a budget or a shortage."""
    return [group for group in plan.pods if group.verdict in ("waiting", "refused") and group.code in SHORT]


def give_way(
    plan: Plan,
    view: ClusterView,
    memory: Memory,
    policy: Policy,
    now: datetime,
    known: RunLengths | None = None,
    named: str = "",
) -> list[GiveWay]:
    """For the first pod of each shape that waits so, or the one that is ``named`` (by namespace and name, name or uid),
    each running pod whose place would do; those that could give way first.
    """
    waiting = {pod.uid: pod for pod in view.pending if not named or named in (pod.full_name, pod.name, pod.uid)}
    prices = {node.node: node.usd_per_hour for node in plan.nodes}
    lengths = _Lengths(memory, known or RunLengths(), now)
    found = []
    for group in short_of(plan):
        pod = next((waiting[uid] for uid in group.uids if uid in waiting), None)
        if pod is not None:
            pairs = _pairs(pod, view.nodes, prices, lengths, policy, group.why)
            found += sorted(pairs, key=lambda one: (not one.give_way, one.preempting_usd or Decimal(0), one.running))
    return found


class _Lengths:
    """How long pods run, by recorded runs, else by what the look remembers of their kind."""

    def __init__(self, memory: Memory, known: RunLengths, now: datetime) -> None:
        self._memory, self._known, self.now = memory, known, now

    def of_waiting(self, pod: PodDemand) -> TimeLeft | None:
        shape = pod.shape
        return self._left(shape.workload_class, (shape.team, pod.namespace), shape.gpu, shape.max_run_s, 0.0)

    def of_running(self, pod: BoundPod) -> TimeLeft | None:
        gpu = pod.gpu or GpuRequest(count=0)
        return self._left(pod.workload_class, (pod.team, pod.namespace), gpu, pod.max_run_s, self.ran_s(pod))

    def ran_s(self, pod: BoundPod) -> Seconds:
        return max(0.0, (self.now - pod.started_at).total_seconds()) if pod.started_at else 0.0

    def _left(
        self, workload_class: str, teams: Sequence[str], gpu: GpuRequest, max_run_s: Seconds, ran_s: Seconds
    ) -> TimeLeft | None:
        most = max(0.0, max_run_s - ran_s) if max_run_s else float("inf")
        if workload_class in ENDLESS:
            return TimeLeft(p50_s=most, p90_s=most, by="its deadline") if max_run_s else None
        found = self._known.foretold(_groups(teams, gpu), ran_s)
        if found is not None:
            half, long = (min(most, max(0.0, length - ran_s)) for length in found.lengths_s)
            longer = " that ran longer" if ran_s else ""
            return TimeLeft(p50_s=half, p90_s=long, by=f"{found.runs} runs of {found.group}{longer}")
        kind = PodShape(gpu=gpu, workload_class=_class(workload_class), team=teams[0])
        mean = min(most, expected_run_s(self._memory, kind, self.now))
        by = "the mean of its kind" if self._memory.ran else "what is typical: no runs are known"
        return TimeLeft(p50_s=mean, p90_s=mean, by=by)


def _class(name: str) -> WorkloadClass:
    return "training" if name == "training" else "batch"


def _groups(teams: Sequence[str], gpu: GpuRequest) -> tuple[str, ...]:
    """As ``run_groups.groups_of`` names them; a trace of a cluster's own past has namespaces for teams."""
    shape = f"{gpu.count}x{gpu.milli}"
    names = tuple(dict.fromkeys(team for team in teams if team))
    return (*(f"team {name} {shape}" for name in names), *(f"team {name}" for name in names), f"shape {shape}", ALL)


def _pairs(
    pod: PodDemand,
    nodes: Sequence[Node],
    prices: dict[str, UsdPerHour | None],
    lengths: _Lengths,
    policy: Policy,
    waits: str,
) -> Iterator[GiveWay]:
    needs, allowed = lengths.of_waiting(pod), Allowed()
    for node, pods, together in _places(nodes):
        if not _holds(node, pods, pod.shape, allowed):
            continue
        left = [lengths.of_running(one) for one in pods]
        longest = None if None in left else max((one for one in left if one is not None), key=lambda one: one.p50_s)
        found = _judged(pod, needs, pods, together, longest, prices.get(node.name), node, lengths, policy)
        yield GiveWay(
            pod=pod.full_name,
            waits=waits,
            priority=pod.shape.priority,
            needs=needs,
            running=f"{pods[0].namespace}/{pods[0].name}",
            node=node.name,
            pool=node.pool,
            running_priority=max(one.priority for one in together),
            ran_s=max(lengths.ran_s(one) for one in pods),
            left=longest,
            give_way=found[0],
            why=found[1],
            waiting_usd=found[2],
            preempting_usd=found[3],
        )


def _places(nodes: Iterable[Node]) -> Iterator[tuple[Node, list[BoundPod], list[BoundPod]]]:
    """A node that takes pods, one pod on it (or those of one gang), and all that stop with it: the whole gang."""
    gangs: dict[tuple[str, str], list[BoundPod]] = defaultdict(list)
    nodes = [node for node in nodes if node.ready and node.schedulable]
    for node in nodes:
        for pod in node.gpu_pods:
            gangs[pod.namespace, pod.gang or pod.uid].append(pod)
    for node in nodes:
        here: dict[tuple[str, str], list[BoundPod]] = defaultdict(list)
        for pod in node.gpu_pods:
            here[pod.namespace, pod.gang or pod.uid].append(pod)
        yield from ((node, pods, gangs[key]) for key, pods in here.items())


def _holds(node: Node, pods: Sequence[BoundPod], wanted: PodShape, allowed: Allowed) -> bool:
    """Whether the node would hold a pod of the shape once these are gone."""
    devices, slices = list(node.devices), dict(node.slices)
    for gpu in (pod.gpu for pod in pods if pod.gpu is not None):
        if gpu.resource != node.resource:
            slices[gpu.resource] = slices.get(gpu.resource, 0) + gpu.count
            continue
        for _ in range(gpu.count):
            taken = [n for n, free in enumerate(devices) if free + gpu.milli <= MILLI_PER_GPU]
            if taken:
                devices[min(taken, key=lambda n: devices[n])] += gpu.milli
    freed = msgspec.structs.replace(node, devices=tuple(devices), slices=slices, free=node.room or node.free)
    place = of_node(freed)
    return place.room_for(wanted) > 0 and allowed(wanted, place)


def _judged(
    pod: PodDemand,
    needs: TimeLeft | None,
    pods: Sequence[BoundPod],
    together: Sequence[BoundPod],
    left: TimeLeft | None,
    price: UsdPerHour | None,
    node: Node,
    lengths: _Lengths,
    policy: Policy,
) -> tuple[bool, str, Usd | None, Usd | None]:
    """Whether, why, and dollars both ways where they are known."""
    name = f"{pods[0].namespace}/{pods[0].name}"
    if pod.shape.gang is not None:
        return (
            False,
            f"{pod.full_name} is one of a gang of {pod.shape.gang.size}: one place does not help it",
            None,
            None,
        )
    if blocked := next((one.blocks for one in together if one.blocks), ""):
        return False, f"{name} may not be evicted: {blocked}", None, None
    for who, known in ((pod.full_name, needs), (name, left)):
        if known is None:
            return False, f"nothing says when {who} ends: it serves, or is a notebook", None, None
    if price is None:
        return False, f"the price of {node.name} is not known", None, None
    assert needs is not None
    assert left is not None
    gpus = sum(one.gpu.count for one in together if one.gpu is not None)
    waiting = Work(
        pod.full_name,
        pod.shape.priority,
        needs.p90_s,
        pod.shape.gpu.count,
        Decimal(0),
        never_preempts=pod.never_preempts,
    )
    running = Work(
        name,
        max(one.priority for one in together),
        left.p50_s,
        gpus,
        price / max(1, node.gpus),
        max(_unsaved_s(one, lengths) for one in together),
        RESTORE_S,
    )
    found = should_preempt(waiting, running, policy.wait(pod.shape.workload_class))
    return found.preempt, found.why, found.waiting_usd, found.preempting_usd


def _unsaved_s(pod: BoundPod, lengths: _Lengths) -> Seconds:
    """What it would do again: since its last checkpoint, else up to one interval, else all that it ran."""
    ran = lengths.ran_s(pod)
    if pod.checkpointed_at is not None:
        return min(ran, max(0.0, (lengths.now - pod.checkpointed_at).total_seconds()))
    return min(ran, pod.checkpoint_s) if pod.checkpoint_s else ran
