"""Settings of an Auto Scaling group, read and set by the names of ``pool_handover``: for commands, never a look.

A setting may be written twice. A group is never sized here, and no instance ended.
"""

from collections.abc import Mapping, Sequence

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.services import Nothing, QueryApi, RestApi, members, pages
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.pools.asg import WHERE
from pilotlight.adapters.pools.asg.groups import CLUSTER_TAG, NODE_GROUP_TAG, ScalingGroup, groups_of
from pilotlight.adapters.pools.asg.hooks import ENDS, HOOK
from pilotlight.errors import BadRequest
from pilotlight.ports.clouds import CALL_S, OPEN, CloudAccount
from pilotlight.tools.install.handover import KEPT, GroupState, Handover
from pilotlight.tools.install.handover_steps import WARM_BY_EKS
from pilotlight.tools.install.node_groups import AT_WORK, read_node_group, update_node_group

_SIZES = {
    "min": "MinSize",
    "max": "MaxSize",
    "protects-new": "NewInstancesProtectedFromScaleIn",
    "capacity-rebalance": "CapacityRebalance",
    "max-lifetime": "MaxInstanceLifetime",
}
_BY_EKS = {"min": "minSize", "max": "maxSize"}
"""Sizes of a node group, by EKS's names."""
_PROCESSES = {"rebalances": "AZRebalance", "alarms": "AlarmNotification", "schedules": "ScheduledActions"}
"""Processes of a group that end or begin nodes by themselves: spreading, scaling policies, scheduled actions."""
_TAGS = {"tag": "false", "launch-tag": "true"}
REFRESHES = ("Pending", "InProgress", "Baking", "Cancelling", "RollbackInProgress")
"""The states of an instance refresh in which it replaces nodes, or will."""


class _Hook(msgspec.Struct, frozen=True, omit_defaults=True):
    """A hook as it was put; fields are AWS's own."""

    LifecycleHookName: str = ""
    LifecycleTransition: str = ""
    HeartbeatTimeout: int = 3600
    DefaultResult: str = "ABANDON"
    NotificationTargetARN: str = ""
    RoleARN: str = ""
    NotificationMetadata: str = ""


class _Hooks(msgspec.Struct, frozen=True):
    LifecycleHooks: tuple[_Hook, ...] = ()


class _Predictive(msgspec.Struct, frozen=True):
    Mode: str = "ForecastOnly"


class _Policy(msgspec.Struct, frozen=True):
    PolicyName: str = ""
    Enabled: bool = True
    PredictiveScalingConfiguration: _Predictive | None = None

    @property
    def predicts(self) -> bool:
        """True where it sizes its group by forecasts, which no suspended process holds up for sure."""
        mode = self.PredictiveScalingConfiguration
        return self.Enabled and mode is not None and mode.Mode == "ForecastAndScale"


class _Policies(msgspec.Struct, frozen=True):
    ScalingPolicies: tuple[_Policy, ...] = ()
    NextToken: str = ""


class _Action(msgspec.Struct, frozen=True):
    ScheduledActionName: str = ""


class _Scheduled(msgspec.Struct, frozen=True):
    ScheduledUpdateGroupActions: tuple[_Action, ...] = ()
    NextToken: str = ""


class _Refresh(msgspec.Struct, frozen=True):
    InstanceRefreshId: str = ""
    Status: str = ""


class _Refreshes(msgspec.Struct, frozen=True):
    InstanceRefreshes: tuple[_Refresh, ...] = ()


def open_handover(where: str, account: CloudAccount) -> Handover | None:
    """The groups of a region or an EKS cluster; None where ``where`` is no address of either."""
    named = WHERE.fullmatch(where)
    if named is None:
        return None
    credentials = Credentials(named[1], account.environ, account.role)
    api = QueryApi("autoscaling", named[1], credentials, account.environ)
    eks = RestApi("eks", named[1], credentials, account.environ)
    return AsgHandover(api, eks, named[2] or "", account.names)


class AsgHandover:
    """The Handover port. ``names`` are node groups of the EKS ``cluster``, or names of groups, by pool."""

    def __init__(self, autoscaling: QueryApi, eks: RestApi, cluster: str, names: Mapping[str, str]) -> None:
        self._api, self._eks, self._cluster, self._names = autoscaling, eks, cluster, dict(names)
        self._groups: dict[str, ScalingGroup] = {}

    def read(self) -> Mapping[str, GroupState]:
        groups = groups_of(self._api, self._cluster, self._names)
        self._groups = {group.AutoScalingGroupName: group for group in groups.values()}
        return {pool: self._state(group) for pool, group in groups.items()}

    def put(self, group: str, name: str, to: str) -> None:
        kind, _, key = name.partition(" ")
        node_group = self._node_group(group)
        if node_group and kind in _BY_EKS:
            self._size(group, kind, int(to))
        elif node_group and kind == "repairs":
            self._by_eks(group, {"nodeRepairConfig": {"enabled": to == "true"}})
        elif kind in _SIZES:
            self._set("UpdateAutoScalingGroup", {"AutoScalingGroupName": group, _SIZES[kind]: to})
        elif kind in _PROCESSES:
            action = "ResumeProcesses" if to == "true" else "SuspendProcesses"
            self._set(action, {"AutoScalingGroupName": group, **members("ScalingProcesses", [_PROCESSES[kind]])})
        elif kind in _TAGS:
            self._tag(group, key, to, _TAGS[kind])
        elif kind == "hook":
            self._put_hook(group, to)
        elif kind == "warm":
            self._warm(group, to)
        else:
            raise BadRequest(f"group {group} has no setting {name!r}; update Pilotlight, which wrote it down")

    def _node_group(self, group: str) -> str:
        found = self._groups.get(group)
        return found.tag(NODE_GROUP_TAG) if found is not None else ""

    def _size(self, group: str, kind: str, to: int) -> None:
        """A min above what the group wants is refused by EKS, unless the size that it wants rises with it."""
        scaling: dict[str, int] = {_BY_EKS[kind]: to}
        if kind == "min" and to > self._groups[group].DesiredCapacity:
            scaling["desiredSize"] = to
        self._by_eks(group, {"scalingConfig": scaling})

    def _by_eks(self, group: str, wanted: Mapping[str, object]) -> None:
        found = self._groups[group]
        update_node_group(self._eks, found.tag(CLUSTER_TAG), found.tag(NODE_GROUP_TAG), wanted)

    def _tag(self, group: str, key: str, to: str, spreads: str) -> None:
        tag = {"ResourceId": group, "ResourceType": "auto-scaling-group", "Key": key}
        if to:
            tag |= {"Value": to, "PropagateAtLaunch": spreads}
        self._set(
            "CreateOrUpdateTags" if to else "DeleteTags",
            {f"Tags.member.1.{name}": value for name, value in tag.items()},
        )

    def _put_hook(self, group: str, to: str) -> None:
        named = {"AutoScalingGroupName": group, "LifecycleHookName": HOOK}
        if not to:
            self._set("DeleteLifecycleHook", named)
            return
        hook = typed_json.decode(to, dict[str, str | int])
        self._set("PutLifecycleHook", {**{name: str(value) for name, value in hook.items()}, **named})

    def _warm(self, group: str, to: str) -> None:
        """A warm pool of ours, or none: those of node groups are EKS's, which takes one of an older Pilotlight away."""
        if to not in ("", KEPT):
            raise BadRequest(f"the warm pool of {group} was {to}; make it so by hand")
        if name := self._node_group(group):
            if to:
                raise BadRequest(f"node group {name}: {WARM_BY_EKS}")
            self._by_eks(group, {"warmPoolConfig": {"enabled": False}})
        elif to:
            sizes = {"MaxGroupPreparedCapacity": "0", "MinSize": "0", "PoolState": "Stopped"}
            reuse = {"InstanceReusePolicy.ReuseOnScaleIn": "true"}
            self._set("PutWarmPool", {"AutoScalingGroupName": group, **sizes, **reuse})
        else:
            self._set("DeleteWarmPool", {"AutoScalingGroupName": group})

    def _hook(self, group: ScalingGroup) -> _Hook | None:
        asked = {"AutoScalingGroupName": group.AutoScalingGroupName}
        found = self._api.read("DescribeLifecycleHooks", _Hooks, asked).LifecycleHooks
        return next((h for h in found if h.LifecycleHookName == HOOK and h.LifecycleTransition == ENDS), None)

    def _set(self, action: str, asked: Mapping[str, str]) -> None:
        with Deadline(CALL_S) as deadline:
            self._api.change(deadline, action, Nothing, asked, OPEN)

    def _state(self, group: ScalingGroup) -> GroupState:
        own = {"AutoScalingGroupName": group.AutoScalingGroupName}
        policies = [
            p for page in pages(self._api.read, "DescribePolicies", _Policies, own) for p in page.ScalingPolicies
        ]
        scheduled = pages(self._api.read, "DescribeScheduledActions", _Scheduled, own)
        refreshes = self._api.read("DescribeInstanceRefreshes", _Refreshes, own).InstanceRefreshes
        acts = {
            "alarms": any(one.Enabled for one in policies),
            "schedules": any(page.ScheduledUpdateGroupActions for page in scheduled),
        }
        name = group.tag(NODE_GROUP_TAG)
        managed = read_node_group(self._eks, group.tag(CLUSTER_TAG), name) if name else None
        busy = [
            f"instance refresh {one.InstanceRefreshId} is {one.Status}" for one in refreshes if one.Status in REFRESHES
        ]
        busy += [f"EKS is {managed.status} node group {name}"] if managed and managed.status in AT_WORK else []
        busy += [
            f"scaling policy {one.PolicyName} predicts and scales: set it to ForecastOnly, or take it out"
            for one in policies
            if one.predicts
        ]
        suspended = group.suspended_processes
        more = {
            **{
                kind: _said(_PROCESSES[kind] not in suspended)
                for kind, there in acts.items()
                if there or _PROCESSES[kind] in suspended
            },
            **({"repairs": _said(managed.nodeRepairConfig.enabled)} if managed else {}),
        }
        return _described(group, self._hook(group), more, busy, managed=bool(name))


def _described(
    group: ScalingGroup, hook: _Hook | None, more: Mapping[str, str], busy: Sequence[str], *, managed: bool
) -> GroupState:
    tags = {f"{'launch-tag' if tag.PropagateAtLaunch else 'tag'} {tag.Key}": tag.Value for tag in group.Tags}
    return GroupState(
        group=group.AutoScalingGroupName,
        settings={
            **tags,
            "min": str(group.MinSize),
            "max": str(group.MaxSize),
            "protects-new": _said(group.NewInstancesProtectedFromScaleIn),
            "rebalances": _said("AZRebalance" not in group.suspended_processes),
            "capacity-rebalance": _said(group.CapacityRebalance),
            "max-lifetime": str(group.MaxInstanceLifetime),
            **more,
            "hook": msgspec.json.encode(hook, order="sorted").decode() if hook else "",
            "warm": _warm(group),
        },
        nodes=group.size,
        zones=len(group.AvailabilityZones),
        waiting=sum(one.waits_to_end for one in group.Instances),
        managed=managed,
        busy="; ".join(busy),
    )


def _warm(group: ScalingGroup) -> str:
    """Settings of its warm pool. Its sizes move with what stands by; who moves them is told by the rest."""
    config = group.WarmPoolConfiguration
    if config is None or config.Status:
        return ""
    return KEPT if config.takes_back else msgspec.json.encode(config, order="sorted").decode()


def _said(value: bool) -> str:
    return "true" if value else "false"
