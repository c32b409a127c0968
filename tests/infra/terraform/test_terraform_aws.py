"""The home on AWS: its rules hold, each goes red when the fault it is for is there, and a newcomer is asked little."""

import re
from pathlib import Path
from typing import Any

import pytest
import terraform_rules_aws as rules
from terraform_runs import TERRAFORM, Rule, Runs, Tree, needs_terraform, rule_name

from pilotlight import settings

RULES: list[Rule] = [*rules.STATE, *rules.GRAPH, *rules.TEXT]
AWS = TERRAFORM / "aws"


@pytest.fixture(scope="module")
def shipped(runs: Runs) -> Tree:
    """What is in the repository."""
    return Tree(runs, runs.tree(), "aws")


@needs_terraform
@pytest.mark.parametrize("rule", RULES, ids=rule_name)
def test_it_holds(shipped: Tree, rule: Rule) -> None:
    """The deployment keeps the rule."""
    assert shipped.broken(rule) == []


FAULTS: list[Any] = [
    pytest.param(
        rules.roles_may_what_is_called,
        ("iam.tf", '"sqs:ReceiveMessage"]', '"sqs:ReceiveMessage", "sqs:PurgeQueue"]'),
        "may sqs:PurgeQueue",
        id="a role may what nobody calls",
    ),
    pytest.param(
        rules.roles_may_what_is_called,
        ("iam.tf", '"autoscaling:LaunchInstances", ', ""),
        "calls autoscaling:LaunchInstances, and may not",
        id="a call lacks its right",
    ),
    pytest.param(
        rules.what_changes_is_held_to_its_own,
        ("iam.tf", "autoscaling:ResourceTag/eks:cluster-name", "aws:RequestedRegion"),
        "of anything",
        id="any group of the account may be changed",
    ),
    pytest.param(
        rules.what_changes_is_held_to_its_own,
        ("iam.tf", 'Bool = { "aws:ViaAWSService" = "true" }, ', ""),
        "may ask for a fleet outright",
        id="the role launches instances of no group",
    ),
    pytest.param(
        rules.each_reads_the_secrets_it_names,
        ("plan.tf", 'billing_tick       = { role = "read"', 'billing_tick       = { role = "act"'),
        "holds a credential that acts",
        id="what counts money holds what buys",
    ),
    pytest.param(
        rules.each_reads_the_secrets_it_names,
        ("iam.tf", "values(local.secrets[function])]", "flatten([for all in values(local.secrets) : values(all)])]"),
        "does not name it",
        id="a role reads a secret that its function does not name",
    ),
    pytest.param(
        rules.what_faces_outward_writes_no_books,
        ("iam.tf", 'function == "alert_fanout" ? "alerts" : "state"', 'function == "alert_fanout" ? "state" : "state"'),
        "alert_fanout may write",
        id="what faces outward may rewrite holds",
    ),
    pytest.param(
        rules.what_cannot_be_taken_is_kept,
        (
            "queues.tf",
            "message_retention_seconds = 1209600\n",
            "message_retention_seconds = 60\n",
        ),
        "forgets before",
        id="dead letters go before anybody looks",
    ),
    pytest.param(
        rules.what_cannot_be_taken_is_kept,
        ("functions.tf", '["ReportBatchItemFailures"]', "[]"),
        "takes a batch whole",
        id="one that is for later brings a whole batch back",
    ),
    pytest.param(
        rules.what_cannot_be_taken_is_kept,
        ("plan.tf", "local.timeout_s[queue.function] + 30", "30"),
        "while it is worked on",
        id="a message is seen again while it is worked on",
    ),
    pytest.param(
        rules.only_its_senders_write_to_a_queue,
        ("queues.tf", '      Condition = { ArnEquals = { "aws:SourceArn" = each.value.sources } }\n', ""),
        "lets others write",
        id="any rule of any account may write to a queue",
    ),
    pytest.param(
        rules.only_aws_tells_of_costs,
        ("topics.tf", '      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }\n', ""),
        "lets others publish",
        id="budgets of any account may tell of costs",
    ),
    pytest.param(
        rules.only_aws_tells_of_costs,
        ("topics.tf", 'aws_sqs_queue.this["billing"].arn', 'aws_sqs_queue.this["alerts"].arn'),
        "nobody takes what AWS tells of costs",
        id="what AWS tells of costs goes to another queue",
    ),
    pytest.param(
        rules.who_exports_the_audit_only_adds,
        ("audit.tf", '["s3:PutObjectRetention"]', '["s3:PutObjectRetention", "s3:DeleteObject"]'),
        "allows s3:DeleteObject, s3:PutObject, s3:PutObjectRetention",
        id="whoever carries the audit out may delete it there",
    ),
    pytest.param(
        rules.no_dead_letter_is_silent,
        ("monitoring.tf", "    { dead-letter = aws_sqs_queue.letters.name },\n", ""),
        "aws_sqs_queue.letters keeps dead letters",
        id="nobody is told of dead letters with their reason",
    ),
    pytest.param(
        rules.silence_is_told_of_what_never_spoke,
        ("monitoring.tf", '"breaching"', '"missing"'),
        "where nothing ever spoke",
        id="silence is looked for where a figure was",
    ),
    pytest.param(
        rules.handlers_are_there,
        ("functions.tf", '"python3.11"\n  architectures', '"python3.13"\n  architectures'),
        "does not run Python 3.11",
        id="bytecode is of another Python than the runtime's",
    ),
    pytest.param(
        rules.handlers_are_there,
        ("functions.tf", "pilotlight.on_lambda.${each.key}", "main.${each.key}"),
        "has no handler main.",
        id="the handler is one of an HTTP server",
    ),
    pytest.param(
        rules.rules_send_what_is_read,
        ("events.tf", '    "EC2 Interruptible Capacity Reservation Instance Interruption Warning",\n', ""),
        "is read, and nobody sends it on",
        id="a warning that could be read never comes",
    ),
    pytest.param(
        rules.who_reads_the_bill_reaches_no_cluster,
        ("plan.tf", 'billing_import     = { role = "bills"', 'billing_import     = { role = "read"'),
        "billing_import reaches clusters",
        id="who reads the bill looks at clusters",
    ),
    pytest.param(
        rules.the_bill_reaches_who_counts,
        ("plan.tf", 'PILOTLIGHT_BILLS = "billing_import"', 'PILOTLIGHT_BILLS = "billing_tick"'),
        "billing_import does not know the bill",
        id="the bill does not reach billing_import",
    ),
    pytest.param(
        rules.state_outlives_a_mistake,
        ("state.tf", "deletion_protection_enabled = local.settings.protected", "deletion_protection_enabled = false"),
        "is lost by one mistake",
        id="the state can be deleted",
    ),
    pytest.param(
        rules.state_outlives_a_mistake,
        ("policy.tf", "force_destroy = true", "force_destroy = false"),
        "is kept by what is in it",
        id="the bucket is kept by the policies in it",
    ),
    pytest.param(
        rules.all_is_kept_under_the_key,
        ("topics.tf", 'coalesce(local.key, "alias/aws/sns")', '"alias/aws/sns"'),
        'aws_sns_topic.this["alerts"] is kept under AWS\'s key',
        id="topics are not under the key that was given",
    ),
    pytest.param(
        rules.all_is_kept_under_the_key,
        ("schedules.tf", "}], local.uses_key)", "}], [])"),
        "aws_iam_role_policy.schedules may not use the key",
        id="the Scheduler may not write to queues under the key",
    ),
    pytest.param(
        rules.objects_are_known_by_their_files,
        ("policy.tf", "source_hash  = filemd5", "etag         = filemd5"),
        "is compared by its ETag",
        id="an object under a key is compared by its ETag",
    ),
    pytest.param(
        rules.starts_with_rights,
        ("functions.tf", "[aws_iam_role_policy.function, aws_cloudwatch_log_group.this, aws_s3_object.policy]", "[]"),
        "does not come after aws_iam_role_policy.function",
        id="a function is called before it may anything",
    ),
    pytest.param(
        rules.nothing_of_google_is_needed,
        (
            "versions.tf",
            "    aws = {",
            '    google = {\n      source  = "hashicorp/google"\n      version = ">= 8.0, < 9.0"\n    }\n    aws = {',
        ),
        "speaks of Google",
        id="the home on AWS needs a Google project",
    ),
    pytest.param(
        rules.the_module_leaves_providers_to_its_callers,
        ("state.tf", "resource ", 'provider "aws" {}\n\nresource '),
        "configures a provider",
        id="the module configures its own provider",
    ),
]


@pytest.fixture(scope="module")
def broken(runs: Runs) -> Tree:
    """A tree with every fault in it: none of them hides another."""
    path = runs.tree()
    for _rule, (name, now, before), _said in (param.values for param in FAULTS):
        text = (path / "aws" / name).read_text()
        assert now in text, f"{name} has no {now}"
        (path / "aws" / name).write_text(text.replace(now, before, 1))
    return Tree(runs, path, "aws")


@needs_terraform
@pytest.mark.parametrize(("rule", "said"), [pytest.param(p.values[0], p.values[2], id=p.id) for p in FAULTS])
def test_it_goes_red_when_the_fault_is_there(broken: Tree, rule: Rule, said: str) -> None:
    """A fault is told by its rule."""
    assert any(said in line for line in broken.broken(rule))


def test_every_rule_is_seen_to_go_red() -> None:
    """Each rule has a fault that it tells."""
    assert {param.values[0] for param in FAULTS} == set(RULES)


def test_functions_read_what_the_plan_gives_and_nothing_else() -> None:
    """Every variable of settings.py is set or left out with a reason, and the plan knows no other."""
    text = (AWS / "plan.tf").read_text()
    known = set(re.findall(r"^(PILOTLIGHT_\w+)", settings.__doc__ or "", re.M))
    blocks = {
        name: set(
            re.findall(
                r"^ *(PILOTLIGHT_\w+) *= ", re.findall(rf"^  {name} = \{{\n(.*?)^  \}}", text, re.M | re.S)[0], re.M
            )
        )
        for name in ("environment", "left_out")
    }
    assert blocks["environment"] & blocks["left_out"] == set()
    assert blocks["environment"] | blocks["left_out"] == known


def test_a_newcomer_gives_at_most_eight_values() -> None:
    """Each value of a first deployment is explained by a numbered comment, and there are at most eight."""
    text = (AWS / "root" / "environments" / "dev.tfvars").read_text()
    code = "\n".join(line.partition("#")[0] for line in text.splitlines())
    values = [*re.findall(r'"[^"]*"', code), *re.findall(r"^    (\w+) = \{$", code, re.M)]
    explained = re.findall(r"# (\d)\. ", text)
    assert len(values) <= 8
    assert explained == [str(n + 1) for n in range(len(values))]


def test_the_root_passes_on_what_the_module_takes() -> None:
    """The settings are given to the root as they are to the module, and every output is the root's too."""

    def names(folder: Path, kind: str) -> set[str]:
        return set(re.findall(rf'^{kind} "(\w+)"', "\n".join(path.read_text() for path in folder.glob("*.tf")), re.M))

    own = {"region", "environment", "protected", "labels", "adopt"}
    assert names(AWS / "root", "variable") - own == names(AWS, "variable") == {"settings"}
    assert names(AWS / "root", "output") == names(AWS, "output")


def test_production_is_a_deployment_of_its_own() -> None:
    """Nothing of dev's is prod's but the region: not its environment, policy, clusters or people."""
    dev, prod = ((AWS / "root" / "environments" / f"{name}.tfvars").read_text() for name in ("dev", "prod"))
    values = [set(re.findall(r'= "([^"]*)"', text)) for text in (dev, prod)]
    assert values[0] & values[1] == {"eu-west-1"}
    assert 'environment = "prod"' in prod
