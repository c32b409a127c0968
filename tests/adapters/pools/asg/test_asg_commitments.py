"""Reserved Instances and Savings Plans that nothing uses: what a reserved pool has of them, and never more."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from aws_server import EKS, REGION, ZONE, Aws, serving
from civo_server import Fault
from msgspec.structs import replace
from small_cloud import CATALOG
from test_asg_reservations import told, wish

from pilotlight.adapters.aws_api import services
from pilotlight.adapters.pools import asg
from pilotlight.errors import Retry
from pilotlight.facts.offers.paid_capacity import Paid
from pilotlight.ports.clouds import CloudAccount, Pools
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World

KIND, ENDS = "g5.xlarge", datetime(2027, 6, 30, tzinfo=UTC)
TYPES = replace(CATALOG, instance_types={KIND: CATALOG.instance_types["one"]})


def bought(count: int, **fields: Any) -> dict[str, Any]:
    """Reserved Instances."""
    return {
        "ReservedInstancesId": "ri-1", "InstanceType": KIND, "InstanceCount": count, "State": "active", "End": ENDS,
        "Scope": "Region", "ProductDescription": "Linux/UNIX", **fields,
    }  # fmt: skip


def plan(commitment: str, **fields: Any) -> dict[str, Any]:
    """A Savings Plan of a family in a region."""
    return {
        "savingsPlanId": "sp-1", "savingsPlanType": "EC2Instance", "region": REGION, "ec2InstanceFamily": "g5",
        "commitment": commitment, "state": "active", "end": "2027-06-30T00:00:00.000Z", **fields,
    }  # fmt: skip


def running(*kinds: str, **fields: Any) -> list[dict[str, Any]]:
    """What else runs in the account."""
    where = {"Placement": {"AvailabilityZone": ZONE}}
    return [{"InstanceId": f"i-other-{n}", "InstanceType": kind, **where, **fields} for n, kind in enumerate(kinds)]


@contextmanager
def account(*names: str) -> Iterator[tuple[Aws, Pools]]:
    """Reserved pools of one type whose groups go on at the price on demand."""
    pools = [WorldPool(name=name, instance_type=KIND) for name in names or ("one",)]
    aws = Aws(World(TYPES, pools))
    with serving(aws) as environ:
        kinds = {pool.name: KIND for pool in pools}
        opened = asg.open_pools(
            f"{REGION}/{EKS}", CloudAccount(aws.names(), aws.world.clock, lambda: "", environ, kinds)
        )
        assert opened is not None
        yield aws, opened


ARN = "arn:aws:savingsplans::111122223333:savingsplan/sp-1"
COMPUTE = plan("10", savingsPlanType="Compute", region="", ec2InstanceFamily="", savingsPlanArn=ARN)

CASES: dict[str, tuple[dict[str, Any], list[tuple[str, int, int]]]] = {
    "four, of which others use one": (
        {"reserved_instances": [bought(4)], "elsewhere": running(KIND)}, [("ri-1", 3, 3)],
    ),
    "spot uses none, nor does another type": (
        {
            "reserved_instances": [bought(2)],
            "elsewhere": [*running(KIND, InstanceLifecycle="spot"), *running("g5.2xlarge")],
        },
        [("ri-1", 2, 2)],
    ),
    "all used": ({"reserved_instances": [bought(1)], "elsewhere": running(KIND, KIND)}, []),
    "for Windows": ({"reserved_instances": [bought(4, ProductDescription="Windows")]}, []),
    "of another zone": (
        {"reserved_instances": [bought(4, Scope="Availability Zone", AvailabilityZone="eu-west-1c")]}, [],
    ),
    "of its zone": (
        {"reserved_instances": [bought(4, Scope="Availability Zone", AvailabilityZone=ZONE)]}, [("ri-1", 4, 4)],
    ),
    "a plan that pays for two and a half": ({"plans": [plan("1.75")]}, [("sp-1", 2, 2)]),
    "a plan that others use by their own rates": (
        {"plans": [plan("3.5")], "elsewhere": running("g5.2xlarge", KIND)}, [("sp-1", 2, 2)],
    ),
    "a plan of another family": ({"plans": [plan("9", ec2InstanceFamily="p4d")]}, []),
    "a plan of another region": ({"plans": [plan("9", region="us-east-1")]}, []),
    "a plan over more than EC2, by the day that used most of it": (
        {"plans": [COMPUTE], "unused": {ARN: ["48", "60", "240"]}}, [("sp-1", 2, 2)],
    ),
    "a plan over more than EC2 that a day used up": ({"plans": [COMPUTE], "unused": {ARN: ["240", "0"]}}, []),
    "a plan over more than EC2 without a day's figures": ({"plans": [COMPUTE]}, []),
    "a plan over more than EC2 without the right to Cost Explorer": ({"plans": [COMPUTE], "unused": None}, []),
    "neither right": ({"reserved_instances": None}, []),
}  # fmt: skip


@pytest.mark.parametrize(("there", "paid"), CASES.values(), ids=CASES)
def test_what_nothing_uses_is_paid_for(there: dict[str, Any], paid: list[tuple[str, int, int]]) -> None:
    """Nodes of the pool at no further cost, as many as are left over by everything else that runs."""
    with account() as (aws, pools):
        aws.rates = {KIND: "0.7", "g5.2xlarge": "1.4"}
        for name, value in there.items():
            setattr(aws, name, value)
        assert told(pools) == paid


def test_its_own_nodes_use_it_and_it_ends() -> None:
    """A node of the pool takes one of what is free; the moment of its end is told."""
    with account() as (aws, pools):
        aws.reserved_instances = [bought(2)]
        pools.grow("one", 1, ZONE)
        (state,) = pools.describe()
        assert state.paid == (Paid(name="ri-1", count=2, free=1, ends=ENDS),)


def test_pools_of_one_type_share_it() -> None:
    """What runs keeps what it runs on; what is free is told once."""
    with account("a", "b") as (aws, pools):
        aws.reserved_instances = [bought(3)]
        pools.grow("b", 1, ZONE)
        assert [[(p.count, p.free) for p in state.paid] for state in pools.describe()] == [[(2, 2)], [(1, 0)]]


def test_cost_explorer_is_asked_four_times_a_day() -> None:
    """A question costs a cent, and its figures are of days."""
    with account() as (aws, pools):
        aws.rates, aws.plans, aws.unused = {KIND: "0.7"}, [COMPUTE], {ARN: ["240"]}
        for after_s in (0, 3600, 7 * 3600):
            aws.world.advance(aws.world.now_s + after_s)
            assert told(pools) == [("sp-1", 14, 14)]
        asked = [values["TimePeriod"] for name, values in aws.calls if name == "GetSavingsPlansUtilization"]
        assert asked == [{"Start": "2026-06-23", "End": "2026-06-30"}] * 2


def test_a_group_that_launches_into_reservations_only_has_no_commitments() -> None:
    """AWS would refuse its launch, whatever is paid for beside it."""
    with account() as (aws, pools):
        aws.reserved_instances = [bought(4)]
        aws.extra["one"] = wish("capacity-reservations-only")
        assert told(pools) == []
        assert "DescribeReservedInstances" not in [name for name, _ in aws.calls]


def test_an_outage_is_no_free_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without AWS's word of its plans the pools are not told at all, as in any outage."""
    monkeypatch.setattr(services, "JSON_PAUSES_S", ())
    with account() as (aws, pools):
        aws.faults = [Fault((500, "{}"), "before", "DescribeSavingsPlans")]
        with pytest.raises(Retry):
            pools.describe()
