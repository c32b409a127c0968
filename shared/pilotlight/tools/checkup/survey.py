"""The survey that a check-up makes of a cluster, beside a look: rights one by one, and whoever else scales nodes."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.access.server_access import Source, token_of
from pilotlight.adapters.cluster.kubernetes.closing_lease import has_watchman
from pilotlight.adapters.cluster.kubernetes.listing import NAMESPACES, NODES, PODS
from pilotlight.adapters.cluster.kubernetes.reads import Reads
from pilotlight.adapters.cluster.kubernetes.transport import REVIEWS, Api, Missing
from pilotlight.codec.kubernetes.karpenter_objects import GatedNodePool, NodeClaim
from pilotlight.codec.kubernetes.nodes.autoscaler_evidence import AUTOSCALER_NAMESPACE, AUTOSCALER_STATUS
from pilotlight.codec.kubernetes.nodes.nodes import is_gpu_node
from pilotlight.codec.kubernetes.pages import listing
from pilotlight.codec.kubernetes.pods.requests import resource_names
from pilotlight.codec.kubernetes.typed_objects import KubeNode, Pod, Wire
from pilotlight.errors import Denied, PilotlightError
from pilotlight.facts.policy import Policy
from pilotlight.tools.checkup.rights import AUTOSCALER_PRIORITIES, EVICT, Right
from pilotlight.tools.checkup.scalers import (
    ScaledObject,
    SetOfPods,
    seen_daemonset,
    seen_deployment,
    seen_node,
    seen_nodepool,
    seen_scaled,
    waiting_claims,
)
from pilotlight.tools.checkup.survey_facts import Survey

T = TypeVar("T")

DAEMONSETS, DEPLOYMENTS = "/apis/apps/v1/daemonsets", "/apis/apps/v1/deployments"
NODE_POOLS, SCALED_OBJECTS = "/apis/karpenter.sh/v1/nodepools", "/apis/keda.sh/v1alpha1/scaledobjects"
NODE_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
CONFIG_MAPS = f"{NAMESPACES}/{AUTOSCALER_NAMESPACE}/configmaps"


class _Version(Wire, frozen=True):
    git_version: str = "unknown"


class _Allowed(Wire, frozen=True):
    allowed: bool = False


class _Review(Wire, frozen=True):
    status: _Allowed = _Allowed()


_REVIEW = typed_json.decoder(_Review)


class _ConfigMap(Wire, frozen=True):
    data: dict[str, str] = msgspec.field(default_factory=dict)


class _Looking:
    """Reads that keep going: what is refused or not understood is ``hidden`` by its name."""

    def __init__(self, api: Api, policy: Policy) -> None:
        self.hidden: dict[str, str] = {}
        self._api, self._reads = api, Reads(api, policy)

    def all(self, name: str, path: str, model: type[T]) -> tuple[T, ...]:
        """A list; empty where the API server does not know the kind."""
        decoder = listing(model)
        return self._seen(name, lambda: self._reads.all(path, decoder))

    def config(self, name: str, key: str) -> str:
        """A value of a ConfigMap of cluster-autoscaler's, or empty."""
        decoder = typed_json.decoder(_ConfigMap)
        found = self._seen(f"configmap {name}", lambda: [self._api.get(f"{CONFIG_MAPS}/{name}", decoder)])
        return found[0].data.get(key, "") if found else ""

    def _seen(self, name: str, read: Callable[[], Sequence[T]]) -> tuple[T, ...]:
        try:
            return tuple(read())
        except Missing:
            return ()
        except PilotlightError as error:
            self.hidden[name] = f"cannot be read: {error}"
            return ()


def survey(source: Source, api: Api, policy: Policy, rights: Iterable[Right], now: datetime) -> Survey:
    """All of a check-up's reads. Raises where nothing answers, or nobody is let in."""
    version = api.get("/version", typed_json.decoder(_Version)).git_version
    access, look = source.access(), _Looking(api, policy)
    allowed = ask_rights(api, rights, look.hidden)
    if allowed.get(EVICT) is False:  # Perhaps it may in some namespaces.
        pods = [pod for pod in look.all("pods", PODS, Pod) if _wants_gpus(pod)]
        spaces = sorted({*(pod.metadata.namespace for pod in pods), *filter(_is_a_name, policy.claims)})
        there = [msgspec.structs.replace(EVICT, namespace=space) for space in spaces]
        allowed |= ask_rights(api, there, look.hidden)
    return Survey(
        server=access.server,
        version=version,
        at=now,
        allowed=allowed,
        nodes=tuple(seen_node(n, policy) for n in look.all("nodes", NODES, KubeNode) if is_gpu_node(n, policy)),
        daemonsets=tuple(map(seen_daemonset, look.all("apps/daemonsets", DAEMONSETS, SetOfPods))),
        deployments=tuple(map(seen_deployment, look.all("apps/deployments", DEPLOYMENTS, SetOfPods))),
        nodepools=tuple(map(seen_nodepool, look.all("karpenter.sh/nodepools", NODE_POOLS, GatedNodePool))),
        waiting=tuple(waiting_claims(partial(look.all, "karpenter.sh/nodeclaims", NODE_CLAIMS, NodeClaim), policy)),
        scaled_objects=tuple(map(seen_scaled, look.all("keda.sh/scaledobjects", SCALED_OBJECTS, ScaledObject))),
        autoscaler_status=look.config(AUTOSCALER_STATUS, "status"),
        autoscaler_priorities=look.config(AUTOSCALER_PRIORITIES, "priorities"),
        hidden=look.hidden,
        token=token_of(access.token),
        watched=bool(policy.homed) and has_watchman(api, now),
    )


def _wants_gpus(pod: Pod) -> bool:
    """By a resource, or by a claim of devices."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    names = resource_names(containers)
    return bool(pod.spec.resource_claims) or any(name.startswith("nvidia.com/") for name in names)


def _is_a_name(pattern: str) -> bool:
    return not set(pattern) & {*"*?["}


def ask_rights(api: Api, rights: Iterable[Right], hidden: dict[str, str]) -> dict[Right, bool]:
    """Each right as the API server itself answers it. ``hidden`` is told where it may not be asked."""
    answers: dict[Right, bool] = {}
    for right in rights:
        try:
            answers[right] = api.ask("POST", REVIEWS, _REVIEW, _review(right)).status.allowed
        except Denied as error:
            hidden["rights"] = f"cannot be asked: {error}"
            break
    return answers


def _review(right: Right) -> dict[str, object]:
    resource, _, sub = right.resource.partition("/")
    asked = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": sub,
        "namespace": right.namespace,
        "name": right.name,
    }
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in asked.items() if value}},
    }
