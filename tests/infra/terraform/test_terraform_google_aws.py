"""The home on Google Cloud with parts at AWS: its rules hold, and each goes red when the fault it is for is there."""

import re
from pathlib import Path
from typing import Any

import pytest
import terraform_rules
import terraform_rules_google_aws as rules
from terraform_runs import TERRAFORM, Rule, Runs, Tree, needs_terraform, rule_name

RULES: list[Rule] = [
    *rules.STATE,
    terraform_rules.comes_after_its_api,
    terraform_rules.what_stays_can_be_taken_over,
]
BOTH = TERRAFORM / "google_aws"


@pytest.fixture(scope="module")
def shipped(runs: Runs) -> Tree:
    """What is in the repository."""
    return Tree(runs, runs.tree(), "google_aws")


@needs_terraform
@pytest.mark.parametrize("rule", RULES, ids=rule_name)
def test_it_holds(shipped: Tree, rule: Rule) -> None:
    """The deployment keeps the rule."""
    assert shipped.broken(rule) == []


FAULTS: list[Any] = [
    pytest.param(
        rules.the_bridge_sends_what_is_read,
        (
            "modules/aws_bridge/main.tf",
            "merge([for rule in values(local.rules) : { for kind in rule.pattern.detail-type : kind => "
            "var.topics[rule.topic].id }]...)",
            "{ for rule in values(local.rules) : rule.pattern.detail-type[0] => var.topics[rule.topic].id }",
        ),
        "Capacity Block Expiration Warning has no topic",
        id="only the first kind of a rule passes the bridge",
    ),
    pytest.param(
        rules.the_bridge_sends_what_is_read,
        (
            "modules/aws_bridge/main.tf",
            '        "EC2 Interruptible Capacity Reservation Instance Interruption Warning",\n',
            "",
        ),
        "is read, and nobody sends it to Google",
        id="a warning that could be read never reaches Google",
    ),
    pytest.param(
        rules.the_bridge_publishes_to_topics_that_are_made,
        ("google_aws/main.tf", "/topics/${name}", "/topics/${topic}"),
        "/topics/interruptions is nowhere",
        id="the bridge sends to topics of another name",
    ),
    pytest.param(
        rules.the_bridge_may_change_its_identity_for_a_token,
        ("google_aws/main.tf", ', "sts.googleapis.com"]', "]"),
        "sts.googleapis.com is not enabled",
        id="the bridge gets no token",
    ),
    pytest.param(
        terraform_rules.comes_after_its_api,
        ("google_aws/main.tf", "  depends_on = [module.google]\n", ""),
        "workload_identity_pool",
        id="the identity pool races its API",
    ),
    pytest.param(
        terraform_rules.what_stays_can_be_taken_over,
        ("google_aws/root/main.tf", "module.aws_bridge[0].google", "module.other[0].google"),
        "google_iam_workload_identity_pool.this",
        id="a pool whose name is blocked is in the way of the next deployment",
    ),
]


@pytest.fixture(scope="module")
def broken(runs: Runs) -> Tree:
    """A tree with every fault in it: none of them hides another."""
    path = runs.tree()
    for _rule, (name, now, before), _said in (param.values for param in FAULTS):
        text = (path / name).read_text()
        assert now in text, f"{name} has no {now}"
        (path / name).write_text(text.replace(now, before))
    return Tree(runs, path, "google_aws")


@needs_terraform
@pytest.mark.parametrize(("rule", "said"), [pytest.param(p.values[0], p.values[2], id=p.id) for p in FAULTS])
def test_it_goes_red_when_the_fault_is_there(broken: Tree, rule: Rule, said: str) -> None:
    """A fault is told by its rule."""
    assert any(said in line for line in broken.broken(rule))


def test_every_rule_is_seen_to_go_red() -> None:
    """Each rule has a fault that it tells."""
    assert {param.values[0] for param in FAULTS} == set(RULES)


def test_the_root_passes_on_what_the_module_takes_and_the_module_what_google_does() -> None:
    """Settings go down as they are written; every output comes up, with the policy of the table."""

    def names(folder: Path, kind: str) -> set[str]:
        return set(re.findall(rf'^{kind} "(\w+)"', "\n".join(path.read_text() for path in folder.glob("*.tf")), re.M))

    own = {"environment", "protected", "labels", "adopt"}
    assert names(BOTH / "root", "variable") - own == names(BOTH, "variable") == {"settings"}
    assert names(BOTH / "root", "output") == names(BOTH, "output")
    assert names(BOTH, "output") - names(TERRAFORM / "google", "output") == {"dynamodb_policy"}
    assert names(TERRAFORM / "google", "output") <= names(BOTH, "output")
