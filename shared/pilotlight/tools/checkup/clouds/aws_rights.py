"""Reads that an account at AWS refuses, each asked once as small as it can be: what goes without it, and its right."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.services import JsonApi, Nothing, QueryApi, RestApi, members
from pilotlight.adapters.pools.asg import WHERE
from pilotlight.adapters.pools.asg.groups import NODE_GROUP_TAG, ScalingGroup, groups_of
from pilotlight.adapters.pools.asg.late_refusals import node_group
from pilotlight.adapters.pools.asg.shop import PRICES_REGION
from pilotlight.errors import Denied, Forbidden, PilotlightError
from pilotlight.facts.limits.checks import Check, Level
from pilotlight.facts.policy import Policy

PRODUCTS: Mapping[str, Any] = {
    "ServiceCode": "AmazonEC2",
    "Filters": [
        {"Type": "TERM_MATCH", "Field": "productFamily", "Value": "Storage"},
        {"Type": "TERM_MATCH", "Field": "volumeApiName", "Value": "gp3"},
    ],
    "MaxResults": 1,
}
"""One price."""
FIX = "give its role the statement Look: pilotlight show docs/guides/eks.md"


class Read(NamedTuple):
    """A read: the right it needs, and what goes without it."""

    right: str
    without: str
    ask: Callable[[], object]


def aws_rights(where: str, policy: Policy, environ: Mapping[str, str], role: str) -> Iterator[Check]:
    """A check of each read that is refused, of the groups behind an address of the settings; one where none is."""
    named = WHERE.fullmatch(where)
    if named is None:
        return
    credentials = Credentials(named[1], environ, role)
    ec2, scaling = (QueryApi(name, named[1], credentials, environ) for name in ("ec2", "autoscaling"))
    names = {name: pool.cluster_pool or name for name, pool in policy.pools.items()}
    groups = list(groups_of(scaling, named[2] or "", names).values())
    eks = RestApi("eks", named[1], credentials, environ)
    pricing = JsonApi("pricing", PRICES_REGION, credentials, environ)
    quotas = JsonApi("servicequotas", named[1], credentials, environ)
    plans = RestApi("savingsplans", PRICES_REGION, credentials, environ)
    reads = [
        *_of_ec2(ec2, sorted({pool.instance_type for pool in policy.pools.values()})),
        *(one for group in groups[:1] for one in _of_group(scaling, group)),
        *_of_node_groups(eks, named[2] or "", groups),
        Read("pricing:GetProducts", "prices on demand grow old, and at 90 days nothing is bought at them",
             lambda: pricing.read("GetProducts", Nothing, PRODUCTS)),
        Read("servicequotas:ListServiceQuotas", "a purchase over the quota is refused by EC2 first",
             lambda: quotas.read("ListServiceQuotas", Nothing, {"ServiceCode": "ec2"})),
    ]  # fmt: skip
    if any(pool.capacity_type == "reserved" for pool in policy.pools.values()):
        reads.append(Read("savingsplans:DescribeSavingsPlans", "what Savings Plans pay for is bought again",
                          lambda: plans.look_up("/DescribeSavingsPlans", Nothing, {"states": ["active"]})))  # fmt: skip
    yield from _checks(reads)


def _checks(reads: Sequence[Read]) -> Iterator[Check]:
    refused = 0
    for read in reads:
        try:
            read.ask()
        except Forbidden as no:
            refused += 1
            yield _check("warning", f"may not {read.right}: {read.without} ({str(no)[:120]})", FIX)
        except Denied:  # The right is there: something is wrong with what was asked for so little of.
            continue
        except PilotlightError as error:
            refused += 1
            yield _check("unknown", f"{read.right} could not be asked: {error}", "try again")
    if not refused:
        yield _check("ok", f"may read what is asked of AWS: {len(reads)} rights asked one by one")


def _check(verdict: Level, what: str, fix: str = "") -> Check:
    return Check(code="right-aws", subject="rights at AWS", verdict=verdict, what=what, fix=fix)


def _of_ec2(ec2: QueryApi, types: Sequence[str]) -> Iterator[Read]:
    active = {"Filter.1.Name": "state", "Filter.1.Value.1": "active"}
    asked: tuple[tuple[str, str, Mapping[str, str]], ...] = (
        ("DescribeSpotPriceHistory", "prices of spot grow old, and at 90 days nothing is bought at them",
         members("InstanceType", types, "")),
        ("DescribeSpotInstanceRequests", "a spot notice is believed without proof", {"MaxResults": "5"}),
        ("DescribeInstanceStatus", "a notice of maintenance is believed without proof", {"MaxResults": "5"}),
        ("DescribeCapacityReservations", "paid capacity is not seen", {"MaxResults": "5"}),
        ("DescribeReservedInstances", "paid capacity is not seen", active),
    )  # fmt: skip
    for action, without, params in asked:
        yield Read(f"ec2:{action}", without, _asks(ec2, action, params))


def _of_group(scaling: QueryApi, group: ScalingGroup) -> Iterator[Read]:
    named = {"AutoScalingGroupName": group.AutoScalingGroupName}
    for action, without in (
        ("DescribeLifecycleHooks", "a node that its group ends is not released when its work is saved"),
        ("DescribeScalingActivities", "why a group is short is not known"),
        ("DescribeWarmPool", "stopped nodes are not seen"),
    ):
        yield Read(f"autoscaling:{action}", without, _asks(scaling, action, named))


def _asks(api: QueryApi, action: str, params: Mapping[str, str]) -> Callable[[], object]:
    return lambda: api.read(action, Nothing, params)


def _of_node_groups(eks: RestApi, cluster: str, groups: Sequence[ScalingGroup]) -> Iterator[Read]:
    name = next((name for group in groups if (name := group.tag(NODE_GROUP_TAG))), "")
    if cluster and name:
        yield Read(
            "eks:DescribeNodegroup", "what ails a node group is not known", lambda: node_group(eks, cluster, name)
        )
