"""The guide for EKS: its role may do what is called, and nothing else."""

import ast
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from botocore.session import Session

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guides" / "eks.md"
ADAPTER = ROOT / "shared" / "pilotlight" / "adapters" / "pools" / "asg"

HANDOVER = ROOT / "shared" / "pilotlight" / "tools" / "install" / "asg_handover.py"
LOOKS = tuple(sorted(ADAPTER.glob("*.py")))
"""The adapter's files that functions run."""
BESIDE_LAUNCH = {"ec2:CreateFleet", "ec2:DescribeLaunchTemplateVersions"}
"""What AWS's documentation asks for beside LaunchInstances."""
OF_THE_CLUSTER = {"eks:DescribeCluster", "eks:DescribeNodegroup"}
"""What PILOTLIGHT_API=eks:REGION/NAME calls, and ``node_groups`` by its path."""
PLANS = {"savingsplans:DescribeSavingsPlans", "savingsplans:DescribeSavingsPlanRates"}
"""What ``commitments`` calls by its paths."""


def blocks() -> list[Any]:
    """The guide's JSON."""
    return [json.loads(text) for text in re.findall(r"^```json\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)]


def called(files: Iterable[Path] = LOOKS) -> set[str]:
    """Every operation that a look's part of the adapter names, or these files do, as IAM calls it."""
    session = Session()
    names = {
        service: set(session.get_service_model(service).operation_names)
        for service in ("autoscaling", "ec2", "ce", "pricing", "sts", "service-quotas")
    }
    words = {
        node.value
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {f"{service.replace('-', '')}:{word}" for service, known in names.items() for word in words & known}


def by_commands() -> set[str]:
    """What only taking over and giving back call."""
    words = called((HANDOVER,)) - {"autoscaling:DescribeLifecycleHooks"}
    return {word for word in words if word.startswith("autoscaling:")}


def _actions(statement: dict[str, Any]) -> set[str]:
    actions = statement["Action"]
    return {actions} if isinstance(actions, str) else set(actions)


def test_the_role_may_do_exactly_what_is_called() -> None:
    """No call lacks its right, and no right is without a call."""
    role, *_ = blocks()
    granted = set().union(*(_actions(statement) for statement in role["Statement"]))
    assert "autoscaling:LaunchInstances" in called()
    assert granted == called() | BESIDE_LAUNCH | OF_THE_CLUSTER | PLANS


def test_what_changes_a_group_is_limited_to_the_clusters_own() -> None:
    """Every action of Auto Scaling that is no look has the tag of the cluster's groups as its condition."""
    role, *_ = blocks()
    for statement in role["Statement"]:
        changes = {a for a in _actions(statement) if a.startswith("autoscaling:") and ":Describe" not in a}
        assert not changes or "autoscaling:ResourceTag/eks:cluster-name" in statement["Condition"]["StringEquals"]


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
    assert _actions(change) | persons == by_commands()
    assert not _actions(change) & persons
    assert {action.partition(":Describe")[0] for action in _actions(look)} == {"autoscaling"}
