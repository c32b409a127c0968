"""What a check-up reads of a cluster, beside what a look reads: rights one by one, and whoever else scales nodes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from pilotlight.adapters.cluster.kubernetes.access import Source
from pilotlight.adapters.cluster.kubernetes.reads import NAMESPACES, NODES, ListOf, Reads
from pilotlight.adapters.cluster.kubernetes.tokens import token_of
from pilotlight.adapters.cluster.kubernetes.transport import Api, Missing
from pilotlight.codec.kubernetes.nodes import is_gpu_node
from pilotlight.codec.kubernetes.objects import KubeNode, Wire
from pilotlight.codec.kubernetes.scalers import (
    NodePool,
    ScaledObject,
    SetOfPods,
    seen_daemonset,
    seen_deployment,
    seen_node,
    seen_nodepool,
    seen_scaled,
)
from pilotlight.errors import Denied, PilotlightError
from pilotlight.facts import checkup as facts
from pilotlight.facts.checkup import Right, Survey
from pilotlight.facts.policy import Policy

T = TypeVar("T")

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
DAEMONSETS, DEPLOYMENTS = "/apis/apps/v1/daemonsets", "/apis/apps/v1/deployments"
NODE_POOLS, SCALED_OBJECTS = "/apis/karpenter.sh/v1/nodepools", "/apis/keda.sh/v1alpha1/scaledobjects"
CONFIG_MAPS = f"{NAMESPACES}/{facts.AUTOSCALER_NAMESPACE}/configmaps"


class _Version(Wire, frozen=True):
    git_version: str = "unknown"


class _Allowed(Wire, frozen=True):
    allowed: bool = False


class _Review(Wire, frozen=True):
    status: _Allowed = _Allowed()


class _ConfigMap(Wire, frozen=True):
    data: dict[str, str] = msgspec.field(default_factory=dict)


def survey(source: Source, api: Api, policy: Policy, rights: Iterable[Right], now: datetime) -> Survey:
    """All of a check-up's reads. What is refused or not understood is ``hidden``; raises where nothing answers."""
    version = api.get("/version", msgspec.json.Decoder(_Version)).git_version
    access, reads = source.access(), Reads(api, policy)
    hidden: dict[str, str] = {}

    def seen(name: str, read: Callable[[], Sequence[T]]) -> tuple[T, ...]:
        try:
            return tuple(read())
        except Missing:
            return ()
        except PilotlightError as error:
            hidden[name] = f"cannot be read: {error}"
            return ()

    def listed(name: str, path: str, model: type[T]) -> tuple[T, ...]:
        return seen(name, lambda: reads.all(path, msgspec.json.Decoder(ListOf[model])))  # type: ignore[valid-type]

    def kept(name: str) -> Mapping[str, str]:
        found = seen(f"configmaps {name}", lambda: [api.get(f"{CONFIG_MAPS}/{name}", msgspec.json.Decoder(_ConfigMap))])
        return found[0].data if found else {}

    return Survey(
        server=access.server,
        version=version,
        at=now,
        allowed=allowed(api, rights, hidden),
        nodes=tuple(seen_node(n, policy) for n in listed("nodes", NODES, KubeNode) if is_gpu_node(n, policy)),
        daemonsets=tuple(seen_daemonset(each) for each in listed("apps/daemonsets", DAEMONSETS, SetOfPods)),
        deployments=tuple(seen_deployment(each) for each in listed("apps/deployments", DEPLOYMENTS, SetOfPods)),
        nodepools=tuple(seen_nodepool(each) for each in listed("karpenter.sh/nodepools", NODE_POOLS, NodePool)),
        scaled_objects=tuple(
            seen_scaled(each) for each in listed("keda.sh/scaledobjects", SCALED_OBJECTS, ScaledObject)
        ),
        autoscaler_status=kept(facts.AUTOSCALER_STATUS).get("status", ""),
        autoscaler_priorities=kept(facts.AUTOSCALER_PRIORITIES).get("priorities", ""),
        hidden=hidden,
        token=token_of(access.token),
    )


def allowed(api: Api, rights: Iterable[Right], hidden: dict[str, str]) -> dict[Right, bool]:
    """Each right as the API server itself answers it. ``hidden`` is told where it may not be asked."""
    decoder = msgspec.json.Decoder(_Review)
    answers: dict[Right, bool] = {}
    for right in rights:
        resource, _, sub = right.resource.partition("/")
        asked = {
            "verb": right.verb,
            "group": right.group,
            "resource": resource,
            "subresource": sub,
            "namespace": right.namespace,
            "name": right.name,
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {key: value for key, value in asked.items() if value}},
        }
        try:
            answers[right] = api.ask("POST", REVIEWS, decoder, body).status.allowed
        except Denied as error:
            hidden["rights"] = f"cannot be asked: {error}"
            return answers
    return answers
