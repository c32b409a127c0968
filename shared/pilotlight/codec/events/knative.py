"""Knative sources: ApiServerSource in resource and reference mode, and PingSource as a tick.

ApiServerSource draws a new random id for every send, so an event is known by its object's uid and version.
"""

import msgspec

from pilotlight.codec.events import kubernetes, scheduler
from pilotlight.codec.events.envelope import Envelope, Ignored, convert_shape
from pilotlight.facts.messages import Name, NodeJoined, PodPending, QuotaReserved, Tick

PING = "dev.knative.sources.ping"
RESOURCE = "dev.knative.apiserver.resource."
REFERENCE = "dev.knative.apiserver.ref."


class _Reference(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    name: Name
    namespace: str = ""


class _Object(msgspec.Struct, frozen=True, kw_only=True):
    kind: str


def read(envelope: Envelope) -> PodPending | QuotaReserved | NodeJoined | Tick | Ignored:
    """A tick, an Event, Pod or Workload in full, or the name of a Pod to look at."""
    if envelope.type == PING:
        if isinstance(envelope.data, dict) and "tick" in envelope.data:
            return scheduler.read(envelope)
        return Tick(cluster=envelope.cluster, identity=envelope.id, at=envelope.at)
    if envelope.type.endswith(".delete"):
        return Ignored(reason="an object was deleted")
    if envelope.type.startswith(REFERENCE):
        return _reference(envelope)
    if not envelope.type.startswith(RESOURCE):
        return Ignored(reason=f"{envelope.type:.80} asks for nothing here")
    match convert_shape(envelope.data, _Object, envelope.path).kind:
        case "Event":
            return kubernetes.read_event(envelope)
        case "Pod":
            return kubernetes.read_pod(envelope)
        case "Workload":
            from pilotlight.codec.events import kueue

            return kueue.read_workload(envelope)
        case kind:
            return Ignored(reason=f"a Kubernetes {kind} asks for nothing here")


def _reference(envelope: Envelope) -> PodPending | Ignored:
    """A reference says only that the Pod changed: the hint is passed on, the cluster tells the rest.

    A new Event names its object in its own name, ``train-0.17f2a1b3c4d5e6f7``: a hint to look just as well. Its updates
    would be a look each, and say no more.
    """
    about = convert_shape(envelope.data, _Reference, envelope.path)
    pod = about.name
    if about.kind == "Event" and envelope.type == f"{REFERENCE}add":
        pod = about.name.rpartition(".")[0]
    elif about.kind != "Pod":
        return Ignored(reason=f"a reference to a {about.kind} does not name a pod")
    if not pod:
        return Ignored(reason="a reference to an Event whose name tells no object")
    return PodPending(
        cluster=envelope.cluster,
        namespace=about.namespace or "default",
        name=pod,
        identity=envelope.id,
        at=envelope.at,
    )
