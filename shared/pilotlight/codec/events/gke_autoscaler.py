"""GKE's autoscaler visibility log: what the cluster autoscaler could not launch.

A result names the groups that failed. What the autoscaler did not even try (``noScaleUp``) says nothing new: the pods
that wait are read from the cluster.
"""

from typing import Literal

import msgspec

from pilotlight.codec.events.envelope import Envelope, Found, Ignored, convert_shape
from pilotlight.facts.messages import CapacityFailed, Message

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


def read(event: Envelope) -> Found:
    """A group that failed is one message; so one entry may be several."""
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
