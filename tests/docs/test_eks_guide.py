"""The guide for EKS: its role may do what is called, and nothing else."""

import json
import re
from pathlib import Path
from typing import Any

from aws_actions import (
    CLOUD,
    COMMANDS,
    EVERYWHERE,
    QUEUES,
    ROLES,
    WAREHOUSE,
    actions_by_file,
    sent_by,
    sent_to_the_cloud,
)

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
GUIDE = GUIDES / "eks.md"
HANDOVER = ("tools/install/asg_handover.py", "tools/install/node_groups.py")
BESIDE_HANDOVER = {"autoscaling:DescribeAutoScalingGroups"}
"""What it has the pools' own files ask."""


def blocks() -> list[Any]:
    """The guide's JSON."""
    return [json.loads(text) for text in re.findall(r"^```json\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)]


def _actions(statement: dict[str, Any]) -> set[str]:
    actions = statement["Action"]
    return {actions} if isinstance(actions, str) else set(actions)


def test_the_role_may_do_exactly_what_is_called() -> None:
    """No call lacks its right, and no right is without a call."""
    role, *_ = blocks()
    granted = set().union(*(_actions(statement) for statement in role["Statement"]))
    assert "pricing:GetProducts" in granted
    assert granted == sent_to_the_cloud()["act"]


def test_what_changes_a_group_is_limited_to_the_clusters_own() -> None:
    """Every action of Auto Scaling that is no look has the tag of the cluster's groups as its condition."""
    role, *_ = blocks()
    for statement in role["Statement"]:
        changes = {a for a in _actions(statement) if a.startswith("autoscaling:") and ":Describe" not in a}
        assert not changes or "autoscaling:ResourceTag/eks:cluster-name" in statement["Condition"]["StringEquals"]


def test_a_fleet_is_asked_for_by_auto_scaling_alone() -> None:
    """The one right that knows no tag of a group is of no use outright."""
    role, *_ = blocks()
    (fleet,) = [statement for statement in role["Statement"] if "ec2:CreateFleet" in _actions(statement)]
    assert fleet["Condition"] == {"Bool": {"aws:ViaAWSService": "true"}}


def test_the_trust_names_one_identity_and_this_role() -> None:
    """A token that Google signs for something else does not do."""
    _, trust, *_ = blocks()
    (statement,) = trust["Statement"]
    assert _actions(statement) == {"sts:AssumeRoleWithWebIdentity"}
    assert set(statement["Condition"]["StringEquals"]) == {"accounts.google.com:sub", "accounts.google.com:oaud"}


def test_handing_back_needs_a_role_of_its_own() -> None:
    """What commands call beside a look is in the watchman's role, for the cluster's groups, or told as a person's."""
    *_, role = blocks()
    look, change, warm = role["Statement"]
    assert {action.partition(":")[0] for action in _actions(warm)} == {"eks"}
    assert all(":nodegroup/prod/" in arn or arn.endswith(":cluster/prod") for arn in warm["Resource"])
    assert "autoscaling:ResourceTag/eks:cluster-name" in change["Condition"]["StringEquals"]
    persons = set(re.findall(r"`(autoscaling:\w+)`", GUIDE.read_text()))
    granted = _actions(look) | _actions(change) | _actions(warm)
    assert granted | persons == sent_by(*HANDOVER) | BESIDE_HANDOVER
    assert not granted & persons
    assert all(":Describe" in action for action in _actions(look))


def test_every_file_that_calls_aws_has_a_role_that_is_compared_with_it() -> None:
    """A new file's calls are held against a role from the day it is written."""
    known = (*CLOUD, *EVERYWHERE, *QUEUES, *ROLES, *WAREHOUSE, *COMMANDS)
    assert [file for file in actions_by_file() if not file.startswith(known)] == []


def test_who_takes_a_role_or_asks_athena_is_told_the_rights() -> None:
    """What no Terraform gives is in the guides, action by action."""
    taken = {"sts:AssumeRole", "sts:AssumeRoleWithWebIdentity"}
    assert sent_by(*ROLES) == taken == {one for one in taken if f'"{one}"' in GUIDE.read_text()}
    told = set(re.findall(r"`(athena:\w+)`", (GUIDES / "budgets.md").read_text()))
    assert told == sent_by(*WAREHOUSE)
