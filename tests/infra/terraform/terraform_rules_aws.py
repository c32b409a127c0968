"""What must hold of the deployment on AWS, most of which mocks cannot see. A rule says what breaks it, line by line.

They read the graph (what comes after what), a state (every instance with its values) or the files as text. What roles
may do is compared with what the code calls.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aws_actions import READS, sent_by, sent_to_the_cloud
from terraform_rules import Graph, Made, State, of_type

from pilotlight import on_lambda
from pilotlight.codec.events.aws import eventbridge

ROOT = Path(__file__).resolve().parents[3]

CALLED_BY_LAMBDA = {
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
}
"""In the function's name, by Lambda itself."""
IN_A_NETWORK = {"ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces"}
OURS = {"sns:Publish", "s3:GetObject", "secretsmanager:GetSecretValue"}
"""The outbox, the policy, the secrets."""
STORE = sent_by("adapters/state/dynamodb.py")
BY_THE_KEY = {"kms:Decrypt", "kms:GenerateDataKey"}
"""By DynamoDB, SQS, SNS, S3, Secrets Manager and Lambda in the function's name, where a key is given."""
CONTROLS = ("pod_pending", "kueue_admission", "capacity_reconcile", "spot_interruption")
COUNTS = {"billing_tick": {"aps:QueryMetrics"}, "billing_import": {"s3:ListBucket"}}
"""What counts money, and what each of them alone calls."""
WITHOUT_RESOURCES = {"ec2:CreateFleet"} | IN_A_NETWORK
"""What changes something and knows no resource that could be named."""

Statement = Mapping[str, Any]


def _key(made: Made) -> str:
    """The key of an instance: ``pod_pending`` of ``aws_lambda_function.this["pod_pending"]``."""
    return made.address.partition('["')[2].rstrip('"]')


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _statements(state: State) -> dict[str, list[Statement]]:
    """Per function, what its role may do."""
    rights = [
        made
        for made in of_type(state, "aws_iam_role_policy")
        if made.address.startswith("aws_iam_role_policy.function")
    ]
    return {_key(made): json.loads(made.values["policy"])["Statement"] for made in rights}


def _actions(statements: list[Statement]) -> set[str]:
    return {action for statement in statements for action in _listed(statement["Action"])}


def roles_may_what_is_called(state: State) -> Iterator[str]:
    """No call lacks its right, and no right is without a call."""
    cloud = sent_to_the_cloud()
    for function, statements in _statements(state).items():
        role = "act" if function in CONTROLS else "read" if function == "billing_tick" else "none"
        expected = (
            CALLED_BY_LAMBDA | IN_A_NETWORK | OURS | BY_THE_KEY | STORE | cloud[role] | COUNTS.get(function, set())
        ) - ({"secretsmanager:GetSecretValue"} if function == "billing_import" else set())
        for action in sorted(_actions(statements) - expected):
            yield f"{function} may {action}, and calls it nowhere"
        for action in sorted(expected - _actions(statements)):
            yield f"{function} calls {action}, and may not"


def who_reads_the_bill_reaches_no_cluster(state: State) -> Iterator[str]:
    """EKS lets in whoever looks or acts, and neither billing_import nor alert_fanout."""
    let_in = {_key(made).rpartition("-")[2] for made in of_type(state, "aws_eks_access_entry")}
    for function in sorted({*CONTROLS, "billing_tick"} - let_in):
        yield f"{function} is let in nowhere"
    for function in sorted(let_in - {*CONTROLS, "billing_tick"}):
        yield f"{function} reaches clusters, and has nothing to do there"


def what_changes_is_held_to_its_own(state: State) -> Iterator[str]:
    """Nothing may be changed everywhere: a right without a resource reads, or is held by a tag to its clusters."""
    for function, statements in _statements(state).items():
        for statement in statements:
            changes = {a for a in _listed(statement["Action"]) if not a.partition(":")[2].startswith(READS)}
            tagged = "autoscaling:ResourceTag/" in json.dumps(statement.get("Condition", {}))
            if "*" in _listed(statement["Resource"]) and changes - WITHOUT_RESOURCES and not tagged:
                yield f"{function} may {sorted(changes)} of anything"
            if "ec2:CreateFleet" in changes and "aws:ViaAWSService" not in json.dumps(statement.get("Condition", {})):
                yield f"{function} may ask for a fleet outright"


def each_reads_the_secrets_it_names(state: State) -> Iterator[str]:
    """A role reads the secrets that its function's environment names; what only reads, or faces outward, holds none of
    those that act.
    """
    named = {
        _key(made): {
            value.removeprefix("secretsmanager:")
            for value in made.values["environment"][0]["variables"].values()
            if value.startswith("secretsmanager:")
        }
        for made in of_type(state, "aws_lambda_function")
    }
    for function, statements in _statements(state).items():
        rights = [s for s in statements if "secretsmanager:GetSecretValue" in _listed(s["Action"])]
        read = {arn for statement in rights for arn in _listed(statement["Resource"])}
        for arn in sorted(read - named[function]):
            yield f"{function} reads {arn} and does not name it"
        for arn in sorted(named[function] - read):
            yield f"{function} names {arn} and may not read it"
    act = named["pod_pending"]
    for function in (*COUNTS, "alert_fanout"):
        if named[function] & act:
            yield f"{function} holds a credential that acts"


def what_faces_outward_writes_no_books(state: State) -> Iterator[str]:
    """alert_fanout writes the table of alerts and no other; nobody else does, but for how it is laid out."""
    alerts = next(made.values["arn"] for made in of_type(state, "aws_dynamodb_table") if _key(made) == "alerts")
    for function, statements in _statements(state).items():
        for statement in statements:
            writes = {"dynamodb:PutItem", "dynamodb:DeleteItem"} & set(_listed(statement["Action"]))
            rooms = "//rooms" in json.dumps(statement.get("Condition", {}))
            if writes and not rooms and (alerts in _listed(statement["Resource"])) != (function == "alert_fanout"):
                yield f"{function} may write {statement['Resource']}"


def what_cannot_be_taken_is_kept(state: State) -> Iterator[str]:
    """Every queue of a function has dead letters of its kind, which outlive it; what is for later goes back alone."""
    queues = {made.values["arn"]: made for made in of_type(state, "aws_sqs_queue")}
    lasts = {made.values["function_name"]: made.values["timeout"] for made in of_type(state, "aws_lambda_function")}
    lasts |= {made.values["arn"]: made.values["timeout"] for made in of_type(state, "aws_lambda_function")}
    for mapping in of_type(state, "aws_lambda_event_source_mapping"):
        queue = queues[mapping.values["event_source_arn"]]
        redrive = json.loads(queue.values["redrive_policy"] or "{}")
        dead = queues.get(redrive.get("deadLetterTargetArn", ""))
        if dead is None:
            yield f"{queue.address} has no dead letters"
        elif dead.values["fifo_queue"] != queue.values["fifo_queue"]:
            yield f"{queue.address} and its dead letters are of two kinds"
        elif dead.values["message_retention_seconds"] <= queue.values["message_retention_seconds"]:
            yield f"{dead.address} forgets before {queue.address}"
        if mapping.values["function_response_types"] != ["ReportBatchItemFailures"]:
            yield f"{mapping.address} takes a batch whole: one that is for later brings all back"
        if queue.values["visibility_timeout_seconds"] < lasts[mapping.values["function_name"]]:
            yield f"{queue.address} shows a message again while it is worked on"


def only_its_senders_write_to_a_queue(state: State) -> Iterator[str]:
    """A queue's policy names a service and what it sends for, never everybody."""
    policies = of_type(state, "aws_sqs_queue_policy")
    for made in policies:
        for statement in json.loads(made.values["policy"])["Statement"]:
            sources = statement.get("Condition", {}).get("ArnEquals", {}).get("aws:SourceArn")
            if not sources or set(statement["Principal"]) != {"Service"}:
                yield f"{made.address} lets others write"


def only_aws_tells_of_costs(state: State) -> Iterator[str]:
    """The topic of costs takes what AWS's two services publish for this account, and billing_tick's queue has it."""
    policies = of_type(state, "aws_sns_topic_policy")
    for made in policies:
        for statement in json.loads(made.values["policy"])["Statement"]:
            ours = statement.get("Condition", {}).get("StringEquals", {}).get("aws:SourceAccount")
            named = {"Service": ["budgets.amazonaws.com", "costalerts.amazonaws.com"]}
            if not ours or statement["Principal"] != named or statement["Action"] != "sns:Publish":
                yield f"{made.address} lets others publish"
    queues = {
        made.values["arn"] for made in of_type(state, "aws_sqs_queue") if made.values["name"].endswith("-billing")
    }
    if not any(made.values["endpoint"] in queues for made in of_type(state, "aws_sns_topic_subscription")):
        yield "nobody takes what AWS tells of costs"


EXPORTS = {
    ("dynamodb:GetItem", "dynamodb:Query"): "the state",
    ("s3:PutObject", "s3:PutObjectRetention"): "arn:aws:s3:::acme-audit/pilotlight/*",
    ("s3:ListBucket",): "arn:aws:s3:::acme-audit",
}
"""What whoever carries the audit chain out may do, and on what: never change, delete or unlock what is there."""


def who_exports_the_audit_only_adds(state: State) -> Iterator[str]:
    """The exporter reads decisions and adds objects under its own folder, with their lock; and nothing else."""
    (made,) = (made for made in of_type(state, "aws_iam_policy") if made.values["name"].endswith("-audit-export"))
    statements = json.loads(made.values["policy"])["Statement"]
    found = {tuple(sorted(one["Action"])): one["Resource"] for one in statements if one["Sid"] != "UseKey"}
    for actions, resource in found.items():
        if actions not in EXPORTS:
            yield f"{made.address} allows {', '.join(actions)}"
        elif actions[0].startswith("s3:") and resource != EXPORTS[actions]:
            yield f"{made.address} allows {actions[0]} on {resource}"
    for actions in sorted(EXPORTS.keys() - found.keys()):
        yield f"{made.address} may not {', '.join(actions)}"


def no_dead_letter_is_silent(state: State) -> Iterator[str]:
    """Whatever queue nobody takes from has an alarm that tells a person."""
    told = {
        made.values["dimensions"]["QueueName"]
        for made in of_type(state, "aws_cloudwatch_metric_alarm")
        if made.values["metric_name"] == "ApproximateNumberOfMessagesVisible" and made.values["alarm_actions"]
    }
    taken = {made.values["event_source_arn"] for made in of_type(state, "aws_lambda_event_source_mapping")}
    for queue in of_type(state, "aws_sqs_queue"):
        if queue.values["arn"] not in taken and queue.values["name"] not in told:
            yield f"{queue.address} keeps dead letters that nobody is told of"


def silence_is_told_of_what_never_spoke(state: State) -> Iterator[str]:
    """An alarm on answered ticks takes a figure that is not there for silence."""
    alarms = [
        made
        for made in of_type(state, "aws_cloudwatch_metric_alarm")
        if made.values["metric_name"] == "NumberOfMessagesDeleted"
        and made.values["comparison_operator"] == "LessThanThreshold"
    ]
    queue = next(
        made for made in of_type(state, "aws_sqs_queue") if made.address == 'aws_sqs_queue.this["ticks-reconcile"]'
    )
    for made in alarms:
        right = made.values["dimensions"]["QueueName"] == queue.values["name"] and made.values["alarm_actions"]
        if right and made.values["treat_missing_data"] == "breaching":
            return
    yield "no alarm tells of silence where nothing ever spoke"


def handlers_are_there(state: State) -> Iterator[str]:
    """Each Lambda runs the bundles' Python, by a handler that the package has and that is the function's own."""
    for made in of_type(state, "aws_lambda_function"):
        module, _, name = made.values["handler"].rpartition(".")
        if made.values["runtime"] != "python3.11":
            yield f"{made.address} does not run Python 3.11, which bundles and layers are compiled for"
        if module != "pilotlight.on_lambda" or not hasattr(on_lambda, name) or name != _key(made):
            yield f"{made.address} has no handler {made.values['handler']}"


def rules_send_what_is_read(state: State) -> Iterator[str]:
    """Every event that is sent on has a reader, and every reader but the schedule's an event that is sent on."""
    patterns = [json.loads(made.values["event_pattern"]) for made in of_type(state, "aws_cloudwatch_event_rule")]
    sent = {kind for pattern in patterns for kind in pattern["detail-type"]}
    # Our hook waits for instances that end, and the Scheduler's ticks are not EventBridge's.
    read = set(eventbridge._READERS) - {"Scheduled Event", "EC2 Instance-launch Lifecycle Action"}
    for kind in sorted(sent - read):
        yield f"{kind} is sent on, and nobody reads it"
    for kind in sorted(read - sent):
        yield f"{kind} is read, and nobody sends it on"


def the_bill_reaches_who_counts(state: State) -> Iterator[str]:
    """billing_import alone knows where the bill lies."""
    for made in of_type(state, "aws_lambda_function"):
        knows = "PILOTLIGHT_BILLS" in made.values["environment"][0]["variables"]
        if knows != (_key(made) == "billing_import"):
            yield f"{_key(made)} {'knows' if knows else 'does not know'} the bill"


def state_outlives_a_mistake(state: State) -> Iterator[str]:
    """Tables are protected and can be set back; the bucket goes with what is in it."""
    for made in of_type(state, "aws_dynamodb_table"):
        if not made.values["deletion_protection_enabled"] or not made.values["point_in_time_recovery"][0]["enabled"]:
            yield f"{made.address} is lost by one mistake"
    for made in of_type(state, "aws_s3_bucket"):
        if not made.values["force_destroy"]:
            yield f"{made.address} is kept by what is in it"


ENCRYPTED = {
    "aws_cloudwatch_log_group": "kms_key_id",
    "aws_dynamodb_table": "server_side_encryption.kms_key_arn",
    "aws_lambda_function": "kms_key_arn",
    "aws_s3_bucket_server_side_encryption_configuration": (
        "rule.apply_server_side_encryption_by_default.kms_master_key_id"
    ),
    "aws_sns_topic": "kms_master_key_id",
    "aws_sqs_queue": "kms_master_key_id",
}
"""What keeps something, and where it says whose key it is kept under."""


def _under(value: Any, path: str) -> Any:
    """The value at a path through blocks, or nothing where one is left out."""
    for name in path.split("."):
        value = value[0] if isinstance(value, list) and value else value
        value = value.get(name) if value else None
    return value


def all_is_kept_under_the_key(state: State) -> Iterator[str]:
    """With a key of one's own nothing is kept under another; who writes to a queue may use it, and no other service."""
    keys = {_under(made.values, ENCRYPTED[made.type]) for made in of_type(state, "aws_dynamodb_table")} - {None}
    if len(keys) != 1:
        yield "tables are not kept under one key"
    for made in state:
        if made.mode == "managed" and made.type in ENCRYPTED and _under(made.values, ENCRYPTED[made.type]) not in keys:
            yield f"{made.address} is kept under AWS's key"
    senders = [*of_type(state, "aws_iam_policy"), *of_type(state, "aws_iam_role_policy")]
    for made in senders:
        statements = json.loads(made.values["policy"])["Statement"]
        used = {key for one in statements if "kms:GenerateDataKey" in one["Action"] for key in _listed(one["Resource"])}
        if used != keys:
            yield f"{made.address} may not use the key that it writes with, or another too"


def objects_are_known_by_their_files(state: State) -> Iterator[str]:
    """Under a key of KMS an object's ETag is no MD5: one that is compared with it is written anew at each apply."""
    for made in of_type(state, "aws_s3_object"):
        if not made.values["source_hash"]:
            yield f"{made.address} is compared by its ETag"


def starts_with_rights(graph: Graph) -> Iterator[str]:
    """A function is made after its rights, its log (which Lambda would else make, for ever) and the policy it reads."""
    before = {"aws_iam_role_policy.function", "aws_cloudwatch_log_group.this", "aws_s3_object.policy"}
    for missing in sorted(before - graph.after("aws_lambda_function.this")):
        yield f"aws_lambda_function.this does not come after {missing}"


def nothing_of_google_is_needed(tree: Path) -> Iterator[str]:
    """No provider, no resource and no module of Google's: what both clouds share needs no provider at all."""
    for path in sorted((tree / "aws").rglob("*.tf")):
        if re.search(r'google|"(\.\./)+modules/(?!settings")', path.read_text()):
            yield f"{path.relative_to(tree)} speaks of Google"
    for path in sorted((tree / "modules" / "settings").glob("*.tf")):
        if re.search(r"^(provider|resource|data) |required_providers|^  source ", path.read_text(), re.M):
            yield f"{path.relative_to(tree)} needs a provider"


def the_module_leaves_providers_to_its_callers(tree: Path) -> Iterator[str]:
    """Whoever calls a module that configures a provider can neither count it nor remove it."""
    for path in sorted((tree / "aws").glob("*.tf")):
        if re.search(r"^provider ", path.read_text(), re.M):
            yield f"{path.relative_to(tree)} configures a provider"


STATE = (
    roles_may_what_is_called,
    who_reads_the_bill_reaches_no_cluster,
    what_changes_is_held_to_its_own,
    each_reads_the_secrets_it_names,
    what_faces_outward_writes_no_books,
    what_cannot_be_taken_is_kept,
    only_its_senders_write_to_a_queue,
    only_aws_tells_of_costs,
    who_exports_the_audit_only_adds,
    no_dead_letter_is_silent,
    silence_is_told_of_what_never_spoke,
    handlers_are_there,
    rules_send_what_is_read,
    the_bill_reaches_who_counts,
    state_outlives_a_mistake,
    all_is_kept_under_the_key,
    objects_are_known_by_their_files,
)
GRAPH = (starts_with_rights,)
TEXT = (nothing_of_google_is_needed, the_module_leaves_providers_to_its_callers)
