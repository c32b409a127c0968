"""A node that goes, as decisions see it: closed to new pods, and its pods among those that wait for room."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.labels import POOL, ZONE
from pilotlight.facts.workload import PodDemand, PodShape, Requirement, Toleration, shape
from pilotlight.flow.observe.snapshot import Snapshot


def without_node(snapshot: Snapshot, node: Node, *, gone: bool, move: bool, onto: Sequence[str] = ()) -> Snapshot:
    """The look without a node: it is still paid for, unless it is ``gone``. With ``move`` its pods wait for room.

    ``onto`` are the only pools that they may go to, where any are named.
    """
    kept = () if gone else (replace(node, schedulable=False),)
    nodes = (*(n for n in snapshot.view.nodes if n.name != node.name), *kept)
    known = {demand.uid for demand in snapshot.view.pending}
    waiting = [demand_of(pod, node.pool, snapshot.now) for pod in node.gpu_pods if move and pod.uid not in known]
    waiting = [_only(demand, POOL, onto) for demand in waiting] if onto else waiting
    beside = _zones_beside(snapshot.view, node) if waiting else {}
    waiting = [_only(one, ZONE, (beside[one.uid],)) if one.uid in beside else one for one in waiting]
    view = replace(snapshot.view, nodes=nodes, pending=(*snapshot.view.pending, *waiting))
    return replace(snapshot, view=view, moving=snapshot.moving.union(demand.uid for demand in waiting))


def demand_of(pod: BoundPod, pool: str, now: datetime) -> PodDemand:
    """A bound pod as one that waits for room. Of one whose needs are not known, its pool is known to serve."""
    return PodDemand(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        created_at=pod.started_at or now,
        shape=_elsewhere(pod, pool),
    )


def _zones_beside(view: ClusterView, node: Node) -> dict[str, str]:
    """By uid the zone in which the rest of a pod's gang stays: the node in its place is bought there."""
    found: dict[str, str] = {}
    for pod in node.gpu_pods if node.zone else ():
        others = (n for n in view.nodes if n.name != node.name and any(p.gang == pod.gang for p in n.gpu_pods))
        staying = {n.zone for n in others if n.schedulable} if pod.gang else set()
        if len(staying) == 1 and "" not in staying:
            found[pod.uid] = staying.pop()
    return found


def _only(demand: PodDemand, key: str, values: Sequence[str]) -> PodDemand:
    """A pod that may go nowhere else. Whether its job is in time in those pools was reckoned before."""
    here = Requirement(key=key, operator="In", values=tuple(values))
    fields = {name: getattr(demand.shape, name) for name in PodShape.__struct_fields__}
    terms = tuple((*term, here) for term in demand.shape.terms or ((),))
    due = demand.shape.due if key != POOL else None
    return replace(demand, shape=shape(**{**fields, "terms": terms, "due": due, "key": ""}))


def _elsewhere(pod: BoundPod, pool: str) -> PodShape:
    """Without its gang: who moves has its place in it, and each needs a place again."""
    if pod.shape is not None:
        fields = {name: getattr(pod.shape, name) for name in PodShape.__struct_fields__}
        return shape(**{**fields, "gang": None, "key": ""}) if pod.shape.gang else pod.shape
    return shape(
        gpu=pod.gpu,
        terms=((Requirement(key=POOL, operator="In", values=(pool,)),),),
        tolerations=(Toleration(operator="Exists"),),
        workload_class=pod.workload_class or "batch",
        team=pod.team,
        max_run_s=pod.max_run_s,
    )
