"""One read of a cluster from its objects: the GPU pods that wait, the GPU nodes, and what a person must mend."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pilotlight.codec.kubernetes import bounds
from pilotlight.codec.kubernetes.bounds import NEIGHBOURS, Unreadable
from pilotlight.codec.kubernetes.companions import Objects
from pilotlight.codec.kubernetes.kueue_objects import Workload
from pilotlight.codec.kubernetes.kueue_workloads import (
    as_let_in,
    longest_run_of,
    longest_runs,
    parked_work,
    planned_workloads,
    pods_to_come,
    queue_findings,
    reserving,
    sizes_in_part,
    waiting_for_us,
)
from pilotlight.codec.kubernetes.nodes.node_room import plugins_of
from pilotlight.codec.kubernetes.nodes.nodes import Onboard, node_of
from pilotlight.codec.kubernetes.pods import pod_bounds
from pilotlight.codec.kubernetes.pods.claimants import Claimants
from pilotlight.codec.kubernetes.pods.eviction_blocks import only_exhausted
from pilotlight.codec.kubernetes.pods.near import (
    NOBODY,
    Around,
    around,
    crowded_namespaces,
    host_ports,
    uses_near,
)
from pilotlight.codec.kubernetes.pods.pod_groups import gang_key, gang_sizes
from pilotlight.codec.kubernetes.pods.pod_placement import pod_terms
from pilotlight.codec.kubernetes.pods.pods import daemon_of, demand_of, pod_of_daemons, waits
from pilotlight.codec.kubernetes.pods.requests import Asked, Requests
from pilotlight.codec.kubernetes.pods.volumes import with_holders, with_shares
from pilotlight.codec.kubernetes.times import newest, settle_times
from pilotlight.codec.kubernetes.typed_objects import KubeNode, Pod
from pilotlight.facts.capacity import ClusterView, Node
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import Classifier, Finding, Near, PodDemand
from pilotlight.units import EPOCH, Seconds, one_line

if TYPE_CHECKING:
    from pilotlight.codec.kubernetes.device_objects import Devices
    from pilotlight.codec.kubernetes.nodes.devices import OnNode


def view_of(
    pods: Sequence[Pod],
    nodes: Sequence[KubeNode],
    objects: Objects,
    *,
    policy: Policy,
    classify: Classifier,
    now: datetime | None = None,
) -> ClusterView:
    """The ClusterView of a cluster's objects. Pure; whatever is wrong with one object is a finding, not an error.

    ``now`` is the look's, where it is not the newest moment that the objects speak of: it stands in for times that no
    clock says. Nodes without GPUs are left out. Selectors and taints that no pool meets are the planner's to find.
    """
    pods, nodes, strange = settle_times(pods, nodes, now or newest(pods, nodes) or EPOCH)
    limits = longest_runs(objects.workloads.values())
    let_in, too_large = planned_workloads(objects.workloads.values())
    objects = only_exhausted(objects)
    objects = with_shares(with_holders(objects, pods), (pod for pod in pods if objects.claims and waits(pod)))
    parts = sizes_in_part(objects.workloads.values())
    there = [as_let_in(pod, parts) for pod in pods] if parts else pods
    read = Requests().read
    asked = [read(_limited(pod, limits)) for pod in _with_those_to_come(there, let_in, objects)]
    on_nodes: Mapping[str, OnNode] = {}
    if objects.devices is not None:
        asked, on_nodes = _with_devices(asked, nodes, objects.devices)
    asked, full = _uncrowded(asked)
    daemons = [pod_of_daemons(one) for one in objects.daemon_sets.values()]
    parted = _parted(asked)
    others = _around(parted, nodes, objects, full, daemons)
    claims = Claimants(policy, classify, objects.namespaces)
    pending, pod_findings = _pending(parted, objects, policy, claims, others.near)
    gpu_nodes, node_findings = _nodes(parted, nodes, objects, policy, claims, on_nodes)
    found = (*pod_findings, *node_findings, *claims.findings(), *queue_findings(objects.workloads.values()))
    return ClusterView(
        pending=tuple(pending),
        nodes=tuple(gpu_nodes),
        findings=tuple(map(_readable, (*objects.strange, *strange, *too_large, *found))),
        queued=waiting_for_us(let_in),
        reserving=reserving(objects.workloads.values()),
        parked=parked_work(objects.workloads.values()),
        around=others.counts,
        daemons=tuple(
            d for pod in daemons if (d := daemon_of(pod, claims, others.near.get(pod.metadata.uid or pod.name)))
        )
        if pending
        else (),
    )


def _with_devices(
    asked: Sequence[Asked], nodes: Sequence[KubeNode], devices: "Devices"
) -> tuple[list[Asked], dict[str, "OnNode"]]:
    """Requests of pods with their claims read, and each node's devices that drivers publish."""
    from pilotlight.codec.kubernetes.nodes.devices import allocated_devices, node_devices, slices_by_node
    from pilotlight.codec.kubernetes.pods.device_claims import with_claims

    slices, gone = slices_by_node(devices), allocated_devices(devices)
    on_nodes = {
        name: node_devices(slices[name], gone, plugins_of(node), devices)
        for node in nodes
        if (name := node.metadata.name) in slices
    }
    return with_claims(asked, on_nodes, devices), on_nodes


def _uncrowded(asked: Sequence[Asked]) -> tuple[list[Asked], frozenset[str]]:
    """Requests of pods; those that wait in a namespace with too many rules on pods near by are refused."""
    full = crowded_namespaces([a.pod for a in asked if a.pod.has_rules and not a.pod.is_finished])
    if not full:
        return list(asked), full
    why = Unreadable(bounds.CODE, f"its namespace has too many different rules on pods near by: {NEIGHBOURS.mend}")
    there = (a.pod.metadata.namespace in full and waits(a.pod) and uses_near(a.pod) for a in asked)
    return [
        a._replace(problem=a.problem or why, gpu=None, claimed=None) if of_them else a
        for a, of_them in zip(asked, there, strict=True)
    ], full


class _Parted(NamedTuple):
    """Requests of pods: of all that are not done, of those that a node could help, and by node."""

    living: list[Asked]
    waiting: list[Asked]
    on_node: Mapping[str, list[Asked]]
    done_on_node: Mapping[str, list[Asked]]


def _parted(asked: Iterable[Asked]) -> _Parted:
    found = _Parted([], [], defaultdict(list), defaultdict(list))
    for a in asked:
        node = a.pod.node
        if a.pod.is_finished:
            if node:
                found.done_on_node[node].append(a)
            continue
        found.living.append(a)
        if node:
            found.on_node[node].append(a)
        elif waits(a.pod):
            found.waiting.append(a)
    return found


def _around(
    pods: _Parted, nodes: Sequence[KubeNode], objects: Objects, full: frozenset[str], daemons: Sequence[Pod]
) -> Around:
    """Relations of waiting GPU pods with the pods near by."""
    waiting = [a.pod for a in pods.waiting if a.wants_gpu]
    ruled = any(a.pod.has_rules for a in pods.living) or any(pod.has_rules for pod in daemons)
    if not ruled and not any(map(host_ports, waiting)):
        return NOBODY
    there = [a.pod for a in pods.living if a.pod.node]
    waiting = [pod for pod in waiting if _within_bounds(pod)]
    return around(waiting, there, nodes, objects.namespaces, full, daemons) if waiting else NOBODY


def _within_bounds(pod: Pod) -> bool:
    """True where a pod may be planned; one that may not is told as its demand is read."""
    try:
        pod_bounds.refuse(pod)
        pod_terms(pod)
    except Unreadable:
        return False
    return True


def _readable(found: Finding) -> Finding:
    """A finding as one short line: names and values in it are whatever somebody wrote."""
    return msgspec.structs.replace(found, message=one_line(found.message, bounds.TOLD))


def _with_those_to_come(pods: Sequence[Pod], let_in: Sequence[Workload], objects: Objects) -> Sequence[Pod]:
    """The pods, and those of queued work that has its quota; these stand for its gated ones."""
    if not let_in:
        return pods
    gated = {
        f"{w.metadata.namespace}/{owner.name}"
        for w in let_in
        for owner in w.metadata.owner_references
        if owner.kind == "Pod"
    }
    to_come = pods_to_come(let_in, objects.flavors)
    return [*(pod for pod in pods if pod.name not in gated), *to_come]


def _limited(pod: Pod, of_jobs: Mapping[str, Seconds]) -> Pod:
    """The pod with the least of its limits as its deadline."""
    limit = longest_run_of(pod, of_jobs)
    if limit == pod.spec.active_deadline_seconds:
        return pod
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, active_deadline_seconds=limit))


def _pending(
    pods: _Parted, objects: Objects, policy: Policy, claims: Claimants, near: Mapping[str, Near]
) -> tuple[list[PodDemand], list[Finding]]:
    ganged = ((a.pod, a.wants_gpu) for a in pods.living if gang_key(a.pod))
    gangs = gang_sizes(ganged, objects.pod_groups, objects.leader_worker_sets)
    pending: list[PodDemand] = []
    findings: list[Finding] = []
    for a in pods.waiting:
        gang = gangs.get(gang_key(a.pod))
        by = near.get(a.pod.metadata.uid or a.pod.name)
        outcome = demand_of(a, objects, claims, gang, require_label=policy.require_label, near=by)
        if isinstance(outcome, PodDemand):
            pending.append(outcome)
        elif outcome is not None:
            findings.append(outcome)
    return pending, findings


def _nodes(
    pods: _Parted,
    nodes: Iterable[KubeNode],
    objects: Objects,
    policy: Policy,
    claims: Claimants,
    on_nodes: Mapping[str, "OnNode"],
) -> tuple[list[Node], list[Finding]]:
    found: list[Node] = []
    findings: list[Finding] = []
    for node in nodes:
        name = node.metadata.name
        onboard = Onboard(pods.on_node[name], pods.done_on_node[name])
        try:
            fact = node_of(node, onboard, policy, objects, claims, on_nodes.get(name))
        except Unreadable as problem:
            findings.append(Finding(subject=name, code=problem.code, message=str(problem)))
            continue
        if fact is not None:
            found.append(fact)
            findings += _unreadable_pods(onboard.live)
            findings += _beyond_bounds(onboard.live)
    return found, findings


def _unreadable_pods(live: Iterable[Asked]) -> list[Finding]:
    return [
        Finding(
            subject=a.pod.name,
            code=a.problem.code,
            message=f"{a.problem}; until then its node counts as in use",
            uid=a.pod.metadata.uid,
        )
        for a in live
        if a.problem is not None and not a.request
    ]


def _beyond_bounds(live: Iterable[Asked]) -> list[Finding]:
    return [
        Finding(subject=a.pod.name, code=bounds.CODE, message=text, uid=a.pod.metadata.uid)
        for a in live
        if a.holds_gpu
        for text in pod_bounds.told_of(a.pod)
    ]
