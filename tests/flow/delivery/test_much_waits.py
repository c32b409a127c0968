"""A flush with much more waiting than it tells: nobody is forgotten or told twice, and no channel hides another."""

from datetime import timedelta

from telling_stage import Wall, desk_of

from pilotlight.errors import Throttled
from pilotlight.facts.alerts.delivery_records import Telling
from pilotlight.facts.messages import Alert
from pilotlight.flow.delivery.desk import Desk, waiting_name
from pilotlight.flow.delivery.flush import MOST_READ, flush
from pilotlight.state_schema.alert_records import WAITING
from pilotlight.world.world_clock import VirtualClock


def waits(desk: Desk, channel: str, number: int, *, cluster: str = "c", in_s: float = 0) -> None:
    """One alert waits on a channel."""
    now = desk.now()
    one = Alert(cluster=cluster, kind="storm", severity="warning", fingerprint=f"storm/{number}", what="x", why="y")
    due = now + timedelta(seconds=in_s)
    telling = Telling(channel=channel, alert=one, status="waits", since=now, at=now, due=due)
    WAITING.put(desk.state, waiting_name(channel, one), telling)


def test_a_backlog_is_told_flush_by_flush_and_hides_no_channel(clock: VirtualClock) -> None:
    """What is not due yet counts for nothing, in whatever order it lies, and every cluster's alerts are found."""
    ops, phone = Wall(), Wall()
    desk = desk_of(clock, {"ops": ops, "phone": phone}, group_after=0)
    for number in range(MOST_READ + 50):
        waits(desk, "ops", number)
        waits(desk, "phone", number, in_s=3600)
    for cluster in ("a", "c", "c-2", "c/d", "d"):
        waits(desk, "phone", -1, cluster=cluster)
    flush(desk)
    assert (len(ops.told), sorted(one.cluster for one in phone.told)) == (MOST_READ, ["a", "c", "c-2", "c/d", "d"])
    flush(desk)
    assert sorted(one.fingerprint for one in ops.told) == sorted(f"storm/{n}" for n in range(MOST_READ + 50))


def test_a_channel_that_rests_is_looked_at_again_when_it_may(clock: VirtualClock) -> None:
    """Its alerts wait, the others' do not, and the answer says when to come back."""
    ops, phone = Wall(Throttled("slowly", 60.0)), Wall()
    desk = desk_of(clock, {"ops": ops, "phone": phone}, group_after=0)
    for number in range(3):
        waits(desk, "ops", number)
        waits(desk, "phone", number)
    flush(desk)
    assert (len(ops.told), len(phone.told)) == (0, 3)
    again = flush(desk)
    assert (again.did, again.look_again_at) == ((), clock.now() + timedelta(seconds=60))
    clock.advance(clock.elapsed_s() + 61)
    flush(desk)
    assert len(ops.told) == 3
