"""The AWS home on this machine: AWS's own Lambda client runs the handlers; moto's server and a stand-in are behind.

The environment is what infra/terraform/aws gives; a pod's event lies in SQS: dollars, a node and a message come of it.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import boto3
import pytest
from api_server import ApiServer, api_server
from aws_server import EKS, KEYS, REGION, Aws, serving
from lambda_runtime import Failed, Lambda, polled, running

import cold_start
from pilotlight.adapters.state.dynamodb import DynamoDBState
from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.policy_file import read_policy
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.tools.install.state_store import create_table
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World

ROOT = Path(__file__).resolve().parents[2]
ACCOUNT = "123456789012"
NOT_ON_LAMBDA = ("boto3", "botocore", "flask", "functions_framework", "google", "werkzeug")
"""Packages that a Lambda does not bring, and boto3, which no cold start opens: importing one fails here."""

POLICY = """
version: 1
pools:
  t4: {cloud: eks, cluster_pool: t4-nodes, instance_type: t4.small, max: 4}
classes:
  batch: {gpu_models: any}
budgets:
  - {name: everyone, usd: 100, period: day}
prices:
  files: [prices.yaml]
"""
EVENT = json.loads((ROOT / "events/samples/kubernetes/event_exporter.json").read_text())


class Home(NamedTuple):
    """The account, and what Terraform makes in it."""

    aws: Aws
    sqs: Any
    environ: Mapping[str, str]
    state: DynamoDBState
    queues: Mapping[str, str]
    path: list[Path]

    def send(self, queue: str, body: Any) -> None:
        """A message in a queue."""
        self.sqs.send_message(
            QueueUrl=self.queues[queue], MessageBody=body if isinstance(body, str) else json.dumps(body)
        )

    def lying(self, queue: str) -> list[Any]:
        """What lies in a queue."""
        asked = {"MaxNumberOfMessages": 10, "VisibilityTimeout": 0}
        got = self.sqs.receive_message(QueueUrl=self.queues[queue], **asked).get("Messages", [])
        return [json.loads(one["Body"]) for one in got]


@pytest.fixture(scope="module")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which each package that a Lambda does not bring cannot be imported."""
    folder = tmp_path_factory.mktemp("blocked")
    for name in NOT_ON_LAMBDA:
        (folder / f"{name}.py").write_text(f"raise ImportError('{name} is not in a Lambda')\n")
    return folder


def _queues(sqs: Any, sns: Any, prefix: str) -> dict[str, str]:
    """A queue of pod events, and those behind the three topics."""
    made = {"pod-events": sqs.create_queue(QueueName=f"{prefix}-pod-events")["QueueUrl"]}
    for topic in ("alerts", "capacity", "dead-letter"):
        name = f"{prefix}-{topic}.fifo"
        made[topic] = sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})["QueueUrl"]
        arn = sns.create_topic(Name=name, Attributes={"FifoTopic": "true"})["TopicArn"]
        where = sqs.get_queue_attributes(QueueUrl=made[topic], AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        raw = {"RawMessageDelivery": "true"}
        sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=where, Attributes=raw)
    return made


@pytest.fixture
def home(dynamodb_server: str, blocked: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A cluster with one pod that waits, an account with one group at zero, and the services of a deployment."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    prefix = f"pl-{uuid4().hex[:8]}"
    asked = {"endpoint_url": dynamodb_server, "region_name": REGION}
    policy, catalog = read_policy(POLICY.encode(), "policy"), read_catalog(cold_start.CATALOG.encode(), "catalog")
    aws = Aws(World(catalog, [WorldPool.from_policy(name, pool) for name, pool in policy.pools.items()]))
    with ExitStack() as stack:
        api = stack.enter_context(api_server(ApiServer()))
        acting = stack.enter_context(serving(aws))["AWS_ENDPOINT_URL"]
        api.add(cold_start.POD)
        s3, secrets = boto3.client("s3", **asked), boto3.client("secretsmanager", **asked)
        s3.create_bucket(Bucket=prefix, CreateBucketConfiguration={"LocationConstraint": REGION})
        s3.put_object(Bucket=prefix, Key="policy/policy.yaml", Body=POLICY)
        s3.put_object(Bucket=prefix, Key="policy/prices.yaml", Body=cold_start.CATALOG)
        secret = secrets.create_secret(Name=f"{prefix}-prod-kubeconfig", SecretString=api.kubeconfig())["ARN"]
        sqs = boto3.client("sqs", **asked)
        queues = _queues(sqs, boto3.client("sns", **asked), prefix)
        for table in (f"{prefix}-state", f"{prefix}-alerts"):
            create_table(boto3.client("dynamodb", **asked), table)
        cluster = {"api": "kubeconfig-env:KUBECONFIG_PROD", "pools": f"asg:{REGION}/{EKS}", "mode": "act"}
        environ = {
            "PILOTLIGHT_POLICY": f"s3://{prefix}/policy/policy.yaml",
            "PILOTLIGHT_CLUSTERS": json.dumps({"prod": cluster}),
            "PILOTLIGHT_STATE": f"dynamodb:{prefix}-state",
            "PILOTLIGHT_ALERTS": f"dynamodb:{prefix}-alerts",
            "PILOTLIGHT_OUTBOX": f"sns:arn:aws:sns:{REGION}:{ACCOUNT}:{prefix}",
            "PILOTLIGHT_MODE": "advise",
            "KUBECONFIG_PROD": f"secretsmanager:{secret}",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": dynamodb_server,
            "AWS_ENDPOINT_URL_AUTO_SCALING": acting,
            "AWS_ENDPOINT_URL_EC2": acting,
            **KEYS,
        }
        state = DynamoDBState(f"{prefix}-state", endpoint=dynamodb_server)
        yield Home(aws, sqs, environ, state, queues, [blocked, ROOT / "shared"])


def _function(home: Home, name: str, **more: str) -> Any:
    return running(f"pilotlight.on_lambda.{name}", {**home.environ, **more}, home.path)


def _event() -> dict[str, Any]:
    """What the exporter in the cluster sends of the pod that waits."""
    about = {"kind": "Pod", "namespace": "ml", "name": "a", "uid": "u-a", "apiVersion": "v1"}
    return {**EVENT, "involvedObject": about, "clusterName": "prod"}


def test_a_pods_event_buys_a_node_holds_its_dollars_and_is_told(home: Home) -> None:
    """From SQS through two Lambdas: one launch, one hold, an alert; poison beside it is a dead letter."""
    for body in (_event(), "{", _event()):
        home.send("pod-events", body)
    with _function(home, "pod_pending") as function:
        assert polled(home.sqs, home.queues["pod-events"], function) == []
    ((call, asked),) = home.aws.changes()
    assert (call, asked["RequestedCapacity"]) == ("LaunchInstances", 1)
    assert len(list(HOLD.scan(home.state, "prod/"))) == 1
    assert home.lying("pod-events") == []
    (letter,) = home.lying("dead-letter")
    assert (letter["data"]["function"], "JSON" in letter["data"]["reason"]) == ("pod_pending", True)
    assert [told["data"]["pool"] for told in home.lying("capacity")] == ["t4"]
    with _function(home, "alert_fanout") as function:
        assert polled(home.sqs, home.queues["alerts"], function) == []
    assert home.lying("alerts") == []


def test_what_cannot_be_done_now_stays_in_its_queue(home: Home) -> None:
    """With its store out of reach nothing is bought, nothing is a dead letter, and the event comes again."""
    home.send("pod-events", _event())
    with _function(home, "pod_pending", AWS_ENDPOINT_URL_DYNAMODB="http://127.0.0.1:9") as function:
        assert len(polled(home.sqs, home.queues["pod-events"], function)) == 1
    assert (home.aws.changes(), home.lying("dead-letter")) == ([], [])


def test_a_single_event_that_is_for_later_is_an_error_of_the_function(home: Home) -> None:
    """Lambda tries it again, and then keeps it: that is how it learns of it."""
    tick = {"detail-type": "Scheduled Event", "source": "aws.events", "detail": {}, "id": "e-1"}
    with _function(home, "capacity_reconcile", KUBECONFIG_PROD="secretsmanager:none") as function:
        _refused(function, tick)


def _refused(function: Lambda, event: Any) -> None:
    with pytest.raises(Failed, match="name a secret that is there"):
        function.invoke(event)
