"""Actions of AWS that the code can send, file by file, as IAM calls them: botocore has the calls and the paths.

A file that names an operation is taken to send it, whoever calls it. Who reads the list sees a right too many.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from botocore import xform_name
from botocore.session import Session

PACKAGE = Path(__file__).resolve().parents[3] / "shared" / "pilotlight"
SERVICES = {
    "athena": "athena",
    "autoscaling": "autoscaling",
    "ce": "ce",
    "dynamodb": "dynamodb",
    "ec2": "ec2",
    "eks": "eks",
    "pricing": "pricing",
    "s3": "s3",
    "savingsplans": "savingsplans",
    "secretsmanager": "secretsmanager",
    "service-quotas": "servicequotas",
    "sns": "sns",
    "sqs": "sqs",
    "sts": "sts",
}
"""The services by botocore's name, each with IAM's."""
BY_PATH = ("eks", "savingsplans")
"""Those that are called by a path."""
BY_CLIENT = ("eks", "s3")
"""Those that boto3's own client calls."""
RIGHTS = {"s3:ListObjectsV2": {"s3:ListBucket"}, "s3:PutObject": {"s3:PutObject", "s3:PutObjectRetention"}}
"""The rights that a call needs, where they are not called as it is."""
NOT_SENT = {"sts:GetCallerIdentity", "ec2:DeleteTags"}
"""What is signed for somebody else to send, and another service's call of a name that Auto Scaling has."""
BESIDE_LAUNCH = {"ec2:CreateFleet", "ec2:DescribeLaunchTemplateVersions"}
"""What AWS's documentation asks for beside LaunchInstances."""
CLOUD = ("adapters/pools/asg/", "adapters/cluster/kubernetes/access/eks.py")
"""What functions send to a cluster's cloud, by where it stands."""
EVERYWHERE = ("adapters/outbox/sns.py", "adapters/secrets.py", "adapters/state/dynamodb.py", "adapters/object_store.py")
"""What any function may send: messages, secrets, state, and the policy's and a bill's objects."""
QUEUES = ("adapters/queues/sqs.py",)
ROLES = ("adapters/aws_api/credentials.py",)
"""What takes a role."""
WAREHOUSE = ("adapters/bills/athena.py",)
COMMANDS = ("tools/",)
"""What people run."""
READS = ("Describe", "Get", "List")
"""So begin the calls that change nothing."""


def sent_by(*places: str) -> set[str]:
    """What is sent from those places: files, or folders that end in "/"."""
    found = actions_by_file()
    return {action for file in found if file.startswith(places) for action in found[file]}


def sent_to_the_cloud() -> dict[str, set[str]]:
    """What a function's role may do at a cluster's cloud, by what it is for."""
    act = sent_by(*CLOUD) | BESIDE_LAUNCH
    return {"act": act, "read": {one for one in act if one.partition(":")[2].startswith(READS)}, "none": set()}


@cache
def actions_by_file() -> dict[str, set[str]]:
    """Every file of the package that can send anything to AWS, by its path in it, with what it sends."""
    found = {str(file.relative_to(PACKAGE)): set(_actions(file)) for file in sorted(PACKAGE.rglob("*.py"))}
    return {file: actions for file, actions in found.items() if actions}


def _actions(file: Path) -> Iterator[str]:
    text = file.read_text()
    if not re.search(r"aws_api|boto", text):
        return
    for node in ast.walk(ast.parse(text)):
        for action in _sent(node):
            yield from RIGHTS.get(action, {action} - NOT_SENT)


def _sent(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from (f"{SERVICES[name]}:{node.value}" for name in SERVICES if node.value in _operations(name))
    elif isinstance(node, ast.Attribute) or (isinstance(node, ast.Call) and _paginated(node)):
        called = node.attr if isinstance(node, ast.Attribute) else _paginated(node)
        yield from (f"{name}:{_by_method(name)[called]}" for name in BY_CLIENT if called in _by_method(name))
    if isinstance(node, ast.Call):
        yield from (found for part in node.args if (found := _by_path(node, part)))
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.JoinedStr):
        yield from (found for verb in ("GET", "POST") if (found := _of_path(verb, _pattern(node.value))))


def _paginated(node: ast.Call) -> str:
    """The call that a paginator of boto3's makes."""
    asks = isinstance(node.func, ast.Attribute) and node.func.attr == "get_paginator"
    first = node.args[0] if asks and node.args else None
    return str(first.value) if isinstance(first, ast.Constant) else ""


def _by_path(call: ast.Call, part: ast.expr) -> str:
    verb = {"read": "GET", "look_up": "POST", "change": "POST"}.get(getattr(call.func, "attr", ""), "")
    return _of_path(verb, _pattern(part)) if verb else ""


def _pattern(path: ast.expr) -> str:
    """A path with {} for what is filled in; empty where it is none."""
    if isinstance(path, ast.Constant) and isinstance(path.value, str):
        return path.value if path.value.startswith("/") else ""
    if isinstance(path, ast.JoinedStr):
        parts = [str(one.value) if isinstance(one, ast.Constant) else "{}" for one in path.values]
        return "".join(parts).partition("?")[0]
    return ""


def _of_path(verb: str, pattern: str) -> str:
    for name in BY_PATH:
        for operation, (method, uri) in _paths(name).items():
            if (method, uri) == (verb, pattern):
                return f"{SERVICES[name]}:{operation}"
    return ""


@cache
def _model(service: str) -> Any:
    return Session().get_service_model(service)


@cache
def _operations(service: str) -> frozenset[str]:
    return frozenset(_model(service).operation_names)


@cache
def _by_method(service: str) -> dict[str, str]:
    return {xform_name(name): name for name in _operations(service)}


@cache
def _paths(service: str) -> dict[str, tuple[str, str]]:
    http = {name: _model(service).operation_model(name).http for name in _operations(service)}
    return {name: (how["method"], re.sub(r"\{[^}]*\}", "{}", how["requestUri"])) for name, how in http.items()}
