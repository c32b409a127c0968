"""What a Lambda answers to a batch of SQS, and to one event: what goes back, what is done, what is refused."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.events import encode
from pilotlight.doorway.batch import ENOUGH_S, take
from pilotlight.doorway.functions import Request
from pilotlight.errors import Failed, Unavailable
from pilotlight.facts.messages import DeadLetter, Tick
from pilotlight.ports.state import Stored
from pilotlight.settings import Settings
from pilotlight.wiring import App
from pilotlight.world.world_clock import VirtualClock

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
TICK = {"tick": "reconcile", "cluster": "local"}


class Flaky(MemoryState):
    """Answers, unless it is down; counts how often it is looked at for a lease."""

    down: frozenset[str] = frozenset()
    leases = 0

    def get(self, key: str) -> Stored | None:
        """A record."""
        if any(part in key for part in self.down):
            raise Unavailable("store down")
        self.leases += key.startswith("lease/")
        return super().get(key)


class Door:
    """A deployment whose store can be down, on a clock that stands still."""

    def __init__(self) -> None:
        clock = VirtualClock(NOW)
        self.state, self.outbox = Flaky(clock), MemoryOutbox()
        self.app = App(Settings(), state=self.state, outbox=self.outbox, clock=clock)

    def take(
        self, *bodies: Any, function: Any = "capacity_reconcile", left_s: float = 60.0, group: str = ""
    ) -> list[str]:
        """A batch of bodies: the numbers of those that go back."""
        back = take(self.app, function, batch(*bodies, group=group), lambda: left_s)
        return [each["itemIdentifier"] for each in back["batchItemFailures"]]

    @property
    def letters(self) -> list[DeadLetter]:
        """The dead letters that were written."""
        sent = [message for message in self.outbox.sent if message.topic == "dead-letter"]
        return [msgspec.json.decode(message.data, type=DeadLetter) for message in sent]


def batch(*bodies: Any, group: str = "") -> Mapping[str, Any]:
    """An event of SQS with a record for each body."""
    attributes = {"MessageGroupId": group} if group else {}
    texts = [body if isinstance(body, str) else json.dumps(body) for body in bodies]
    return {
        "Records": [
            {"messageId": f"m{n}", "body": text, "attributes": attributes, "eventSource": "aws:sqs"}
            for n, text in enumerate(texts)
        ]
    }


@pytest.fixture
def door() -> Door:
    """A deployment."""
    return Door()


def test_what_is_done_does_not_go_back(door: Door) -> None:
    """A tick, an event that asks for nothing, an event of EventBridge."""
    state = {
        "detail-type": "EC2 Instance State-change Notification",
        "detail": {"instance-id": "i-1", "state": "running"},
    }
    assert door.take(TICK, {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}, state) == []


def test_what_is_refused_is_a_dead_letter_with_its_reason_and_does_not_go_back(door: Door) -> None:
    """Poison neither loops nor keeps its neighbours from being done."""
    assert door.take("{", TICK, {"what": "is this"}, function="capacity_reconcile") == []
    assert ["JSON" in letter.reason or "no known source" in letter.reason for letter in door.letters] == [True, True]
    assert {letter.function for letter in door.letters} == {"capacity_reconcile"}


def test_only_what_is_for_later_goes_back(door: Door) -> None:
    """With the store gone a tick comes again; poison beside it is done."""
    door.state.down = frozenset({"lease"})
    assert door.take("{", TICK) == ["m1"]


def test_ticks_that_piled_up_are_one_look(door: Door) -> None:
    """The same body in one batch has one answer: a queue that waited for an hour costs no hour's looks."""
    door.take(TICK)
    once, door.state.leases = door.state.leases, 0
    assert once
    assert door.take(*[TICK] * 10) == []
    assert door.state.leases == once


def test_all_of_them_go_back_where_their_one_answer_was_later(door: Door) -> None:
    """None is lost by being like another."""
    door.state.down = frozenset({"lease"})
    assert door.take(TICK, TICK, TICK) == ["m0", "m1", "m2"]


def test_of_a_group_what_follows_goes_back_too(door: Door) -> None:
    """A FIFO queue keeps its order only where nothing behind a message that comes again is done before it."""
    door.state.down = frozenset({"lease"})
    reconcile, poison = encode(Tick(cluster="local"), id="t1").decode(), "{"
    assert door.take(poison, reconcile, poison, group="ml/t4") == ["m1", "m2"]
    assert len(door.letters) == 1


def test_no_record_is_begun_that_the_lambdas_end_would_cut(door: Door) -> None:
    """The first is always tried: else a batch would come back for ever."""
    assert door.take(TICK, "{", "{", left_s=ENOUGH_S - 1) == ["m1", "m2"]
    assert door.letters == []


def test_a_deployment_that_is_not_set_up_keeps_its_events() -> None:
    """What is wrong is the deployment, not the events."""
    app = App(Settings(state="nowhere:", outbox="memory:"))
    back = take(app, "capacity_reconcile", batch(TICK, "{"), lambda: 60.0)["batchItemFailures"]
    assert [each["itemIdentifier"] for each in back] == ["m0", "m1"]


def test_one_event_by_itself_is_answered_or_raises(door: Door) -> None:
    """Of EventBridge, SNS or the Scheduler without a queue: what comes again is told by an exception."""
    event = {"detail-type": "Scheduled Event", "source": "aws.events", "detail": {}, "id": "e-1"}
    assert "why" in take(door.app, "capacity_reconcile", event, lambda: 60.0)
    sns = {"Records": [{"EventSource": "aws:sns", "Sns": {"Message": json.dumps(TICK), "MessageId": "n-1"}}]}
    assert "why" in take(door.app, "capacity_reconcile", sns, lambda: 60.0)
    door.state.down = frozenset({"lease"})
    with pytest.raises(Failed, match="store down"):
        take(door.app, "capacity_reconcile", event, lambda: 60.0)


def test_a_tick_waits_for_joining_nodes_only_on_a_clock_that_runs(door: Door) -> None:
    """With none of its time to spare it does not, nor where the clock is led by hand."""
    running = App(Settings(state="memory:", outbox="memory:"))
    asked = [(running, 58.0), (running, 0.0), (door.app, 58.0)]
    requests = [
        Request(house=house, function="capacity_reconcile", body=b"", headers={}, dryrun=False, watch_s=spare_s)
        for house, spare_s in asked
    ]
    assert [request.watches for request in requests] == [True, False, False]
