"""Nodes kept on a real cluster: a Lease that says we are awake, its watchman, and DaemonSets.

The Lease lies beside our account (infra/kubernetes/placement): without it nothing is kept closed. Each look renews it;
the watchman, a CronJob with an account of its own, notes on it that it looked, and takes home taints off once the Lease
is five minutes old. No DaemonSet's pod is made for a node whose taint it does not tolerate: one that is missing has its
node opened.
"""

from collections import defaultdict
from collections.abc import Sequence, Set
from datetime import UTC, datetime, timedelta

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.listing import NODES, Lists
from pilotlight.adapters.cluster.kubernetes.reads import Found
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api
from pilotlight.codec.kubernetes.companions import DaemonSet
from pilotlight.codec.kubernetes.pages import ListOf
from pilotlight.codec.kubernetes.pods.claimants import Claimants
from pilotlight.codec.kubernetes.pods.pod_placement import homes, pod_terms, tolerations
from pilotlight.codec.kubernetes.pods.pods import other_demand
from pilotlight.codec.kubernetes.pods.requests import read_request
from pilotlight.codec.kubernetes.typed_objects import KubeNode, Metadata, Pod, Wire
from pilotlight.decide.demand.classify import classify
from pilotlight.errors import BadRequest, Forbidden
from pilotlight.facts.capacity import ClusterView, Taint
from pilotlight.facts.fit.matching import selects, untolerated_taint
from pilotlight.facts.labels import HOME, NODE_NAME, WATCHED_AT
from pilotlight.facts.place.homes import has_home_taint
from pilotlight.facts.policy import Policy

LEASE = "/apis/coordination.k8s.io/v1/namespaces/pilotlight/leases/pilotlight-placement"

WATCHED = timedelta(minutes=15)
"""A watchman that has not looked for so long is none: it comes every two minutes."""

_PASSING = "node.kubernetes.io/"
"""Taints that DaemonSets' pods tolerate by themselves begin so."""


class _Lease(Wire, frozen=True):
    metadata: Metadata


class _Name(Wire, frozen=True):
    name: str


class _Taints(Wire, frozen=True):
    taints: tuple[Taint, ...] = ()


class _BornNode(Wire, frozen=True):
    metadata: _Name
    spec: _Taints = _Taints()


_LEASE = typed_json.decoder(_Lease)
_BORN = typed_json.decoder(ListOf[_BornNode])


def beat(api: Api, now: datetime) -> None:
    """Renew the Lease. Raises ``Missing``, or ``Forbidden``."""
    spec = {"holderIdentity": "pilotlight", "renewTime": lease_time(now)}
    api.ask("PATCH", LEASE, NOTHING, {"spec": spec}, MERGE_PATCH)


def born_nodes(api: Api) -> Set[str]:
    """Names of the nodes that still have the home taint they were born with."""
    return {node.metadata.name for node in Lists(api).all(NODES, _BORN) if has_home_taint(node.spec.taints)}


def has_watchman(api: Api, now: datetime) -> bool:
    """True where a watchman has looked at the Lease lately: a time that is as far ahead is no proof of it."""
    try:
        looked = api.get(LEASE, _LEASE).metadata.annotations.get(WATCHED_AT, "")
        at = datetime.fromisoformat(looked)
    except (BadRequest, Forbidden, ValueError):
        return False
    return at.tzinfo is not None and abs(now - at) < WATCHED


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


def lease_time(now: datetime) -> str:
    """A moment as Leases write it."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
