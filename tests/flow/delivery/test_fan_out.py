"""Alerts: who gets them, and that they get them once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import msgspec
import pytest
from telling_stage import Wall, alert, desk_of, later

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.errors import BadRequest, Conflict, Throttled, Unavailable, Unsure
from pilotlight.facts.alerts.delivery_records import Telling
from pilotlight.facts.messages import Alert, DeadLetter
from pilotlight.flow.delivery.deliver import CLAIM_S, MOST_ATTEMPTS, claim, deliver
from pilotlight.flow.delivery.desk import Desk, waiting_name
from pilotlight.flow.delivery.fan_out import fan_out
from pilotlight.flow.delivery.flush import flush
from pilotlight.ports.delivery import AlertChannel
from pilotlight.state_schema.alert_records import PROOF, WAITING
from pilotlight.tools.cli.watch.alert_commands import try_anew
from pilotlight.world.world_clock import VirtualClock

ALERT = alert()
HOUR = 3600.0


def letters(desk: Desk) -> list[DeadLetter]:
    """The dead letters so far."""
    sent = desk.outbox.sent  # type: ignore[attr-defined]
    return [msgspec.json.decode(m.data, type=DeadLetter) for m in sent if m.topic == "dead-letter"]


def test_each_channel_gets_what_is_severe_enough(clock: VirtualClock) -> None:
    """A warning goes to channels that want infos or warnings, not to those that want only the critical."""
    walls = {"all": Wall(), "warnings": Wall(), "nights": Wall()}
    desk = desk_of(
        clock, dict[str, AlertChannel](walls), warnings={"min_severity": "warning"}, nights={"min_severity": "critical"}
    )
    answer = fan_out(desk, ALERT)
    assert {name: len(wall.told) for name, wall in walls.items()} == {"all": 1, "warnings": 1, "nights": 0}
    assert answer.did == ("all: told", "warnings: told")


def test_the_same_fingerprint_is_told_once_until_it_is_news_again(clock: VirtualClock) -> None:
    """A second delivery and a second alert of one fingerprint are dropped; after its time it is told again."""
    wall = Wall()
    desk = desk_of(clock, {"a": wall}, a={"again_after": HOUR})
    fan_out(desk, ALERT)
    assert fan_out(desk, ALERT).did == ("a: told before",)
    later(clock, HOUR)
    fan_out(desk, ALERT)
    assert len(wall.told) == 2


def test_a_channel_that_is_down_is_tried_again_alone(clock: VirtualClock) -> None:
    """The delivery is done; the failed channel's alert waits as long as it asked for, and a flush tells it then."""
    up, down = Wall(), Wall(Throttled("not now", 42))
    desk = desk_of(clock, {"up": up, "down": down})
    answer = fan_out(desk, ALERT)
    assert answer.did == ("up: told", "down: later: not now")
    later(clock, 41)
    flush(desk)
    assert (len(up.told), len(down.told)) == (1, 0)
    later(clock, 1)
    assert flush(desk).did == ("down: told",)
    assert (len(up.told), len(down.told)) == (1, 1)


def test_while_a_channel_asks_for_a_pause_nothing_more_is_sent(clock: VirtualClock) -> None:
    """Another alert within the pause that a channel asked for is not tried; both come after it."""
    wall = Wall(Throttled("slow down", 30))
    desk = desk_of(clock, {"a": wall})
    fan_out(desk, ALERT)
    later(clock, 1)
    answer = fan_out(desk, alert("other"))
    assert (wall.tries, answer.did) == (1, ("a: held back: the channel rests after failures",))
    later(clock, 30)
    flush(desk)
    assert [told.fingerprint for told in wall.told] == ["quota/t4", "other"]


def test_a_channel_that_fails_in_a_row_is_left_alone(clock: VirtualClock) -> None:
    """After three alerts in a row that found a channel down, further ones wait and do not try it."""
    wall = Wall(*[Unavailable("down")] * 50)
    desk = desk_of(clock, {"a": wall}, group_after=0)
    for n in range(20):
        fan_out(desk, alert(f"f{n}"))
    assert wall.tries == 3


def test_a_channel_that_hangs_delays_no_other(clock: VirtualClock) -> None:
    """While the first channel hangs, the second is told."""
    told = threading.Event()

    class Hangs:
        def deliver(self, alert: Alert) -> str:
            """Go on only once the other channel was told."""
            assert told.wait(600)
            return ""

    class Tells:
        def deliver(self, alert: Alert) -> str:
            """Say that this channel was told."""
            told.set()
            return ""

    answer = fan_out(desk_of(clock, {"a": Hangs(), "b": Tells()}), ALERT)
    assert answer.did == ("a: told", "b: told")


def test_a_refusal_for_good_is_a_dead_letter_and_can_be_redelivered(clock: VirtualClock) -> None:
    """A hook that is gone is left alone by the next delivery; the letter names it and why; redelivered it comes."""
    wall = Wall(BadRequest("410"))
    desk = desk_of(clock, {"a": wall})
    assert fan_out(desk, ALERT).did == ("a: gave up: 410",)
    assert fan_out(desk, ALERT).did == ("a: gave up on it before",)
    [letter] = letters(desk)
    assert (letter.reason, letter.path) == ("410", "alerts.channels.a")
    assert len(try_anew(desk, dry_run=True)) == 1
    assert wall.told == []
    try_anew(desk)
    assert wall.told == [ALERT]
    assert try_anew(desk) == []


def test_attempts_are_bounded(clock: VirtualClock) -> None:
    """A channel that stays down gets a dozen attempts with growing pauses, then the alert is a dead letter; a warning
    is tried once an hour for six hours more."""
    wall = Wall(*[Unavailable("down")] * 50)
    desk = desk_of(clock, {"a": wall})
    fan_out(desk, ALERT)
    for _ in range(12):
        later(clock, 900)
        flush(desk)
    assert wall.tries == MOST_ATTEMPTS
    for _ in range(40):
        later(clock, 900)
        flush(desk)
    assert MOST_ATTEMPTS < wall.tries <= MOST_ATTEMPTS + 6
    assert not list(WAITING.scan(desk.state))
    assert [letter.reason for letter in letters(desk)] == [f"down; tried {MOST_ATTEMPTS} times"]


def test_a_claim_of_a_dead_deliverer_lapses(clock: VirtualClock) -> None:
    """A deliverer that died between its claim and the delivery blocks the alert only for a while; no one resends it."""

    class Dies:
        def deliver(self, alert: Alert) -> str:
            """Die in the middle."""
            raise SystemError

    state, wall = MemoryState(clock), Wall()
    with pytest.raises(SystemError):
        fan_out(desk_of(clock, {"a": Dies()}, state=state), ALERT)
    desk = desk_of(clock, {"a": wall}, state=state)
    assert fan_out(desk, ALERT).did == ("a: under way already",)
    later(clock, CLAIM_S)
    flush(desk)
    assert wall.told == [ALERT]
    assert [entry.value.unsure for entry in PROOF.scan(state)] == [1]


def test_a_deliverer_that_stood_still_until_its_claim_lapsed_tells_nothing(clock: VirtualClock) -> None:
    """The alert is whose claim comes next: shown by both, people would read it twice."""
    wall = Wall()
    desk = desk_of(clock, {"a": wall})
    now = desk.now()
    fresh = Telling(channel="a", alert=ALERT, status="claimed", since=now, at=now)
    ours = claim(desk, waiting_name("a", ALERT), fresh)
    later(clock, CLAIM_S)
    assert "stood still" in deliver(desk, "a", [ours])
    assert wall.told == []
    flush(desk)
    assert wall.told == [ALERT]


def test_what_is_shown_late_in_a_claim_is_claimed_anew_first(clock: VirtualClock) -> None:
    """Who stood still after it had shown the alert has a minute to write that down before others may show it."""
    state, wall = MemoryState(clock), Wall()
    other = desk_of(clock, {"a": wall}, state=state)

    class StandsStill(Wall):
        def deliver(self, alert: Alert) -> str:
            """Show it, and stand still, while another flushes."""
            receipt = wall.deliver(alert)
            later(clock, 55)
            flush(other)
            return receipt

    slow = desk_of(clock, {"a": StandsStill()}, state=state)
    now = slow.now()
    fresh = Telling(channel="a", alert=ALERT, status="claimed", since=now, at=now)
    ours = claim(slow, waiting_name("a", ALERT), fresh)
    later(clock, CLAIM_S - 30)
    assert deliver(slow, "a", [ours]) == "told"
    later(clock, CLAIM_S)
    flush(other)
    assert wall.told == [ALERT]


def test_without_the_store_nothing_is_told_and_nothing_is_lost(clock: VirtualClock) -> None:
    """A store that does not answer makes the delivery come back: an untold alert is not marked told."""

    class Down(MemoryState):
        def put(self, key: str, value: bytes, **conditions: object) -> int:
            """Do not answer."""
            raise Unavailable("store down")

    wall = Wall()
    with pytest.raises(Throttled, match="store down"):
        fan_out(desk_of(clock, {"a": wall}, state=Down(clock)), ALERT)
    assert wall.told == []


def test_a_dry_run_tells_nobody_and_claims_nothing(clock: VirtualClock) -> None:
    """A dry run says where the alert would go; the store stays empty."""
    wall = Wall()
    desk = desk_of(clock, {"a": wall})
    answer = fan_out(desk, ALERT, dry_run=True)
    assert (answer.did, answer.why, wall.told) == ((), "warning alerts go to a", [])
    assert desk.state.scan("").items == []


def test_many_deliveries_at_once_tell_each_alert_once(clock: VirtualClock) -> None:
    """Eight workers that get the same hundred alerts, each twice, tell each once."""
    wall = Wall()
    desk = desk_of(clock, {"a": wall}, group_after=0)
    alerts = [alert(f"f{n}") for n in range(100)] * 2
    with ThreadPoolExecutor(8) as workers:
        list(workers.map(lambda one: fan_out(desk, one), alerts))
    assert sorted(told.fingerprint for told in wall.told) == sorted(f"f{n}" for n in range(100))


def test_the_proof_says_when_where_and_under_which_name(clock: VirtualClock) -> None:
    """After a broken connection and a success the state holds the receipt, and that it may have been shown twice."""
    wall = Wall(Unsure("the answer is lost"))
    desk = desk_of(clock, {"a": wall})
    fan_out(desk, ALERT)
    later(clock, 60)
    flush(desk)
    [entry] = [entry.value for entry in PROOF.scan(desk.state)]
    assert (entry.status, entry.receipt, entry.at, entry.channel) == ("told", "receipt-1", clock.now(), "a")
    assert (entry.attempts, entry.unsure) == (1, 1)


def test_a_channel_the_policy_drops_leaves_a_dead_letter(clock: VirtualClock) -> None:
    """What waits for a channel that the policy no longer names is given up with that reason."""
    desk = desk_of(clock, {"old": Wall(Unavailable("down"))})
    fan_out(desk, ALERT)
    later(clock, 60)
    flush(desk_of(clock, {"new": Wall()}, state=desk.state))
    [entry] = [entry.value for entry in PROOF.scan(desk.state)]
    assert (entry.status, entry.why) == ("gave up", "the policy names no such channel any more")


def test_an_end_that_overtakes_its_beginning_lets_nobody_believe_the_beginning(clock: VirtualClock) -> None:
    """Queues reorder: neither is told, and a later beginning of the same is told again, with its end."""
    wall = Wall()
    desk = desk_of(clock, {"a": wall})
    first, end, second, over = (alert(at=clock.now() + timedelta(seconds=n), resolved=bool(n % 2)) for n in range(4))
    assert fan_out(desk, end).did == ("a: over before it was told",)
    assert fan_out(desk, first).did == ("a: over already",)
    fan_out(desk, over)
    fan_out(desk, second)
    assert wall.told == []
    news = alert(at=clock.now() + timedelta(seconds=9))
    fan_out(desk, news)
    fan_out(desk, alert(at=clock.now() + timedelta(seconds=10), resolved=True))
    assert [told.resolved for told in wall.told] == [False, True]


def test_an_end_that_the_store_did_not_keep_comes_again(clock: VirtualClock) -> None:
    """A conflict that nobody else's write explains leaves no word of an end: its beginning would be told after it."""

    class Contended(MemoryState):
        refused = 0

        def put(self, key: str, value: bytes, **conditions: object) -> int:
            if key.startswith("proof/") and not self.refused:
                self.refused += 1
                raise Conflict("given up amid contention")
            return super().put(key, value, **conditions)  # type: ignore[arg-type]

    wall = Wall()
    desk = desk_of(clock, {"a": wall}, state=Contended(clock))
    begin, end = (alert(at=clock.now() + timedelta(seconds=n), resolved=bool(n)) for n in range(2))
    with pytest.raises(Throttled, match="came first"):
        fan_out(desk, end)
    assert fan_out(desk, end).did == ("a: over before it was told",)
    assert fan_out(desk, begin).did == ("a: over already",)
    assert wall.told == []


def test_a_doubled_beginning_is_not_told_after_an_end_that_found_it_waiting(clock: VirtualClock) -> None:
    """The channel rests, the end takes the waiting alert away, and its second delivery changes nothing."""
    wall = Wall(Throttled("not now", 42))
    desk = desk_of(clock, {"a": wall})
    begin = alert(at=clock.now())
    fan_out(desk, begin)
    fan_out(desk, alert(at=clock.now() + timedelta(seconds=1), resolved=True))
    later(clock, 60)
    assert fan_out(desk, begin).did == ("a: over already",)
    assert wall.told == []


def test_an_end_is_told_however_long_ago_the_beginning_was(clock: VirtualClock) -> None:
    """What stood for days is told to be over, though its beginning would be told again by now."""
    wall = Wall()
    desk = desk_of(clock, {"a": wall})
    fan_out(desk, alert(at=clock.now()))
    later(clock, 30 * 24 * HOUR)
    fan_out(desk, alert(at=clock.now(), resolved=True))
    assert [told.resolved for told in wall.told] == [False, True]


def test_what_began_again_and_waits_is_taken_away_by_its_own_end(clock: VirtualClock) -> None:
    """Told and over once, begun again on a channel that rests: its second end is no double of the first."""
    wall = Wall()
    desk = desk_of(clock, {"a": wall})
    first, end, second, over = (alert(at=clock.now() + timedelta(seconds=n), resolved=bool(n % 2)) for n in range(4))
    fan_out(desk, first)
    fan_out(desk, end)
    wall.fail(Throttled("not now", 42))
    fan_out(desk, second)
    assert fan_out(desk, over).did == ("a: over before it was told",)
    later(clock, 60)
    flush(desk)
    assert [told.resolved for told in wall.told] == [False, True]


def test_an_end_from_before_it_began_again_is_not_told(clock: VirtualClock) -> None:
    """Begun, over and begun again, in the order of a queue that hands the end on last: people know that it goes on."""
    wall = Wall()
    desk = desk_of(clock, {"a": wall})
    first, end, second, over = (alert(at=clock.now() + timedelta(seconds=n), resolved=bool(n % 2)) for n in range(4))
    fan_out(desk, first)
    assert fan_out(desk, second).did == ("a: told before",)
    assert fan_out(desk, end).did == ("a: it began again since",)
    fan_out(desk, over)
    assert [told.resolved for told in wall.told] == [False, True]


def test_an_end_that_waits_is_the_last_one(clock: VirtualClock) -> None:
    """Its channel is throttled, it began again and is over again: the end that waits is told as that of now."""
    wall = Wall()
    desk = desk_of(clock, {"a": wall})
    first, end, second, over = (alert(at=clock.now() + timedelta(seconds=n), resolved=bool(n % 2)) for n in range(4))
    fan_out(desk, first)
    wall.fail(Throttled("not now", 42))
    fan_out(desk, end)
    fan_out(desk, second)
    assert fan_out(desk, over).did == ("a: under way already",)
    later(clock, 60)
    flush(desk)
    assert [told.resolved for told in wall.told] == [False, True]
