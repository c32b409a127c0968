"""EKS's own word of a node group, and what ails it as EKS says it."""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from pilotlight.adapters.aws_api.services import RestApi
from pilotlight.codec.events.aws.autoscaling import reason_of
from pilotlight.errors import Denied, Retry
from pilotlight.facts.nodes.pool_state import LateRefusal

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


class Issue(msgspec.Struct, frozen=True):
    """Issue that EKS reports of a node group."""

    code: str = ""
    message: str = ""
    resourceIds: tuple[str, ...] = ()


class _Health(msgspec.Struct, frozen=True):
    issues: tuple[Issue, ...] = ()


class NodeGroup(msgspec.Struct, frozen=True):
    """A node group as EKS tells it."""

    amiType: str = ""
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
