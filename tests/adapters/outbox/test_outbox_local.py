"""The local outbox: a folder of topics, each read in order from where it was left."""

import json
from pathlib import Path

import msgspec
import pytest

from pilotlight.adapters.outbox.local import LocalOutbox
from pilotlight.errors import Unavailable
from pilotlight.facts.messages import DeadLetter, Outgoing
from pilotlight.units import EPOCH


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


def _letter(id: str, body: str = "{") -> Outgoing:
    letter = DeadLetter(reason="r", path="", function="f", body=body, at=EPOCH)
    data = msgspec.Raw(msgspec.json.encode(letter))
    return Outgoing(id=id, topic="dead-letter", type="dev.pilotlight.dead-letter.v1", key="f", data=data)


def _letters(folder: Path) -> dict[str, int]:
    lines = (folder / "dead-letter.jsonl").read_text().splitlines()
    return {event["id"]: event["data"]["count"] for event in map(json.loads, lines)}


def test_the_same_letter_again_counts_up(tmp_path: Path) -> None:
    """One line a letter, whoever writes it; others are not touched, whatever their bodies quote."""
    outbox = LocalOutbox(tmp_path)
    outbox.publish([_letter("dead-a"), _letter("dead-b", '{"count":7},"id":"dead-a"'), _letter("dead-c")])
    for _ in range(11):
        LocalOutbox(tmp_path).publish([_letter("dead-b", '{"count":7},"id":"dead-a"')])
    outbox.publish([_letter("dead-a")])
    assert _letters(tmp_path) == {"dead-a": 2, "dead-b": 12, "dead-c": 1}


def test_a_topic_takes_no_more_than_its_room(tmp_path: Path) -> None:
    """A full file is turned over, the older one goes: a flood of letters fills no disk."""
    outbox = LocalOutbox(tmp_path, largest=4_000)
    for number in range(200):
        outbox.publish([_letter(f"dead-{number}"), _message(str(number), "capacity")])
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{topic}{older}.jsonl" for topic in ("dead-letter", "capacity") for older in ("", ".1")
    }
    assert all(path.stat().st_size <= 4_000 for path in tmp_path.iterdir())
    assert "dead-199" in _letters(tmp_path)


def test_messages_are_delivered_once_each_while_files_are_turned_over(tmp_path: Path) -> None:
    """A file is turned over when all of it was taken, and never while it is read."""
    outbox, seen = LocalOutbox(tmp_path, largest=1_000), list[str]()
    _drain(outbox)
    for number in range(60):
        outbox.publish([_message(str(number))])
        if number % 7 == 0:
            seen += _drain(outbox)
    seen += _drain(outbox)
    assert seen == [str(number) for number in range(60)]
    assert (tmp_path / "alerts.1.jsonl").exists()


def test_what_nobody_takes_ends_at_four_times_the_room(tmp_path: Path) -> None:
    """Where alerts are never drained the disk is kept from filling: the older ones lie in the file before, then go."""
    outbox = LocalOutbox(tmp_path, largest=1_000)
    _drain(outbox)
    for number in range(300):
        outbox.publish([_message(str(number))])
    assert all(path.stat().st_size <= 4_200 for path in tmp_path.iterdir())
    assert _drain(outbox)[-1] == "299"


def test_only_its_owner_reads_the_outbox(tmp_path: Path) -> None:
    """Files are made 0600, the folder 0700, and one that was readable for all is no more."""
    folder = tmp_path / "outbox"
    folder.mkdir()
    (folder / "alerts.jsonl").touch(0o644)
    outbox = LocalOutbox(folder)
    outbox.publish([_message("1"), _letter("dead-a")])
    _drain(outbox)
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == {
        "alerts.jsonl": 0o600,
        "alerts.offset": 0o600,
        "dead-letter.jsonl": 0o600,
    }
