"""Google Compute Engine: a VM that was preempted or ended with its host, as an audit log entry or as the operation.

It comes after the fact. Which cluster the VM was of is not said, and the VM is gone: its name is all there is. A group
gives a new VM the old one's name, so the fact is told by the number.
"""

from collections.abc import Mapping
from datetime import UTC
from typing import Annotated

import msgspec

from pilotlight.codec.events.envelope import Envelope, Ignored, convert_shape
from pilotlight.facts.messages import InterruptionNotice, Moment, Name, NoticeKind

ENDS: Mapping[str, NoticeKind] = {
    "compute.instances.preempted": "preempted",
    "compute.instances.terminateOnHostMaintenance": "state-change",
    "compute.instances.hostError": "state-change",
}
"""The system events that end a VM. Only Spot VMs are preempted; VMs with GPUs cannot move when their host is mended."""

_Path = Annotated[str, msgspec.Meta(pattern=r"zones/[^/]+/instances/[^/]+$")]


class _Labels(msgspec.Struct, frozen=True, kw_only=True):
    instance_id: str = ""


class _Resource(msgspec.Struct, frozen=True, kw_only=True):
    labels: _Labels = _Labels()


class _Audit(msgspec.Struct, frozen=True, kw_only=True):
    resourceName: _Path


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    protoPayload: _Audit
    resource: _Resource = _Resource()


class _Operation(msgspec.Struct, frozen=True, kw_only=True):
    operationType: str
    targetLink: str = ""
    targetId: str = ""
    endTime: Moment | None = None
    insertTime: Moment | None = None


class _Target(msgspec.Struct, frozen=True, kw_only=True):
    targetLink: _Path


class _Named(msgspec.Struct, frozen=True, kw_only=True):
    instance: Name


def read_entry(event: Envelope, method: str) -> InterruptionNotice:
    """A LogEntry of the system event log whose ``method`` is one of ``ENDS``."""
    entry = convert_shape(event.data, _Entry, event.path)
    return _ended(event, method, entry.protoPayload.resourceName, entry.resource.labels.instance_id)


def read_operation(event: Envelope) -> InterruptionNotice | Ignored:
    """An Operation as the API lists it; its times carry an offset."""
    operation = convert_shape(event.data, _Operation, event.path)
    if operation.operationType not in ENDS:
        return Ignored(reason=f"operation {operation.operationType:.80} asks for nothing here")
    link = convert_shape(event.data, _Target, event.path).targetLink
    at = operation.endTime or operation.insertTime or event.at
    about = msgspec.structs.replace(event, at=at.astimezone(UTC) if at else None)
    return _ended(about, operation.operationType, link, operation.targetId)


def _ended(event: Envelope, method: str, path: str, number: str) -> InterruptionNotice:
    *_, zone, _, name = path.split("/")
    instance = convert_shape({"instance": name}, _Named, event.path).instance
    kind = ENDS[method]
    return InterruptionNotice(
        cluster=event.cluster,
        instance=instance,
        kind=kind,
        cloud="gcp",
        action="terminate" if kind == "preempted" else "stop",
        zone=zone,
        identity=f"{number or f'{zone}/{name}/{event.id}'}/{kind}",
        at=event.at,
    )
