"""Commitments that cover a type: Reserved Instances, and Savings Plans of its family in the region.

AWS applies them to whatever runs on demand in the account, so what others run takes of them too: only what is left over
is a pool's, and several pools of one type share it. "Compute" plans cover whatever runs in any region, in Fargate and
in Lambda, so what is seen here does not tell what is left of one. Cost Explorer does: the least that went unused on a
day of the last week counts, for the first type by name that it pays for. What a pool's own nodes used of it in that
week counts as used too: rather too little is told than too much. A role without these rights is told nothing.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

import msgspec

from pilotlight.adapters.aws_api.services import JsonApi, QueryApi, RestApi, members
from pilotlight.adapters.pools.asg.groups import ScalingGroup, Seen, running_instances
from pilotlight.errors import Denied
from pilotlight.facts.offers.paid_capacity import Paid
from pilotlight.ports.state import Clock
from pilotlight.units import HOUR, Seconds

LINUX = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")
PLAN, COMPUTE = "EC2Instance", "Compute"
KEEP_S: Seconds = 6 * HOUR
"""AWS charges a cent for every question."""
DAYS, LATE_DAYS = 7, 2
"""So many days are looked at; the last two are not told whole yet."""


class _Bought(msgspec.Struct, frozen=True):
    """Reserved Instances."""

    reservedInstancesId: str
    instanceType: str = ""
    instanceCount: int = 0
    productDescription: str = ""
    scope: str = "Region"
    availabilityZone: str = ""
    end: datetime | None = None


class _AllBought(msgspec.Struct, frozen=True):
    reservedInstancesSet: tuple[_Bought, ...] = ()


class _Plan(msgspec.Struct, frozen=True):
    savingsPlanId: str
    savingsPlanArn: str = ""
    savingsPlanType: str = ""
    region: str = ""
    ec2InstanceFamily: str = ""
    commitment: str = "0"
    end: datetime | None = None


class _Plans(msgspec.Struct, frozen=True):
    savingsPlans: tuple[_Plan, ...] = ()
    nextToken: str | None = None


class _Property(msgspec.Struct, frozen=True):
    name: str = ""
    value: str = ""


class _Rate(msgspec.Struct, frozen=True):
    rate: str = "0"
    properties: tuple[_Property, ...] = ()

    def property_named(self, name: str) -> str:
        """One of its properties."""
        return next((one.value for one in self.properties if one.name == name), "")


class _Rates(msgspec.Struct, frozen=True):
    searchResults: tuple[_Rate, ...] = ()
    nextToken: str | None = None


class _Used(msgspec.Struct, frozen=True):
    TotalCommitment: str = "0"
    UnusedCommitment: str = "0"


class _Day(msgspec.Struct, frozen=True):
    Utilization: _Used = _Used()


class _Days(msgspec.Struct, frozen=True):
    SavingsPlansUtilizationsByTime: tuple[_Day, ...] = ()


class UnusedPlans:
    """Dollars an hour that are left of plans. A role without the right is told nothing: then nothing is. Safe for many
    threads."""

    def __init__(self, explorer: JsonApi, clock: Clock) -> None:
        self._explorer, self._clock = explorer, clock
        self._known: dict[str, Decimal] = {}
        self._age: Callable[[], Seconds] | None = None

    def an_hour(self, arns: Sequence[str]) -> Mapping[str, Decimal]:
        """Dollars an hour of each plan that nothing used."""
        if self._age is None or self._age() > KEEP_S or not set(arns) <= self._known.keys():
            self._known = {arn: self._least(arn) for arn in arns}
            self._age = self._clock.stopwatch()
        return self._known

    def days(self, arn: str) -> Sequence[_Day]:
        """The days of a plan that are looked at. Raises ``Forbidden`` without the right."""
        ends = self._clock.now().date() - timedelta(days=LATE_DAYS - 1)
        asked = {
            "TimePeriod": {"Start": f"{ends - timedelta(days=DAYS)}", "End": f"{ends}"},
            "Granularity": "DAILY",
            "Filter": {"Dimensions": {"Key": "SAVINGS_PLAN_ARN", "Values": [arn]}},
        }
        return self._explorer.read("GetSavingsPlansUtilization", _Days, asked).SavingsPlansUtilizationsByTime

    def _least(self, arn: str) -> Decimal:
        try:
            days = self.days(arn)
        except Denied:
            return Decimal(0)
        told = [day.Utilization for day in days if Decimal(day.Utilization.TotalCommitment) > 0]
        return min((Decimal(day.UnusedCommitment) / 24 for day in told), default=Decimal(0))


class Plans(NamedTuple):
    """The account's Savings Plans, and what nothing used of them."""

    api: RestApi
    unused: UnusedPlans


def ask_rates(plans: RestApi, region: str, kind: str) -> None:
    """Ask for a type's rate of one plan, where there is one. Raises ``Forbidden`` without the right."""
    for plan in _active(plans)[:1]:
        _rates(plans, plan, region, kind)


def ask_unused(plans: RestApi, unused: UnusedPlans) -> None:
    """Ask what was left of one Compute plan, where there is one: a cent. Raises ``Forbidden`` without the right."""
    arns = [one.savingsPlanArn for one in _active(plans) if one.savingsPlanType == COMPUTE and one.savingsPlanArn]
    for arn in arns[:1]:
        unused.days(arn)


def commitments_by_pool(
    ec2: QueryApi, plans: Plans, groups: Mapping[str, ScalingGroup], kinds: Mapping[str, str]
) -> dict[str, tuple[Paid, ...]]:
    """Commitments that pay for each of these pools, whose types ``kinds`` names; what is free is the first's by
    name."""
    types = sorted({kinds[pool] for pool in groups})
    active = _active(plans.api)
    anywhere = _of_compute(plans, active, ec2.region, types)
    like = sorted({f"{one.partition('.')[0]}.*" for one in types})
    running = [one for one in running_instances(ec2, like) if not one.instanceLifecycle]
    found: dict[str, tuple[Paid, ...]] = {}
    for kind in types:
        alike = {pool: groups[pool] for pool in sorted(groups) if kinds[pool] == kind}
        own = frozenset(one.InstanceId for group in alike.values() for one in group.live)
        others = [one for one in running if one.instanceId not in own]
        own_plans = _planned(plans.api, active, ec2.region, kind, others)
        found |= _shared([*_reserved(ec2, kind, others), *own_plans, *anywhere.get(kind, ())], alike)
    return found


def _shared(left: Sequence[Paid], groups: Mapping[str, ScalingGroup]) -> dict[str, tuple[Paid, ...]]:
    """Each pool has what it runs on, and the first that can use it what is free."""
    sizes = {pool: group.size for pool, group in groups.items()}
    found: dict[str, list[Paid]] = {pool: [] for pool in groups}
    for one in left:
        fit = [pool for pool, group in groups.items() if not one.zone or one.zone in group.AvailabilityZones]
        free = one.count
        uses: dict[str, int] = {}
        for pool in fit:
            uses[pool] = min(sizes[pool], free)
            sizes[pool] -= uses[pool]
            free -= uses[pool]
        for n, pool in enumerate(fit):
            mine = free if n == 0 else 0
            if uses[pool] or mine:
                found[pool].append(msgspec.structs.replace(one, count=uses[pool] + mine, free=mine))
    return {pool: tuple(paid) for pool, paid in found.items()}


def _reserved(ec2: QueryApi, kind: str, others: Sequence[Seen]) -> list[Paid]:
    """Reserved Instances of a type that what others run does not use: those of a zone by what runs there."""
    asked = {
        "Filter.1.Name": "state",
        "Filter.1.Value.1": "active",
        "Filter.2.Name": "instance-type",
        **members("Filter.2.Value", [kind], ""),
    }
    try:
        all_ = ec2.read("DescribeReservedInstances", _AllBought, asked).reservedInstancesSet
    except Denied:
        return []
    bought = sorted(
        (one for one in all_ if one.productDescription in LINUX),
        key=lambda one: (one.scope == "Region", one.reservedInstancesId),
    )
    used = Counter(one.placement.availabilityZone for one in others if one.instanceType == kind)
    found = []
    for one in bought:
        zone = "" if one.scope == "Region" else one.availabilityZone
        count = one.instanceCount
        for where in [zone] if zone else sorted(used):
            takes = min(count, used[where])
            used[where] -= takes
            count -= takes
        if count:
            found.append(Paid(name=one.reservedInstancesId, count=count, free=count, zone=zone, ends=one.end))
    return found


def _active(plans: RestApi) -> Sequence[_Plan]:
    try:
        return plans.look_up("/DescribeSavingsPlans", _Plans, {"states": ["active"]}).savingsPlans
    except Denied:
        return ()


def _of_compute(plans: Plans, active: Sequence[_Plan], region: str, types: Sequence[str]) -> dict[str, list[Paid]]:
    """By type, how many nodes Compute plans pay for that nothing used: one dollar of a plan counts once."""
    mine = [one for one in active if one.savingsPlanType == COMPUTE and one.savingsPlanArn]
    unused = plans.unused.an_hour([one.savingsPlanArn for one in mine]) if mine else {}
    found: dict[str, list[Paid]] = {}
    for plan in mine:
        left = unused[plan.savingsPlanArn]
        for kind in types if left else ():
            try:
                rate = _rates(plans.api, plan, region, kind).get(kind)
            except Denied:
                return {}
            if rate and (count := int(left / rate)):
                left -= count * rate
                paid = Paid(name=plan.savingsPlanId, count=count, free=count, ends=plan.end)
                found.setdefault(kind, []).append(paid)
    return found


def _planned(plans: RestApi, active: Sequence[_Plan], region: str, kind: str, others: Sequence[Seen]) -> list[Paid]:
    """Number of nodes of a type that the Savings Plans of its family still pay for, by their own rates: never too many,
    since what others run is taken off each.
    """
    family = kind.partition(".")[0]
    try:
        mine = [
            one for one in active if (one.savingsPlanType, one.region, one.ec2InstanceFamily) == (PLAN, region, family)
        ]
        found = []
        for plan in mine:
            rates = _rates(plans, plan, region)
            if kind not in rates:
                continue
            used = sum((rates.get(one.instanceType, Decimal(0)) for one in others), Decimal(0))
            count = int(max(Decimal(0), Decimal(plan.commitment) - used) / rates[kind])
            if count:
                found.append(Paid(name=plan.savingsPlanId, count=count, free=count, ends=plan.end))
    except Denied:
        return []
    return found


def _rates(plans: RestApi, plan: _Plan, region: str, kind: str = "") -> Mapping[str, Decimal]:
    """Dollars an hour that each type, or one, takes of a plan, where it tells a rate: Linux, on a shared machine."""
    wanted = {"region": [region], "productDescription": ["Linux/UNIX"], "tenancy": ["shared"]}
    wanted |= {"instanceType": [kind]} if kind else {}
    asked = {
        "savingsPlanId": plan.savingsPlanId,
        "filters": [{"name": name, "values": values} for name, values in wanted.items()],
    }
    found: dict[str, Decimal] = {}
    token: str | None = None
    while True:
        page = plans.look_up("/DescribeSavingsPlanRates", _Rates, asked | ({"nextToken": token} if token else {}))
        for one in page.searchResults:
            if (name := one.property_named("instanceType")) and Decimal(one.rate) > 0:
                found[name] = max(Decimal(one.rate), found.get(name, Decimal(0)))
        token = page.nextToken
        if not token:
            return found
