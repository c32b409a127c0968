"""The world's cluster behind the Cluster port."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime

from pilotlight.errors import BadRequest, Busy, Denied
from pilotlight.facts.capacity import BoundPod, ClusterView, Node, Taint
from pilotlight.facts.demand.settled_claims import Refused, refusals
from pilotlight.facts.labels import CHECKPOINT_NOW, NEW_HOME
from pilotlight.facts.nodes.first_work import Pull
from pilotlight.facts.utilisation.reclaim_steps import OwnerState, PodOwner
from pilotlight.facts.utilisation.telemetry import Telemetry
from pilotlight.facts.workload import PodDemand
from pilotlight.units import Seconds, count_of
from pilotlight.world import pod_makers
from pilotlight.world.scheduling.nearby import count_by_domain
from pilotlight.world.simulation import World
from pilotlight.world.world_nodes import WorldNode

NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
"""A node keeps it for a moment after it is Ready."""
TOLD = 1000
"""How many Events are kept."""


def _around(pending: Sequence[PodDemand], there: Sequence[WorldNode]) -> dict[str, dict[str, int]]:
    """Pods that each rule of waiting pods counts in each domain, and of one that minds homes at each home."""
    rules = {rule.key: rule for pod in pending if pod.shape.near for rule in pod.shape.near.rules}
    around = {key: count_by_domain(rule, there) for key, rule in rules.items()}
    minding, kept = [rule for rule in rules.values() if rule.minds_homes], [n for n in there if n.home]
    return around | {rule.key_at(n.id): count_by_domain(rule, [n], [n.home]) for rule in minding for n in kept}


class WorldCluster:
    """Cluster of the world, as an API server would show it. An instance that still boots is no node yet."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.told: deque[tuple[datetime, str, str, str]] = deque(maxlen=TOLD)
        """(when, "namespace/pod" or node, reason, message) of the Events written."""

    def observe(self) -> ClusterView:
        with self._world.call("observe"):
            pending = tuple(d for job in self._world.pending.values() for d in job.demands)
            there = [n for n in self._world.nodes.values() if n.joined]
            nodes = tuple(self._value(n) for n in there)
            around = _around(pending, there)
            refused = list(self._refused())
            findings = tuple(refusals(refused)) if refused else ()
        return ClusterView(pending=pending, nodes=nodes, around=around, findings=findings)

    def _refused(self) -> Iterator[Refused]:
        """The claims that do not count of the pods that wait or run."""
        jobs = [*self._world.pending.values(), *self._world.running.values()]
        for job in [one for one in jobs if one.refused]:
            for pod in job.demands:
                if pod.refused:
                    yield Refused(pod.namespace, pod.created_at, pod.full_name, pod.shape.team, pod.refused)

    def cordon(self, node: str, by: str = "") -> None:
        with self._world.call("cordon"):
            self._world.cordon(self._node(node).id, by=by)

    def uncordon(self, node: str) -> None:
        with self._world.call("uncordon"):
            self._world.cordon(self._node(node).id, on=False)

    def forget_opened(self, node: str) -> None:
        with self._world.call("forget_opened"):
            self._world.forget_opened(self._node(node).id)

    def open(self, node: str) -> None:
        with self._world.call("open"):
            self._world.set_home(self._node(node).id, "")

    def name_home(self, node: str, home: str) -> None:
        with self._world.call("name_home"):
            if self._node(node).home == NEW_HOME:
                self._world.set_home(node, home)

    def without_home(self) -> Set[str]:
        return {node.id for node in self._world.nodes.values() if node.joined and node.home == NEW_HOME}

    def tolerate(self, namespace: str, pod: str, uid: str, home: str) -> None:
        with self._world.call("tolerate"):
            self._world.tolerate(uid, home)

    def beat(self) -> None:
        """The world has no watchman."""

    def scheduler_beat(self) -> datetime | None:
        with self._world.call("scheduler_beat"):
            return None if self._world.faults.silent else self._world.clock.now()

    def bound_pods(self, node: str) -> Sequence[BoundPod]:
        with self._world.call("bound_pods"):
            found = self._node(node)
            if found.closed_by and not found.cordoned:
                raise Denied(f"node {node} was opened by hand meanwhile")
            return tuple(self._bound(found))

    def pulls(self, pods: Sequence[BoundPod]) -> Mapping[str, Pull]:
        with self._world.call("pulls"):
            told = {pod.uid for pod in pods}
            jobs = {d.uid: job for job in self._world.running.values() for d in job.demands if d.uid in told}
            return {uid: Pull(seconds=job.pull_s) for uid, job in jobs.items()}

    def drain(self, node: str) -> None:
        """Evict what holds no GPU: raises ``Busy`` while there are pods that do, or others that are not gone."""
        with self._world.call("drain"):
            found = self._node(node)
            if not found.cordoned:
                raise BadRequest(f"node {node} is not cordoned: cordon it before the drain")
            if found.jobs:
                raise Busy(f"node {node} has {count_of(len(found.jobs), 'GPU pod')} bound: they are not evicted")
            self._world.residents.drain(found.id, self._world.now_s)

    def evict(self, namespace: str, pod: str, uid: str, grace_s: Seconds | None = None) -> None:
        with self._world.call("evict"):
            evictions = self._world.evictions
            if self._world.residents.evict(uid, self._world.now_s):
                return
            if evictions.runs(uid):
                if evictions.refuses(namespace):
                    most = evictions.disruptions[namespace]
                    raise Busy(f"PodDisruptionBudget {namespace}: {most} pods may be unavailable, and are")
                evictions.evict(uid, self._world.now_s, grace_s)

    def delete(self, namespace: str, pod: str, uid: str, grace_s: Seconds) -> None:
        with self._world.call("delete"):
            if not self._world.residents.delete(uid, self._world.now_s):
                self._world.evictions.evict(uid, self._world.now_s, grace_s)

    def tell(self, namespace: str, name: str, reason: str, message: str, change: str = "") -> None:
        with self._world.call("tell"):
            about = f"{namespace}/{name}" if namespace else name
            self.told.append((self._world.clock.now(), about, reason, message))
            if reason == CHECKPOINT_NOW:
                self._world.evictions.checkpoint(namespace, name, self._world.now_s)

    def owner_of(self, namespace: str, pod: str, uid: str) -> OwnerState | None:
        with self._world.call("owner_of"):
            return pod_makers.of_pod(self._world, uid)

    def owner_now(self, owner: PodOwner) -> OwnerState | None:
        with self._world.call("owner_now"):
            return pod_makers.now(self._world, owner)

    def rest(self, owner: PodOwner, count: int) -> None:
        with self._world.call("rest"):
            pod_makers.rest(self._world, owner, count)

    def wake(self, owner: PodOwner) -> int:
        with self._world.call("wake"):
            return pod_makers.wake(self._world, owner)

    def telemetry(self, start_s: float, end_s: float, step_s: Seconds) -> Telemetry:
        """Telemetry of running pods' GPUs, as the GpuTelemetry port's ``read``."""
        with self._world.call("telemetry"):
            return pod_makers.activity(self._world, start_s, end_s, step_s)

    def _node(self, name: str) -> WorldNode:
        node = self._world.nodes.get(name)
        if node is None or not node.joined:
            raise BadRequest(f"node {name} is not in the cluster")
        return node

    def _value(self, node: WorldNode) -> Node:
        if node.value is None or self._world.now_s >= node.value_until_s or node.id in self._world.residents.by_node:
            node.value = self._frozen(node)
            node.value_until_s = self._world.kept_until_s(node)
        return node.value

    def _frozen(self, node: WorldNode) -> Node:
        idle = None if node.idle_since_s is None else node.shown_idle_s(self._world.now_s)
        return Node(
            name=node.id,
            instance=node.id,
            pool=node.pool,
            instance_type=node.instance_type,
            capacity_type=node.capacity_type,
            created_at=self._world.moment(node.launched_s),
            ready=node.ready,
            devices=tuple(node.devices),
            resource=node.machine.resource,
            slices=dict(node.slices),
            free=node.free,
            labels=node.labels,
            taints=(*node.machine.pool.taints, *([NOT_READY] if node.fresh else [])),
            pods=tuple(self._bound(node)),
            zone=node.zone,
            schedulable=not (node.cordoned or node.shut),
            marked=node.cordoned,
            opened_by="" if node.cordoned else node.closed_by,
            idle_since=None if idle is None else self._world.moment(idle),
            gpu_model=node.model,
            home=node.home,
            ready_since=self._world.moment(node.ready_s) if node.ready else None,
            images=tuple(sorted(node.images)),
        )

    def _bound(self, node: WorldNode) -> Iterator[BoundPod]:
        for job in node.jobs.values():
            since = self._world.moment(job.start_s)
            kept_at = self._world.kept_at(job) if job.tells else None
            works_s = job.start_s + job.pull_s
            works = self._world.moment(works_s) if works_s <= self._world.now_s else None
            yield from (_pod(p.demand, since, works, kept_at) for p in job.placement if p.node is node)
        yield from self._world.residents.bound_pods(node.id, self._world.now_s)


def _pod(demand: PodDemand, since: datetime, works: datetime | None, kept_at: datetime | None) -> BoundPod:
    gang = demand.shape.gang
    return BoundPod(
        uid=demand.uid,
        namespace=demand.namespace,
        name=demand.name,
        gpu=demand.shape.gpu,
        workload_class=demand.shape.workload_class,
        team=demand.shape.team,
        gang=gang.key if gang else "",
        max_run_s=demand.shape.max_run_s,
        grace_s=demand.grace_s,
        created_at=demand.created_at,
        started_at=since,
        checkpoint_s=demand.shape.checkpoint_s,
        checkpoint_takes_s=demand.checkpoint_takes_s,
        checkpointed_at=kept_at,
        works_since=works if demand.shape.due or demand.image else None,
        image=demand.image,
        priority=demand.shape.priority,
        shape=demand.shape,
    )
