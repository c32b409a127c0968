"""What nobody acknowledges goes on to the next channel, what cannot be told to another; and no further than that."""

from telling_stage import Wall, alert, desk_of, later

from pilotlight.decide.alerts.alert_routing import GROUP
from pilotlight.errors import Forbidden, Unavailable
from pilotlight.facts.messages import Alert
from pilotlight.flow.delivery.desk import Desk, ack_name
from pilotlight.flow.delivery.fan_out import fan_out
from pilotlight.flow.delivery.flush import flush
from pilotlight.state_schema.alert_records import WAITING
from pilotlight.tools.serve.acknowledging import acknowledge
from pilotlight.world.world_clock import VirtualClock

ESCALATES = {"escalate_to": "boss", "escalate_after": 600.0}
ALONE = {"direct": False}


def kinds(wall: Wall) -> list[str]:
    """The kinds of what a channel was told."""
    return [told.kind for told in wall.told]


def _counted(told: Alert) -> int:
    """Alerts that a message stands for."""
    return int(told.what.split()[0]) if told.fingerprint.startswith(GROUP) else 1


def wait(desk: Desk, clock: VirtualClock, seconds: float) -> None:
    """Time passes, with a flush a minute."""
    for _ in range(int(seconds // 60)):
        later(clock, 60)
        flush(desk)


def test_what_nobody_acknowledges_goes_on(clock: VirtualClock) -> None:
    """To the next channel after its minutes, once; and from there to the one after."""
    ops, boss, chief = Wall(), Wall(), Wall()
    desk = desk_of(
        clock,
        {"ops": ops, "boss": boss, "chief": chief},
        ops=ESCALATES,
        boss=ALONE,
        chief=ALONE,
    )
    fan_out(desk, alert())
    wait(desk, clock, 540)
    assert (len(ops.told), len(boss.told)) == (1, 0)
    wait(desk, clock, 3600)
    assert (len(ops.told), len(boss.told), len(chief.told)) == (1, 1, 0)


def test_an_acknowledged_alert_stays_where_it_is(clock: VirtualClock) -> None:
    """Whoever says first that they see to it ends it, for every channel; the second is told so."""
    ops, boss = Wall(), Wall()
    desk = desk_of(clock, {"ops": ops, "boss": boss}, ops=ESCALATES, boss=ALONE)
    fan_out(desk, alert())
    assert acknowledge(desk.state, alert(), "ann")
    assert not acknowledge(desk.state, alert(), "bob")
    wait(desk, clock, 3600)
    assert (len(ops.told), len(boss.told)) == (1, 0)
    assert not list(WAITING.scan(desk.state))


def test_what_is_over_goes_no_further(clock: VirtualClock) -> None:
    """Its end is told where it was told; and once it begins anew it is news, acknowledged by nobody."""
    ops, boss = Wall(), Wall()
    desk = desk_of(clock, {"ops": ops, "boss": boss}, ops={**ESCALATES, "again_after": 60.0}, boss=ALONE)
    fan_out(desk, alert())
    acknowledge(desk.state, alert(), "ann")
    fan_out(desk, alert(resolved=True))
    wait(desk, clock, 1200)
    assert [told.resolved for told in ops.told] == [False, True]
    assert boss.told == []
    fan_out(desk, alert())
    wait(desk, clock, 1200)
    assert [told.resolved for told in boss.told] == [False]
    fan_out(desk, alert(resolved=True))
    assert [told.resolved for told in boss.told] == [False, True]


def test_a_burst_that_nobody_acknowledges_goes_on_as_one(clock: VirtualClock) -> None:
    """A thousand alerts of ten minutes, each due in its own second: the next channel has one message a minute."""
    boss = Wall()
    desk = desk_of(clock, {"ops": Wall(), "boss": boss}, ops=ESCALATES, boss=ALONE)
    for n in range(1000):
        fan_out(desk, alert(f"quota/{n}"))
        later(clock, 0.6)
        if n % 5 == 0:
            flush(desk)
    for _ in range(1200):
        later(clock, 1)
        flush(desk)
    assert sum(_counted(told) for told in boss.told) == 1000
    assert len(boss.told) <= 11


def test_ten_thousand_alerts_are_few_calls_of_either_channel(clock: VirtualClock) -> None:
    """Of one minute, acknowledged by nobody: both channels count all of them, in messages of up to 500."""
    ops, boss = Wall(), Wall()
    desk = desk_of(clock, {"ops": ops, "boss": boss}, ops=ESCALATES, boss=ALONE)
    for n in range(10_000):
        fan_out(desk, alert(f"quota/{n}"))
        later(clock, 0.006)
    wait(desk, clock, 1800)
    for wall in (ops, boss):
        assert sum(_counted(told) for told in wall.told) == 10_000
        assert len(wall.told) <= 30


def test_an_info_and_what_the_next_channel_does_not_want_stay(clock: VirtualClock) -> None:
    """Only warnings and what is worse go on, and only where the next channel's own rules take them."""
    ops, boss = Wall(), Wall()
    desk = desk_of(clock, {"ops": ops, "boss": boss}, ops=ESCALATES, boss={**ALONE, "min_severity": "critical"})
    fan_out(desk, alert(severity="info"))
    fan_out(desk, alert("two"))
    fan_out(desk, alert("three", severity="critical"))
    wait(desk, clock, 1200)
    assert [told.fingerprint for told in boss.told] == ["three"]


def test_what_a_channel_refuses_goes_to_its_fallback(clock: VirtualClock) -> None:
    """At once; the other channels that hear alerts are told that it could not be told."""
    ops, mail = Wall(*[Forbidden("no")] * 9), Wall()
    desk = desk_of(clock, {"ops": ops, "mail": mail}, ops={"fallback": "mail"}, mail=ALONE)
    fan_out(desk, alert())
    wait(desk, clock, 120)
    assert [told.fingerprint for told in mail.told] == ["quota/t4"]
    third = Wall()
    desk = desk_of(clock, {"ops": Wall(*[Forbidden("no")] * 9), "third": third})
    fan_out(desk, alert())
    wait(desk, clock, 120)
    assert kinds(third) == ["quota", "undelivered"]
    assert "no T4 left" in third.told[1].what


def test_what_was_given_up_is_told_once_the_channel_is_back(clock: VirtualClock) -> None:
    """A critical alert is tried once an hour for a day; one that somebody acknowledged no more."""

    def told(ack: bool) -> list[Alert]:
        wall = Wall(*[Unavailable("down")] * 15)
        desk = desk_of(clock, {"ops": wall})
        fan_out(desk, alert(severity="critical"))
        wait(desk, clock, 3600)
        if ack:
            acknowledge(desk.state, alert(), "ann")
        wait(desk, clock, 6 * 3600)
        return wall.told

    assert [one.fingerprint for one in told(False)] == ["quota/t4"]
    assert told(True) == []


def test_alerts_link_the_page_and_why(clock: VirtualClock) -> None:
    """Where the policy names the home's page; links that came with an alert stay."""
    wall = Wall()
    desk = desk_of(clock, {"ops": wall}, page="https://home.example/")
    fan_out(desk, alert(decision="17-aa", links={"source": "https://prometheus.example/"}))
    assert wall.told[0].links == {
        "acknowledge": f"https://home.example/ack?alert={ack_name(alert())}",
        "page": "https://home.example/",
        "why": "https://home.example/?why=17-aa",
        "source": "https://prometheus.example/",
    }
