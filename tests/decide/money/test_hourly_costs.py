"""What an hour costs, and which hours are odd."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.decide.money.hourly_costs import anomaly, begins, hour, hour_ended, mark, total
from pilotlight.facts.money.bill import Anomaly, CostLine, HourCost, HourSums, LineKind, MeterDay

MONDAY = datetime(2026, 11, 30, 10, tzinfo=UTC)
HOUR, DAY, WEEK = timedelta(hours=1), timedelta(days=1), timedelta(days=7)


def cost(at: datetime, usd: str, pool: str = "a", team: str = "red", base: str = "0") -> HourCost:
    """The hour from ``at``: dollars of one team on one pool, and ``base`` dollars of another on another."""
    pools = {name: Decimal(amount) for name, amount in ((pool, usd), ("base", base)) if Decimal(amount)}
    teams = {name: Decimal(amount) for name, amount in ((team, usd), ("blue", base)) if Decimal(amount)}
    return HourCost(at=at + HOUR, hours=Decimal(1), rates=HourSums(pools=pools, teams=teams))


def odd(usd: str, past: list[str], every: timedelta = WEEK) -> Anomaly | None:
    """What is odd of a Monday's tenth hour after those before it, the latest first."""
    return anomaly(cost(MONDAY, usd), [cost(MONDAY - n * every, each) for n, each in enumerate(past, 1)])


CASES = [
    pytest.param("99", ["10"] * 3, WEEK, False, id="three weeks are too few"),
    pytest.param("99", ["10"] * 4, WEEK, True, id="four weeks are enough"),
    pytest.param("99", ["10"] * 6, DAY, False, id="six days are too few"),
    pytest.param("99", ["10"] * 7, DAY, True, id="seven days are enough until the weekday has weeks"),
    pytest.param("12", ["10"] * 8, WEEK, False, id="a fifth more is usual"),
    pytest.param("12.60", ["10"] * 8, WEEK, True, id="more than a quarter above is not"),
    pytest.param("0.99", ["0"] * 8, WEEK, False, id="less than a dollar is nothing"),
    pytest.param(
        "20", ["6", "14", "8", "12", "10", "10", "7", "13"], WEEK, False, id="hours that differ much explain it"
    ),
    pytest.param(
        "40", ["10", "10", "10", "10", "10", "500", "400"], WEEK, True, id="odd hours of before do not hide it"
    ),
    pytest.param("1", ["10"] * 8, WEEK, False, id="a cheap hour is no anomaly"),
]


@pytest.mark.parametrize(("usd", "past", "every", "is_odd"), CASES)
def test_an_hour_is_odd_beside_the_same_hour_of_other_days(
    usd: str, past: list[str], every: timedelta, is_odd: bool
) -> None:
    """By median and median distance."""
    assert (odd(usd, past, every) is not None) == is_odd


def test_a_busy_weekday_is_not_held_against_weekends() -> None:
    """Mondays cost $80 at ten, Sundays nothing: another Monday of $80 is usual."""
    past = [cost(MONDAY - n * DAY, "80" if n % 7 == 0 else "0") for n in range(1, 36)]
    assert anomaly(cost(MONDAY, "80"), past) is None
    assert anomaly(cost(MONDAY - DAY, "80"), [each for each in past if each.at < MONDAY - DAY]) is not None


def test_what_is_behind_an_odd_hour_is_who_rose_and_not_who_is_large() -> None:
    """A pool that always costs $100 is not the cause, and neither is its team."""
    past = [cost(MONDAY - n * WEEK, "2", base="100") for n in range(1, 6)]
    found = anomaly(cost(MONDAY, "64", base="100"), past)
    assert found is not None
    assert (found.usd, found.usual, found.hours, found.weekday) == (Decimal(164), Decimal(102), 5, 0)
    assert (found.pool, found.pool_usd, found.pool_usual) == ("a", Decimal(64), Decimal(2))
    assert (found.team, found.team_usd, found.team_usual) == ("red", Decimal(64), Decimal(2))


def line(usd: str, kind: LineKind = "used", pool: str = "a", team: str = "red") -> CostLine:
    """A line of the meter."""
    fields: dict[str, Any] = {"pool": pool, "node": "n", "instance_type": "x", "capacity_type": "spot"}
    return CostLine(kind=kind, team=team, usd=Decimal(usd), gpu_hours=Decimal(usd) / 2, **fields)


def day(at: datetime, *lines: CostLine) -> MeterDay:
    """A day as it is counted up to ``at``."""
    return MeterDay(day=at.date(), until=at, lines=lines)


def test_an_hour_is_what_was_counted_since_the_last_one() -> None:
    """Across midnight too, where a new day's lines begin at nothing; idle time is nobody's."""
    at = datetime(2026, 11, 30, 23, 1, tzinfo=UTC)
    was = mark(day(at, line("10"), line("5", "idle", team="")))
    later = at + HOUR
    days = [day(at, line("12"), line("6", "idle", team="")), day(later, line("1", pool="b"))]
    found = hour(was, days, later)
    assert found is not None
    assert found.rates.pools == {"a": Decimal(3), "b": Decimal(1)}
    assert found.rates.teams == {"(idle)": Decimal(1), "red": Decimal(3)}
    assert found.rates.machines == {"x spot": Decimal(2)}
    assert (total(found), begins(found)) == (Decimal(4), at.replace(minute=0))


def test_a_span_in_which_nobody_looked_is_no_hour() -> None:
    """A meter that stood still for a night says nothing of any hour; two hours are told as one an hour."""
    was = mark(day(MONDAY, line("1")))
    assert hour(was, [day(MONDAY, line("9"))], MONDAY + 4 * HOUR) is None
    two = hour(was, [day(MONDAY, line("9"))], MONDAY + 2 * HOUR)
    assert two is not None
    assert total(two) == 4
    assert not hour_ended(was, MONDAY + timedelta(minutes=59))
    assert hour_ended(was, MONDAY + HOUR)


@given(st.lists(st.tuples(st.text(max_size=3), st.decimals(0, 99, places=2)), max_size=90))
def test_an_hours_teams_add_up_to_its_pools(teams: list[tuple[str, Decimal]]) -> None:
    """However many teams there are: the dearest are named, and the rest is one."""
    lines = [line(str(usd), team=team) for team, usd in teams]
    found = hour(mark(day(MONDAY)), [day(MONDAY, *lines)], MONDAY + HOUR)
    assert found is not None
    assert abs(sum(found.rates.teams.values()) - total(found)) < Decimal("1e-7")
    assert len(found.rates.teams) <= 61
