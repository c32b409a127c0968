"""Azure's scheduled events: as a VM reads them from its metadata service (a node agent relays them), or by Event Grid.

``Preempt`` (Spot VMs only) and ``Terminate`` (a scale set deletes any VM) are orders with a deadline, ``NotBefore``,
empty once they have begun; ``Freeze``, ``Reboot`` and ``Redeploy`` are maintenance. One event may name several VMs.
"""

import re
from collections.abc import Mapping

import msgspec

from pilotlight.codec.events.envelope import Envelope, Found, Ignored, convert_shape, moment
from pilotlight.facts.messages import InterruptionNotice, Moment, Name, NoticeKind

EMITTED = "Microsoft.ResourceNotifications.MaintenanceResources.ScheduledEventEmitted"
VALIDATION = "Microsoft.EventGrid.SubscriptionValidationEvent"

_LINK = re.compile(r"https://[a-z0-9.-]+\.eventgrid\.azure\.net(:\d+)?/\S{1,2000}")

ORDERS: Mapping[str, NoticeKind] = {"Preempt": "spot-interruption", "Terminate": "lifecycle"}
MAINTENANCE = ("Freeze", "Reboot", "Redeploy")


class _Scheduled(msgspec.Struct, frozen=True, kw_only=True):
    EventId: str
    EventType: str
    Resources: list[Name] = []
    NotBefore: str = ""


class _Properties(msgspec.Struct, frozen=True, kw_only=True):
    properties: dict[str, object]


class _Emitted(msgspec.Struct, frozen=True, kw_only=True):
    data: dict[str, object]
    eventTime: Moment | None = None


class _Grid(msgspec.Struct, frozen=True, kw_only=True):
    resourceInfo: _Properties


def read(event: Envelope) -> Found:
    """One scheduled event: a notice a machine."""
    about = convert_shape(event.data, _Scheduled, event.path)
    order = ORDERS.get(about.EventType)
    if order is None and about.EventType not in MAINTENANCE:
        return Ignored(reason=f"{about.EventType:.80} of a machine asks for nothing here")
    deadline = moment(about.NotBefore, event.step_into("NotBefore", None).path)
    return [
        InterruptionNotice(
            cluster=event.cluster,
            instance=machine,
            kind=order or "scheduled-change",
            cloud="azure",
            action="terminate" if order else about.EventType.lower(),
            identity=f"{machine}/{about.EventType}/{about.EventId}",
            at=event.at,
            deadline=deadline,
        )
        for machine in about.Resources
    ] or Ignored(reason="a scheduled event of no machine")


def read_empty(event: Envelope) -> Ignored:
    """The metadata service's document when nothing is scheduled."""
    return Ignored(reason="no scheduled events")


def read_grid(event: Envelope) -> Found:
    """An event of Event Grid in its own schema or as a CloudEvent: the same properties, further in."""
    if event.type:
        return _inside(event.step_into("data", event.data))
    if event.data["eventType"] == VALIDATION:
        return _asked(event)
    if event.data["eventType"] != EMITTED:
        return Ignored(reason=f"{event.data['eventType']!r:.80} asks for nothing here")
    emitted = convert_shape(event.data, _Emitted, event.path)
    return _inside(msgspec.structs.replace(event.step_into("data", emitted.data), at=emitted.eventTime))


def _asked(event: Envelope) -> Ignored:
    """Event Grid asks whether it may send here. A person opens the link: a function follows none that it is sent."""
    data = event.data.get("data")
    link = str(data.get("validationUrl", "")) if isinstance(data, dict) else ""
    known = link if _LINK.fullmatch(link) else "a link that is none of Event Grid's"
    return Ignored(reason=f"Event Grid asks whether it may send here: to let it, open {known}")


def _inside(event: Envelope) -> Found:
    info = convert_shape(event.data, _Grid, event.path).resourceInfo
    return read(event.step_into("resourceInfo.properties", info.properties))
