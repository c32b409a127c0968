"""A group's warm pool: instances that stand stopped beside it and are drawn on when its desired capacity is raised.

They are none of its nodes, and cost their disks. Nodes are put into it and taken out of it by counts, since AWS ends no
named instance there: a scale-in by count returns a node to its warm pool, and the group chooses which. So it is asked
for only once every other instance was read back as protected, and the one that is meant as not protected: ADR 29. The
size of the warm pool is set beside it so that AWS neither fills it nor ends what stands by.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec

from pilotlight.adapters.aws_api.services import Nothing, QueryApi, members, pages
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.pools.asg.groups import PAGE, Instance, ScalingGroup
from pilotlight.errors import Denied, PilotlightError
from pilotlight.ports.clouds import OPEN, Gate

STOPPED = "Warmed:Stopped"
"""The state of one that can be started. Others of the pool are still being made ready, or end."""
ENDS = "Warmed:Terminat"


class _Warm(msgspec.Struct, frozen=True):
    Instances: tuple[Instance, ...] = ()
    NextToken: str = ""


def warm_instances(api: QueryApi, group: ScalingGroup) -> Sequence[Instance]:
    """Those that are in it and stay; none where the group has no warm pool, which is not asked for then."""
    if group.WarmPoolConfiguration is None or not group.WarmPoolSize:
        return ()
    asked = {"AutoScalingGroupName": group.AutoScalingGroupName, "MaxRecords": str(PAGE // 2)}
    found = pages(api.read, "DescribeWarmPool", _Warm, asked)
    return [one for page in found for one in page.Instances if not one.LifecycleState.startswith(ENDS)]


def startable(instances: Sequence[Instance]) -> int:
    """Number of nodes that can be started now."""
    return sum(one.LifecycleState == STOPPED for one in instances)


def stops(group: ScalingGroup) -> bool:
    """True where a node of it can come to stand by: its warm pool takes it back, and nothing else would be ended."""
    ours = group.takes_back and group.NewInstancesProtectedFromScaleIn
    return ours and "Terminate" not in group.suspended_processes


def put_by(
    api: QueryApi,
    deadline: Deadline,
    group: ScalingGroup,
    instance: str,
    again: Callable[[], ScalingGroup],
    gate: Gate,
) -> bool:
    """Scale in by one, where that can only mean this instance. False: it cannot be made sure, and nothing was asked.

    ``again`` reads the group anew.
    """
    if not stops(group) or group.DesiredCapacity != len(group.live) or group.DesiredCapacity <= group.MinSize:
        return False
    size = group.DesiredCapacity
    sent = False

    def let_out() -> None:
        nonlocal sent
        gate()
        sent = True

    try:
        hold(api, deadline, group, size + len(warm_instances(api, group)))
        _protect(api, deadline, group, instance, on=False)
    except Denied:  # A role without these rights, or a group that refuses: the instance is ended by its name.
        return False
    try:
        if not _only(again(), instance, size):
            return False
        asked = {"AutoScalingGroupName": group.AutoScalingGroupName, "DesiredCapacity": str(size - 1)}
        api.change(deadline, "SetDesiredCapacity", Nothing, {**asked, "HonorCooldown": "false"}, let_out)
    except PilotlightError:
        if not sent:  # It stays, and may get work again.
            with suppress(PilotlightError):
                _protect(api, deadline, group, instance, on=True)
        raise
    return True


def _protect(api: QueryApi, deadline: Deadline, group: ScalingGroup, instance: str, *, on: bool) -> None:
    asked = {
        "AutoScalingGroupName": group.AutoScalingGroupName,
        "ProtectedFromScaleIn": "true" if on else "false",
        **members("InstanceIds", [instance]),
    }
    api.change(deadline, "SetInstanceProtection", Nothing, asked, OPEN)


def _only(group: ScalingGroup, instance: str, size: int) -> bool:
    """True where a group of this size could scale in no other instance, nor one that comes meanwhile."""
    config = group.WarmPoolConfiguration
    keeps = config is not None and (config.MaxGroupPreparedCapacity or 0) >= size
    exposed = [one.InstanceId for one in group.Instances if one.live and not one.ProtectedFromScaleIn]
    there = group.DesiredCapacity == len(group.live) == size
    steady = all(one.LifecycleState == "InService" for one in group.live)
    return stops(group) and keeps and there and steady and exposed == [instance]


def hold(api: QueryApi, deadline: Deadline, group: ScalingGroup, most: int, least: int = 0, gate: Gate = OPEN) -> None:
    """Set how many the group and its warm pool may have together, and how many the warm pool keeps at least."""
    config = group.WarmPoolConfiguration
    if config is None or (config.MaxGroupPreparedCapacity, config.MinSize) == (most, least):
        return
    asked: Mapping[str, str] = {
        "AutoScalingGroupName": group.AutoScalingGroupName,
        "MaxGroupPreparedCapacity": str(most),
        "MinSize": str(least),
        "PoolState": "Stopped",
        "InstanceReusePolicy.ReuseOnScaleIn": "true",
    }
    api.change(deadline, "PutWarmPool", Nothing, asked, gate)


def hold_without(api: QueryApi, deadline: Deadline, group: ScalingGroup) -> None:
    """Before a node is ended: what stands by stays as it is when the group is smaller by one. Who may not say so at
    AWS gets one launched there in its place, until a person lowers it."""
    standing = len(warm_instances(api, group))
    most = group.DesiredCapacity - 1 + standing
    config = group.WarmPoolConfiguration
    if config is not None and (config.MaxGroupPreparedCapacity or 0) > most:
        with suppress(Denied):
            hold(api, deadline, group, most, standing)


def before_growing(api: QueryApi, deadline: Deadline, group: ScalingGroup) -> None:
    """Keep the warm pool from replacing the nodes that are drawn out of it."""
    config = group.WarmPoolConfiguration
    if config is not None and config.MinSize:
        with suppress(Denied):
            hold(api, deadline, group, group.DesiredCapacity + len(warm_instances(api, group)))


def release_standby(api: QueryApi, deadline: Deadline, group: ScalingGroup, instance: str, gate: Gate) -> None:
    """One less that stands by: AWS ends one of them, all alike. One that does not stand by is no error."""
    standing = [one.InstanceId for one in warm_instances(api, group)]
    if instance in standing:
        hold(api, deadline, group, group.DesiredCapacity + len(standing) - 1, gate=gate)
