"""A budget that is renamed, or counts by another period, keeps what it counted: by the world's own sum of dollars."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import typer
from busy_stage import Busy
from msgspec.structs import replace as with_
from stage import START
from typer.testing import CliRunner

from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.codec.policy_file import read_policy
from pilotlight.decide.money.budget_limits import window
from pilotlight.errors import BadPolicy
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.budgets import Account
from pilotlight.facts.money.money_policy import Budget
from pilotlight.state_schema.billing_records import CAP
from pilotlight.state_schema.decision_records import MEMORY
from pilotlight.tools.cli.start.policy_commands import register

CENT = Decimal("0.01")


class Counted(Busy):
    """One hard budget over nodes at $1 an hour; jobs of a quarter of an hour come without end."""

    def __init__(self, **budget: Any) -> None:
        super().__init__(budgets=(Budget(name="all", **budget),))

    def becomes(self, *budgets: Budget) -> None:
        """The policy is changed."""
        self.deps = replace(self.deps, policy=with_(self.deps.policy, budgets=budgets))

    def told(self, kind: str) -> list[str]:
        """What people read of it."""
        return [alert.why for alert in self.alerts if alert.kind == f"finding-{kind}"]


def test_a_budget_that_is_renamed_and_keeps_its_id_keeps_its_account() -> None:
    """Four dollars of six were spent under another name: two are left that day, and one name has them all."""
    on = Counted(usd=Decimal(6), period="day")
    on.busy(90)
    assert on.world.cost() > 3
    on.becomes(Budget(name="research", id="all", usd=Decimal(6), period="day"))
    on.busy(540)
    assert 5 < on.world.cost() <= 6 + CENT
    assert on.told("budget-gone") == []


def test_a_day_that_becomes_a_month_counts_the_days_of_that_month() -> None:
    """What days of this month had settled is spent of the month: of two dollars more than that two are left."""
    on = Counted(usd=Decimal(6), period="day")
    on.busy(300)
    on.minutes(13 * 60)
    on.quiet()
    spent = on.world.cost()
    assert spent > 5
    limit = Decimal(int(spent) + 3)
    on.becomes(Budget(name="all", usd=limit, period="month"))
    on.busy(600)
    assert spent + 1 < on.world.cost() <= limit + CENT
    (said,) = on.told("budget-period")
    assert f"of ${limit:.2f} a month" in said


@pytest.mark.parametrize("timezone", ["UTC", "Europe/Berlin"])
def test_a_month_that_becomes_a_day_counts_what_may_have_gone_today(timezone: str) -> None:
    """What the month settled may have been today's: the day's cap holds over it, and people read that it is a guess."""
    on = Counted(usd=Decimal(6), period="month", timezone=timezone)
    on.busy(60)
    on.minutes(60)
    on.becomes(Budget(name="all", usd=Decimal(6), period="day", timezone=timezone))
    on.busy(480)
    assert on.world.cost() <= 6 + CENT
    assert "nobody knows when" in on.told("budget-period")[0]
    before = on.world.launches
    on.minutes(3 * 60)  # The next day has all of its own.
    assert on.world.launches > before


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
def test_a_day_of_another_timezone_counts_each_day_that_overlaps_it(zone: str) -> None:
    """Work of yesterday evening (UTC) is in the new zone's day too: by the log, that day costs its cap at most."""
    on = Counted(usd=Decimal(6), period="day")
    on.minutes(4 * 60)
    on.busy(60)
    on.minutes(13 * 60)
    assert on.world.cost() > 3
    new = Budget(name="all", usd=Decimal(6), period="day", timezone=zone)
    start, end = window(new, on.world.clock.now())
    on.becomes(new)
    on.busy(int((end - on.world.clock.now()).total_seconds() // 60), jobs=1)
    assert _between(on, start, end) <= 6 + CENT


def _between(on: Counted, start: datetime, end: datetime) -> Decimal:
    """Dollars of an hour's dollar from one moment to another, by the world's log."""
    ends = {record["node"]: record["t"] for record in on.events("terminate")}
    low, high = (start - START).total_seconds(), (end - START).total_seconds()
    lives = [(record["t"], ends.get(record["node"], on.world.now_s)) for record in on.events("launch")]
    return sum((Decimal(max(0.0, min(e, high) - max(s, low))) / 3600 for s, e in lives), Decimal(0))


@pytest.mark.parametrize(("was", "then"), [("week", "month"), ("month", "week")])
def test_weeks_and_months_that_overlap_count(was: Any, then: Any) -> None:
    """Between weeks and months what was settled counts too: no more than one cap in all."""
    on = Counted(usd=Decimal(6), period=was)
    on.busy(60)
    on.becomes(Budget(name="all", usd=Decimal(6), period=then))
    on.busy(8 * 60)
    assert on.world.cost() <= 6 + CENT


def test_a_budget_that_vanishes_with_something_spent_is_told_once() -> None:
    """A rename without an id: what the old name counted is told with its sum, and how to keep it."""
    on = Counted(usd=Decimal(6), period="day")
    on.busy(60)
    on.becomes(Budget(name="research", usd=Decimal(60), period="day"))
    on.busy(30)
    (said,) = on.told("budget-gone")
    assert "write id: all" in said


def test_a_budget_that_is_new_or_unchanged_is_no_news() -> None:
    """Nothing is carried, and nobody is told."""
    on = Counted(usd=Decimal(6), period="day")
    on.busy(60)
    on.becomes(Budget(name="all", usd=Decimal(7), period="day"), Budget(name="new", usd=Decimal(9), period="week"))
    on.busy(30)
    assert (on.told("budget-gone"), on.told("budget-period")) == ([], [])


POLICY = """version: 1
pools: {{t4: {{instance_type: g4dn.xlarge, max: 2}}}}
budgets: {budgets}
classes:
  batch: {{max_runtime: 1h}}
  training: {{max_runtime: 1h}}
  serving: {{max_runtime: 1d}}
  notebook: {{max_runtime: 1h}}
"""


def test_check_says_that_a_budget_vanished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``check`` of the next policy names the budget that the state still counts for, and what to write."""
    state = SqliteState(tmp_path / "s.db")
    start, end = window(Budget(name="all", period="month"), state.now())
    MEMORY.put(state, "local", Memory(periods={"all": "month@UTC"}))
    CAP.put(state, f"local/{end:%Y%m%dT%H%M}/all/usd/{start:%Y%m%dT%H%M}", Account(settled=Decimal(4)))
    monkeypatch.setenv("PILOTLIGHT_STATE", f"sqlite:{tmp_path / 's.db'}")
    policy = tmp_path / "p.yaml"
    policy.write_text(POLICY.format(budgets="[{name: research, usd: 60}]"))
    commands = typer.Typer()
    register(commands)
    said = CliRunner().invoke(commands, ["check", str(policy)]).output
    assert "budget all is not in it any more" in said
    policy.write_text(POLICY.format(budgets="[{name: research, id: all, usd: 60}]"))
    assert "any more" not in CliRunner().invoke(commands, ["check", str(policy)]).output


@pytest.mark.parametrize("budgets", ["[{name: a, usd: 1}, {name: b, id: a, usd: 1}]", "[{name: a, id: 'x/y', usd: 1}]"])
def test_an_id_is_one_budgets_own(budgets: str) -> None:
    """An id that another is kept under, or that is no name, is refused by its path."""
    with pytest.raises(BadPolicy, match=r"budgets\[\d\]\.id"):
        read_policy(POLICY.format(budgets=budgets), "p.yaml")
