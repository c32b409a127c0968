"""Why a group is short, as it is told later: by a failed activity of its own, or by EKS of what ails a node group.

Words are mapped like the codes of an answer.
"""

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.aws_api.services import QueryApi, RestApi
from pilotlight.codec.events.aws.autoscaling import reason_of
from pilotlight.errors import Denied, Retry
from pilotlight.facts.nodes.pool_state import LateRefusal

LATEST = "20"
FAILED = ("Failed", "Cancelled")
DONE = "Successful"
LAUNCHING = "Launching"
"""So begins the description of an activity that launches."""
SHORT: Mapping[str, Literal["no-capacity", "quota", "other"]] = {
    "InsufficientFreeAddresses": "no-capacity",
    "InstanceLimitExceeded": "quota",
    "LimitExceeded": "quota",
}
"""Issues that say by their code why nothing is launched."""
BY_WORDS = "AsgInstanceLaunchFailures"
"""One that says it in the words of the group's own activities."""
NO_LAUNCH = ("AutoScalingGroup", "Ec2LaunchTemplate", "Ec2Subnet", "Ec2SecurityGroup", "Ec2InstanceType", "Iam", "Ami")
"""So begin others after which nothing is launched until a person mends it; the rest are not about launches."""
GRACE = timedelta(minutes=2)
"""What was asked for since then may be launched yet, whatever EKS says: an issue tells no time of its own."""


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
        return typed_json.decode(details, _Zone).zone
    except msgspec.DecodeError:
        return ""


class Issue(msgspec.Struct, frozen=True):
    """Issue that EKS reports of a node group."""

    code: str = ""
    message: str = ""
    resourceIds: tuple[str, ...] = ()


class _Health(msgspec.Struct, frozen=True):
    issues: tuple[Issue, ...] = ()


class NodeGroup(msgspec.Struct, frozen=True):
    """A node group as EKS tells it."""

    health: _Health = _Health()


class _Described(msgspec.Struct, frozen=True):
    nodegroup: NodeGroup = NodeGroup()


def node_group(api: RestApi, cluster: str, name: str) -> NodeGroup:
    """A node group by its name."""
    return api.read(f"/clusters/{cluster}/node-groups/{name}", _Described).nodegroup


def ailment(api: RestApi, cluster: str, name: str, now: datetime) -> LateRefusal | None:
    """Why a node group that owes nodes has none, as EKS says it; None where it does not tell, or not to this role."""
    try:
        issues = node_group(api, cluster, name).health.issues
    except (Denied, Retry):
        return None
    known = [(one, reason) for one in issues if (reason := _reason(one)) is not None]
    if not known:
        return None
    first, reason = min(known, key=lambda each: (_ORDER.index(each[1]), each[0].code))
    told = hashlib.sha256(msgspec.json.encode(first)).hexdigest()[:12]
    said = f"EKS: {first.code}: {first.message}"[:240]
    return LateRefusal(identity=f"{name}/health/{told}", reason=reason, message=said, at=now - GRACE)


_ORDER = ("no-capacity", "quota", "other")


def _reason(issue: Issue) -> Literal["no-capacity", "quota", "other"] | None:
    if issue.code == BY_WORDS:
        return reason_of(issue.message)
    return SHORT.get(issue.code) or ("other" if issue.code.startswith(NO_LAUNCH) else None)
