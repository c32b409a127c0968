"""Auto Scaling groups as AWS describes them, and what a pool's size may be raised by."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from pilotlight.adapters.aws_api.services import QueryApi, members, pages
from pilotlight.facts.labels import HANDED_BACK
from pilotlight.facts.nodes.pool_state import PoolRules


class _Reuse(msgspec.Struct, frozen=True):
    ReuseOnScaleIn: bool = False


class WarmConfig(msgspec.Struct, frozen=True):
    """Its rules. AWS keeps max(``MaxGroupPreparedCapacity`` less the desired capacity, ``MinSize``) instances in it.

    ``MaxGroupPreparedCapacity`` is None, or -1, where the group's max size stands for it.
    """

    MaxGroupPreparedCapacity: int | None = None
    MinSize: int = 0
    PoolState: Literal["Stopped", "Running", "Hibernated"] = "Stopped"
    Status: str = ""
    InstanceReusePolicy: _Reuse = _Reuse()

    @property
    def takes_back(self) -> bool:
        """True where a node that the group scales in comes to stand by, and AWS fills it up to a number that was
        set."""
        most = self.MaxGroupPreparedCapacity
        reuses = self.InstanceReusePolicy.ReuseOnScaleIn and self.PoolState == "Stopped"
        return reuses and most is not None and most >= 0 and not self.Status


CLUSTER_TAG, NODE_GROUP_TAG = "eks:cluster-name", "eks:nodegroup-name"
"""EKS puts them on the group of each of its node groups."""
CLAIM_TAG = "k8s.io/cluster-autoscaler/enabled"
"""By it cluster-autoscaler finds its groups; EKS puts it on those of node groups, whether one runs or not."""
GONE = ("Terminat", "Detach", "Standby", "EnteringStandby", "Warmed:", "Quarantined")
"""So begin the states of instances that are none of a group's nodes now."""
PAGE = 100
AT_ONCE = 100
"""LaunchInstances launches so many in one call."""


class TemplateVersion(msgspec.Struct, frozen=True):
    """Which launch template a group uses."""

    LaunchTemplateId: str = ""
    Version: str = ""


class Instance(msgspec.Struct, frozen=True):
    """An instance of a group."""

    InstanceId: str
    LifecycleState: str = ""
    AvailabilityZone: str = ""
    ProtectedFromScaleIn: bool = False
    LaunchTemplate: TemplateVersion = TemplateVersion()

    @property
    def waits_to_end(self) -> bool:
        """True where its group terminates it, and waits for the answer of a lifecycle hook."""
        return self.LifecycleState == "Terminating:Wait"

    @property
    def live(self) -> bool:
        """True where it counts as one of the group's nodes."""
        return not self.LifecycleState.startswith(GONE)


class _Tag(msgspec.Struct, frozen=True):
    Key: str = ""
    Value: str = ""
    PropagateAtLaunch: bool = False


class _Process(msgspec.Struct, frozen=True):
    ProcessName: str = ""


class _Override(msgspec.Struct, frozen=True):
    WeightedCapacity: str = ""


class Targets(msgspec.Struct, frozen=True):
    """Those it names."""

    CapacityReservationIds: tuple[str, ...] = ()


class Specification(msgspec.Struct, frozen=True):
    """Which capacity reservations a group launches into."""

    CapacityReservationPreference: str = ""
    CapacityReservationTarget: Targets = Targets()


class _Template(msgspec.Struct, frozen=True):
    Overrides: tuple[_Override, ...] = ()
    LaunchTemplateSpecification: TemplateVersion = TemplateVersion()


class _Distribution(msgspec.Struct, frozen=True):
    OnDemandBaseCapacity: int = 0
    OnDemandPercentageAboveBaseCapacity: int = 100


class _Mixed(msgspec.Struct, frozen=True):
    LaunchTemplate: _Template = _Template()
    InstancesDistribution: _Distribution = _Distribution()


class ScalingGroup(msgspec.Struct, frozen=True):
    """A group with its instances; fields are AWS's own."""

    AutoScalingGroupName: str  # Unique in a region.
    MinSize: int  # Nodes.
    MaxSize: int  # Nodes.
    DesiredCapacity: int  # Nodes, or units of DesiredCapacityType.
    AvailabilityZones: tuple[str, ...] = ()  # By name, as us-east-1a.
    Instances: tuple[Instance, ...] = ()  # In every lifecycle state.
    Tags: tuple[_Tag, ...] = ()  # As people set them.
    LaunchConfigurationName: str = ""  # The older way to launch; "" for a template.
    MixedInstancesPolicy: _Mixed | None = None  # On demand and spot, or several types.
    SuspendedProcesses: tuple[_Process, ...] = ()  # Stopped by a person.
    WarmPoolConfiguration: WarmConfig | None = None  # None: it has no warm pool.
    WarmPoolSize: int = 0  # Nodes that stand by.
    NewInstancesProtectedFromScaleIn: bool = False  # Only we end its nodes.
    CapacityRebalance: bool = False  # It launches and ends spot nodes by itself when EC2 warns of them.
    MaxInstanceLifetime: int = 0  # Seconds after which it ends a node by itself; 0: never.
    DesiredCapacityType: str = ""  # "" or "units" for a number of instances.
    LaunchTemplate: TemplateVersion = TemplateVersion()  # Where it launches by one alone.
    CapacityReservationSpecification: Specification = Specification()  # Its preference for reservations.

    @property
    def template(self) -> TemplateVersion:
        """The launch template that it launches by, where it has one."""
        mixed = self.MixedInstancesPolicy
        return mixed.LaunchTemplate.LaunchTemplateSpecification if mixed else self.LaunchTemplate

    @property
    def drifted_nodes(self) -> tuple[str, ...]:
        """The nodes of another version than a group names by its number, as EKS does: "$Latest" tells none."""
        version = self.template.Version
        return tuple(
            one.InstanceId for one in self.live if version.isdigit() and one.LaunchTemplate.Version not in ("", version)
        )

    @property
    def live(self) -> Sequence[Instance]:
        """The instances that are its nodes, or will be."""
        return [instance for instance in self.Instances if instance.live]

    @property
    def leaves(self) -> tuple[str, ...]:
        """The instances that are none of its nodes any more, and may be nodes of the cluster still."""
        return tuple(one.InstanceId for one in self.Instances if not one.live)

    @property
    def size(self) -> int:
        """Its nodes, with those that it still owes. A desired capacity that was lowered takes no protected one, so
        there may be more than that ("Use instance scale-in protection", Amazon EC2 Auto Scaling's guide)."""
        return max(self.DesiredCapacity, len(self.live))

    @property
    def takes_back(self) -> bool:
        """True where its warm pool takes nodes back, up to a number that was set, and Auto Scaling may set it: a node
        group's is changed through EKS alone, which takes minutes ("Warm pools for managed node groups", EKS's guide).
        """
        config = self.WarmPoolConfiguration
        return config is not None and config.takes_back and not self.tag(NODE_GROUP_TAG)

    @property
    def suspended_processes(self) -> frozenset[str]:
        """The processes that a person has stopped: "Launch", "AZRebalance"."""
        return frozenset(process.ProcessName for process in self.SuspendedProcesses)

    @property
    def counts_nodes(self) -> bool:
        """True where its desired capacity is a number of instances: not of weights, vCPUs or memory."""
        overrides = self.MixedInstancesPolicy.LaunchTemplate.Overrides if self.MixedInstancesPolicy else ()
        weighted = any(override.WeightedCapacity not in ("", "1") for override in overrides)
        return not weighted and self.DesiredCapacityType in ("", "units")

    def launches_at_once(self, count: int, zone: str) -> bool:
        """True where LaunchInstances may be asked for so many: a template, one capacity type, one zone, no warm pool.

        Source: "Launch instances synchronously", EC2 Auto Scaling's user guide. A warm pool is only drawn on by a
        higher desired capacity.
        """
        split = self.MixedInstancesPolicy.InstancesDistribution if self.MixedInstancesPolicy else _Distribution()
        pure = split.OnDemandPercentageAboveBaseCapacity == 100 or (
            split.OnDemandPercentageAboveBaseCapacity == 0 and split.OnDemandBaseCapacity == 0
        )
        one_zone = bool(zone) or len(self.AvailabilityZones) == 1
        warm = self.WarmPoolConfiguration is not None
        return not self.LaunchConfigurationName and pure and one_zone and not warm and count <= AT_ONCE

    @property
    def rules(self) -> PoolRules:
        """Rules by which it acts by itself."""
        return PoolRules(
            group=self.AutoScalingGroupName,
            least=self.MinSize,
            most=self.MaxSize,
            zones=self.AvailabilityZones,
            rebalances="AZRebalance" not in self.suspended_processes,
            protects=self.NewInstancesProtectedFromScaleIn,
            claimed=any(tag.Key == CLAIM_TAG for tag in self.Tags),
            handed_back=self.tag(HANDED_BACK),
            at_once=self.launches_at_once(1, next(iter(self.AvailabilityZones), "")),
        )

    def tag(self, key: str) -> str:
        """The value of a tag, or empty."""
        return next((tag.Value for tag in self.Tags if tag.Key == key), "")


class _Groups(msgspec.Struct, frozen=True):
    AutoScalingGroups: tuple[ScalingGroup, ...] = ()
    NextToken: str = ""


def groups_of(api: QueryApi, cluster: str, names: Mapping[str, str]) -> dict[str, ScalingGroup]:
    """The group of each pool that has one. A pool is a node group of the EKS cluster, or a group by its own name."""
    found: dict[str, ScalingGroup] = {}
    if cluster:
        tagged = {g.tag(NODE_GROUP_TAG): g for g in _all(api, _filter(f"tag:{CLUSTER_TAG}", cluster))}
        found = {pool: tagged[name] for pool, name in names.items() if name in tagged}
    others = {name: pool for pool, name in names.items() if pool not in found}
    for some in _chunks(sorted(others), PAGE):
        for group in _all(api, members("AutoScalingGroupNames", some)):
            if group.AutoScalingGroupName in others:
                found[others[group.AutoScalingGroupName]] = group
    return {pool: found[pool] for pool in names if pool in found}


def _filter(name: str, value: str) -> dict[str, str]:
    return {"Filters.member.1.Name": name, "Filters.member.1.Values.member.1": value}


def _all(api: QueryApi, params: Mapping[str, str]) -> Iterator[ScalingGroup]:
    asked = {**params, "MaxRecords": str(PAGE)}
    return (
        group
        for page in pages(api.read, "DescribeAutoScalingGroups", _Groups, asked)
        for group in page.AutoScalingGroups
    )


class _State(msgspec.Struct, frozen=True):
    name: str = ""


class _Placed(msgspec.Struct, frozen=True):
    availabilityZone: str = ""


class Cpu(msgspec.Struct, frozen=True):
    """Its cores, and the vCPUs of each."""

    coreCount: int = 0
    threadsPerCore: int = 1


class Seen(msgspec.Struct, frozen=True):
    """An instance as EC2 tells it: its state, when it was launched or last started, on which reservation."""

    instanceId: str
    instanceType: str = ""
    instanceLifecycle: str = ""
    placement: _Placed = _Placed()
    cpuOptions: Cpu = Cpu()
    instanceState: _State = _State()
    spotInstanceRequestId: str = ""
    launchTime: datetime | None = None
    capacityReservationId: str = ""


class _Reservation(msgspec.Struct, frozen=True):
    instancesSet: tuple[Seen, ...] = ()


class _Reservations(msgspec.Struct, frozen=True):
    reservationSet: tuple[_Reservation, ...] = ()
    nextToken: str = ""


FILTERED = 200
"""EC2 takes so many values in one filter."""


def describe_instances(ec2: QueryApi, instances: Sequence[str]) -> dict[str, Seen]:
    """Those of these instances that EC2 knows: a group tells no times."""
    return {
        one.instanceId: one
        for some in _chunks(instances, FILTERED)
        for one in _instances(ec2, {"Filter.1.Name": "instance-id", **members("Filter.1.Value", some, "")})
    }


def running_instances(ec2: QueryApi, like: Sequence[str]) -> Iterator[Seen]:
    """Instances of the account that run, or begin to, of types whose names are like these."""
    states = {"Filter.1.Name": "instance-state-name", **members("Filter.1.Value", ("pending", "running"), "")}
    return _instances(ec2, {**states, "Filter.2.Name": "instance-type", **members("Filter.2.Value", like, "")})


def _instances(ec2: QueryApi, asked: Mapping[str, str]) -> Iterator[Seen]:
    found = pages(ec2.read, "DescribeInstances", _Reservations, asked)
    return (one for page in found for each in page.reservationSet for one in each.instancesSet)


def _chunks(values: Sequence[str], size: int) -> Iterable[Sequence[str]]:
    return (values[at : at + size] for at in range(0, len(values), size))
