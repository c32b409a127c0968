"""Alerts: who gets them, and that they get them once."""

import threading

import pytest

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.errors import BadRequest, PilotlightError, Throttled, Unavailable
from pilotlight.facts.messages import Alert
from pilotlight.facts.policy import Alerts
from pilotlight.facts.policy import Channel as ChannelPolicy
from pilotlight.flow.fan_out import CLAIM_S, TOLD_S, fan_out
from pilotlight.world.clock import VirtualClock

ALERT = Alert(cluster="c", kind="quota", severity="warning", fingerprint="c/quota/t4", what="w", why="y")


class Wall:
    """A channel that keeps what it was told, after failing as often as its script says."""

    def __init__(self, *failures: PilotlightError) -> None:
        self.told: list[Alert] = []
        self._failures = list(failures)

    def deliver(self, alert: Alert) -> None:
        """Fail by the script, else keep the alert."""
        if self._failures:
            raise self._failures.pop(0)
        self.told.append(alert)


def _policy(**severities: str) -> Alerts:
    return Alerts(
        channels={
            name: ChannelPolicy(kind="console", min_severity=severity)  # type: ignore[arg-type]
            for name, severity in severities.items()
        }
    )


def test_each_channel_gets_what_is_severe_enough(clock: VirtualClock) -> None:
    """A warning goes to channels that want infos or warnings, not to those that want only the critical."""
    walls = {"all": Wall(), "warnings": Wall(), "nights": Wall()}
    policy = _policy(all="info", warnings="warning", nights="critical")
    answer = fan_out(walls, MemoryState(clock), policy, ALERT)
    assert {name: len(wall.told) for name, wall in walls.items()} == {"all": 1, "warnings": 1, "nights": 0}
    assert answer.did == ("all: told", "warnings: told")


def test_the_same_fingerprint_is_told_once_until_it_is_news_again(clock: VirtualClock) -> None:
    """A second delivery and a second alert of one fingerprint are dropped; hours later it is told again."""
    state, wall = MemoryState(clock), Wall()
    for _ in range(2):
        answer = fan_out({"a": wall}, state, _policy(a="info"), ALERT)
    assert (len(wall.told), answer.did) == (1, ("a: told before",))
    clock.advance(TOLD_S)
    fan_out({"a": wall}, state, _policy(a="info"), ALERT)
    assert len(wall.told) == 2


def test_a_channel_that_is_down_is_tried_again_alone(clock: VirtualClock) -> None:
    """The delivery is for later with the longest pause asked for; then only the channel that failed is told."""
    state, up, down = MemoryState(clock), Wall(), Wall(Throttled("not now", 42))
    walls, policy = {"up": up, "down": down}, _policy(up="info", down="info")
    with pytest.raises(Throttled, match="down: not now") as caught:
        fan_out(walls, state, policy, ALERT)
    assert caught.value.after_s == 42
    fan_out(walls, state, policy, ALERT)
    assert (len(up.told), len(down.told)) == (1, 1)


def test_a_channel_that_hangs_delays_no_other(clock: VirtualClock) -> None:
    """While the first channel hangs, the second is told."""
    told = threading.Event()

    class Hangs:
        def deliver(self, alert: Alert) -> None:
            """Go on only once the other channel was told."""
            assert told.wait(10)

    class Tells:
        def deliver(self, alert: Alert) -> None:
            """Say that this channel was told."""
            told.set()

    answer = fan_out({"a": Hangs(), "b": Tells()}, MemoryState(clock), _policy(a="info", b="info"), ALERT)
    assert answer.did == ("a: told", "b: told")


def test_a_refusal_for_good_is_not_tried_again(clock: VirtualClock) -> None:
    """A hook that is gone is said in the answer, and left alone by the next delivery."""
    state, gone = MemoryState(clock), Wall(BadRequest("410"))
    assert fan_out({"a": gone}, state, _policy(a="info"), ALERT).did == ("a: gave up: 410",)
    assert fan_out({"a": gone}, state, _policy(a="info"), ALERT).did == ("a: told before",)


def test_a_claim_of_a_dead_deliverer_lapses(clock: VirtualClock) -> None:
    """A deliverer that died between its claim and the delivery blocks the alert only for a while."""

    class Dies:
        def deliver(self, alert: Alert) -> None:
            """Die in the middle."""
            raise SystemError

    state, wall = MemoryState(clock), Wall()
    with pytest.raises(SystemError):
        fan_out({"a": Dies()}, state, _policy(a="info"), ALERT)
    fan_out({"a": wall}, state, _policy(a="info"), ALERT)
    assert wall.told == []
    clock.advance(CLAIM_S)
    fan_out({"a": wall}, state, _policy(a="info"), ALERT)
    assert wall.told == [ALERT]


def test_without_the_store_nothing_is_told_and_nothing_is_lost(clock: VirtualClock) -> None:
    """A store that does not answer makes the delivery come back: an untold alert is not marked told."""

    class Down(MemoryState):
        def put(self, key: str, value: bytes, **conditions: object) -> int:  # type: ignore[override]
            """Do not answer."""
            raise Unavailable("store down")

    wall = Wall()
    with pytest.raises(Throttled, match="store down"):
        fan_out({"a": wall}, Down(clock), _policy(a="info"), ALERT)
    assert wall.told == []


def test_a_dry_run_tells_nobody_and_claims_nothing(clock: VirtualClock) -> None:
    """A dry run says where the alert would go; the store stays empty."""
    state, wall = MemoryState(clock), Wall()
    answer = fan_out({"a": wall}, state, _policy(a="info"), ALERT, dry_run=True)
    assert (answer.did, answer.why, wall.told) == ((), "warning alerts go to a", [])
    assert state.scan("").items == []
