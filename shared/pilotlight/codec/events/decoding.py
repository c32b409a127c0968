"""The door for bodies: finds the events in a body, through all that is wrapped around them, and has each read.

Each source has one reader, found by what only that source's events have. It is imported when one of its events comes:
a function's start pays for no other.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from importlib import import_module
from itertools import islice
from typing import Any

from pilotlight.codec.events import pubsub, scheduler
from pilotlight.codec.events.aws import aws_envelopes
from pilotlight.codec.events.envelope import (
    Delivery,
    Envelope,
    Found,
    Ignored,
    Refused,
    Text,
    convert_shape,
    dump_event,
    from_cloudevent,
    join,
    name_ignored,
    open_cloudevent,
    parse,
)
from pilotlight.errors import BadEvent, TooMuch
from pilotlight.facts.messages import TYPES, Message

MAX_WRAPPERS = 8
"""How many arrays, envelopes and lists may lie around one event."""

MAX_EVENTS = 500
"""How many events a body may hold."""

Reader = Callable[[Envelope], Found]

BY_TYPE = {
    "google.cloud.audit.log.v1.written": "cloud_logging.read_audit",
    "google.cloud.storage.object.v1.finalized": "storage.read_google",
    "Microsoft.ResourceNotifications.MaintenanceResources.ScheduledEventEmitted": "azure.read_grid",
}
"""CloudEvents of others, beside Knative's; a reader is a file here and a function in it."""

KNATIVE = ("dev.knative.sources.ping", "dev.knative.apiserver.")

FIRST_YEAR, LAST_YEAR = 1970, 2200
"""A time outside of these is no time of a cloud's."""


def decode(body: bytes, headers: Mapping[str, str], *, cluster: str) -> list[Delivery | Refused]:
    """The events in a request body. ``cluster`` holds where an event names none.

    Reads CloudEvents in binary, structured and batch mode, the envelopes of Pub/Sub, SQS and SNS around any of them,
    and the plain JSON of the sources beside this file; arrays of any of these. Valid events that ask for nothing are
    ``Ignored``. One of several that is bad is ``Refused``; a body that is one event and bad raises ``BadEvent``, which
    names the path, and nothing else is raised.
    """
    head = {key.lower(): value for key, value in headers.items()}
    envelope = Envelope(data=None, cluster=cluster, id=head.get("x-goog-pubsub-message-id", ""))
    if "ce-specversion" in head:
        attributes = {key[3:]: value for key, value in head.items() if key.startswith("ce-")}
        return _within(from_cloudevent(envelope, attributes, parse(body) if body else None))
    if "x-cloudscheduler" in head:
        called = scheduler.scheduled_call(envelope, head)
        return _within(called.step_into("", parse(body)) if body.strip() not in (b"", b"{}") else called)
    return _within(envelope.step_into("", parse(body)))


def _within(event: Envelope) -> list[Delivery | Refused]:
    """All that is in a body, read no further than the limit."""
    found = list(islice(_outcomes(event), MAX_EVENTS + 1))
    if len(found) > MAX_EVENTS:
        raise TooMuch(f"more than {MAX_EVENTS} events in one body; send them in parts")
    return found


def _outcomes(event: Envelope, depth: int = 0) -> Iterator[Delivery | Refused]:
    """Outcomes of one event, through whatever is wrapped around it."""
    if depth > MAX_WRAPPERS:
        raise BadEvent("wrapped too deeply", event.path)
    several = _several(event)
    if several is not None:
        for one in several:
            yield from _one_of(one, depth + 1)
        return
    inside = _opened(event)
    yield from _outcomes(inside, depth + 1) if inside is not None else _delivered(event)


def _one_of(event: Envelope, depth: int) -> Iterator[Delivery | Refused]:
    """One of several: when it is bad, its neighbours are not."""
    try:
        yield from _outcomes(event, depth)
    except BadEvent as error:
        yield Refused(error=error, body=dump_event(event))


def _several(event: Envelope) -> Iterator[Envelope] | None:
    """The events in an array, under whatever key their source puts it."""
    if event.type:
        return None
    match event.data:
        case list() as items:
            key = ""
        case {"kind": "List" | "EventList" | "PodList" | "WorkloadList", "items": list() as items}:
            key = "items"
        case {"Records": list() as items}:
            key = "Records"
        case {"entries": list() as items}:
            key = "entries"
        case {"alerts": list() as items, "receiver": _}:
            key = "alerts"
        case {"DocumentIncarnation": _, "Events": [_, *_] as items}:
            key = "Events"
        case _:
            return None
    return (event.step_into(f"{key}[{i}]", item) for i, item in enumerate(items))


def _opened(event: Envelope) -> Envelope | None:
    """Content of a structured CloudEvent or in a messaging service's envelope, or None where there is none."""
    if event.type == pubsub.PUBLISHED:
        return pubsub.open_push(event.step_into("data", event.data))
    if event.type:
        return None
    match event.data:
        case {"specversion": _}:
            return open_cloudevent(event)
        case {"message": dict()} if pubsub.is_push(event):
            return pubsub.open_push(event)
        case {"context": {"eventType": pubsub.BACKGROUND}}:
            return pubsub.background(event)
        case {"body": _, "eventSource": "aws:sqs"}:
            return aws_envelopes.open_sqs_record(event)
        case {"Sns": dict() as notice}:
            return event.step_into("Sns", {"Type": "Notification", **notice})
        case {"Type": "Notification", "Message": _}:
            return aws_envelopes.open_sns_notification(event)
    return None


def _delivered(event: Envelope) -> list[Delivery | Refused]:
    dryrun = event.attributes.get("dryrun") or (event.data.get("dryrun") if isinstance(event.data, dict) else None)
    reader = _reader_of(event)
    try:
        found = reader(event)
    except OverflowError:
        raise BadEvent("a time that no calendar holds", event.path) from None
    for one in found if isinstance(found, list) else [found]:
        _check_times(event, one)
    file = reader.__module__.rpartition(".")[2]
    return [
        Delivery(
            message=name_ignored(event, one, file) if isinstance(one, Ignored) else one,
            id=event.id,
            dryrun=dryrun in (True, "true", "1"),
        )
        for one in (found if isinstance(found, list) else [found])
    ]


def _check_times(event: Envelope, message: Message | Ignored) -> None:
    """Refuse times that leave no room on both sides: decisions reckon with them."""
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if isinstance(value, datetime) and not FIRST_YEAR <= value.year <= LAST_YEAR:
            raise BadEvent(f"the year {value.year} is not from {FIRST_YEAR} to {LAST_YEAR}", join(event.path, name))


def _reader_of(event: Envelope) -> Reader:
    """Reader of an event: by CloudEvent type where there is one, else by what only that source's JSON has."""
    if event.type in TYPES:
        return _read_ours
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
    file, _, function = name.rpartition(".")
    reader: Reader = getattr(import_module(f"pilotlight.codec.events.{file}"), function)
    return reader


def _of_event(data: Any) -> str:
    """The reader of a JSON object that is an event of one of the sources, or nothing."""
    match data:
        case {"tick": _}:
            return "scheduler.read"
        case {"detail-type": _}:
            return "aws.eventbridge.read"
        case {"involvedObject": _} | {"regarding": _} | {"kind": "Event"}:
            return "kubernetes.read_event"
        case {"kind": "Pod"}:
            return "kubernetes.read_pod"
        case {"kind": "Workload", "apiVersion": str()}:
            return "kueue.read_workload"
        case {"kind": "compute#operation", "operationType": _}:
            return "compute.read_operation"
        case {"logName": _} | {"jsonPayload": _} | {"textPayload": _} | {"protoPayload": _}:
            return "cloud_logging.read"
        case {"budgetDisplayName": _}:
            return "budget.read"
        case {"awsBudget": str()}:
            return "aws.aws_costs.read_budget"
        case {"anomalyId": _}:
            return "aws.aws_costs.read_anomaly"
        case {"labels": dict(), "fingerprint": _}:
            return "alertmanager.read"
        case {"EventId": _, "EventType": _}:
            return "azure.read"
        case {"eventType": _, "subject": _}:
            return "azure.read_grid"
        case {"s3": _}:
            return "storage.read_record"
        case {"LifecycleTransition": _} | {"Event": str(), "AutoScalingGroupName": _}:
            return "aws.autoscaling.read"
    return ""


def _of_notice(data: Any) -> str:
    """The reader of what a source sends beside its events, or nothing."""
    match data:
        case {"DocumentIncarnation": _}:
            return "azure.read_empty"
        case {"Event": "s3:TestEvent"}:
            return "storage.read_test"
        case {"Type": "SubscriptionConfirmation" | "UnsubscribeConfirmation"}:
            return "aws.aws_envelopes.read_confirmation"
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
        "no known source sends this; expected a CloudEvent, or what a source sends: pilotlight show events/README.md",
        event.path,
    )


def _read_ours(envelope: Envelope) -> Message:
    """One of our own messages, by its type. Cluster, identity and time stand in from the envelope where it has none."""
    data = {} if envelope.data is None else envelope.data
    if not isinstance(data, dict):
        raise BadEvent("Expected `object`", envelope.step_into("data", None).path)
    shape = TYPES[envelope.type]
    known: dict[str, str | datetime | None] = {}
    if "cluster" in shape.__struct_fields__:
        known["cluster"] = envelope.cluster
    if "identity" in shape.__struct_fields__:
        known |= {"identity": envelope.id, "at": envelope.at}
    message = convert_shape({**known, **data}, shape, envelope.step_into("data", None).path)
    assert isinstance(message, Message)
    return message
