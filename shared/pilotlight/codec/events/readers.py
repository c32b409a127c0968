"""Who reads an event: one reader a source, found by what only that source's events have.

A source is imported when one of its events comes: a function's start pays for no other.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from pilotlight.codec.events import ours
from pilotlight.codec.events.envelope import Envelope, Found, Ignored, Text
from pilotlight.errors import BadEvent

Reader = Callable[[Envelope], Found]

BY_TYPE = {
    "google.cloud.audit.log.v1.written": "cloud_logging.read_audit",
    "google.cloud.storage.object.v1.finalized": "storage.read_google",
    "Microsoft.ResourceNotifications.MaintenanceResources.ScheduledEventEmitted": "azure.read_grid",
}
"""CloudEvents of others, beside Knative's; a reader is a file here and a function in it."""

KNATIVE = ("dev.knative.sources.ping", "dev.knative.apiserver.")


def reader_of(event: Envelope) -> Reader:
    """Who reads it: by CloudEvent type where there is one, else by what only that source's JSON has."""
    if event.type in ours.TYPES:
        return ours.read
    if event.type.startswith(KNATIVE):
        return _named("knative.read")
    if event.type:
        return _named(BY_TYPE[event.type]) if event.type in BY_TYPE else _unknown_type
    name = _of_event(event.data) or _of_notice(event.data)
    if name:
        return _named(name)
    words = isinstance(event.data, Text)
    if event.attributes and (words or event.data is None):
        return _named("pubsub.read_attributes")
    return _read_text if words else _unknown_shape


def _named(name: str) -> Reader:
    file, _, function = name.partition(".")
    reader: Reader = getattr(import_module(f"pilotlight.codec.events.{file}"), function)
    return reader


def _of_event(data: Any) -> str:
    """The reader of a JSON object that is an event of one of the sources, or nothing."""
    match data:
        case {"tick": _}:
            return "scheduler.read"
        case {"detail-type": _}:
            return "eventbridge.read"
        case {"involvedObject": _} | {"regarding": _} | {"kind": "Event"}:
            return "kubernetes.read_event"
        case {"kind": "Pod"}:
            return "kubernetes.read_pod"
        case {"kind": "compute#operation", "operationType": _}:
            return "compute.read_operation"
        case {"logName": _} | {"jsonPayload": _} | {"textPayload": _} | {"protoPayload": _}:
            return "cloud_logging.read"
        case {"budgetDisplayName": _}:
            return "budget.read"
        case {"labels": dict(), "fingerprint": _}:
            return "alertmanager.read"
        case {"EventId": _, "EventType": _}:
            return "azure.read"
        case {"eventType": _, "subject": _}:
            return "azure.read_grid"
        case {"s3": _}:
            return "storage.read_record"
        case {"LifecycleTransition": _} | {"Event": str(), "AutoScalingGroupName": _}:
            return "autoscaling.read"
    return ""


def _of_notice(data: Any) -> str:
    """The reader of what a source sends beside its events, or nothing."""
    match data:
        case {"DocumentIncarnation": _}:
            return "azure.read_empty"
        case {"Event": "s3:TestEvent"}:
            return "storage.read_test"
        case {"Type": "SubscriptionConfirmation" | "UnsubscribeConfirmation"}:
            return "aws_envelopes.read_confirmation"
    return ""


def _read_text(event: Envelope) -> Ignored:
    return Ignored(reason=f"words, no event: {event.data.begins!r}")


def _unknown_type(event: Envelope) -> Ignored:
    return Ignored(reason=f"no function takes a CloudEvent of type {event.type:.80}")


def _unknown_shape(event: Envelope) -> Ignored:
    kind: Any = event.data.get("kind") if isinstance(event.data, dict) else None
    if isinstance(kind, str) and "apiVersion" in event.data:
        return Ignored(reason=f"a Kubernetes {kind} asks for nothing here")
    raise BadEvent(
        "no known source sends this; expected a CloudEvent, or what one of the sources in events/README.md sends",
        event.path,
    )
