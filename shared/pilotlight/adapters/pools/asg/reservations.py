"""On-Demand Capacity Reservations and Capacity Blocks that a group launches into.

By a target, or by the preference ``capacity-reservations-only``, AWS refuses to launch once that is full: all of it is
the group's. Other groups take what is open of their type and zones, and go on at the price on demand: of that only what
is free counts, and what they run on. Where nothing is reserved, what commitments cover counts (``commitments``).
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from pilotlight.adapters.aws_api.services import QueryApi, members, pages
from pilotlight.adapters.pools.asg.groups import Instance, ScalingGroup, Seen, Specification, Targets
from pilotlight.facts.offers.paid_capacity import Paid

if TYPE_CHECKING:
    from pilotlight.adapters.pools.asg.aws_commitments import Plans

ONLY = "capacity-reservations-only"
NEVER = "none"
BLOCK = "capacity-block"
TAKEN = timedelta(minutes=30)
"""EC2 begins to terminate a block's instances so long before it ends ("Monitor Capacity Blocks", EC2's user guide)."""


class _Reservation(msgspec.Struct, frozen=True):
    capacityReservationId: str
    instanceType: str = ""
    availabilityZone: str = ""
    totalInstanceCount: int = 0
    availableInstanceCount: int = 0
    instanceMatchCriteria: str = "open"
    reservationType: str = "default"
    startDate: datetime | None = None
    endDate: datetime | None = None

    @property
    def ends(self) -> datetime | None:
        """Up to when its nodes run on it."""
        return self.endDate - TAKEN if self.endDate and self.reservationType == BLOCK else self.endDate


class _Reservations(msgspec.Struct, frozen=True):
    capacityReservationSet: tuple[_Reservation, ...] = ()
    nextToken: str = ""


class _Target(msgspec.Struct, frozen=True):
    capacityReservationId: str = ""


class _Wish(msgspec.Struct, frozen=True):
    capacityReservationPreference: str = ""
    capacityReservationTarget: _Target = _Target()


class _Data(msgspec.Struct, frozen=True):
    capacityReservationSpecification: _Wish = _Wish()


class _Version(msgspec.Struct, frozen=True):
    launchTemplateData: _Data = _Data()


class _Versions(msgspec.Struct, frozen=True):
    launchTemplateVersionSet: tuple[_Version, ...] = ()


def paid_by_pool(
    ec2: QueryApi,
    groups: Mapping[str, ScalingGroup],
    kinds: Mapping[str, str],
    seen: Mapping[str, Seen],
    plans: Callable[[], "Plans"],
) -> dict[str, tuple[Paid, ...]]:
    """Instances that are paid for of each pool that ``kinds`` names with its instance type; ``seen`` are the instances
    by id, ``plans`` opens AWS's word of Savings Plans.
    """
    mine = {pool: groups[pool] for pool in kinds if pool in groups}
    if not mine:
        return {}
    active = _active(ec2, sorted({kinds[pool] for pool in mine}))
    found: dict[str, tuple[Paid, ...]] = {}
    uncovered: dict[str, ScalingGroup] = {}
    for pool, group in sorted(mine.items()):
        wish = _wish(ec2, group)
        usable = [one for one in active if one.instanceType == kinds[pool] and _launches_into(group, wish, one)]
        found[pool] = _paid(group, usable, seen, only=wish.CapacityReservationPreference == ONLY)
        if not usable and wish.CapacityReservationPreference != ONLY:
            uncovered[pool] = group
    if uncovered:
        from pilotlight.adapters.pools.asg.aws_commitments import commitments_by_pool

        found |= commitments_by_pool(ec2, plans(), uncovered, kinds)
    return found


def _paid(
    group: ScalingGroup, usable: Sequence[_Reservation], seen: Mapping[str, Seen], only: bool
) -> tuple[Paid, ...]:
    """Reserved room less the launches that a group is yet to make: they take from the first that has room for it: it
    may use any."""
    coming = group.size - len(group.live)
    found = []
    for one in usable:
        taken = min(coming, one.availableInstanceCount)
        coming -= taken
        on = _on(group.live, one.capacityReservationId, seen)
        found.append(
            Paid(
                name=one.capacityReservationId,
                count=one.totalInstanceCount if only else len(on) + one.availableInstanceCount,
                free=one.availableInstanceCount - taken,
                zone=one.availabilityZone,
                starts=one.startDate,
                ends=one.ends,
                takes=one.reservationType == BLOCK,
                instances=on,
            )
        )
    return tuple(found)


def _on(live: Sequence[Instance], reservation: str, seen: Mapping[str, Seen]) -> tuple[str, ...]:
    ids = [each.InstanceId for each in live]
    return tuple(each for each in ids if each in seen and seen[each].capacityReservationId == reservation)


def block_ends(ec2: QueryApi, reservation: str) -> datetime | None:
    """When EC2 takes the instances of a reservation back; None where it is no block."""
    found = ec2.read("DescribeCapacityReservations", _Reservations, members("CapacityReservationId", [reservation], ""))
    return next((one.ends for one in found.capacityReservationSet if one.reservationType == BLOCK), None)


def _active(ec2: QueryApi, kinds: Sequence[str]) -> list[_Reservation]:
    asked = {
        "Filter.1.Name": "state",
        "Filter.1.Value.1": "active",
        "Filter.2.Name": "instance-type",
        **members("Filter.2.Value", kinds, ""),
    }
    found = pages(ec2.read, "DescribeCapacityReservations", _Reservations, asked)
    return sorted(
        (one for page in found for one in page.capacityReservationSet), key=lambda one: one.capacityReservationId
    )


def _wish(ec2: QueryApi, group: ScalingGroup) -> Specification:
    """Preference of a group for reservations, else its launch template."""
    own = group.CapacityReservationSpecification
    template = group.template
    if own.CapacityReservationPreference not in ("", "default") or not template.LaunchTemplateId:
        return own
    asked = {"LaunchTemplateId": template.LaunchTemplateId, "LaunchTemplateVersion.1": template.Version or "$Default"}
    said = ec2.read("DescribeLaunchTemplateVersions", _Versions, asked).launchTemplateVersionSet
    wish = said[0].launchTemplateData.capacityReservationSpecification if said else _Wish()
    target = wish.capacityReservationTarget.capacityReservationId
    preference = ONLY if target else wish.capacityReservationPreference
    return Specification(preference, Targets((target,) if target else ()))


def _launches_into(group: ScalingGroup, wish: Specification, one: _Reservation) -> bool:
    """True where what a group launches runs on a reservation while there is room on it."""
    if wish.CapacityReservationPreference == NEVER or one.availabilityZone not in group.AvailabilityZones:
        return False
    targets = wish.CapacityReservationTarget.CapacityReservationIds
    return one.capacityReservationId in targets if targets else one.instanceMatchCriteria == "open"
