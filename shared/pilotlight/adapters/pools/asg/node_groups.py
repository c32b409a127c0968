"""EKS's own word of a node group: what ails it, and the warm pool that EKS keeps beside it."""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal
from uuid import uuid4

import msgspec

from pilotlight.adapters.aws_api.rest import RestApi
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.codec.events.aws.autoscaling import reason_of
from pilotlight.errors import BadRequest, Denied, Retry, Unavailable
from pilotlight.facts.nodes.pool_state import LateRefusal
from pilotlight.ports.clouds import CALL_S, OPEN
from pilotlight.units import Seconds

LOOK_S: Seconds = 5
LOOKS = 120
"""An update of a node group is waited for so often."""
NO_REUSE = "BOTTLEROCKET"
"""So begin the AMI types whose warm pools take no node back ("WarmPoolConfig", EKS's API reference)."""


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

    nodegroupName: str = ""
    amiType: str = ""
    health: _Health = _Health()


class _Described(msgspec.Struct, frozen=True):
    nodegroup: NodeGroup = NodeGroup()


class _Error(msgspec.Struct, frozen=True):
    errorCode: str = ""
    errorMessage: str = ""


class _Update(msgspec.Struct, frozen=True):
    id: str = ""
    status: str = ""
    errors: tuple[_Error, ...] = ()


class _Updated(msgspec.Struct, frozen=True):
    update: _Update = _Update()


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


def keep_warm_pool(api: RestApi, cluster: str, name: str, on: bool) -> None:
    """Give a node group a warm pool that takes its nodes back and is filled by nobody, or take it away; until it is so.

    Raises ``Denied`` where EKS does not do it.
    """
    if on and (kind := node_group(api, cluster, name).amiType).startswith(NO_REUSE):
        raise BadRequest(f"node group {name} is of {kind}: EKS takes no node of it back; set its standby to 0")
    wanted: dict[str, object] = {"enabled": on}
    if on:
        wanted |= {"minSize": 0, "maxGroupPreparedCapacity": 0, "poolState": "STOPPED", "reuseOnScaleIn": True}
    asked = {"warmPoolConfig": wanted, "clientRequestToken": str(uuid4())}
    with Deadline(CALL_S) as deadline:
        path = f"/clusters/{cluster}/node-groups/{name}/update-config"
        update = api.change(deadline, path, _Updated, asked, OPEN).update
    for _ in range(LOOKS):
        if update.status != "InProgress":
            break
        api.sleep(LOOK_S)
        path = f"/clusters/{cluster}/updates/{update.id}?nodegroupName={name}"
        update = api.read(path, _Updated).update
    if update.status == "InProgress":
        raise Unavailable(f"EKS is still at update {update.id} of node group {name}; run it again later")
    if update.status != "Successful":
        why = "; ".join(f"{one.errorCode} {one.errorMessage}" for one in update.errors)[:240]
        raise Denied(f"EKS's update of node group {name}: {update.status}: {why or 'it does not say why'}")
