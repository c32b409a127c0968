"""Alerts that do not go out at once: bursts, quiet hours, and what is over."""

from datetime import UTC, datetime

import msgspec
import pytest
from stage import Stage
from telling_stage import Wall, alert, desk_of, later

from pilotlight.errors import Unavailable, Unsure
from pilotlight.facts.limits.rule_policy import RuleTime
from pilotlight.facts.messages import Tick
from pilotlight.flow.delivery.fan_out import fan_out
from pilotlight.flow.delivery.flush import flush
from pilotlight.state_schema.alert_records import PROOF, WAITING
from pilotlight.world.world_clock import VirtualClock

NIGHT = {"quiet_hours": RuleTime(timezone="America/New_York", start="22:00", end="07:00")}
"""In November: 03:00 to 12:00 UTC."""


@pytest.fixture
def night() -> VirtualClock:
    """A clock at midnight of New York."""
    return VirtualClock(datetime(2026, 11, 20, 5, 0, tzinfo=UTC))


def test_a_burst_is_told_as_one_with_its_count(clock: VirtualClock) -> None:
    """Of fifty alerts within a minute three come alone and forty-seven as one, with their dollars added up."""
    wall = Wall()
    desk = desk_of(clock, {"a": wall}, group_after=3)
    for n in range(50):
        fan_out(desk, alert(f"f{n}", usd_per_hour="1.50", what=f"no T4 in zone {n % 2}"))
    assert len(wall.told) == 3
    later(clock, 60)
    flush(desk)
    assert len(wall.told) == 4
    whole = wall.told[-1]
    assert (whole.what, whole.usd_per_hour) == ("47 quota alerts", "70.50")
    assert whole.why == "no T4 in zone 1 (24 times)\nno T4 in zone 0 (23 times)"
    assert not list(WAITING.scan(desk.state))
    assert {entry.value.grouped for entry in PROOF.scan(desk.state)} == {0, 47}


def test_a_storm_that_goes_on_is_one_message_a_window(clock: VirtualClock) -> None:
    """Ten minutes of an alert a second: three at first, then one a minute, and all are counted."""
    wall = Wall()
    desk = desk_of(clock, {"a": wall}, group_after=3)
    for n in range(600):
        fan_out(desk, alert(f"f{n}"))
        later(clock, 1)
    later(clock, 60)
    flush(desk)
    assert len(wall.told) <= 3 + 11
    counts = [int(told.what.split()[0]) for told in wall.told[3:]]
    assert 3 + sum(counts) == 600


def test_kinds_and_channels_have_bursts_of_their_own(clock: VirtualClock) -> None:
    """An alert of another kind is told at once while a burst is held back."""
    wall = Wall()
    desk = desk_of(clock, {"a": wall}, group_after=1)
    for n in range(5):
        fan_out(desk, alert(f"f{n}"))
    fan_out(desk, alert("other", kind="silent"))
    assert [told.kind for told in wall.told] == ["quota", "silent"]


def test_a_group_that_cannot_be_told_waits_whole(clock: VirtualClock) -> None:
    """A channel that fails when the window ends gets the same group later, once."""
    wall = Wall()
    desk = desk_of(clock, {"a": wall}, group_after=1)
    for n in range(5):
        fan_out(desk, alert(f"f{n}"))
    wall._failures.append(Unavailable("down"))
    later(clock, 60)
    flush(desk)
    later(clock, 60)
    flush(desk)
    assert [told.what for told in wall.told] == ["no T4 left", "4 quota alerts"]


def test_quiet_hours_hold_back_all_but_the_critical(night: VirtualClock) -> None:
    """At night a warning waits until seven in New York; what is critical comes through."""
    wall = Wall()
    desk = desk_of(night, {"a": wall}, a=NIGHT)
    answer = fan_out(desk, alert())
    fan_out(desk, alert("fire", severity="critical"))
    assert [told.fingerprint for told in wall.told] == ["fire"]
    assert answer.look_again_at == datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
    later(night, 7 * 3600 - 1)
    flush(desk)
    assert len(wall.told) == 1
    later(night, 1)
    flush(desk)
    assert [told.fingerprint for told in wall.told] == ["fire", "quota/t4"]


def test_what_is_over_is_told_once_and_may_begin_again(clock: VirtualClock) -> None:
    """A resolved alert follows its beginning once; after it the same fingerprint is news at once."""
    wall = Wall()
    desk = desk_of(clock, {"a": wall})
    over = alert(resolved=True)
    for one in (alert(), over, over, alert()):
        fan_out(desk, one)
    assert [told.resolved for told in wall.told] == [False, True, False]


def test_an_end_goes_where_its_beginning_went(clock: VirtualClock) -> None:
    """A channel for warnings is told of the end of one although the end is only an info."""
    wall, other = Wall(), Wall()
    desk = desk_of(clock, {"a": wall, "b": other}, a={"min_severity": "warning"}, b={"min_severity": "critical"})
    fan_out(desk, alert())
    fan_out(desk, alert(resolved=True, severity="info"))
    assert ([told.resolved for told in wall.told], other.told) == ([False, True], [])


def test_what_was_never_told_is_not_resolved(clock: VirtualClock) -> None:
    """That something is over is no news to a channel that did not hear of it."""
    wall = Wall()
    desk = desk_of(clock, {"a": wall})
    assert fan_out(desk, alert(resolved=True)).did == ("a: over before it was told",)
    assert wall.told == []


def test_what_is_over_before_it_was_told_is_not_told(night: VirtualClock) -> None:
    """A warning that waits for the morning and ends before it is forgotten, with its end."""
    wall = Wall()
    desk = desk_of(night, {"a": wall}, a=NIGHT)
    fan_out(desk, alert())
    assert fan_out(desk, alert(resolved=True)).did == ("a: over before it was told",)
    later(night, 8 * 3600)
    flush(desk)
    assert wall.told == []


def test_a_late_copy_of_the_beginning_does_not_begin_it_anew(clock: VirtualClock) -> None:
    """A beginning that is redelivered after its end is dropped by its time."""
    wall = Wall()
    desk = desk_of(clock, {"a": wall})
    first = alert(at=clock.now())
    fan_out(desk, first)
    later(clock, 60)
    fan_out(desk, alert(resolved=True, at=clock.now()))
    assert fan_out(desk, first).did == ("a: over already",)
    assert len(wall.told) == 2


def test_an_end_waits_for_a_beginning_that_may_have_been_told(clock: VirtualClock) -> None:
    """Where a connection broke, the beginning is sent again first, and then its end."""
    wall = Wall(Unsure("the answer is lost"))
    desk = desk_of(clock, {"a": wall})
    fan_out(desk, alert())
    fan_out(desk, alert(resolved=True))
    for _ in range(4):
        later(clock, 30)
        flush(desk)
    assert [told.resolved for told in wall.told] == [False, True]


def test_the_clusters_tick_wakes_what_is_due() -> None:
    """A tick of capacity_reconcile sends alert_fanout one for alerts once something is due, and not before."""
    stage, wall = Stage(), Wall(Unavailable("down"))
    desk = desk_of(stage.world.clock, {"a": wall}, state=stage.deps.state)  # type: ignore[arg-type]
    fan_out(desk, alert())
    stage.tick()
    assert stage.outbox.sent == []
    stage.wait(60)
    stage.tick()
    [sent] = stage.outbox.sent
    assert (sent.topic, msgspec.json.decode(sent.data, type=Tick).what) == ("alerts", "alerts")
    flush(desk)
    stage.tick()
    assert (len(wall.told), len(stage.outbox.sent)) == (1, 1)
