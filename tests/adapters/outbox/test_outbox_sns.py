"""The SNS outbox, on moto's server: confirmed, in order by pool, once by id, with what filters need."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import boto3
import msgspec
import pytest
from answering import answering
from aws_server import KEYS, SECRET

from pilotlight.adapters.outbox.sns import LARGEST, SnsOutbox
from pilotlight.codec.events import Delivery, decode
from pilotlight.errors import BadInput, BadRequest, Forbidden, PilotlightError, Unavailable
from pilotlight.facts.messages import Alert, DeadLetter, Outgoing

REGION, ACCOUNT = "eu-west-1", "123456789012"


def _message(id: str, key: str = "t4", topic: Any = "alerts") -> Outgoing:
    alert = {"cluster": "c", "kind": "k", "severity": "info", "fingerprint": id, "what": "w", "why": "y"}
    data = msgspec.Raw(json.dumps(alert).encode())
    return Outgoing(id=id, topic=topic, type="dev.pilotlight.alert.v1", key=key, data=data)


class Topics:
    """Three topics and a queue behind each, as Terraform makes them."""

    def __init__(self, url: str) -> None:
        prefix = f"pl-{uuid4().hex[:8]}"
        asked = {"endpoint_url": url, "region_name": REGION}
        self.sqs, sns = boto3.client("sqs", **asked), boto3.client("sns", **asked)
        self.arn = f"arn:aws:sns:{REGION}:{ACCOUNT}:{prefix}"
        self.queues = {}
        fifo = {"FifoTopic": "true"}
        for topic in ("alerts", "capacity", "dead-letter"):
            made = sns.create_topic(Name=f"{prefix}-{topic}.fifo", Attributes=fifo)["TopicArn"]
            queue = self.sqs.create_queue(QueueName=f"{prefix}-{topic}.fifo", Attributes={"FifoQueue": "true"})[
                "QueueUrl"
            ]
            where = self.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
            raw = {"RawMessageDelivery": "true"}
            sns.subscribe(TopicArn=made, Protocol="sqs", Endpoint=where, Attributes=raw)
            self.queues[topic] = queue
        self.outbox = SnsOutbox(self.arn, {**KEYS, "AWS_ENDPOINT_URL": url})

    def received(self, topic: str) -> list[dict[str, Any]]:
        """What lies behind a topic; taken from there."""
        found: list[dict[str, Any]] = []
        asked = {"MaxNumberOfMessages": 10, "AttributeNames": ["All"], "MessageAttributeNames": ["All"]}
        while got := self.sqs.receive_message(QueueUrl=self.queues[topic], **asked).get("Messages"):
            for one in got:
                self.sqs.delete_message(QueueUrl=self.queues[topic], ReceiptHandle=one["ReceiptHandle"])
            found += got
        return found


@pytest.fixture
def topics(dynamodb_server: str) -> Topics:
    """moto's server has SNS and SQS beside DynamoDB."""
    return Topics(dynamodb_server)


def test_what_is_published_is_there_and_can_be_read_back(topics: Topics) -> None:
    """When publish returns, the queue has each message, whole, with type, id and decision for filters."""
    topics.outbox.publish([_message("20261120-abc.0.alert")])
    (got,) = topics.received("alerts")
    assert {name: value["StringValue"] for name, value in got["MessageAttributes"].items()} == {
        "id": "20261120-abc.0.alert",
        "type": "dev.pilotlight.alert.v1",
        "decision": "20261120-abc",
    }
    (delivery,) = decode(got["Body"].encode(), {}, cluster="c")
    assert isinstance(delivery, Delivery)
    assert isinstance(delivery.message, Alert)
    assert (delivery.id, delivery.message.fingerprint) == ("20261120-abc.0.alert", "20261120-abc.0.alert")


def test_messages_of_one_pool_keep_their_order_and_come_once(topics: Topics) -> None:
    """The pool is the group: its messages come in the order they were published in; what is sent again does not."""
    messages = [_message(f"d.{n}", key=f"pool/{n % 2}") for n in range(6)]
    topics.outbox.publish(messages)
    topics.outbox.publish(messages[:3])
    got = topics.received("alerts")
    for key in ("pool/0", "pool/1"):
        ids = [json.loads(m["Body"])["id"] for m in got if m["Attributes"]["MessageGroupId"] == key]
        assert ids == sorted(ids)
    assert len(got) == 6


def test_a_key_that_is_no_id_of_snss_is_one_group_all_the_same(topics: Topics) -> None:
    """Blanks, other letters and long names: the same key is the same group, and nothing is refused."""
    keys = ["a pool", "pöol", "x" * 200, "a pool"]
    topics.outbox.publish([_message(f"{key}.{n}", key=key) for n, key in enumerate(keys)])
    groups = [m["Attributes"]["MessageGroupId"] for m in topics.received("alerts")]
    assert (len(groups), len(set(groups))) == (4, 3)


def test_a_dead_letter_that_is_too_large_is_cut_and_not_lost(topics: Topics) -> None:
    """Of a body that SNS would not carry, its beginning, its whole size and its hash arrive."""
    letter = DeadLetter(
        reason="no",
        path="",
        function="pod_pending",
        body='"' * LARGEST,
        at=datetime(2026, 11, 20, tzinfo=UTC),
        size=LARGEST,
        sha256="ab",
    )
    data = msgspec.Raw(msgspec.json.encode(letter))
    kind = "dev.pilotlight.dead-letter.v1"
    topics.outbox.publish([Outgoing(id="dead-1", topic="dead-letter", type=kind, key="pod_pending", data=data)])
    (got,) = topics.received("dead-letter")
    told = json.loads(got["Body"])["data"]
    assert (told["size"], told["sha256"], told["reason"]) == (LARGEST, "ab", "no")
    assert set(told["body"]) == {'"'}
    assert len(got["Body"]) < 10_000


REFUSALS = {
    "a topic that is not there": (404, "NotFound", BadRequest, "run the Terraform"),
    "no right": (403, "AuthorizationError", Forbidden, "sns:Publish"),
    "an outage": (503, "ServiceUnavailable", Unavailable, "503"),
}


@pytest.mark.parametrize(("status", "code", "kind", "says"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal_says_what_to_do(
    status: int, code: str, kind: type[PilotlightError], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of SNS's refusals is one of our errors, and holds no secret."""
    monkeypatch.setattr("pilotlight.adapters.aws_api.services.QUERY_PAUSES_S", ())
    body = f"<ErrorResponse><Error><Code>{code}</Code><Message>{SECRET}</Message></Error></ErrorResponse>".encode()
    with answering(lambda *_: (status, body)) as host:
        outbox = SnsOutbox(f"arn:aws:sns:{REGION}:{ACCOUNT}:pl", {**KEYS, "AWS_ENDPOINT_URL": f"http://{host}"})
        with pytest.raises(kind, match=says) as found:
            outbox.publish([_message("a")])
    assert SECRET not in str(found.value)


@pytest.mark.parametrize("address", ["pl", "arn:aws:sqs:eu-west-1:123456789012:pl", "arn:aws:sns:eu-west-1:1:pl"])
def test_an_address_that_is_no_topics_is_refused(address: str) -> None:
    """Before anything is sent."""
    with pytest.raises(BadInput, match="as in sns:arn:aws:sns"):
        SnsOutbox(address, {})
