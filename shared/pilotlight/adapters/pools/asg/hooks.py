"""Lifecycle hooks: a group that terminates an instance waits for an answer. Only the hook of our name gets ours."""

from collections.abc import Mapping

import msgspec

from pilotlight.adapters.aws_api.services import Nothing, QueryApi
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.errors import BadRequest
from pilotlight.ports.clouds import Gate

HOOK = "pilotlight"
"""Others' hooks are others' work: what they wait for is not known here."""
ENDS = "autoscaling:EC2_INSTANCE_TERMINATING"
OVER = "no active lifecycle action"
"""What AWS says where nobody waits any more."""


class _Hook(msgspec.Struct, frozen=True):
    LifecycleHookName: str = ""
    LifecycleTransition: str = ""


class _Hooks(msgspec.Struct, frozen=True):
    LifecycleHooks: tuple[_Hook, ...] = ()


def waits_for_us(api: QueryApi, group: str) -> bool:
    """True where the group has our hook on what it terminates."""
    found = api.read("DescribeLifecycleHooks", _Hooks, {"AutoScalingGroupName": group}).LifecycleHooks
    return any(hook.LifecycleHookName == HOOK and hook.LifecycleTransition == ENDS for hook in found)


def let_go(api: QueryApi, deadline: Deadline, group: str, instance: str, gate: Gate) -> None:
    """Answer it: our work is done, the instance may end. That nobody waits any more is no error."""
    asked: Mapping[str, str] = {
        "AutoScalingGroupName": group,
        "LifecycleHookName": HOOK,
        "InstanceId": instance,
        "LifecycleActionResult": "CONTINUE",
    }
    try:
        api.change(deadline, "CompleteLifecycleAction", Nothing, asked, gate)
    except BadRequest as no:
        if OVER not in str(no).lower():
            raise
