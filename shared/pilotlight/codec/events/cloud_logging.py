"""Cloud Logging entries, through a sink or as Eventarc's audit log CloudEvent: read by what they hold.

Kubernetes events of GKE, the autoscaler's visibility log, and Compute Engine's system events. The exporter's start-up
line is text: no event is in it.
"""

from typing import Any, Literal

import msgspec

from pilotlight.codec.events import compute, kubernetes
from pilotlight.codec.events.envelope import Envelope, Found, Ignored, convert_shape
from pilotlight.facts.messages import CapacityFailed, Message, Moment

ERROR = "scale.up.error."
_REASONS: dict[str, Literal["no-capacity", "quota"]] = {
    "out.of.resources": "no-capacity",
    "quota.exceeded": "quota",
}


class _Error(msgspec.Struct, frozen=True, kw_only=True):
    messageId: str
    parameters: list[str] = []


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    eventId: str = ""
    errorMsg: _Error | None = None


class _ResultInfo(msgspec.Struct, frozen=True, kw_only=True):
    results: list[_Result] = []


class _Payload(msgspec.Struct, frozen=True, kw_only=True):
    resultInfo: _ResultInfo | None = None


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
    return _read_visibility(inside) if _VISIBILITY & payload.keys() else Ignored(reason="a log entry of no event")


def read_audit(event: Envelope) -> Found:
    """Eventarc's CloudEvent of an audit log entry. Where it came without data, its attributes say what it is about."""
    about = {"methodName": event.attributes.get("methodname", ""), "resourceName": event.attributes.get("resourcename")}
    return read(event.step_into("data", {"protoPayload": about} if event.data is None else event.data))


def _read_visibility(event: Envelope) -> Found:
    """What the cluster autoscaler could not launch: a group that failed is one message; so one entry may be several.

    What it did not even try (``noScaleUp``) says nothing new: the pods that wait are read from the cluster.
    """
    results = convert_shape(event.data, _Payload, event.path).resultInfo
    found: list[Message | Ignored] = []
    for result in results.results if results else ():
        if result.errorMsg is not None and result.errorMsg.messageId.startswith(ERROR):
            found += [_failed(event, result.eventId, result.errorMsg, group) for group in result.errorMsg.parameters]
    return found or Ignored(reason="the autoscaler says nothing of a group that failed to grow")


def _failed(event: Envelope, scale_up: str, error: _Error, group: str) -> CapacityFailed:
    """``group`` is a managed instance group's name or its URL, which tells the zone."""
    parts = group.split("/")
    zone = parts[parts.index("zones") + 1] if "zones" in parts[:-1] else ""
    said = {
        "cluster": event.cluster,
        "group": parts[-1],
        "reason": _REASONS.get(error.messageId.removeprefix(ERROR), "other"),
        "message": error.messageId,
        "zone": zone,
        "identity": f"{scale_up or event.id}/{error.messageId}/{parts[-1]}",
        "at": event.at,
    }
    return convert_shape(said, CapacityFailed, event.path)
