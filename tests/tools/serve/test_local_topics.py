"""The topics that `serve` makes on the Pub/Sub emulator: pushed to the functions, and given up at last."""

import json
from typing import Any

import pytest
from answering import answering

from pilotlight.tools.serve.local_topics import ATTEMPTS, wire


@pytest.mark.slow
def test_what_no_function_can_take_is_a_dead_letter_after_its_attempts(
    pubsub_emulator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that is answered 503 each time is pushed so often as is allowed, then lies on the dead-letter topic."""
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", pubsub_emulator)
    from google.cloud import pubsub_v1

    pushed = list[Any]()

    def busy(path: str, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        pushed.append((path, json.loads(body)["message"]["data"]))
        return 503, {"why": "later"}

    with answering(busy) as host:
        assert wire("pubsub:refused/pl", f"http://{host}", pubsub_emulator)
        reader, dead = pubsub_v1.SubscriberClient(), "projects/refused/subscriptions/dead"
        reader.create_subscription(request={"name": dead, "topic": "projects/refused/topics/pl-dead-letter"})
        pubsub_v1.PublisherClient().publish("projects/refused/topics/pl-pod-events", b"nobody").result()
        got = reader.pull(subscription=dead, max_messages=1, timeout=60).received_messages
    assert [message.message.data for message in got] == [b"nobody"]
    assert {path for path, _ in pushed} == {"/pod_pending"}
    assert len(pushed) >= ATTEMPTS
