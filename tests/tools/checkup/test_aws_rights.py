"""Reads that an account's role lacks at AWS are named by doctor, each with what goes without it."""

from collections.abc import Iterator, Mapping

import pytest
from aws_actions import READS, sent_to_the_cloud
from aws_server import EKS, REGION, Aws, serving
from msgspec.structs import replace
from small_cloud import world

from pilotlight.connections import account_at
from pilotlight.facts.limits.checks import Check
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.settings import Settings
from pilotlight.tools.checkup.clouds.aws_rights import aws_rights

WHERE = f"{REGION}/{EKS}"
PLAN = {
    "savingsPlanId": "sp-1", "savingsPlanArn": "arn:aws:savingsplans::1:savingsplan/sp-1", "commitment": "1",
    "savingsPlanType": "Compute", "state": "active", "end": "2027-06-30T00:00:00.000Z",
}  # fmt: skip


@pytest.fixture
def account() -> Iterator[tuple[Aws, Mapping[str, str]]]:
    """An account with groups, and the environment that leads to it."""
    here = Aws(world())
    with serving(here) as environ:
        yield here, environ


def looked(aws: Aws, environ: Mapping[str, str]) -> list[Check]:
    """What doctor says of a policy with those pools, one of which is paid for already."""
    pools = {
        name: PoolPolicy(
            cloud="eks", cluster_pool=group, instance_type="g4dn.xlarge", capacity_type="reserved" if not n else "spot"
        )
        for n, (name, group) in enumerate(aws.names().items())
    }
    policy = Policy(version=1, pools=pools)
    settings = replace(Settings(environ=environ), pools=f"asg:{WHERE}")
    return list(aws_rights(WHERE, policy, account_at(settings, policy)))


def test_an_account_that_may_read_all_is_told_so_once(account: tuple[Aws, Mapping[str, str]]) -> None:
    """One line, with how many were asked."""
    (only,) = looked(*account)
    assert (only.verdict, only.code) == ("ok", "right-aws")


def test_each_refused_read_is_named_with_what_goes_without_it(account: tuple[Aws, Mapping[str, str]]) -> None:
    """Prices, quotas and what is paid for: none of them is silent."""
    aws, environ = account
    aws.listed, aws.quotas, aws.reserved_instances, aws.tells = None, None, None, False
    found = looked(aws, environ)
    rights = (
        "ec2:DescribeSpotInstanceRequests",
        "ec2:DescribeInstanceStatus",
        "ec2:DescribeReservedInstances",
        "servicequotas:ListServiceQuotas",
        "pricing:GetProducts",
    )
    assert [one.what.partition(":")[0] + ":" + one.what.split(":")[1] for one in found] == [
        f"may not {right}" for right in rights
    ]
    assert all(one.verdict == "warning" and "docs/guides/eks.md" in one.fix for one in found)


def test_what_is_asked_of_a_savings_plan_is_named_too(account: tuple[Aws, Mapping[str, str]]) -> None:
    """Its rates and what is left of it: without them it pays for nothing, and nobody would say why."""
    aws, environ = account
    aws.plans, aws.rates, aws.unused = [PLAN], None, None
    assert [one.what.partition(": what")[0] for one in looked(aws, environ)] == [
        "may not savingsplans:DescribeSavingsPlanRates",
        "may not ce:GetSavingsPlansUtilization",
    ]


def test_without_a_plan_nobody_asks_what_costs_a_cent(account: tuple[Aws, Mapping[str, str]]) -> None:
    """Neither rates nor Cost Explorer."""
    aws, environ = account
    looked(aws, environ)
    assert not {"DescribeSavingsPlanRates", "GetSavingsPlansUtilization"} & {action for action, _ in aws.calls}


def test_every_read_of_the_role_is_asked_or_needs_no_line(account: tuple[Aws, Mapping[str, str]]) -> None:
    """Groups, sizes and instances are asked for by other checks, which fail by name; a template has to be named
    first."""
    aws, environ = account
    aws.plans = [PLAN]
    looked(aws, environ)
    asked = {action for action, _ in aws.calls}
    elsewhere = {
        "DescribeInstances", "DescribeInstanceTypes", "DescribeInstanceTypeOfferings", "DescribeCluster",
        "DescribeLaunchTemplateVersions",
    }  # fmt: skip
    reads = {one.partition(":")[2] for one in sent_to_the_cloud()["read"]}
    assert reads - asked == elsewhere
    assert all(action.startswith(READS) for action in asked)
