"""Scheduling gates: a job waits until a decision names the pool it runs in, and always pays the reaction."""

from collections.abc import Callable, Sequence

import msgspec

from pilotlight.facts.capacity import BoundPod, ClusterView
from pilotlight.facts.labels import POOL
from pilotlight.facts.workload import PodDemand, PodShape, Requirement, shape
from pilotlight.flow.budgets.budget_holds import balances
from pilotlight.flow.cycle.planning import Aim, make_plan
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import look, with_flights
from pilotlight.ports.cluster import Cluster
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.units import Seconds
from pilotlight.world.simulation import World


class GatedCluster:
    """A cluster whose gated pods are shown as waiting, as a controller of the gate sees them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.gated: dict[str, tuple[PodDemand, ...]] = {}

    def observe(self) -> ClusterView:
        view = self._cluster.observe()
        gated = tuple(d for demands in self.gated.values() for d in demands)
        return msgspec.structs.replace(view, pending=(*view.pending, *gated))

    def cordon(self, node: str, by: str = "") -> None:
        self._cluster.cordon(node, by)

    def uncordon(self, node: str) -> None:
        self._cluster.uncordon(node)

    def forget_opened(self, node: str) -> None:
        self._cluster.forget_opened(node)

    def open(self, node: str) -> None:
        self._cluster.open(node)

    def name_home(self, node: str, home: str) -> None:
        self._cluster.name_home(node, home)

    def tolerate(self, namespace: str, pod: str, uid: str, home: str) -> None:
        self._cluster.tolerate(namespace, pod, uid, home)

    def beat(self) -> None:
        self._cluster.beat()

    def bound_pods(self, node: str) -> Sequence[BoundPod]:
        return self._cluster.bound_pods(node)

    def drain(self, node: str) -> None:
        self._cluster.drain(node)

    def evict(self, namespace: str, pod: str, uid: str, grace_s: Seconds | None = None) -> None:
        self._cluster.evict(namespace, pod, uid, grace_s)

    def delete(self, namespace: str, pod: str, uid: str, grace_s: Seconds) -> None:
        self._cluster.delete(namespace, pod, uid, grace_s)

    def tell(self, namespace: str, name: str, reason: str, message: str, change: str = "") -> None:
        self._cluster.tell(namespace, name, reason, message, change)


class Gate:
    """Holds jobs back, and lets each through to the pools that the plan names for its pods.

    ``ttl_s`` says for how long a job's pods are shown once they have finished.
    """

    def __init__(self, world: World, deps: Deps, ttl_s: Callable[[str], Seconds | None]) -> None:
        if not isinstance(deps.cluster, GatedCluster):
            raise TypeError("a gate needs a GatedCluster")
        self._world, self._deps, self._cluster, self._ttl_s = world, deps, deps.cluster, ttl_s
        self._jobs: dict[str, tuple[Job, tuple[PodDemand, ...]]] = {}

    def hold(self, job: Job, demands: tuple[PodDemand, ...]) -> None:
        """A job is submitted: gated."""
        self._jobs[job.job_id] = job, demands

    def holds(self, job: str) -> bool:
        """True while a job is still gated."""
        return job in self._jobs

    def show(self, job: str) -> tuple[PodDemand, ...]:
        """The pods of a gated job, seen from now on."""
        return self._cluster.gated.setdefault(job, self._jobs[job][1])

    def open(self, job: str) -> None:
        """Take the gate off: each pod may run only in the pool where the plan puts it. Free choice where it names none.

        The pool and not the node: what a pod may use cannot be changed once its gate is off, and before the last pod of
        a gang has its node, others may take the first one's.
        """
        snapshot = with_flights(self._deps, look(self._deps))
        _, plan = make_plan(
            self._deps, snapshot, Aim(releases=False), balances(self._deps, snapshot.now, snapshot.memory)
        )
        pools = {node.name: node.pool for node in snapshot.view.nodes}
        pools |= {offering.name: offering.pool for offering in self._deps.offerings}
        put = {uid: pools.get(group.where, "") for group in plan.pods for uid in group.uids}
        demands = self._cluster.gated.pop(job)
        named = tuple(_only(d, put.get(d.uid, ""), d.shape) for d in demands)
        held, _ = self._jobs.pop(job)
        self._world.submit(named, held.duration_s, job=job, since_s=held.submit_s, ttl_s=self._ttl_s(job))


def _only(demand: PodDemand, pool: str, old: PodShape) -> PodDemand:
    if not pool:
        return demand
    place = Requirement(key=POOL, operator="In", values=(pool,))
    terms = tuple((*term, place) for term in old.terms) or ((place,),)
    fields = {name: getattr(old, name) for name in old.__struct_fields__ if name not in ("terms", "key")}
    return msgspec.structs.replace(demand, shape=shape(**fields, terms=terms))
