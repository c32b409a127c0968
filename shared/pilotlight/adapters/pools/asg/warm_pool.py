"""A group's warm pool: instances that stand stopped beside it and are drawn on when its desired capacity is raised.

They are none of its nodes, and cost their disks. ``returning`` puts nodes into one that takes them back.
"""

from collections.abc import Sequence

import msgspec

from pilotlight.adapters.aws_api.services import QueryApi
from pilotlight.adapters.pools.asg.groups import PAGE, Instance, ScalingGroup

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
    found: list[Instance] = []
    token = ""
    while True:
        page = api.read("DescribeWarmPool", _Warm, asked | ({"NextToken": token} if token else {}))
        found += [one for one in page.Instances if not one.LifecycleState.startswith(ENDS)]
        token = page.NextToken
        if not token:
            return found


def startable(instances: Sequence[Instance]) -> int:
    """Number of nodes that can be started now."""
    return sum(one.LifecycleState == STOPPED for one in instances)
