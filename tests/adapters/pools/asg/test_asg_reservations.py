"""Reservations and Capacity Blocks of an account: which of them a group may count on, and what is told of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from aws_server import EKS, REGION, ZONE, Aws, reservation, serving
from small_cloud import START, world

from pilotlight.adapters.pools import asg
from pilotlight.facts.offers.paid_capacity import Paid
from pilotlight.ports.clouds import CloudAccount, Pools
from pilotlight.world.machines import WorldPool

ONLY = "capacity-reservations-only"
TEMPLATE = {"LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": "3"}}
MIXED = {"MixedInstancesPolicy": {"LaunchTemplate": {"LaunchTemplateSpecification": TEMPLATE["LaunchTemplate"]}}}


def wish(preference: str, *ids: str) -> dict[str, Any]:
    """What a group says of reservations."""
    target = {"CapacityReservationTarget": {"CapacityReservationIds": list(ids)}} if ids else {}
    return {"CapacityReservationSpecification": {"CapacityReservationPreference": preference, **target}}


@contextmanager
def account(pool: WorldPool) -> Iterator[tuple[Aws, Pools]]:
    """An account whose one pool's reservations are asked for."""
    aws = Aws(world((pool,)))
    with serving(aws) as environ:
        names = CloudAccount(aws.names(), aws.world.clock, lambda: "", environ, {"one": "one"})
        pools = asg.open_pools(f"{REGION}/{EKS}", names)
        assert pools is not None
        yield aws, pools


def told(pools: Pools) -> list[tuple[str, int, int]]:
    """What is paid for, with its count and what is free."""
    (state,) = pools.describe()
    return [(paid.name, paid.count, paid.free) for paid in state.paid]


GROUPS: dict[str, tuple[dict[str, Any], dict[str, Any], list[tuple[str, int, int]]]] = {
    "targets one": (wish(ONLY, "cr-t"), {}, [("cr-t", 4, 3)]),
    "goes on at the price on demand": (wish("capacity-reservations-first", "cr-t"), {}, [("cr-t", 3, 3)]),
    "uses none": (wish("none"), {}, []),
    "says nothing, as does its template": (TEMPLATE, {}, [("cr-o", 2, 2)]),
    "uses open ones only": (wish(ONLY), {}, [("cr-o", 2, 2)]),
    "has a template with a target": (
        TEMPLATE, {"CapacityReservationTarget": {"CapacityReservationId": "cr-t"}}, [("cr-t", 4, 3)],
    ),
    "has mixed instances by such a template": (
        MIXED, {"CapacityReservationTarget": {"CapacityReservationId": "cr-t"}}, [("cr-t", 4, 3)],
    ),
    "has a template that uses open ones only": (TEMPLATE, {"CapacityReservationPreference": ONLY}, [("cr-o", 2, 2)]),
    "has a template that takes what is open first": (
        TEMPLATE, {"CapacityReservationPreference": "open"}, [("cr-o", 2, 2)],
    ),
    "is yet to launch one": ({**wish(ONLY, "cr-t"), "DesiredCapacity": 1}, {}, [("cr-t", 4, 2)]),
}  # fmt: skip


@pytest.mark.parametrize(("extra", "template", "paid"), GROUPS.values(), ids=[f"a group that {g}" for g in GROUPS])
def test_a_group_counts_on_what_it_launches_into(
    extra: dict[str, Any], template: dict[str, Any], paid: list[tuple[str, int, int]]
) -> None:
    """All of a reservation where AWS refuses to launch beside it; else what is free of it, and what it runs on."""
    with account(WorldPool(name="one", instance_type="one", capacity_type="on-demand")) as (aws, pools):
        aws.extra["one"], aws.templates["lt-1"] = extra, template
        aws.reservations = [
            reservation("cr-t", "one", 4, 3),
            reservation("cr-o", "one", 2, 2, InstanceMatchCriteria="open"),
            reservation("cr-elsewhere", "one", 9, 9, InstanceMatchCriteria="open", AvailabilityZone="eu-west-1c"),
            reservation("cr-other", "four", 9, 9, InstanceMatchCriteria="open"),
            reservation("cr-over", "one", 9, 9, InstanceMatchCriteria="open", State="expired"),
        ]
        assert told(pools) == paid


def test_a_block_is_told_with_its_instances_and_when_ec2_takes_them() -> None:
    """EC2 begins to terminate half an hour before a block ends: an instance of it goes then, says its cloud too."""
    with account(WorldPool(name="one", instance_type="one", capacity_type="reserved", paid=2)) as (aws, pools):
        ends = START + timedelta(days=2)
        aws.blocks["one"] = ends
        pools.grow("one", 1, ZONE)
        (state,) = pools.describe()
        goes = ends - timedelta(minutes=30)
        assert state.paid == (
            Paid(name="cr-one", count=2, free=1, zone=ZONE, ends=goes, takes=True, instances=("n1",)),
        )
        seen = pools.instance("one", "n1")
        assert seen is not None
        assert (seen.going, seen.deadline) == (True, goes)
        aws.blocks.clear()
        seen = pools.instance("one", "n1")
        assert seen is not None
        assert (seen.going, seen.deadline) == (None, None)


def test_nobody_asks_for_reservations_who_has_no_reserved_pool() -> None:
    """A role without that right serves everybody else."""
    with account(WorldPool(name="one", instance_type="one")) as (aws, _), serving(aws) as environ:
        plain = asg.open_pools(f"{REGION}/{EKS}", CloudAccount(aws.names(), aws.world.clock, lambda: "", environ))
        assert plain is not None
        plain.describe()
        assert "DescribeCapacityReservations" not in [name for name, _ in aws.calls]
