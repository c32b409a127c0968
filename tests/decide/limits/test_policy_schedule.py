"""Windows of a policy: local wall-clock time, daylight saving, midnight, and what they change."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from small_fleet import A100, T4, bought, offering, plan, pod, policy

from pilotlight.decide.limits.policy_schedule import effective, in_window
from pilotlight.facts.limits.rule_policy import Rule, RuleSet, RuleTime, RuleWhen
from pilotlight.facts.money.money_policy import Caps, LitCaps
from pilotlight.facts.policy import ClassPolicy, PoolPolicy, SparePolicy

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri")


def window(**fields: Any) -> RuleTime:
    """Office hours in New York, as article S1's cron has them."""
    return RuleTime(**{"timezone": "America/New_York", "start": "09:00", "end": "18:00", **fields})


def by_day(when: RuleTime | None = None, **sets: Any) -> Rule:
    """A rule of time alone, of office hours if no other window is given."""
    return Rule(name="office", when=RuleWhen(time=when or window()), does=RuleSet(**sets))


def at(text: str) -> datetime:
    """A moment in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# 2026: New York goes from EST to EDT on 8 March (02:00 -> 03:00) and back on 1 November (02:00 -> 01:00).
NEW_YORK = {
    "winter, 9:00 is 14:00 UTC": ("2026-03-06T14:00", True),
    "winter, a minute earlier": ("2026-03-06T13:59", False),
    "the day clocks go forward, 9:00 is 13:00 UTC": ("2026-03-08T13:00", True),
    "the day clocks go forward, a minute earlier": ("2026-03-08T12:59", False),
    "the day clocks go forward, 18:00 is 22:00 UTC": ("2026-03-08T22:00", False),
    "the day clocks go forward, a minute before the end": ("2026-03-08T21:59", True),
    "the day clocks go back, 9:00 is 14:00 UTC": ("2026-11-01T14:00", True),
    "the day clocks go back, a minute earlier": ("2026-11-01T13:59", False),
    "the day clocks go back, 18:00 is 23:00 UTC": ("2026-11-01T23:00", False),
    "the day before, 18:00 was 22:00 UTC": ("2026-10-31T22:00", False),
}


@pytest.mark.parametrize(("moment", "inside"), NEW_YORK.values(), ids=NEW_YORK.keys())
def test_office_hours_follow_daylight_saving(moment: str, inside: bool) -> None:
    """The window opens and closes by New York's clocks, on the days they change too."""
    assert in_window(window(), at(moment)) is inside


NIGHT = {
    "Friday evening": ("2026-11-20T23:00", True),
    "early on Saturday, which Friday began": ("2026-11-21T05:59", True),
    "six on Saturday": ("2026-11-21T06:00", False),
    "Saturday evening": ("2026-11-21T23:00", False),
    "early on Monday, which no weekday began": ("2026-11-23T05:00", False),
    "early on Tuesday": ("2026-11-24T05:00", True),
    "Friday noon": ("2026-11-20T12:00", False),
}


@pytest.mark.parametrize(("moment", "inside"), NIGHT.values(), ids=NIGHT.keys())
def test_a_window_over_midnight_belongs_to_the_day_it_begins_on(moment: str, inside: bool) -> None:
    """22:00 to 06:00 on weekdays holds until Saturday morning, and not from Sunday night."""
    night = window(timezone="UTC", days=WEEKDAYS, start="22:00", end="06:00")
    assert in_window(night, at(moment)) is inside


def test_the_hour_that_comes_twice_is_inside_twice() -> None:
    """01:30 happens twice on the night clocks go back; the window holds both times."""
    early = window(start="01:00", end="02:00")
    assert [in_window(early, at(f"2026-11-01T0{hour}:30")) for hour in (4, 5, 6, 7)] == [False, True, True, False]


INSIDE, OUTSIDE = at("2026-11-20T15:00"), at("2026-11-21T03:00")


def test_warm_nodes_by_day_and_none_by_night() -> None:
    """A rule's warm minimum is lit when its window opens; after it nothing is."""
    rules = policy([T4], rules=(by_day(warm={"t4": 2}),))
    assert bought(plan(offerings=[T4], rules=rules, now=INSIDE)) == {"t4": 2}
    assert bought(plan(offerings=[T4], rules=rules, now=OUTSIDE)) == {}


def test_warm_nodes_are_bought_once() -> None:
    """Those that boot already count; those a waiting pod will take do not."""
    rules = policy([T4], rules=(by_day(warm={"t4": 2}),))
    assert bought(plan(offerings=[T4], rules=rules, now=INSIDE, booting={"t4": 2})) == {}
    assert bought(plan([pod("p")], offerings=[T4], rules=rules, now=INSIDE, booting={"t4": 2})) == {"t4": 1}


def test_warm_nodes_stay_under_the_caps() -> None:
    """A warm minimum is no reason to pass a cap."""
    rules = policy([T4], rules=(by_day(warm={"t4": 5}),), caps=Caps(usd_per_hour=Decimal(3)))
    assert bought(plan(offerings=[T4], rules=rules, now=INSIDE)) == {"t4": 3}


def test_caps_and_class_rules_of_a_window() -> None:
    """Off-peak (article S1): spot for batch and more nodes at night; by day the file's own rules."""
    spot = offering("a100-spot", "A100", 8, "12", capacity_type="spot")
    off_peak = window(start="18:00", end="09:00")
    night = by_day(off_peak, caps=LitCaps(nodes=4), capacity_types={"batch": ("spot",)})
    rules = policy(
        (A100, spot), caps=Caps(nodes=1, gpus=64), rules=(night,), classes={"batch": ClassPolicy(gpu_models="any")}
    )
    many = [pod(f"p{n}", 8, gpu_models=("any",)) for n in range(6)]
    in_office, by_night = (plan(many, offerings=(A100, spot), rules=rules, now=now) for now in (INSIDE, OUTSIDE))
    assert bought(in_office) == {"a100": 1}
    assert bought(by_night) == {"a100-spot": 4}


def test_what_a_window_does_not_name_stays() -> None:
    """A window replaces the caps, most nodes and warm numbers it names, and no others."""
    rules = policy(
        [T4, A100],
        pools={"t4": PoolPolicy(instance_type="T4x1", max=9, spares=SparePolicy(warm=1))},
        caps=Caps(nodes=5, gpus=40),
        rules=(by_day(max={"t4": 2}, caps=LitCaps(gpus=8)),),
    )
    now = effective(rules, INSIDE)
    assert (now.pools["t4"].max, now.pools["t4"].spares.warm, now.pools["a100"].max) == (2, 1, 20)
    assert now.caps == Caps(nodes=5, gpus=8)
    assert effective(rules, OUTSIDE) is rules


def test_the_later_of_two_windows_wins() -> None:
    """Where windows overlap they are applied in the file's order."""
    rules = policy([T4], rules=(by_day(max={"t4": 2}), by_day(max={"t4": 7})))
    assert effective(rules, INSIDE).pools["t4"].max == 7
