"""core/v1 Events and Pods: FailedScheduling of either recorder, kubernetes-event-exporter, and Pods themselves.

RegisteredNode (node controller) and NodeReady (kubelet) about a Node tell of one that joined. A kubelet may write its
node's name for the uid.

Kueue's QuotaReserved about a Workload asks for a look as well: its pods are to come. Its recorder writes it once Kueue
has reserved the quota, as "Quota reserved in ClusterQueue %v, wait time since queued was %.0fs" (pkg/scheduler of
kubernetes-sigs/kueue).

kube-scheduler writes by the events API (``eventTime``, ``series``), older components by the old recorder
(``count``, ``lastTimestamp``). As events.k8s.io/v1 the object is ``regarding``. The exporter inlines the Event and
adds ``clusterName``.
"""

import msgspec

from pilotlight.codec.events.envelope import Envelope, Ignored, convert_shape
from pilotlight.facts.messages import Moment, Name, NodeJoined, PodPending, QuotaReserved

REASON = "FailedScheduling"
JOINED = ("RegisteredNode", "NodeReady")
RESERVED, KUEUE = "QuotaReserved", "kueue.x-k8s.io/"
"""Kubernetes has a kind named Workload too."""


class _Meta(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""


class _About(msgspec.Struct, frozen=True, kw_only=True):
    apiVersion: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _Series(msgspec.Struct, frozen=True, kw_only=True):
    lastObservedTime: Moment | None = None


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    involvedObject: _About = _About()
    regarding: _About | None = None
    metadata: _Meta = _Meta()
    reason: str = ""
    clusterName: str = ""
    eventTime: Moment | None = None
    lastTimestamp: Moment | None = None
    deprecatedLastTimestamp: Moment | None = None
    series: _Series | None = None


class _Of(msgspec.Struct, frozen=True, kw_only=True):
    namespace: Name
    name: Name
    uid: str = ""


class _OfNode(msgspec.Struct, frozen=True, kw_only=True):
    name: Name
    uid: str = ""


class _Condition(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    status: str
    reason: str = ""
    lastTransitionTime: Moment | None = None


class _Status(msgspec.Struct, frozen=True, kw_only=True):
    conditions: list[_Condition] | None = None


class _PodMeta(msgspec.Struct, frozen=True, kw_only=True):
    name: Name
    namespace: Name = "default"
    uid: str = ""
    resourceVersion: str = ""


class _Pod(msgspec.Struct, frozen=True, kw_only=True):
    metadata: _PodMeta
    status: _Status = _Status()


def read_event(envelope: Envelope) -> PodPending | QuotaReserved | NodeJoined | Ignored:
    """A FailedScheduling Event about a Pod, one about a Node that joined, or Kueue's about work that has its quota.

    Every other asks for nothing.
    """
    event = convert_shape(envelope.data, _Event, envelope.path)
    about, key = (event.regarding, "regarding") if event.regarding else (event.involvedObject, "involvedObject")
    known = identity(event.metadata.uid, event.metadata.resourceVersion) or envelope.id
    at = _last_seen(event) or envelope.at
    if about.kind == "Node" and event.reason in JOINED:
        node = convert_shape(msgspec.to_builtins(about), _OfNode, envelope.step_into(key, None).path)
        cluster = event.clusterName or envelope.cluster
        return NodeJoined(cluster=cluster, name=node.name, uid=node.uid, identity=known, at=at)
    queued = event.reason == RESERVED and about.kind == "Workload" and about.apiVersion.startswith(KUEUE)
    if not queued and (event.reason != REASON or about.kind != "Pod"):
        return Ignored(reason=f"{event.reason or 'an Event'} about a {about.kind or 'thing'}")
    of = convert_shape(msgspec.to_builtins(about), _Of, envelope.step_into(key, None).path)
    message = QuotaReserved if queued else PodPending
    return message(
        cluster=event.clusterName or envelope.cluster,
        namespace=of.namespace,
        name=of.name,
        uid=of.uid,
        identity=known,
        at=at,
    )


def _last_seen(event: _Event) -> Moment | None:
    """When it was last seen, as its recorder says it: of a series its end, else its only time."""
    seen = event.series.lastObservedTime if event.series else None
    return seen or event.lastTimestamp or event.deprecatedLastTimestamp or event.eventTime


def read_pod(envelope: Envelope) -> PodPending | Ignored:
    """A Pod that the scheduler has called Unschedulable; every other Pod asks for nothing."""
    pod = convert_shape(envelope.data, _Pod, envelope.path)
    unschedulable = [c for c in pod.status.conditions or () if _says_unschedulable(c)]
    if not unschedulable:
        return Ignored(reason=f"pod {pod.metadata.namespace}/{pod.metadata.name} is not Unschedulable")
    return PodPending(
        cluster=envelope.cluster,
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        identity=identity(pod.metadata.uid, pod.metadata.resourceVersion) or envelope.id,
        at=unschedulable[0].lastTransitionTime or envelope.at,
        pod=dict(envelope.data),
    )


def identity(uid: str, resource_version: str) -> str:
    """One state of one object, whoever delivers it and however often; empty where either is unknown."""
    return f"{uid}/{resource_version}" if uid and resource_version else ""


def _says_unschedulable(condition: _Condition) -> bool:
    return (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
