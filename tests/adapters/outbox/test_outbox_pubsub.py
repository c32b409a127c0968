"""The Pub/Sub outbox, on the emulator: confirmed, in order by pool, with what filters need."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from pilotlight.adapters.outbox.pubsub import PubSubOutbox
from pilotlight.codec.events import Delivery, decode
from pilotlight.errors import BadInput, BadRequest, Unavailable
from pilotlight.facts.messages import Alert, Outgoing


def _message(id: str, key: str = "t4") -> Outgoing:
    data = msgspec.Raw(
        json.dumps(
            {"cluster": "c", "kind": "k", "severity": "info", "fingerprint": id, "what": "w", "why": "y"}
        ).encode()
    )
    return Outgoing(id=id, topic="alerts", type="dev.pilotlight.alert.v1", key=key, data=data)


@pytest.fixture(scope="module")
def emulator(pubsub_emulator: str) -> Iterator[str]:
    """The emulator, found by Google's library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PUBSUB_EMULATOR_HOST", pubsub_emulator)
        yield pubsub_emulator


@pytest.fixture(scope="module")
def received(emulator: str) -> Any:
    """Pulls what is on the alerts topic."""
    from google.cloud import pubsub_v1

    pubsub_v1.PublisherClient().create_topic(name="projects/outbox/topics/pl-alerts")
    reader = pubsub_v1.SubscriberClient()
    name = "projects/outbox/subscriptions/all"
    reader.create_subscription(
        request={"name": name, "topic": "projects/outbox/topics/pl-alerts", "enable_message_ordering": True}
    )

    def pull() -> list[Any]:
        got = reader.pull(subscription=name, max_messages=100, timeout=300).received_messages
        reader.acknowledge(subscription=name, ack_ids=[m.ack_id for m in got])
        return [m.message for m in got]

    return pull


def test_what_is_published_is_there_and_can_be_read_back(received: Any) -> None:
    """When publish returns, the topic has each message, whole, with type, id and decision for filters."""
    PubSubOutbox("outbox", "pl").publish([_message("20261120-abc.0.alert")])
    (got,) = received()
    assert dict(got.attributes) == {
        "id": "20261120-abc.0.alert",
        "type": "dev.pilotlight.alert.v1",
        "decision": "20261120-abc",
    }
    (delivery,) = decode(got.data, {}, cluster="c")
    assert isinstance(delivery, Delivery)
    assert isinstance(delivery.message, Alert)
    assert (delivery.id, delivery.message.fingerprint) == ("20261120-abc.0.alert", "20261120-abc.0.alert")


def test_messages_of_one_pool_keep_their_order(received: Any) -> None:
    """The ordering key is the pool: its messages come in the order they were published in."""
    PubSubOutbox("outbox", "pl").publish([_message(f"d.{n}", key=f"pool-{n % 2}") for n in range(20)])
    got = received()
    for key in ("pool-0", "pool-1"):
        ids = [m.attributes["id"] for m in got if m.ordering_key == key]
        assert ids == sorted(ids, key=lambda id: int(id.partition(".")[2]))
    assert len(got) == 20


def test_a_topic_that_is_not_there_is_named(emulator: str) -> None:
    """A topic nobody made is a refusal that says where, and the key is not held back after it."""
    outbox = PubSubOutbox("outbox", "elsewhere")
    for _ in range(2):
        with pytest.raises(BadRequest, match="projects/outbox/topics/elsewhere-"):
            outbox.publish([_message("d.0")])


def test_a_service_that_does_not_answer_is_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens: it is not confirmed, and publishing is to be tried again."""
    pytest.importorskip("google.cloud.pubsub_v1")
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:1")
    monkeypatch.setattr("pilotlight.adapters.outbox.pubsub.CONFIRMED_WITHIN_S", 1)
    with pytest.raises(Unavailable, match="not confirmed"):
        PubSubOutbox("outbox", "pl").publish([_message("d.0")])


def test_nothing_heavy_is_imported_before_something_is_published() -> None:
    """Making the outbox, and publishing nothing, imports none of Google's packages."""
    code = (
        "import sys; from pilotlight.adapters.outbox.pubsub import PubSubOutbox; PubSubOutbox('p', 'x').publish([]); "
        "print([m for m in sys.modules if m.startswith(('google.cloud.pubsub', 'google.api_core', 'grpc'))])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_an_address_without_its_parts_is_refused() -> None:
    """Project and prefix are both needed."""
    with pytest.raises(BadInput, match="pubsub:acme/pilotlight"):
        PubSubOutbox("outbox", "")


def test_the_same_dead_letter_is_published_once(emulator: str) -> None:
    """A process that refuses the same body again and again sends one letter; another one is another letter."""
    from google.cloud import pubsub_v1

    topic = "projects/letters/topics/pl-dead-letter"
    pubsub_v1.PublisherClient().create_topic(name=topic)
    reader, name = pubsub_v1.SubscriberClient(), "projects/letters/subscriptions/dead"
    reader.create_subscription(request={"name": name, "topic": topic})
    outbox = PubSubOutbox("letters", "pl")
    for id in ("dead-a", "dead-a", "dead-b", "dead-a"):
        outbox.publish([msgspec.structs.replace(_message(id), topic="dead-letter")])
    got = reader.pull(subscription=name, max_messages=100, timeout=300).received_messages
    assert sorted(message.message.attributes["id"] for message in got) == ["dead-a", "dead-b"]
