"""EC2 Auto Scaling: lifecycle actions and launches that failed, from EventBridge's detail or straight from SNS and SQS.

The words of a failed launch are AWS's own and change: what they mean is guessed by a few of them, else it is "other".
"""

import re
from datetime import datetime
from typing import Literal

import msgspec

from pilotlight.codec.events.envelope import Envelope, Ignored, convert_shape
from pilotlight.facts.messages import CapacityFailed, InterruptionNotice, Moment, Name

TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
LAUNCH_ERRORS = ("autoscaling:EC2_INSTANCE_LAUNCH_ERROR",)

_THROTTLED = r"RequestLimitExceeded|rate exceeded|throttl"
_QUOTA = r"limit|quota|CountExceeded|count exceeded"
_NO_CAPACITY = (
    r"Insufficient\w*Capacity|(not have|no) (enough|sufficient)|UnfulfillableCapacity|ReservationCapacityExceeded"
    r"|no Spot capacity|insufficient capacity|capacity[- ]not[- ]available|InsufficientFreeAddresses|SpotMaxPriceTooLow"
    r"|(?-i:\bUnsupported\b)|not supported in your requested Availability Zone"
    r"|configuration is currently not supported"
)


class _Action(msgspec.Struct, frozen=True, kw_only=True):
    LifecycleTransition: str
    EC2InstanceId: Name
    AutoScalingGroupName: Name
    LifecycleActionToken: str = ""
    LifecycleHookName: str = ""
    Time: Moment | None = None


class _Activity(msgspec.Struct, frozen=True, kw_only=True):
    AutoScalingGroupName: Name
    StatusMessage: str = ""
    Cause: str = ""
    RequestId: str = ""
    Details: dict[str, str] | str = {}
    Time: Moment | None = None


def read(event: Envelope) -> InterruptionNotice | CapacityFailed | Ignored:
    """A notification straight from a group, without EventBridge."""
    if "LifecycleTransition" in event.data:
        return read_lifecycle(event)
    if event.data["Event"] in LAUNCH_ERRORS:
        return read_failed_launch(event)
    return Ignored(reason=f"{event.data['Event']!r:.80} asks for nothing here")


def read_lifecycle(event: Envelope) -> InterruptionNotice | Ignored:
    """A group is about to terminate an instance, and waits for an answer; launches are not waited for."""
    action = convert_shape(event.data, _Action, event.path)
    if action.LifecycleTransition != TERMINATING:
        return Ignored(reason=f"{action.LifecycleTransition:.80} asks for nothing here")
    return InterruptionNotice(
        cluster=event.cluster,
        instance=action.EC2InstanceId,
        kind="lifecycle",
        cloud="aws",
        group=action.AutoScalingGroupName,
        hook=action.LifecycleHookName,
        token=action.LifecycleActionToken,
        identity=f"{action.EC2InstanceId}/lifecycle/{action.LifecycleActionToken}",
        at=action.Time or event.at,
    )


def read_failed_launch(event: Envelope) -> CapacityFailed:
    """A group could not launch an instance: how a missing capacity or quota is told of at all."""
    activity = convert_shape(event.data, _Activity, event.path)
    zone = activity.Details.get("Availability Zone", "") if isinstance(activity.Details, dict) else ""
    at: datetime | None = activity.Time or event.at
    return CapacityFailed(
        cluster=event.cluster,
        group=activity.AutoScalingGroupName,
        reason=reason_of(activity.StatusMessage),
        message=activity.StatusMessage or activity.Cause,
        zone=zone,
        identity=f"{activity.AutoScalingGroupName}/{activity.RequestId or event.id}",
        at=at,
    )


def reason_of(words: str) -> Literal["no-capacity", "quota", "other"]:
    """Reason that a failed launch's words mean."""
    if re.search(_THROTTLED, words, re.IGNORECASE):
        return "other"
    if re.search(_NO_CAPACITY, words, re.IGNORECASE):
        return "no-capacity"
    return "quota" if re.search(_QUOTA, words, re.IGNORECASE) else "other"
