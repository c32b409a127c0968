"""Nodes kept on a real cluster: a Lease that says we are awake, its watchman, and DaemonSets.

The Lease lies beside our account (infra/kubernetes/placement): without it nothing is kept closed. Each look renews it;
the watchman, a CronJob with an account of its own, notes on it that it looked, and takes home taints off once the Lease
is five minutes old. No DaemonSet's pod is made for a node whose taint it does not tolerate: one that is missing has its
node opened.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from pilotlight.adapters.cluster.kubernetes import writes
from pilotlight.adapters.cluster.kubernetes.reads import Found, Reads
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api
from pilotlight.codec.kubernetes.companions import DaemonSet
from pilotlight.codec.kubernetes.pods.claimants import Claimants
from pilotlight.codec.kubernetes.pods.pod_placement import homes, pod_terms, tolerations
from pilotlight.codec.kubernetes.pods.pods import other_demand
from pilotlight.codec.kubernetes.pods.requests import read_request
from pilotlight.codec.kubernetes.typed_objects import KubeNode, Metadata, Pod, Wire
from pilotlight.decide.demand.classify import classify
from pilotlight.errors import BadRequest, Forbidden
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.fit.matching import selects, untolerated_taint
from pilotlight.facts.labels import HOME, NODE_NAME, WATCHED_AT
from pilotlight.facts.policy import Policy
from pilotlight.units import Seconds

LEASE = "/apis/coordination.k8s.io/v1/namespaces/pilotlight/leases/pilotlight-placement"

WATCHED = timedelta(minutes=15)
"""A watchman that has not looked for so long is none: it comes every two minutes."""

_PASSING = "node.kubernetes.io/"
"""Taints that DaemonSets' pods tolerate by themselves begin so."""


class _LeaseSpec(Wire, frozen=True):
    renew_time: datetime | None = None


class _Lease(Wire, frozen=True):
    metadata: Metadata
    spec: _LeaseSpec = _LeaseSpec()


_LEASE = msgspec.json.Decoder(_Lease)


def beat(api: Api, now: datetime) -> None:
    """Renew the Lease. Raises ``Missing``, or ``Forbidden``."""
    spec = {"holderIdentity": "pilotlight", "renewTime": _micro(now)}
    api.ask("PATCH", LEASE, NOTHING, {"spec": spec}, MERGE_PATCH)


def last_renewal(api: Api) -> datetime | None:
    """When we last renewed it; None where never, or at a time without a zone. Raises ``Missing`` without a Lease."""
    at = api.get(LEASE, _LEASE).spec.renew_time
    return at if at is not None and at.tzinfo is not None else None


def has_watchman(api: Api, now: datetime) -> bool:
    """True where a watchman has looked at the Lease lately: a time that is as far ahead is no proof of it."""
    try:
        looked = api.get(LEASE, _LEASE).metadata.annotations.get(WATCHED_AT, "")
        at = datetime.fromisoformat(looked)
    except (BadRequest, Forbidden, ValueError):
        return False
    return at.tzinfo is not None and abs(now - at) < WATCHED


def lift(api: Api, now: datetime, *, silent_s: Seconds = 0, dry_run: bool = False) -> Iterator[str]:
    """Open every node, and name each. With ``silent_s`` it is the watchman's round: it notes that it looked, and opens
    only where the Lease is so old, or dated so far ahead. It raises ``Missing`` where there is no Lease.
    """
    if silent_s:
        beaten = last_renewal(api)
        if not dry_run:
            api.ask("PATCH", LEASE, NOTHING, {"metadata": {"annotations": {WATCHED_AT: _micro(now)}}}, MERGE_PATCH)
        if beaten is not None and abs(now - beaten).total_seconds() < silent_s:
            return
    for name in Reads(api, Policy(version=1)).carrying(HOME):
        if not dry_run:
            writes.open(api, name)
        yield name


def view_for_closing(
    view: ClusterView,
    found: Found,
    sets: Sequence[DaemonSet] | None,
    policy: Policy,
    *,
    watched: bool,
    limited: bool | None = True,
) -> ClusterView:
    """The view with what closing nodes asks for: missing DaemonSets' pods, and waiting pods that want no GPU."""
    lacks = _lacks(found, sets)
    nodes = tuple(msgspec.structs.replace(node, unserved=lacks.get(node.name, ())) for node in view.nodes)
    claims = Claimants(policy, classify, found.objects.namespaces)
    asked = (read_request(pod) for pod in found.pods if not pod.spec.node_name)
    others = tuple(demand for a in asked if (demand := other_demand(a, found.objects, claims)) is not None)
    return msgspec.structs.replace(view, nodes=nodes, others=others, watched=watched, limited=limited)


def _lacks(found: Found, sets: Sequence[DaemonSet] | None) -> dict[str, tuple[str, ...]]:
    """By node, the DaemonSets that select it and have no pod there; where they may not be listed, that."""
    if sets is None:
        return {node.metadata.name: ("DaemonSets, which we may not list",) for node in found.nodes}
    there: dict[str, set[str]] = defaultdict(set)
    for pod in found.pods:
        owner = pod.metadata.owner
        if owner is not None and owner.kind == "DaemonSet" and pod.spec.node_name:
            there[pod.spec.node_name].add(f"{pod.metadata.namespace}/{owner.name}")
    belongs = [
        (f"{s.metadata.namespace}/{s.metadata.name}", Pod(metadata=s.metadata, spec=s.spec.template.spec)) for s in sets
    ]
    return {
        node.metadata.name: tuple(
            name for name, pod in belongs if name not in there[node.metadata.name] and _selects(node, pod)
        )
        for node in found.nodes
    }


def _selects(node: KubeNode, pod: Pod) -> bool:
    """True where a DaemonSet's pod belongs on a node and is not there yet for our taint. It comes by itself to a node
    whose home it tolerates.
    """
    labels = {**node.metadata.labels, NODE_NAME: node.metadata.name}
    taints = [t for t in node.spec.taints if t.key != HOME and not t.key.startswith(_PASSING)]
    bears = tolerations(pod.spec.tolerations)
    if not selects(labels, pod_terms(pod)) or untolerated_taint(taints, bears) is not None:
        return False
    home = next((t for t in node.spec.taints if t.key == HOME), None)
    if home is None:
        return True
    return not {"*", home.value} & {*homes(pod.spec.tolerations)} and untolerated_taint([home], bears) is not None


def _micro(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
