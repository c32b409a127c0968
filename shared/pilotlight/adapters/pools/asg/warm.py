"""A group's warm pool: instances that stand stopped beside it and are drawn on when its desired capacity is raised.

They are none of its nodes, and cost their disks. Whoever made the warm pool keeps it: nothing here changes one.
"""

import msgspec

from pilotlight.adapters.aws_api.query import QueryApi
from pilotlight.adapters.pools.asg.groups import PAGE, Instance, ScalingGroup

STOPPED = "Warmed:Stopped"
"""The state of one that can be started. Others of the pool are still being made ready, or end."""


class _Warm(msgspec.Struct, frozen=True):
    Instances: tuple[Instance, ...] = ()
    NextToken: str = ""


def standing(api: QueryApi, group: ScalingGroup) -> int:
    """How many can be started now; 0 where the group has no warm pool, which is not asked for then."""
    if group.WarmPoolConfiguration is None or not group.WarmPoolSize:
        return 0
    asked = {"AutoScalingGroupName": group.AutoScalingGroupName, "MaxRecords": str(PAGE // 2)}
    found, token = 0, ""
    while True:
        page = api.read("DescribeWarmPool", _Warm, asked | ({"NextToken": token} if token else {}))
        found += sum(one.LifecycleState == STOPPED for one in page.Instances)
        token = page.NextToken
        if not token:
            return found
