"""The local outbox: a folder of topics, each read in order from where it was left."""

import json
from pathlib import Path

import msgspec
import pytest

from pilotlight.adapters.outbox.local import LocalOutbox
from pilotlight.errors import Unavailable
from pilotlight.facts.messages import Outgoing


def _message(id: str, topic: str = "alerts") -> Outgoing:
    data = msgspec.Raw(b'{"n": 1}')
    return Outgoing(id=id, topic=topic, type="dev.pilotlight.alert.v1", key="t4", data=data)  # type: ignore[arg-type]


def _drain(outbox: LocalOutbox, topic: str = "alerts") -> list[str]:
    seen: list[str] = []
    outbox.drain(topic, lambda body: seen.append(json.loads(body)["id"]) or True)  # type: ignore[func-returns-value]
    return seen


def test_messages_are_delivered_once_and_in_order(tmp_path: Path) -> None:
    """A drain hands over what no drain before it did."""
    outbox = LocalOutbox(tmp_path)
    outbox.publish([_message("1"), _message("2")])
    assert _drain(outbox) == ["1", "2"]
    outbox.publish([_message("3")])
    assert _drain(LocalOutbox(tmp_path)) == ["3"]
    assert _drain(outbox) == []


def test_a_message_that_was_not_taken_stays(tmp_path: Path) -> None:
    """A drain stops at the first refusal; the next begins there."""
    outbox = LocalOutbox(tmp_path)
    outbox.publish([_message("1"), _message("2"), _message("3")])
    assert outbox.drain("alerts", lambda body: b'"id":"2"' not in body) == 1
    assert _drain(outbox) == ["2", "3"]


def test_a_delivery_that_raises_loses_nothing(tmp_path: Path) -> None:
    """The message whose delivery raised comes again."""
    outbox = LocalOutbox(tmp_path)
    outbox.publish([_message("1")])
    with pytest.raises(ZeroDivisionError):
        outbox.drain("alerts", lambda body: 1 / 0 > 0)
    assert _drain(outbox) == ["1"]


def test_topics_are_apart(tmp_path: Path) -> None:
    """A topic's drain sees nothing of another's."""
    outbox = LocalOutbox(tmp_path)
    outbox.publish([_message("1"), _message("2", "capacity")])
    assert _drain(outbox, "capacity") == ["2"]


def test_a_line_still_being_written_is_left_for_later(tmp_path: Path) -> None:
    """A line without its end is not delivered."""
    outbox = LocalOutbox(tmp_path)
    outbox.publish([_message("1")])
    with (tmp_path / "alerts.jsonl").open("ab") as file:
        file.write(b'{"id": "half')
    assert _drain(outbox) == ["1"]


def test_messages_may_be_sent_while_one_is_delivered(tmp_path: Path) -> None:
    """A delivery that publishes to its own topic does not wait for itself."""
    outbox = LocalOutbox(tmp_path)
    outbox.publish([_message("1")])

    def deliver(body: bytes) -> bool:
        if b'"id":"1"' in body:
            outbox.publish([_message("2")])
        return True

    assert outbox.drain("alerts", deliver) + outbox.drain("alerts", deliver) == 2


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """Publishing where no folder can be is Unavailable, with the place and the setting."""
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match=r"file.*PILOTLIGHT_OUTBOX"):
        LocalOutbox(tmp_path / "file").publish([_message("1")])
