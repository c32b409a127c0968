"""What a Lambda answers to a batch of SQS, and to one event: what goes back, what is done, what is refused."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.events import encode
from pilotlight.doorway import receive
from pilotlight.doorway.batch import ENOUGH_S, take
from pilotlight.errors import Failed, Unavailable
from pilotlight.facts.messages import DeadLetter, Tick
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.flow import homes_watch
from pilotlight.flow.answer import Answer
from pilotlight.flow.deps import Deps
from pilotlight.ports.state import Stored
from pilotlight.settings import Settings
from pilotlight.tools.serve.tick_schedule import tick_if_due
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


WAITS = {
    "a tick with time to spare": ((TICK,), 30.0, {}, [30.0]),
    "more time than until the next tick": ((TICK,), 1e9, {}, [58.0]),
    "no time to spare": ((TICK,), 0.0, {}, []),
    "two ticks in a body": ((TICK, {**TICK, "cluster": "other"}), 30.0, {}, []),
    "somebody waits for the answer": ((TICK,), 30.0, {"X-Pilotlight-At-Once": "true"}, []),
    "a dry run": ((TICK,), 30.0, {"x-pilotlight-dryrun": "true"}, []),
}


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that ticks were to wait for nodes."""
    found = list[float]()

    def watch(deps: Deps, tick: Tick, answer: Answer, for_s: float) -> Answer:
        found.append(for_s)
        return answer

    monkeypatch.setattr(homes_watch, "watch", watch)
    return found


def homed() -> App:
    """A deployment whose pool keeps its nodes for pods, on a clock that stands still."""
    policy = Policy(version=1, pools={"t4": PoolPolicy(instance_type="g4dn.xlarge", taints=(BIRTH_TAINT,))})
    clock = VirtualClock(NOW)
    return App(Settings(), state=MemoryState(clock), outbox=MemoryOutbox(), clock=clock, policy=policy)


@pytest.mark.parametrize(("ticks", "spare_s", "headers", "waits"), WAITS.values(), ids=WAITS)
def test_a_tick_waits_for_joining_nodes_where_nobody_waits_for_it(
    ticks: tuple[Any, ...], spare_s: float, headers: Mapping[str, str], waits: list[float], watched: list[float]
) -> None:
    """For as long as there is time, at most until the next tick; of several none does."""
    body = json.dumps(list(ticks) if len(ticks) > 1 else ticks[0]).encode()
    receive(homed(), "capacity_reconcile", body, headers, spare_s=spare_s)
    assert watched == waits


def test_ticks_of_schedules_wait_and_those_of_commands_do_not(watched: list[float]) -> None:
    """One posted to the function, and one of serve's own; a command in its own process is answered at once."""
    house, body = homed(), json.dumps(TICK).encode()
    house.respond("capacity_reconcile", Request(EnvironBuilder(method="POST", data=body).get_environ()))
    assert tick_if_due(house, 60) is None
    house.receive("capacity_reconcile", body, {})
    assert watched == [58.0, 58.0]
