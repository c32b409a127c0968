"""Who reads an event: one reader a source, found by what only that source's events have."""

from collections.abc import Callable
from typing import Any

from pilotlight.codec.events import (
    alertmanager,
    autoscaling,
    aws_envelopes,
    azure,
    budget,
    cloud_logging,
    compute,
    eventbridge,
    knative,
    kubernetes,
    ours,
    pubsub,
    scheduler,
    storage,
)
from pilotlight.codec.events.envelope import Envelope, Found, Ignored, Text
from pilotlight.errors import BadEvent


def reader_of(event: Envelope) -> Callable[[Envelope], Found]:
    """Who reads it: by CloudEvent type where there is one, else by what only that source's JSON has."""
    if event.type:
        return _reader_of_type(event.type)
    match event.data:
        case {"tick": _}:
            return scheduler.read
        case {"detail-type": _}:
            return eventbridge.read
        case {"involvedObject": _} | {"regarding": _} | {"kind": "Event"}:
            return kubernetes.read_event
        case {"kind": "Pod"}:
            return kubernetes.read_pod
        case {"kind": "compute#operation", "operationType": _}:
            return compute.read_operation
        case {"logName": _} | {"jsonPayload": _} | {"textPayload": _} | {"protoPayload": _}:
            return cloud_logging.read
        case {"budgetDisplayName": _}:
            return budget.read
        case {"labels": dict(), "fingerprint": _}:
            return alertmanager.read
        case {"EventId": _, "EventType": _}:
            return azure.read
        case {"DocumentIncarnation": _}:
            return azure.read_empty
        case {"eventType": _, "subject": _}:
            return azure.read_grid
        case {"LifecycleTransition": _} | {"Event": str(), "AutoScalingGroupName": _}:
            return autoscaling.read
        case _:
            return _reader_of_notices(event)


def _reader_of_type(kind: str) -> Callable[[Envelope], Found]:
    if kind in ours.TYPES:
        return ours.read
    if knative.sends(kind):
        return knative.read
    return {
        cloud_logging.WRITTEN: cloud_logging.read_audit,
        storage.FINALIZED: storage.read_google,
        azure.EMITTED: azure.read_grid,
    }.get(kind, _unknown_type)


def _reader_of_notices(event: Envelope) -> Callable[[Envelope], Found]:
    """Objects that were written, what an envelope says without an event in it, and what nobody here knows."""
    match event.data:
        case {"s3": _}:
            return storage.read_record
        case {"Event": "s3:TestEvent"}:
            return storage.read_test
        case {"Type": "SubscriptionConfirmation" | "UnsubscribeConfirmation"}:
            return aws_envelopes.read_confirmation
        case Text() | None if event.attributes:
            return pubsub.read_attributes
        case Text():
            return _read_text
    return _unknown_shape


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
