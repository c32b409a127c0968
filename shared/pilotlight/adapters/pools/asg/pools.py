"""Auto Scaling groups, those of EKS node groups among them: raised as a whole, lowered by one named instance only.

A desired capacity is never lowered: the group would choose who goes. Where a group allows it instances are launched by
``LaunchInstances``, which answers with them or with the reason and tries nothing later; else its desired capacity is
raised, and what it could not launch is read from its activities. ADR 17.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import msgspec

from pilotlight.adapters.aws_api.services import Nothing, QueryApi, RestApi
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.pools.asg.groups import NODE_GROUP_TAG, ScalingGroup, Seen, describe_instances, groups_of
from pilotlight.adapters.pools.asg.hooks import let_go, waits_for_us
from pilotlight.adapters.pools.asg.launch_answers import Launch, client_token, missing
from pilotlight.adapters.pools.asg.warm_pool import (
    before_growing,
    hold_without,
    put_by,
    release_standby,
    startable,
    warm_instances,
)
from pilotlight.errors import BadRequest, LastNode, QuotaExceeded
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.nodes.pool_state import Booting, InstanceState, LateRefusal, PoolState
from pilotlight.facts.offers.paid_capacity import Paid
from pilotlight.facts.offers.pool_quota import Quota
from pilotlight.ports.clouds import CALL_S, OPEN, UNBOUNDED, Gate, SizeGate
from pilotlight.ports.state import Clock
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.adapters.pools.asg.aws_commitments import Plans
    from pilotlight.adapters.pools.asg.service_quotas import AccountQuotas

WRITE_S: Seconds = CALL_S


class _Activity(msgspec.Struct, frozen=True):
    ActivityId: str


class _Terminated(msgspec.Struct, frozen=True):
    Activity: _Activity


class Opens(NamedTuple):
    """Openers of the account's other services: its quotas, EKS, and what is paid for already. Few looks need them."""

    quotas: "Callable[[], AccountQuotas]"
    eks: Callable[[], RestApi]
    plans: "Callable[[], Plans]"


class AsgPools:
    """The Pools port of one cluster. ``names`` are node groups of the EKS ``cluster``, or names of groups, by pool;
    ``reserved`` the instance types of the pools whose reservations are asked for.
    """

    cloud = "aws"

    def __init__(
        self,
        autoscaling: QueryApi,
        ec2: QueryApi,
        cluster: str,
        names: Mapping[str, str],
        clock: Clock,
        reserved: Mapping[str, str],
        opens: Opens,
    ) -> None:
        self._api, self._ec2, self._clock = autoscaling, ec2, clock
        self._cluster, self._names, self._reserved = cluster, dict(names), dict(reserved)
        self._opens = opens
        self._lock = Lock()

    def describe(self) -> Sequence[PoolState]:
        """Every pool of the policy that has a group. Instances that are nodes already are among those on their way."""
        groups = groups_of(self._api, self._cluster, self._names)
        seen = describe_instances(self._ec2, [one.InstanceId for group in groups.values() for one in group.live])
        paid: Mapping[str, tuple[Paid, ...]] = {}
        if self._reserved:
            from pilotlight.adapters.pools.asg.reservations import paid_by_pool

            paid = paid_by_pool(self._ec2, groups, self._reserved, seen, self._opens.plans)
        return tuple(self._state(pool, group, seen, paid.get(pool, ())) for pool, group in groups.items())

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        """A group tells that it terminates an instance, EC2 its state and what is to come of it."""
        from pilotlight.adapters.pools.asg.instance_states import state_of

        group = self._find(pool)
        found = next((one for one in group.Instances if one.InstanceId == instance), None)
        if found is None:
            return InstanceState(there=False)
        return state_of(self._ec2, found, describe_instances(self._ec2, [instance]).get(instance))

    def grow(
        self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, token: str = "", most: int = UNBOUNDED
    ) -> PoolState:
        with self._lock:
            group = self._find(pool)
            count = min(to - group.size, most)
            if count <= 0:
                return self._state(pool, group, describe_instances(self._ec2, [one.InstanceId for one in group.live]))
            to = group.size + count
            _see_that_it_can(pool, group, to)
            if group.launches_at_once(count, zone):
                return self._launch(pool, group, count, zone, partial(gate, to), token or str(uuid4()))
            return self._raise(pool, group, to, partial(gate, to))

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        with self._lock:
            self._end(pool, self._find(pool), instance, gate)

    def stop(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        """Where it cannot be made sure that only this instance would come to stand by, it is given back instead."""
        with self._lock:
            group = self._find(pool)
            if instance not in [one.InstanceId for one in group.live]:
                return
            _see_that_it_is_ours(pool, group)
            with Deadline(WRITE_S) as deadline:
                if put_by(self._api, deadline, group, instance, lambda: self._find(pool), gate):
                    return
            self._end(pool, self._find(pool), instance, gate)

    def _end(self, pool: str, group: ScalingGroup, instance: str, gate: Gate) -> None:
        if instance in [one.InstanceId for one in group.Instances if one.waits_to_end]:
            return self._let_go(group, instance, gate)
        _see_that_it_is_ours(pool, group)
        if instance not in [one.InstanceId for one in group.live]:
            return self._out_of_the_warm_pool(group, instance, gate)
        beyond = len(group.live) > group.DesiredCapacity  # Nothing takes its place then, and no size can go down.
        asked = {"InstanceId": instance, "ShouldDecrementDesiredCapacity": "false" if beyond else "true"}
        if not beyond and group.DesiredCapacity <= group.MinSize:
            name, least = group.AutoScalingGroupName, group.MinSize
            raise LastNode(f"group {name} keeps {least} at least; set its min to 0 to give this one back")
        with Deadline(WRITE_S) as deadline:
            if group.takes_back:
                hold_without(self._api, deadline, group)
            try:
                self._api.change(deadline, "TerminateInstanceInAutoScalingGroup", _Terminated, asked, gate)
            except BadRequest as no:
                if "not found" not in str(no).lower():
                    raise

    def _out_of_the_warm_pool(self, group: ScalingGroup, instance: str, gate: Gate) -> None:
        if group.takes_back:
            with Deadline(WRITE_S) as deadline:
                release_standby(self._api, deadline, group, instance, gate)

    def _refusal(self, group: ScalingGroup) -> LateRefusal | None:
        """Why a group is short, by its activities, else as ``_ailment`` has it."""
        from pilotlight.adapters.pools.asg.late_refusals import last_refusal

        return last_refusal(self._api, group.AutoScalingGroupName, lambda: self._ailment(group))

    def _ailment(self, group: ScalingGroup) -> LateRefusal | None:
        """Why a group is short, where its own activities do not tell: EKS may, of its node groups."""
        name = group.tag(NODE_GROUP_TAG)
        if not self._cluster or not name:
            return None
        from pilotlight.adapters.pools.asg.late_refusals import ailment

        return ailment(self._eks, self._cluster, name, self._clock.now())

    @cached_property
    def _eks(self) -> RestApi:
        return self._opens.eks()

    @cached_property
    def _account_quotas(self) -> "AccountQuotas":
        return self._opens.quotas()

    def quotas(self, types: Mapping[str, tuple[str, CapacityType]]) -> Mapping[str, Quota]:
        return self._account_quotas.read(types)

    def _let_go(self, group: ScalingGroup, instance: str, gate: Gate) -> None:
        """One that its group terminates already: where it waits for us, it need not any more."""
        if waits_for_us(self._api, group.AutoScalingGroupName):
            with Deadline(WRITE_S) as deadline:
                let_go(self._api, deadline, group.AutoScalingGroupName, instance, gate)

    def _launch(self, pool: str, group: ScalingGroup, count: int, zone: str, gate: Gate, token: str) -> PoolState:
        name = group.AutoScalingGroupName
        asked = {
            "AutoScalingGroupName": name,
            "RequestedCapacity": str(count),
            "ClientToken": client_token(token),
            "RetryStrategy": "none",
        }
        if zone:
            asked[f"AvailabilityZone{'Ids' if '-az' in zone else 's'}.member.1"] = zone
        with Deadline(WRITE_S) as deadline:
            answer = self._api.change(deadline, "LaunchInstances", Launch, asked, gate)
        if (no := missing(answer, count, name)) is not None:
            raise no
        now = self._clock.now()
        booting = tuple(Booting(instance=one, requested_at=now) for one in answer.instances)
        return PoolState(name=pool, desired=group.size + count, booting=booting)

    def _raise(self, pool: str, group: ScalingGroup, to: int, gate: Gate) -> PoolState:
        asked = {
            "AutoScalingGroupName": group.AutoScalingGroupName,
            "DesiredCapacity": str(to),
            "HonorCooldown": "false",
        }
        with Deadline(WRITE_S) as deadline:
            if group.takes_back:
                before_growing(self._api, deadline, group)
            self._api.change(deadline, "SetDesiredCapacity", Nothing, asked, gate)
        return PoolState(name=pool, desired=to)

    def _find(self, pool: str) -> ScalingGroup:
        name = self._names.get(pool, pool)
        group = groups_of(self._api, self._cluster, {pool: name}).get(pool)
        if group is None:
            where = f"no node group of {self._cluster} and no group" if self._cluster else "no Auto Scaling group"
            raise BadRequest(f"{where} is called {name}; create it, or mend pools.{pool}.cluster_pool")
        return group

    def _state(
        self, pool: str, group: ScalingGroup, seen: Mapping[str, Seen], paid: tuple[Paid, ...] = ()
    ) -> PoolState:
        now = self._clock.now()  # An instance that EC2 does not know yet is as young as can be.
        live = group.live
        since = {id_: one.launchTime for id_, one in seen.items()}
        booting = tuple(Booting(instance=one.InstanceId, requested_at=since.get(one.InstanceId) or now) for one in live)
        owed = group.size - len(live)
        refusal = self._refusal(group) if owed else None
        standing = warm_instances(self._api, group)
        return PoolState(
            name=pool,
            desired=group.size,
            booting=booting,
            standby=startable(standing),
            stops=group.takes_back and group.NewInstancesProtectedFromScaleIn,
            stopped=tuple(one.InstanceId for one in standing) if group.takes_back else (),
            refusal=refusal,
            owed=owed if refusal else 0,
            leaves=group.leaves,
            rules=group.rules,
            paid=paid,
            drifted=group.drifted_nodes,
        )


def _see_that_it_is_ours(pool: str, group: ScalingGroup) -> None:
    """Raises where it was handed back, perhaps since the look that decided on a call."""
    if group.rules.handed_back:
        name, at = group.AutoScalingGroupName, group.rules.handed_back[:20]
        raise BadRequest(f"group {name} was handed back at {at}: pilotlight takeover --pool {pool} takes it again")


def _see_that_it_can(pool: str, group: ScalingGroup, to: int) -> None:
    """Raises what the group would refuse, or do wrong, before anything is sent."""
    _see_that_it_is_ours(pool, group)
    name = group.AutoScalingGroupName
    if not group.counts_nodes:
        raise BadRequest(f"group {name} counts weights, not instances; give pool {pool} a group of one size")
    if "Launch" in group.suspended_processes:
        raise BadRequest(
            f"the process Launch of group {name} is suspended; resume it, or set pools.{pool}.mode: advise"
        )
    if to > group.MaxSize:
        raise QuotaExceeded(f"group {name} has at most {group.MaxSize}, and {to} are wanted; raise its max size")
