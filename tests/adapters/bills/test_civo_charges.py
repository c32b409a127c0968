"""Civo's charges as a bill: windows, horizon, and what is missing."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from civo_server import REGION, TOKEN, Civo, Fault, serving
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_cloud import world

from pilotlight.adapters.bills.civo_charges import CivoBills
from pilotlight.adapters.civo_api import CivoApi
from pilotlight.codec.bills.rates import read_rates
from pilotlight.errors import Forbidden, Unavailable
from pilotlight.world.world_clock import VirtualClock

RATES = read_rates(b"charges: [{code: gpu, usd_per_hour: 2, source: t, date: 2026-11-01}]", "rates")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
START, END = datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)


class Account(NamedTuple):
    """Civo's side and ours."""

    civo: Civo
    bills: CivoBills


@pytest.fixture
def here() -> Iterator[Account]:
    """An account with one charge of two hours."""
    civo = Civo(world())
    civo.charges = [_charge("2026-11-19T10:00:00Z", 2)]
    with serving(civo) as url:
        api = CivoApi(TOKEN, REGION, url=url, sleep=lambda _: None)
        yield Account(civo, CivoBills(api, RATES, VirtualClock(NOW)))


def _charge(since: str, hours: int, **fields: object) -> dict[str, object]:
    end = datetime.fromisoformat(since) + timedelta(hours=hours)
    return {"code": "gpu", "label": "n", "from": since, "to": end.isoformat(), "num_hours": hours, **fields}


def test_a_long_period_is_asked_for_in_windows_and_counts_once(here: Account) -> None:
    """Each window is at most 31 days and ends at the present; a charge told in both counts once."""
    bill = here.bills.read(START, END)
    assert sum(1 for _, path, _ in here.civo.calls if path == "/v2/charges") == 2
    assert (sum(row.usd for row in bill.days), bill.horizon, bill.source) == (Decimal(4), NOW, "civo-LON1")


def test_a_day_with_what_cannot_be_counted_is_in_doubt(here: Account) -> None:
    """A charge without a price is told of, and does not stop the rest."""
    here.civo.charges += [_charge("2026-11-10T00:00:00Z", 3, code="new")]
    bill = here.bills.read(START, END)
    assert (bill.horizon, sum(row.usd for row in bill.days)) == (NOW, Decimal(4))
    assert bill.doubtful == (date(2026, 11, 10),)
    assert ["code: 'new'" in finding.message for finding in bill.findings] == [True]


def test_an_answer_that_is_no_list_bills_nothing(here: Account) -> None:
    """One finding, no days, and a horizon at the beginning."""
    here.civo.charges = {"result": "success"}
    bill = here.bills.read(START, END)
    assert (bill.days, bill.horizon, len(bill.findings)) == ((), START, 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
GOOD = _charge("2026-11-19T10:00:00Z", 2)
BAD = st.sampled_from(["code", "from", "to", "num_hours"]).map(lambda k: {**GOOD, k: None})


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON | st.lists(JSON | BAD, min_size=1, max_size=4))
def test_a_malformed_answer_is_findings_over_the_wire(here: Account, answer: Any) -> None:
    """Two hundred answers that hold no whole charge: no dollar is billed, and what is wrong is told."""
    here.civo.charges = answer
    bill = here.bills.read(START, END)
    assert sum(row.usd for row in bill.days) == 0
    assert bill.findings or answer == []


def test_what_the_service_refuses_is_its_own_kind_of_error(here: Account) -> None:
    """No rights, and no answer, are told apart; the key is in neither."""
    for what, kind in (((401, {"result": "requires_authentication"}), Forbidden), ("cut", Unavailable)):
        here.civo.faults = [Fault(what)] * 3
        with pytest.raises(kind) as raised:
            here.bills.read(START, END)
        assert TOKEN not in json.dumps(str(raised.value))
        here.civo.faults = []
