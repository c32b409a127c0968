"""Settings of an Auto Scaling group, read and set by the names of ``pool_handover``: for commands, never a look.

A setting may be written twice. A group is never sized here, and no instance ended.
"""

from collections.abc import Mapping
from uuid import uuid4

import msgspec

from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.services import Nothing, QueryApi, RestApi, members
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.pools.asg import WHERE
from pilotlight.adapters.pools.asg.groups import NODE_GROUP_TAG, ScalingGroup, groups_of
from pilotlight.adapters.pools.asg.hooks import ENDS, HOOK
from pilotlight.adapters.pools.asg.late_refusals import node_group
from pilotlight.errors import BadRequest, Denied, Unavailable
from pilotlight.ports.clouds import CALL_S, OPEN, CloudAccount
from pilotlight.tools.install.handover import KEPT, GroupState, Handover
from pilotlight.units import Seconds

_SIZES = {"min": "MinSize", "max": "MaxSize", "protects-new": "NewInstancesProtectedFromScaleIn"}
_TAGS = {"tag": "false", "launch-tag": "true"}
LOOK_S: Seconds = 5
LOOKS = 120
"""An update of a node group is waited for so often."""
NO_REUSE = "BOTTLEROCKET"
"""So begin the AMI types whose warm pools take no node back ("WarmPoolConfig", EKS's API reference)."""


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


class _Error(msgspec.Struct, frozen=True):
    errorCode: str = ""
    errorMessage: str = ""


class _Update(msgspec.Struct, frozen=True):
    id: str = ""
    status: str = ""
    errors: tuple[_Error, ...] = ()


class _Updated(msgspec.Struct, frozen=True):
    update: _Update = _Update()


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
        self._node_groups: dict[str, str] = {}

    def read(self) -> Mapping[str, GroupState]:
        groups = groups_of(self._api, self._cluster, self._names)
        self._node_groups = {g.AutoScalingGroupName: g.tag(NODE_GROUP_TAG) for g in groups.values()}
        return {pool: _state(group, self._hook(group)) for pool, group in groups.items()}

    def put(self, group: str, name: str, to: str) -> None:
        kind, _, key = name.partition(" ")
        if kind in _SIZES:
            self._set("UpdateAutoScalingGroup", {"AutoScalingGroupName": group, _SIZES[kind]: to})
        elif kind == "rebalances":
            action = "ResumeProcesses" if to == "true" else "SuspendProcesses"
            self._set(action, {"AutoScalingGroupName": group, **members("ScalingProcesses", ["AZRebalance"])})
        elif kind in _TAGS:
            self._tag(group, key, to, _TAGS[kind])
        elif kind == "hook":
            self._put_hook(group, to)
        elif kind == "warm":
            self._warm(group, to)
        else:
            raise BadRequest(f"group {group} has no setting {name!r}; update Pilotlight, which wrote it down")

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
        hook = msgspec.json.decode(to, type=dict[str, str | int])
        self._set("PutLifecycleHook", {**{name: str(value) for name, value in hook.items()}, **named})

    def _warm(self, group: str, to: str) -> None:
        """A warm pool of ours, or none: those of node groups are EKS's to make."""
        if to not in ("", KEPT):
            raise BadRequest(f"the warm pool of {group} was {to}; make it so by hand")
        if name := self._node_groups.get(group):
            _keep_warm_pool(self._eks, self._cluster, name, on=bool(to))
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


def _state(group: ScalingGroup, hook: _Hook | None) -> GroupState:
    tags = {f"{'launch-tag' if tag.PropagateAtLaunch else 'tag'} {tag.Key}": tag.Value for tag in group.Tags}
    return GroupState(
        group=group.AutoScalingGroupName,
        settings={
            **tags,
            "min": str(group.MinSize),
            "max": str(group.MaxSize),
            "protects-new": _said(group.NewInstancesProtectedFromScaleIn),
            "rebalances": _said("AZRebalance" not in group.suspended_processes),
            "hook": msgspec.json.encode(hook, order="sorted").decode() if hook else "",
            "warm": _warm(group),
        },
        nodes=max(group.DesiredCapacity, len(group.live)),
        zones=len(group.AvailabilityZones),
        waiting=sum(one.waits_to_end for one in group.Instances),
    )


def _warm(group: ScalingGroup) -> str:
    """Settings of its warm pool. Its sizes move with what stands by; who moves them is told by the rest."""
    config = group.WarmPoolConfiguration
    if config is None or config.Status:
        return ""
    return KEPT if config.takes_back else msgspec.json.encode(config, order="sorted").decode()


def _said(value: bool) -> str:
    return "true" if value else "false"


def _keep_warm_pool(api: RestApi, cluster: str, name: str, on: bool) -> None:
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
