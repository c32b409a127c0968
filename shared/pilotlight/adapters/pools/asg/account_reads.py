"""Reads that features need of an account, each asked once as small as it can be: its right, and what goes without it.

``doctor`` asks all of them; a billing tick a few times a day those that no price comes by, for ``status``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.services import JsonApi, Nothing, QueryApi, RestApi, members
from pilotlight.adapters.pools.asg import WHERE
from pilotlight.adapters.pools.asg.groups import NODE_GROUP_TAG, ScalingGroup, groups_of
from pilotlight.adapters.pools.asg.late_refusals import node_group
from pilotlight.adapters.pools.asg.shop import PRICES_REGION
from pilotlight.errors import Forbidden, PilotlightError
from pilotlight.facts.offers.cloud_shop import ToldPrices
from pilotlight.ports.clouds import CloudAccount

PRODUCTS: Mapping[str, Any] = {
    "ServiceCode": "AmazonEC2",
    "Filters": [
        {"Type": "TERM_MATCH", "Field": "productFamily", "Value": "Storage"},
        {"Type": "TERM_MATCH", "Field": "volumeApiName", "Value": "gp3"},
    ],
    "MaxResults": 1,
}
"""One price."""


class Read(NamedTuple):
    """A read: the right it needs, and what goes without it."""

    right: str
    without: str
    ask: Callable[[], object]


def with_refusals(told: ToldPrices, address: str, account: CloudAccount) -> ToldPrices:
    """Prices with a line for each other read that is refused too. What cannot be asked now is no refusal."""
    return msgspec.structs.replace(told, refused=(*told.refused, *_refused(address.partition(":")[2], account)))


def _refused(where: str, account: CloudAccount) -> Iterator[str]:
    try:
        asked = reads(where, account)
    except PilotlightError:
        return
    for read in asked:
        try:
            read.ask()
        except Forbidden as no:
            yield f"{read.right} is refused, so {read.without}: {no}"
        except PilotlightError:
            continue


def reads(where: str, account: CloudAccount) -> Sequence[Read]:
    """Reads of the groups behind an address, beside those of prices; none where it is no address of theirs.

    Raises ``Denied`` or ``Retry`` where the groups themselves cannot be read.
    """
    named = WHERE.fullmatch(where)
    if named is None:
        return ()
    credentials = Credentials(named[1], account.environ, account.role)
    ec2, scaling = (QueryApi(name, named[1], credentials, account.environ) for name in ("ec2", "autoscaling"))
    groups = list(groups_of(scaling, named[2] or "", account.names).values())
    eks = RestApi("eks", named[1], credentials, account.environ)
    quotas = JsonApi("servicequotas", named[1], credentials, account.environ)
    found = [
        *_of_ec2(ec2),
        *(one for group in groups[:1] for one in _of_group(scaling, group)),
        *_of_node_groups(eks, named[2] or "", groups),
        Read("servicequotas:ListServiceQuotas", "a purchase over the quota is refused by EC2 first",
             lambda: quotas.read("ListServiceQuotas", Nothing, {"ServiceCode": "ec2"})),
    ]  # fmt: skip
    return [*found, *(_of_plans(named[1], credentials, account) if account.reserved else ())]


def _of_plans(region: str, credentials: Credentials, account: CloudAccount) -> Iterator[Read]:
    """Without a plan there is nothing to ask of its rates, nor of what is left of it, which costs a cent."""
    from pilotlight.adapters.pools.asg.aws_commitments import UnusedPlans, ask_rates, ask_unused

    plans = RestApi("savingsplans", PRICES_REGION, credentials, account.environ)
    unused = UnusedPlans(JsonApi("ce", PRICES_REGION, credentials, account.environ), account.clock)
    kind, without = min(account.reserved.values()), "what Savings Plans pay for is bought again"
    yield Read("savingsplans:DescribeSavingsPlans", without,
               lambda: plans.look_up("/DescribeSavingsPlans", Nothing, {"states": ["active"]}))  # fmt: skip
    yield Read("savingsplans:DescribeSavingsPlanRates", without, lambda: ask_rates(plans, region, kind))
    yield Read("ce:GetSavingsPlansUtilization", "what Compute Savings Plans pay for is bought again",
               lambda: ask_unused(plans, unused))  # fmt: skip


def reads_of_prices(where: str, account: CloudAccount, types: Sequence[str]) -> Sequence[Read]:
    """The two reads that prices come by."""
    named = WHERE.fullmatch(where)
    if named is None:
        return ()
    credentials = Credentials(named[1], account.environ, account.role)
    ec2 = QueryApi("ec2", named[1], credentials, account.environ)
    pricing = JsonApi("pricing", PRICES_REGION, credentials, account.environ)
    return (
        Read("pricing:GetProducts", "prices on demand grow old, and at 90 days nothing is bought at them",
             lambda: pricing.read("GetProducts", Nothing, PRODUCTS)),
        Read("ec2:DescribeSpotPriceHistory", "prices of spot grow old, and at 90 days nothing is bought at them",
             _asks(ec2, "DescribeSpotPriceHistory", members("InstanceType", types, ""))),
    )  # fmt: skip


def _of_ec2(ec2: QueryApi) -> Iterator[Read]:
    active = {"Filter.1.Name": "state", "Filter.1.Value.1": "active"}
    asked: tuple[tuple[str, str, Mapping[str, str]], ...] = (
        ("DescribeSpotInstanceRequests", "a spot notice is believed without proof", {"MaxResults": "5"}),
        ("DescribeInstanceStatus", "a notice of maintenance is believed without proof", {"MaxResults": "5"}),
        ("DescribeCapacityReservations", "paid capacity is not seen", {"MaxResults": "5"}),
        ("DescribeReservedInstances", "paid capacity is not seen", active),
    )
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
