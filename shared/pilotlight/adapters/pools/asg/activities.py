"""Launches that a group failed to make, as it tells later: a failed activity in its words, mapped like an answer's
code."""

from collections.abc import Callable
from datetime import datetime

import msgspec

from pilotlight.adapters.aws_api.services import QueryApi
from pilotlight.codec.events.aws.autoscaling import reason_of
from pilotlight.facts.nodes.pool_state import LateRefusal

LATEST = "20"
FAILED = ("Failed", "Cancelled")
DONE = "Successful"
LAUNCHING = "Launching"
"""So begins the description of an activity that launches."""


class _Activity(msgspec.Struct, frozen=True):
    ActivityId: str
    StartTime: datetime
    StatusCode: str
    Description: str = ""
    StatusMessage: str = ""
    Details: str = ""


class _Activities(msgspec.Struct, frozen=True):
    Activities: tuple[_Activity, ...] = ()


class _Zone(msgspec.Struct, frozen=True):
    zone: str = msgspec.field(name="Availability Zone", default="")


def last_refusal(api: QueryApi, group: str, otherwise: Callable[[], LateRefusal | None]) -> LateRefusal | None:
    """The newest launch of a group, where it failed; None while it is still tried. Where it succeeded, or nothing was
    tried, what is asked ``otherwise``.
    """
    asked = {"AutoScalingGroupName": group, "MaxRecords": LATEST}
    found = api.read("DescribeScalingActivities", _Activities, asked).Activities
    launches = [each for each in found if each.Description.startswith(LAUNCHING)]
    newest = max(launches, key=lambda each: each.StartTime, default=None)
    if newest is None or newest.StatusCode == DONE:
        return otherwise()
    if newest.StatusCode not in FAILED:
        return None
    return LateRefusal(
        identity=f"{group}/{newest.ActivityId}",
        reason=reason_of(newest.StatusMessage),
        message=newest.StatusMessage[:240],
        zone=_zone(newest.Details),
        at=newest.StartTime,
    )


def _zone(details: str) -> str:
    try:
        return msgspec.json.decode(details, type=_Zone).zone
    except msgspec.DecodeError:
        return ""
