"""billing_import over every dialect, killed before or after any operation of the store: to the cent in the end."""

import random
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from stage import START, Stage
from test_bills_of_others import DIALECTS, FIRST, SCENARIOS

from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.decide.money.bills.bill_scope import Rules
from pilotlight.facts.messages import BillExported
from pilotlight.facts.money.money_policy import BillScope
from pilotlight.flow.billing import billed_days
from pilotlight.flow.billing.billing_import import billing_import

pytest.importorskip("duckdb")
OPERATIONS = ("get", "put", "delete", "scan")


class Killed(Exception):
    """The function is gone."""


class Deadly(MemoryState):
    """A store in whose n-th operation from now its function is killed, before it or after it."""

    left: int | None = None
    before = True

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return self._deadly(found) if name in OPERATIONS else found

    def _deadly(self, does: Any) -> Any:
        def asked(*given: Any, **named: Any) -> Any:
            if self.left is None:
                return does(*given, **named)
            self.left -= 1
            if self.left <= 0 and self.before:
                raise Killed
            answer = does(*given, **named)
            if self.left <= 0:
                raise Killed
            return answer

        return asked


def _billed(on: Stage) -> Decimal:
    first, last = (START - timedelta(days=30)).date(), START.date()
    return sum((day.usd for day in billed_days.days(on.deps.state, "c", first, last)), Decimal(0))


@pytest.mark.parametrize("scenario", ["a re-export", "tags that are back-filled", "a refund", "a late line"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_read_that_is_killed_anywhere_comes_to_the_same_cents(tmp_path: Path, dialect: str, scenario: str) -> None:
    """Kills at random operations, one after another; between two of them a bill that is whole counts or none does."""
    stays, second = SCENARIOS[scenario]
    DIALECTS[dialect](FIRST, tmp_path / "bill-2026-11-08")
    DIALECTS[dialect](second, tmp_path / "bill-2026-11-09")
    rows = [row for row in [*stays, *second] if row["Tags"]["eks:cluster-name"] == "ml"]
    usd = sum((Decimal(row["BilledCost"]) for row in rows), Decimal(0))
    rules = Rules("ml", BillScope(tags={"eks:cluster-name": "{cluster}"}))
    on, rng = Stage(), random.Random(f"{dialect} {scenario}")
    state = Deadly(on.world.clock)
    on.deps = replace(on.deps, state=state, bills=FocusBills(str(tmp_path / "*"), rules))
    for left in (rng.randrange(1, 4), rng.randrange(4, 9), rng.randrange(6, 14), rng.randrange(10, 40)):
        state.left, state.before = left, rng.random() < 0.5
        with suppress(Killed):
            billing_import(on.deps, BillExported(cluster="c", uri="bill"))
        state.left = None
        assert _billed(on) <= usd + Decimal("0.005")
        on.wait(700)
    billing_import(on.deps, BillExported(cluster="c", uri="bill"))
    assert _billed(on) == usd
