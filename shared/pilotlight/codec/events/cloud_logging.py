"""Cloud Logging entries, through a sink or as Eventarc's audit log CloudEvent: read by what they hold.

Kubernetes events of GKE, the autoscaler's visibility log, and Compute Engine's system events. The exporter's start-up
line is text: no event is in it.
"""

from typing import Any

import msgspec

from pilotlight.codec.events import compute, gke_autoscaler, kubernetes
from pilotlight.codec.events.envelope import Envelope, Found, Ignored, convert_shape
from pilotlight.facts.messages import Moment

_VISIBILITY = {"resultInfo", "decision", "noDecisionStatus"}


class _Labels(msgspec.Struct, frozen=True, kw_only=True):
    cluster_name: str = ""


class _Resource(msgspec.Struct, frozen=True, kw_only=True):
    labels: _Labels = _Labels()


class _Audit(msgspec.Struct, frozen=True, kw_only=True):
    methodName: str = ""


class _LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    jsonPayload: dict[str, Any] | None = None
    protoPayload: _Audit | None = None
    insertId: str = ""
    timestamp: Moment | None = None
    resource: _Resource = _Resource()


def read(event: Envelope) -> Found:
    """One entry."""
    entry = convert_shape(event.data, _LogEntry, event.path)
    about = msgspec.structs.replace(
        event,
        cluster=entry.resource.labels.cluster_name or event.cluster,
        id=entry.insertId or event.id,
        at=entry.timestamp or event.at,
    )
    if entry.protoPayload is not None:
        if entry.protoPayload.methodName in compute.ENDS:
            return compute.read_entry(about, entry.protoPayload.methodName)
        return Ignored(reason=f"{entry.protoPayload.methodName or 'an audit log entry'} asks for nothing here")
    payload = entry.jsonPayload or {}
    inside = about.step_into("jsonPayload", payload)
    if "involvedObject" in payload or "regarding" in payload:
        return kubernetes.read_event(inside)
    return gke_autoscaler.read(inside) if _VISIBILITY & payload.keys() else Ignored(reason="a log entry of no event")


def read_audit(event: Envelope) -> Found:
    """Eventarc's CloudEvent of an audit log entry. Where it came without data, its attributes say what it is about."""
    about = {"methodName": event.attributes.get("methodname", ""), "resourceName": event.attributes.get("resourcename")}
    return read(event.step_into("data", {"protoPayload": about} if event.data is None else event.data))
